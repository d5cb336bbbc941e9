"""Models of the transformers library from a config object: built offline, without weights, with fused attention."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from planner.capture.assemble import Captured
from planner.capture.serving import trace_serving
from planner.capture.torch_ import trace_inference, trace_training
from planner.errors import CaptureError, MissingDependencyError

__all__ = ["config_from_file", "is_config", "kind_of", "trace_config", "transformers_library"]

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
        "seq2seq": library.AutoModelForSeq2SeqLM,
    }
    built = _with_attention(lambda **how: classes[kind].from_config(config, **how))
    if kind == "causal" and getattr(built, "loss_type", None) is None:
        built.loss_type = "ForCausalLM"  # its fallback, named so that it does not warn
    return built


def _with_attention(build: Callable[..., Any]) -> Any:
    """Build with this package's attention, or with what the model's own code offers where it takes no other."""
    for implementation in (_ATTENTION, "sdpa"):
        try:
            return build(attn_implementation=implementation)
        except (KeyError, ValueError, TypeError):
            continue
    return build()


def kind_of(config: Any) -> str:
    """Return which head and inputs a model has: causal, masked, seq2seq, image or base."""
    library = transformers_library()
    if hasattr(config, "image_size") or (hasattr(config, "embedding_size") and hasattr(config, "depths")):
        return "image"
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq"
    masked = type(config) in library.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING
    encoder = masked and not getattr(config, "is_decoder", False)
    causal = type(config) in library.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING
    if encoder or not causal:
        return "masked" if masked else "base"
    return "causal"


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
    if mode != "train" and (optimizer is not None or master_weights):
        raise CaptureError(f"an optimizer has no effect in mode {mode!r}")
    config = copy.deepcopy(config)  # it is changed below
    kind = kind_of(config)
    graph_name = name or f"{config.model_type}-{mode}"
    if mode in ("prefill", "decode"):
        if kind != "causal":
            raise CaptureError(f"{mode} needs a causal language model; {config.model_type!r} is not one")
        return trace_serving(lambda: _build(config, "causal"), mode, batch=batch, seq=seq, dtype=dtype, name=graph_name,
                             model_type=config.model_type)
    if kind == "image":
        size = getattr(config, "image_size", 224)
        sides = (size, size) if isinstance(size, int) else tuple(size)
        inputs = {"pixel_values": torch.empty(batch, config.num_channels, *sides, device="meta")}
        target = torch.empty(batch, dtype=torch.int64, device="meta")
    else:
        inputs = {"input_ids": torch.empty(batch, seq, dtype=torch.int64, device="meta")}
        target = torch.empty(batch, seq, dtype=torch.int64, device="meta")
        if kind == "seq2seq" and mode == "inference":
            inputs["decoder_input_ids"] = target
    if mode == "inference":
        return trace_inference(lambda: _build(config, kind), inputs, dtype=dtype, name=graph_name)
    if mode != "train":
        raise CaptureError(f"mode {mode!r} is not known; use train, prefill, decode or inference")
    if kind == "base":
        raise CaptureError(f"{config.model_type!r} has no language or image head, so there is no loss to train on")
    if kind in ("causal", "seq2seq"):
        config.use_cache = False
    if kind == "seq2seq":
        for token in ("decoder_start_token_id", "pad_token_id"):
            if getattr(config, token, None) is None:
                setattr(config, token, 0)  # which token does not matter to shapes
    return trace_training(
        lambda: _build(config, kind), {**inputs, "labels": target}, dtype=dtype, optimizer=optimizer,
        master_weights=master_weights, name=graph_name)
