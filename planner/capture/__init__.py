"""Capture of real models as graphs. torch is imported when a function is called, never by importing this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.errors import MissingDependencyError

if TYPE_CHECKING:
    from planner.capture.pricing import register_price
    from planner.capture.torch_ import capture_inference, capture_training
    from planner.graph import Graph

__all__ = ["capture", "capture_inference", "capture_named", "capture_training", "register_price"]

_WHERE = {"capture_inference": "torch_", "capture_training": "torch_", "register_price": "pricing"}


def _load(module: str) -> Any:
    from importlib import import_module

    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("capture needs torch; install offload-planner[torch]") from error
    return import_module(f"planner.capture.{module}")


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(_load(_WHERE[name]), name)
    raise AttributeError(f"module 'planner.capture' has no attribute {name!r}")


def capture(model: object, inputs: object = None, *, mode: str = "train", **options: Any) -> Graph:
    """Capture whatever names or is a model.

    Parameters
    ----------
    model : str, config, module or callable
        A name, path or ``"module:factory"`` (see `capture_named`); a transformers config; a torch module or a function
        that builds one, then with ``inputs``.
    inputs : tensor, tuple or dict, optional
        Arguments of the module.
    mode : {"train", "inference", "prefill", "decode"}
        The last two for names and configs only.
    **options
        Of `capture_named`, `capture_training` or `capture_inference`.

    Returns
    -------
    Graph

    Raises
    ------
    CaptureError
        The model cannot be turned into a static graph.
    MissingDependencyError
        torch or transformers is absent.
    """
    from planner.errors import CaptureError

    if isinstance(model, str):
        return capture_named(model, mode=mode, **options)
    torch_ = _load("torch_")
    hf = _load("models_hf")
    if hf.is_config(model) and not callable(model):
        measure = options.pop("measure", False)
        return torch_.with_durations(hf.trace_config(model, mode, **options), measure)  # type: ignore[no-any-return]
    if inputs is None:
        raise CaptureError("a torch module needs inputs; pass the tensors it is called with")
    if mode not in ("train", "inference"):
        raise CaptureError(f"mode {mode!r} needs a transformers config or a model's name")
    function = torch_.capture_training if mode == "train" else torch_.capture_inference
    return function(model, inputs, **options)  # type: ignore[no-any-return]


def capture_named(
    source: str, *, mode: str = "train", batch: int = 1, seq: int | None = None, optimizer: str | None = None,
    dtype: str | None = "bf16", layers: int | None = None, name: str | None = None, master_weights: bool = False,
    measure: bool = False,
) -> Graph:
    """Capture a model named by a string.

    Parameters
    ----------
    source : str
        gpt2, gpt2-xl, llama3-8b, bert-base, vit-b, resnet50, vgg19, unet or moe; the path of a transformers
        ``config.json``; or ``"module:factory"``, a function that returns a transformers config, ``(module, inputs)``
        or ``(module, inputs, loss, targets)``.
    mode : {"train", "prefill", "decode", "inference"}
    batch : int
        Sequences or images.
    seq : int, optional
        Tokens of a sequence (decode: of the KV cache), or the side of an image for vgg19 and unet.
    optimizer : {None, "adamw", "sgd"}
        Training only.
    dtype : str, optional
        Of parameters and floating-point inputs.
    layers : int, optional
        Fewer or more layers than the model has.
    name : str, optional
        Of the graph.
    master_weights : bool
        With an optimizer: also fp32 copies of the parameters.
    measure : bool
        Run each kernel on this machine and state measured durations.

    Raises
    ------
    CaptureError
        The source is not known, or the model cannot be turned into a static graph.
    MissingDependencyError
        torch or transformers is absent.
    """
    captured = _load("named").trace_named(
        source, mode=mode, batch=batch, seq=seq, optimizer=optimizer, dtype=dtype, layers=layers, name=name,
        master_weights=master_weights)
    return _load("torch_").with_durations(captured, measure)  # type: ignore[no-any-return]
