"""Operations, bytes and dtype of one kernel call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from planner.capture.elementwise import per_element
from planner.capture.fakes import short_dtype
from planner.capture.flops import heavy_flops, looks_heavy
from planner.errors import CaptureError

__all__ = ["Price", "PriceRule", "price_call", "register_price", "tensors_in", "view_bytes"]

#: ``rule(args, kwargs, result)`` → (operations, bytes).
PriceRule = Callable[[tuple[Any, ...], Mapping[str, Any], Any], tuple[int, int]]

_REGISTERED: dict[str, PriceRule] = {}

#: Kernels that fetch rows by index: they read as many bytes as they write, not the whole table.
_GATHER = {"embedding", "gather", "index_select", "index", "take", "_unsafe_index"}
#: Kernels that change a part of their first operand, as large as their source.
_SCATTER = {"index_copy_", "index_put_", "_index_put_impl_", "index_add_", "scatter_", "scatter_add_"}
#: Kernels that overwrite without reading.
_OVERWRITE = {"copy_", "fill_", "zero_", "bernoulli_", "uniform_", "normal_", "exponential_"}


@dataclass(frozen=True, slots=True)
class Price:
    """Cost of one call: operations, bytes of memory traffic, and the dtype whose speed counts."""

    flops: int
    bytes: int
    dtype: str


def register_price(op: str, rule: PriceRule) -> None:
    """Price an operation that the package does not know.

    Parameters
    ----------
    op : str
        Qualified name without overload, e.g. ``"mylib::fused_mlp"``.
    rule : callable
        ``rule(args, kwargs, result) -> (flops, bytes)``, called with fake tensors.
    """
    if "::" not in op:
        raise CaptureError(f"{op!r}: give the qualified name, e.g. 'mylib::{op}'")
    _REGISTERED[op] = rule


def tensors_in(value: object) -> list[torch.Tensor]:
    """Return the tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for part in value for t in tensors_in(part)]
    return []


def view_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes that a kernel touches through this view (an expanded dimension is read once)."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= int(size) if stride else min(int(size), 1)
    return count * int(tensor.element_size())


def price_call(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any,
    mutated: Iterable[torch.Tensor], fresh: Iterable[torch.Tensor], default: str, rules: Mapping[str, PriceRule],
) -> Price:
    """Price one call.

    Parameters
    ----------
    func : OpOverload
    args, kwargs, out
        Operands and result as fake tensors.
    mutated, fresh : iterable of Tensor
        Operands changed in place, and results with storage of their own.
    default : str
        Dtype of calls that touch no floating-point tensor.
    rules : mapping of str to callable
        The caller's own price rules by qualified name; they win.

    Raises
    ------
    CaptureError
        Nothing is known of the operation.
    """
    operands = tensors_in([args, kwargs])
    new, changed = list(fresh), list(mutated)
    name = func._schema.name
    rule = rules.get(name) or _REGISTERED.get(name)
    if rule is not None:
        flops, nbytes = rule(args, kwargs, out)
        return Price(int(flops), int(nbytes), _widest([*operands, *new], default))
    packet = func._overloadpacket
    heavy = heavy_flops(packet, args, kwargs, out)
    if heavy is not None:
        return Price(heavy, sum(map(view_bytes, (*operands, *new))), _first(operands, default))
    factor = per_element(func)
    if factor is None:
        raise _unpriced(name)
    floating = any(t.is_floating_point() for t in (*operands, *new))
    largest = max((int(t.numel()) for t in (*operands, *new)), default=0)
    if name.split("::")[-1] in _GATHER:
        largest = max((int(t.numel()) for t in new), default=0)
    # Integer arithmetic (positions, masks) is priced by its bytes alone.
    flops = factor * largest if floating else 0
    return Price(flops, _traffic(name, operands, changed, new), _widest([*operands, *new], default))


def _traffic(name: str, operands: list[torch.Tensor], changed: list[torch.Tensor], new: list[torch.Tensor]) -> int:
    short = name.split("::")[-1]
    written = sum(map(view_bytes, new))
    if short.endswith("_like") or short.startswith("new_"):
        return written
    if short in _GATHER:
        return 2 * written + sum(view_bytes(t) for t in operands if not t.is_floating_point())
    if short in _SCATTER:
        rest = [t for t in operands if all(t is not c for c in changed)]
        source = max((view_bytes(t) for t in rest if t.is_floating_point()), default=0)
        return sum(map(view_bytes, rest)) + source * (1 if short in ("index_copy_", "scatter_") else 2)
    again = 0 if short in _OVERWRITE else sum(map(view_bytes, changed))
    return sum(map(view_bytes, operands)) + again + written


def _first(tensors: list[torch.Tensor], default: str) -> str:
    return next((short_dtype(t.dtype) for t in tensors if t.is_floating_point()), default)


def _widest(tensors: list[torch.Tensor], default: str) -> str:
    floating = [t for t in tensors if t.is_floating_point() or t.is_complex()]
    return short_dtype(max(floating, key=lambda t: t.element_size()).dtype) if floating else default


def _unpriced(name: str) -> CaptureError:
    what = "looks like a product, convolution or attention and has no flop formula" if looks_heavy(name) else \
        "has no price rule, so its time is unknown"
    return CaptureError(f"{name} {what}; pass price={{'{name}': rule}} or call planner.capture.register_price"
                        f"('{name}', rule), with rule(args, kwargs, result) -> (flops, bytes)")
