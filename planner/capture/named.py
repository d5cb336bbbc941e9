"""Models by name, by config file, or by ``module:factory``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from planner.capture.assemble import Captured
from planner.capture.models_hf import config_from_file, is_config, kind_of, trace_config, transformers_library
from planner.capture.nets import VGG19, MoE, UNet
from planner.capture.torch_ import trace_inference, trace_training
from planner.errors import CaptureError

__all__ = ["NAMES", "trace_named"]

#: name → (config class, arguments). Dropout is 0 as in present-day pre-training.
_CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}),
    "gpt2-xl": ("GPT2Config", {"n_embd": 1600, "n_layer": 48, "n_head": 25, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
                               "attn_pdrop": 0.0}),
    "llama3-8b": ("LlamaConfig", {
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
        "tie_word_embeddings": False}),
    "bert-base": ("BertConfig", {"attention_probs_dropout_prob": 0.0}),
    "vit-b": ("ViTConfig", {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 1000}),
    "resnet50": ("ResNetConfig", {"num_labels": 1000}),
}


@dataclass(frozen=True)
class _Plain:
    """A torch network with the shapes of its inputs and targets for a batch and a sequence length or image side."""

    factory: Callable[[int | None], torch.nn.Module]
    inputs: Callable[[int, int], torch.Tensor]
    target: Callable[[int, int], torch.Tensor]
    seq: int


def _ints(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, dtype=torch.int64, device="meta")


def _images(batch: int, side: int) -> torch.Tensor:
    return torch.empty(batch, 3, side, side, device="meta")


_NETS = {
    "vgg19": _Plain(lambda _: VGG19(), _images, lambda b, _: _ints(b), 224),
    "unet": _Plain(lambda _: UNet(), _images, lambda b, s: _ints(b, s, s), 512),
    "moe": _Plain(lambda n: MoE(layers=n or 12), _ints, _ints, 1024),
}

NAMES = (*_CONFIGS, *_NETS)


def _last_axis_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, classes on axis 1 of images and on the last axis of sequences."""
    if output.dim() == 3:
        return functional.cross_entropy(output.flatten(0, 1).float(), target.flatten())
    return functional.cross_entropy(output.float(), target)


def trace_named(
    source: str, *, mode: str = "train", batch: int = 1, seq: int | None = None, optimizer: str | None = None,
    dtype: str | None = "bf16", layers: int | None = None, name: str | None = None, master_weights: bool = False,
) -> Captured:
    """Capture a model named by a string; see `planner.capture.capture_named`."""
    label = name or f"{source.rpartition('/')[2].removesuffix('.json')}-{mode}"
    common: dict[str, Any] = {"dtype": dtype, "name": label}
    training: dict[str, Any] = {**common, "optimizer": optimizer, "master_weights": master_weights}
    if mode not in ("train", "prefill", "decode", "inference"):
        raise CaptureError(f"mode {mode!r} is not known; use train, prefill, decode or inference")
    if mode != "train" and (optimizer is not None or master_weights):
        raise CaptureError(f"an optimizer has no effect in mode {mode!r}")
    if source in _CONFIGS or source.endswith(".json"):
        if source in _CONFIGS:
            kind, arguments = _CONFIGS[source]
            config = getattr(transformers_library(), kind)(**arguments)
        else:
            config = config_from_file(source)
        return _config(config, mode, batch, seq, layers, training)
    if source in _NETS:
        plain = _NETS[source]
        if mode in ("prefill", "decode"):
            raise CaptureError(f"{source!r} has no KV cache; use mode train or inference")
        if layers is not None and source != "moe":
            raise CaptureError(f"{source!r} has a fixed number of layers")
        length = seq or plain.seq
        inputs = plain.inputs(batch, length)
        if mode == "inference":
            return trace_inference(lambda: plain.factory(layers), inputs, **common)
        return trace_training(lambda: plain.factory(layers), inputs, loss=_last_axis_loss,
                              targets=[plain.target(batch, length)], **training)
    if ":" in source:
        return _factory(source, mode, batch, seq, layers, training)
    raise CaptureError(f"{source!r} is not a model; use one of {', '.join(NAMES)}, a config.json or 'module:factory'")


def _config(
    config: Any, mode: str, batch: int, seq: int | None, layers: int | None, training: dict[str, Any]
) -> Captured:
    if layers is not None:
        if not hasattr(config, "num_hidden_layers"):
            raise CaptureError(f"{config.model_type!r} has no number of layers to change")
        config.num_hidden_layers = layers
    if seq is not None and kind_of(config) == "image":
        raise CaptureError(f"{config.model_type!r} takes images of the size in its config; seq does not apply")
    length = seq or min(1024, getattr(config, "max_position_embeddings", 1024))
    return trace_config(config, mode, batch=batch, seq=length, **training)


def _factory(
    source: str, mode: str, batch: int, seq: int | None, layers: int | None, training: dict[str, Any]
) -> Captured:
    where, _, what = source.partition(":")
    try:
        made = getattr(importlib.import_module(where), what)
    except (ImportError, AttributeError) as error:
        raise CaptureError(f"{source!r} cannot be imported: {error}") from error
    # The factory says what it needs: a config, or (module, inputs) or (module, inputs, loss, targets).
    made = made() if callable(made) and not is_config(made) else made
    if is_config(made):
        return _config(made, mode, batch, seq, layers, training)
    if not isinstance(made, tuple) or len(made) not in (2, 4):
        raise CaptureError(f"{source!r} must return a transformers config, (module, inputs) or "
                           "(module, inputs, loss, targets)")
    if mode in ("prefill", "decode"):
        raise CaptureError(f"{source!r} gives a module; mode {mode!r} needs a transformers config")
    if layers is not None or seq is not None or batch != 1:
        raise CaptureError(f"{source!r} fixes its own shapes; batch, layers and seq do not apply")
    if mode == "inference":
        return trace_inference(made[0], made[1], dtype=training["dtype"], name=training["name"])
    extra = {"loss": made[2], "targets": made[3]} if len(made) == 4 else {}
    return trace_training(made[0], made[1], **extra, **training)
