"""Prefill and decode of causal language models: the KV cache as outputs, or as state that is changed in place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.func import functional_call

from planner.capture.assemble import Captured
from planner.capture.fakes import dtype_of, fake_state, new_fake_mode
from planner.capture.torch_ import trace_inference
from planner.capture.trace import Result, Source
from planner.errors import CaptureError

__all__ = ["trace_serving"]


class Written:
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

    def get_query_offset(self, *_: Any) -> int:
        return self.get_seq_length()

    def get_mask_sizes(self, length: Any, *_: Any) -> tuple[Any, int]:
        return length, 0


class InPlace(Written):
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


class Serving(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Prefill or decode of a causal model; logits of the last token only."""

    def __init__(self, build: Callable[[], torch.nn.Module]) -> None:
        super().__init__()
        self.model = build()
        names = inspect.signature(self.model.forward).parameters
        self.cache_name = "cache" if "cache" in names else "past_key_values"

    def forward(self, input_ids: torch.Tensor, position: torch.Tensor, kv: list[Any] | None = None) -> Any:
        cache = Written() if kv is None else InPlace(kv, position)
        out = self.model(input_ids=input_ids, position_ids=position[None].expand(input_ids.shape[0], -1),
                         use_cache=True, logits_to_keep=1, **{self.cache_name: cache})
        return out.logits, cache.pairs


def _describe(out: Any) -> list[tuple[torch.Tensor, Result]]:
    logits, pairs = out
    found = [(logits, Result("logits", "output"))]
    for layer, pair in sorted(pairs.items()):
        found += [(t, Result(f"kv.{layer}.{part}", "kv")) for part, t in zip(("key", "value"), pair, strict=True)]
    return found


def _cache_shapes(
    build: Callable[[], torch.nn.Module], dtype: str | None, model_type: str
) -> list[tuple[tuple[int, int], ...]]:
    """Return (heads, width) of key and value of each layer, seen in a pass over one token."""
    mode = new_fake_mode()
    with mode, torch.no_grad():
        model = Serving(build)
        params, buffers, _ = fake_state(model, mode, dtype_of(dtype), "cpu")
        token = (torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
        try:
            _, pairs = functional_call(model, {**params, **buffers}, token)
        except (AttributeError, TypeError, RuntimeError) as error:
            raise CaptureError(f"{model_type!r} keeps no plain KV cache: {error}") from error
    return [tuple((int(t.shape[1]), int(t.shape[3])) for t in pair) for _, pair in sorted(pairs.items())]


def trace_serving(
    build: Callable[[], torch.nn.Module], mode: str, *, batch: int, seq: int, dtype: str | None, name: str,
    model_type: str,
) -> Captured:
    """Capture a prefill of ``seq`` tokens, or a decode step on a cache of ``seq`` tokens.

    Raises
    ------
    CaptureError
        The model keeps something else than keys and values of shape (batch, heads, tokens, width).
    """
    length = seq if mode == "prefill" else 1
    inputs: dict[str, Any] = {
        "input_ids": torch.empty(batch, length, dtype=torch.int64, device="meta"),
        "position": torch.empty(length, dtype=torch.int64, device="meta"),
    }
    shapes = _cache_shapes(build, dtype, model_type)
    state: dict[str, Source] = {}
    if mode == "decode":
        inputs["kv"] = [tuple(torch.empty(batch, heads, seq, width, device="meta") for heads, width in pair)
                        for pair in shapes]
        state = {f"kv.{2 * i + j}": Source(f"kv.{i}.{part}", "kv", "any", "home")
                 for i in range(len(shapes)) for j, part in enumerate(("key", "value"))}
    return trace_inference(lambda: Serving(build), inputs, dtype=dtype, name=name, state=state, describe=_describe,
                           prefix="model.")
