"""Roofline time of an op: the slower of its arithmetic and its memory traffic, plus one launch.

With F operations at P operations per second, of which kernels reach the share e, and B bytes at W bytes per second,

    duration = max(ceil(10^9 · F / (P · e)), ceil(10^9 · B / W)) + launch      [ns]

in exact rational arithmetic, so the same inputs give the same nanosecond everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import InputError

if TYPE_CHECKING:
    from planner.machine import Compute

__all__ = ["roofline_ns"]

_NS = 1_000_000_000


def roofline_ns(flops: int | None, nbytes: int | None, dtype: str | None, compute: Compute) -> int:
    """Return the roofline duration of an op.

    Parameters
    ----------
    flops : int, optional
        Arithmetic operations; None and 0 need no dtype.
    nbytes : int, optional
        Bytes of device memory traffic; None is 0.
    dtype : str, optional
        Names the speed in ``compute.flops``. None will do where the machine states one speed only.
    compute : Compute
        Speeds of the tier where ops run.

    Returns
    -------
    int
        Nanoseconds, rounded up, launch included.

    Raises
    ------
    InputError
        Neither flops nor bytes are known, a count is negative, the machine has no speed for ``dtype``, or nothing
        that the op does has a stated speed.
    """
    if flops is None and nbytes is None:
        raise InputError("the roofline needs flops or bytes and has neither")
    if (flops or 0) < 0 or (nbytes or 0) < 0:
        raise InputError(f"flops {flops} and bytes {nbytes} cannot be negative")
    arithmetic = traffic = 0
    if flops:
        share = compute.efficiency
        per_second = _speed(dtype, compute)
        arithmetic = -(-flops * _NS * share.denominator // (per_second * share.numerator))
    if nbytes:
        if compute.memory_bandwidth is not None:
            traffic = -(-nbytes * _NS // compute.memory_bandwidth)
        elif not flops:
            raise InputError(f"{nbytes} bytes of traffic and no flops, and the machine states no memory_bandwidth")
    return max(arithmetic, traffic) + compute.launch


def _speed(dtype: str | None, compute: Compute) -> int:
    if dtype is None and len(compute.flops) == 1:
        return next(iter(compute.flops.values()))
    if dtype is None or dtype not in compute.flops:
        known = ", ".join(sorted(compute.flops)) or "none"
        raise InputError(f"the machine states no speed for dtype {dtype!r}; it has: {known}")
    return compute.flops[dtype]
