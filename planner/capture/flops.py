"""Arithmetic of kernels: matrix products, convolutions and attention exactly, everything else per element.

`torch.utils.flop_counter` prices the first group, with one gap that is closed here: the fused attention kernel of the
CPU build, without which a Llama comes out 14 % low. As there, a multiply-add is two operations and a causal mask does
not halve attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

__all__ = ["attention_backward_flops", "attention_flops", "heavy_flops", "looks_heavy", "per_element"]

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


#: Operations per element of the larger side (input or output). 0: the kernel only moves bytes.
_PER_ELEMENT: dict[str, int] = {
    "_softmax": 5, "_log_softmax": 5, "_softmax_backward_data": 4, "_log_softmax_backward_data": 4,
    "_safe_softmax": 5, "logsumexp": 4,
    "native_layer_norm": 8, "native_layer_norm_backward": 14, "native_batch_norm": 8, "native_batch_norm_backward": 12,
    "_native_batch_norm_legit": 8, "cudnn_batch_norm": 8, "cudnn_batch_norm_backward": 12,
    "native_group_norm": 8, "native_group_norm_backward": 12, "_fused_rms_norm": 5, "_fused_rms_norm_backward": 10,
    "mean": 1, "sum": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "prod": 1, "any": 1, "all": 1, "argmax": 1, "argmin": 1,
    "var": 3, "std": 3, "var_mean": 3, "std_mean": 3, "cumsum": 1, "cumprod": 1, "linalg_vector_norm": 2, "norm": 2,
    "sort": 10, "topk": 4, "multinomial": 4, "unique": 10, "bincount": 1, "histc": 1,
    "nll_loss_forward": 1, "nll_loss_backward": 1, "nll_loss2d_forward": 1, "nll_loss2d_backward": 1,
    "embedding": 0, "embedding_dense_backward": 1, "gather": 0, "index_select": 0, "index": 0, "take": 0,
    "index_put": 1, "index_put_": 1, "_index_put_impl_": 1, "_unsafe_index": 0, "_unsafe_index_put": 1, "index_copy": 0, "index_copy_": 0, "index_add": 1, "index_add_": 1,
    "scatter": 0, "scatter_": 0, "scatter_add": 1, "scatter_add_": 1, "scatter_reduce": 1, "masked_scatter": 0,
    "slice_scatter": 0, "select_scatter": 0, "slice_backward": 0, "select_backward": 0, "diagonal_backward": 0,
    "cat": 0, "stack": 0, "repeat": 0, "repeat_interleave": 0, "roll": 0, "flip": 0, "constant_pad_nd": 0,
    "reflection_pad2d": 0, "replication_pad2d": 0, "tril": 0, "triu": 0, "unfold_backward": 1, "im2col": 0, "col2im": 1,
    "max_pool2d_with_indices": 9, "max_pool2d_with_indices_backward": 1, "avg_pool2d": 9, "avg_pool2d_backward": 9,
    "_adaptive_avg_pool2d": 1, "_adaptive_avg_pool2d_backward": 1, "max_pool3d_with_indices": 27,
    "upsample_nearest2d": 0, "upsample_nearest2d_backward": 4, "upsample_bilinear2d": 8, "upsample_bilinear2d_backward": 8,
    "upsample_bicubic2d": 32, "_upsample_bilinear2d_aa": 8, "grid_sampler_2d": 16,
    "pixel_shuffle": 0, "pixel_unshuffle": 0, "channel_shuffle": 0,
    "native_dropout": 2, "native_dropout_backward": 1,
    "copy_": 0, "clone": 0, "_to_copy": 0, "contiguous": 0, "_reshape_copy": 0, "view_copy": 0,
    "full": 0, "zeros": 0, "ones": 0, "scalar_tensor": 0, "arange": 1, "linspace": 1, "eye": 0, "one_hot": 0,
    "full_like": 0, "zeros_like": 0, "ones_like": 0, "new_zeros": 0, "new_ones": 0, "new_full": 0, "zero_": 0, "fill_": 0,
    "fill": 0, "lift_fresh_copy": 0, "lift_fresh": 0, "bernoulli_": 4, "bernoulli": 4, "rand": 4, "randn": 8, "rand_like": 4,
    "randn_like": 8, "randint": 4, "randint_like": 4, "randperm": 8, "uniform_": 4, "normal_": 8, "exponential_": 8,
    "addcmul": 3, "addcdiv": 3, "rsub": 1, "glu": 5, "glu_backward": 6, "masked_fill": 0, "masked_fill_": 0,
    "_fused_adamw_": 15, "_fused_adam_": 15, "searchsorted": 16, "bucketize": 16, "nonzero_static": 1,
    "binary_cross_entropy": 4, "binary_cross_entropy_backward": 4,
    "_foreach_norm": 2, "_foreach_mul_": 1, "_foreach_mul": 1, "_foreach_add_": 1, "_foreach_add": 1,
}


def per_element(func: Any) -> int | None:
    """Return the operations per element of a kernel that is priced by its size; None if nothing is known of it."""
    name = func._schema.name.split("::")[-1]
    if func._schema.name.startswith("aten::") and name in _PER_ELEMENT:
        return _PER_ELEMENT[name]
    return 1 if torch.Tag.pointwise in func.tags else None
