"""Arithmetic of matrix products, convolutions and attention.

`torch.utils.flop_counter` prices these, with one gap that is closed here: the fused attention kernel of the
CPU build, without which a Llama comes out 14 % low. As there, a multiply-add is two operations and a causal mask does
not halve attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

__all__ = ["attention_backward_flops", "attention_flops", "heavy_flops", "looks_heavy"]

_aten = torch.ops.aten


def attention_flops(query: Any, key: Any, value: Any) -> int:
    """Return the operations of softmax(q kᵀ) v; shapes (batch, heads, length, width), fewer key heads allowed."""
    b, h, sq, d = query.shape
    return int(2 * b * h * sq * key.shape[2] * (d + value.shape[3]))


def attention_backward_flops(query: Any, key: Any, value: Any) -> int:
    """Return the operations of its gradient: the scores again, then four products."""
    b, h, sq, d = query.shape
    return int(2 * b * h * sq * key.shape[2] * (3 * d + 2 * value.shape[3]))


def _linear(args: tuple[Any, ...]) -> int:
    return int(2 * math.prod(args[0].shape) * args[1].shape[0])


def _grouped(args: tuple[Any, ...]) -> int:
    """Products of groups of rows with one matrix each: every row (or inner element) is used once."""
    a, b = args[:2]
    share = a.shape[0] if a.dim() == 3 and b.dim() == 2 else 1
    return int(2 * a.numel() * b.shape[-1] // max(share, 1))


_OWN: dict[Any, Callable[[tuple[Any, ...]], int]] = {
    _aten._scaled_dot_product_flash_attention_for_cpu: lambda a: attention_flops(*a[:3]),
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda a: attention_backward_flops(*a[1:4]),
    # The registry's rules refuse grouped key heads; these are the same formulas without that.
    _aten._scaled_dot_product_flash_attention: lambda a: attention_flops(*a[:3]),
    _aten._scaled_dot_product_flash_attention_backward: lambda a: attention_backward_flops(*a[1:4]),
    _aten._scaled_dot_product_cudnn_attention: lambda a: attention_flops(*a[:3]),
    _aten._scaled_dot_product_cudnn_attention_backward: lambda a: attention_backward_flops(*a[1:4]),
    _aten._scaled_dot_product_efficient_attention: lambda a: attention_flops(*a[:3]),
    _aten._scaled_dot_product_efficient_attention_backward: lambda a: attention_backward_flops(*a[1:4]),
    _aten.linear: _linear,
    _aten._grouped_mm: _grouped,
    _aten.dot: lambda a: 2 * int(a[0].numel()),
    _aten.mv: lambda a: 2 * int(a[0].numel()),
    _aten.addmv: lambda a: 2 * int(a[1].numel()),
}


def heavy_flops(packet: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> int | None:
    """Return the operations of a product, convolution or attention kernel; None if it is none that is known."""
    if packet in _OWN:
        return _OWN[packet](args)
    rule = flop_registry.get(packet)
    return None if rule is None else int(rule(*args, **kwargs, out_val=out))


_HEAVY_WORDS = ("mm", "matmul", "conv", "attention", "linear", "einsum", "bmm", "lstm", "gru", "rnn", "sdp", "cdist",
                "fft", "cholesky", "solve", "svd", "eig", "qr", "inv")
_NOT_HEAVY = ("linalg_vector_norm", "comm", "inverse_indices", "invert")


def looks_heavy(name: str) -> bool:
    """Tell whether an op's name suggests that a price per element would be far off."""
    short = name.split("::")[-1].lower()
    return any(w in short for w in _HEAVY_WORDS) and not any(w in short for w in _NOT_HEAVY)
