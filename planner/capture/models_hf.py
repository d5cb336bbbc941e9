"""Models of the transformers library from a config object: built offline, without weights, with fused attention."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from planner.capture.assemble import Captured
from planner.capture.torch_ import trace_inference, trace_training
from planner.capture.trace import Result, Source
from planner.errors import CaptureError, MissingDependencyError

__all__ = ["config_from_file", "is_config", "trace_config", "transformers_library"]

_ATTENTION = "planner_fused"


def transformers_library() -> Any:
    """Return the transformers package, kept offline, with this package's attention registered."""
    # A config says everything; nothing may look for files on a hub.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import transformers
    except ImportError as error:
        raise MissingDependencyError("this needs transformers; install offload-planner[torch]") from error
    transformers.AttentionInterface.register(_ATTENTION, _attention)
    return transformers


def _attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, _mask: Any = None,
    dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None, **_: Any,
) -> tuple[torch.Tensor, None]:
    """Fused attention without a mask tensor: full batches without padding need none."""
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
    out = functional.scaled_dot_product_attention(
        query, key, value, dropout_p=dropout, scale=scaling, is_causal=bool(causal) and query.shape[2] > 1,
        enable_gqa=query.shape[1] != key.shape[1])
    return out.transpose(1, 2).contiguous(), None


def is_config(value: object) -> bool:
    """Tell whether this is a transformers config (without importing the library)."""
    return hasattr(value, "model_type") and hasattr(value, "to_dict")


