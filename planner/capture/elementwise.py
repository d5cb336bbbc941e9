"""Arithmetic of kernels that are priced by their size: norms, softmax, reductions, pooling, copies, random numbers.

Counts per element are those of a plain fused implementation. They hardly matter, since such kernels are bound by the
memory they touch, but a kernel missing here is an error rather than free.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["per_element"]

#: Operations per element of the larger side (input or output) → kernels. 0: the kernel only moves bytes.
_KERNELS = {
    0: """
        copy reflection_pad1d reflection_pad3d replication_pad3d nonzero
        embedding gather index_select index take _unsafe_index index_copy index_copy_ scatter scatter_
        masked_scatter slice_scatter select_scatter slice_backward select_backward diagonal_backward cat stack
        repeat repeat_interleave roll flip constant_pad_nd reflection_pad2d replication_pad2d tril triu im2col
        upsample_nearest2d pixel_shuffle pixel_unshuffle channel_shuffle copy_ clone _to_copy contiguous
        _reshape_copy view_copy full zeros ones scalar_tensor eye one_hot full_like zeros_like ones_like new_zeros
        new_ones new_full zero_ fill_ fill lift_fresh_copy lift_fresh masked_fill masked_fill_
    """,
    1: """
        floor_divide _adaptive_avg_pool3d _embedding_bag
        mean sum amax amin max min prod any all argmax argmin cumsum cumprod bincount histc nll_loss_forward
        nll_loss_backward nll_loss2d_forward nll_loss2d_backward embedding_dense_backward index_put index_put_
        _index_put_impl_ _unsafe_index_put index_add index_add_ scatter_add scatter_add_ scatter_reduce
        unfold_backward col2im max_pool2d_with_indices_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward
        native_dropout_backward arange linspace rsub nonzero_static _foreach_mul_ _foreach_mul _foreach_add_
        _foreach_add
    """,
    2: "linalg_vector_norm norm native_dropout _foreach_norm",
    3: "var std var_mean std_mean addcmul addcdiv",
    4: """
        _softmax_backward_data _log_softmax_backward_data logsumexp topk multinomial upsample_nearest2d_backward
        bernoulli_ bernoulli rand rand_like randint randint_like uniform_ binary_cross_entropy
        binary_cross_entropy_backward
    """,
    5: "_softmax _log_softmax _safe_softmax _fused_rms_norm glu",
    6: "glu_backward",
    8: """
        _native_batch_norm_legit_no_training
        native_layer_norm native_batch_norm _native_batch_norm_legit cudnn_batch_norm native_group_norm
        upsample_bilinear2d upsample_bilinear2d_backward _upsample_bilinear2d_aa randn randn_like randperm normal_
        exponential_
    """,
    9: "max_pool2d_with_indices avg_pool2d avg_pool2d_backward",
    10: "_fused_rms_norm_backward sort unique",
    12: "native_batch_norm_backward cudnn_batch_norm_backward native_group_norm_backward",
    14: "native_layer_norm_backward",
    15: "_fused_adamw_ _fused_adam_",
    16: "grid_sampler_2d searchsorted bucketize",
    27: "avg_pool3d max_pool3d_with_indices",
    32: "upsample_bicubic2d",
}
_PER_ELEMENT = {name: count for count, names in _KERNELS.items() for name in names.split()}


def per_element(func: Any) -> int | None:
    """Return the operations per element of a kernel that is priced by its size; None if nothing is known of it."""
    name = func._schema.name.split("::")[-1]
    if func._schema.name.startswith("aten::") and name in _PER_ELEMENT:
        return _PER_ELEMENT[name]
    if torch.Tag.pointwise in func.tags:
        return 1
    # The gradient of a pointwise function is pointwise as well, with its derivative to evaluate.
    forward = getattr(torch.ops.aten, name.removesuffix("_backward"), None) if name.endswith("_backward") else None
    overloads = forward.overloads() if forward is not None else []
    return 3 if any(torch.Tag.pointwise in getattr(forward, o).tags for o in overloads) else None