def config_from_file(path: str | os.PathLike[str]) -> Any:
    """Return the config in a ``config.json``.

    Raises
    ------
    CaptureError
        The file cannot be read or names a model that this version of transformers does not have.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CaptureError(f"cannot be read as JSON: {error}", str(path)) from None
    if not isinstance(data, dict) or "model_type" not in data:
        raise CaptureError("a transformers config needs \"model_type\"", str(path))
    library = transformers_library()
    try:
        return library.AutoConfig.for_model(**data)
    except ValueError as error:
        raise CaptureError(f"model_type {data['model_type']!r}: {error}", str(path)) from None


def _build(config: Any, kind: str) -> torch.nn.Module:
    library = transformers_library()
    classes = {
        "causal": library.AutoModelForCausalLM, "masked": library.AutoModelForMaskedLM,
        "image": library.AutoModelForImageClassification, "base": library.AutoModel,
    }
    arguments: dict[str, Any] = {}
    if kind != "image" or hasattr(config, "num_attention_heads"):
        arguments["attn_implementation"] = _ATTENTION
    built: torch.nn.Module = classes[kind].from_config(config, **arguments)
    if kind == "causal" and getattr(built, "loss_type", None) is None:
        built.loss_type = "ForCausalLM"  # its fallback, named so that it does not warn
    return built


def _kind(config: Any) -> str:
    library = transformers_library()
    if hasattr(config, "image_size") or (hasattr(config, "embedding_size") and hasattr(config, "depths")):
        return "image"
    masked = type(config) in library.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING
    encoder = masked and not getattr(config, "is_decoder", False)
    causal = type(config) in library.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING
    if encoder or not causal:
        return "masked" if masked else "base"
    return "causal"


class _Written:
    """Cache of a prefill: what is handed in is the cache, so nothing is copied."""

    is_compileable = False
    is_sliding: list[bool] = []  # noqa: RUF012  read by transformers

    def __init__(self) -> None:
        self.pairs: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def update(self, key: torch.Tensor, value: torch.Tensor, layer: int, *_: Any, **__: Any) -> Any:
        self.pairs[layer] = (key, value)
        return key, value

    def get_seq_length(self, *_: Any) -> int:
        return 0

    def get_mask_sizes(self, length: Any, *_: Any) -> tuple[Any, int]:
        return length, 0


class _InPlace(_Written):
    """Cache of a decode step: full-length buffers, the new token written at its position."""

    def __init__(self, pairs: list[tuple[torch.Tensor, torch.Tensor]], position: torch.Tensor) -> None:
        super().__init__()
        self.pairs, self.position = dict(enumerate(pairs)), position

    def update(self, key: torch.Tensor, value: torch.Tensor, layer: int, *_: Any, **__: Any) -> Any:
        held = self.pairs[layer]
        for buffer, new in zip(held, (key, value), strict=True):
            buffer.index_copy_(2, self.position, new)
        return held

    def get_seq_length(self, *_: Any) -> int:
        return int(self.pairs[0][0].shape[2]) - 1


class _Serving(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Prefill or decode of a causal model; logits of the last token only."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.model = _build(config, "causal")
        names = inspect.signature(self.model.forward).parameters
        self.cache_name = "cache" if "cache" in names else "past_key_values"

    def forward(self, input_ids: torch.Tensor, position: torch.Tensor, kv: list[Any] | None = None) -> Any:
        cache = _Written() if kv is None else _InPlace(kv, position)
        out = self.model(input_ids=input_ids, position_ids=position[None].expand(input_ids.shape[0], -1),
                         use_cache=True, logits_to_keep=1, **{self.cache_name: cache})
        return out.logits, cache.pairs


def _describe(out: Any) -> list[tuple[torch.Tensor, Result]]:
    logits, pairs = out
    found = [(logits, Result("logits", "output"))]
    for layer, pair in sorted(pairs.items()):
        found += [(t, Result(f"kv.{layer}.{part}", "kv")) for part, t in zip(("key", "value"), pair, strict=True)]
    return found


def trace_config(
    config: Any, mode: str, *, batch: int, seq: int, optimizer: str | None = None, dtype: str | None = "bf16",
    name: str | None = None, master_weights: bool = False,
) -> Captured:
    """Capture a model from its transformers config.

    Parameters
    ----------
    config : transformers config
    mode : {"train", "prefill", "decode", "inference"}
        Prefill keeps the KV cache it writes; decode adds one token to a cache of ``seq`` tokens, in place.
    batch, seq : int
        Sequences (or images), and tokens of each.
    optimizer, dtype, name, master_weights
        As for `planner.capture.capture_training`.

    Raises
    ------
    CaptureError
        The mode does not fit the model, or the model's program is not static.
    """
    kind = _kind(config)
    graph_name = name or f"{config.model_type}-{mode}"
    if mode in ("prefill", "decode"):
        if kind != "causal":
            raise CaptureError(f"{mode} needs a causal language model; {config.model_type!r} is not one")
        return _serve(config, mode, batch, seq, dtype, graph_name)
    if kind == "image":
        size = getattr(config, "image_size", 224)
        sides = (size, size) if isinstance(size, int) else tuple(size)
        inputs = {"pixel_values": torch.empty(batch, config.num_channels, *sides, device="meta")}
        target = torch.empty(batch, dtype=torch.int64, device="meta")
    else:
        inputs = {"input_ids": torch.empty(batch, seq, dtype=torch.int64, device="meta")}
        target = torch.empty(batch, seq, dtype=torch.int64, device="meta")
    if mode == "inference":
        return trace_inference(lambda: _build(config, kind), inputs, dtype=dtype, name=graph_name)
    if mode != "train":
        raise CaptureError(f"mode {mode!r} is not known; use train, prefill, decode or inference")
    if kind == "base":
        raise CaptureError(f"{config.model_type!r} has no language or image head, so there is no loss to train on")
    if kind == "causal":
        config.use_cache = False
    return trace_training(
        lambda: _build(config, kind), {**inputs, "labels": target}, dtype=dtype, optimizer=optimizer,
        master_weights=master_weights, name=graph_name)


def _serve(config: Any, mode: str, batch: int, seq: int, dtype: str | None, name: str) -> Captured:
    length = seq if mode == "prefill" else 1
    inputs: dict[str, Any] = {
        "input_ids": torch.empty(batch, length, dtype=torch.int64, device="meta"),
        "position": torch.empty(length, dtype=torch.int64, device="meta"),
    }
    state: dict[str, Source] = {}
    if mode == "decode":
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        layers = range(config.num_hidden_layers)
        inputs["kv"] = [tuple(torch.empty(batch, heads, seq, width, device="meta") for _ in "kv") for _ in layers]
        state = {f"kv.{2 * i + j}": Source(f"kv.{i}.{part}", "kv", "any", "home")
                 for i in layers for j, part in enumerate(("key", "value"))}
    return trace_inference(lambda: _Serving(config), inputs, dtype=dtype, name=name, state=state, describe=_describe)
