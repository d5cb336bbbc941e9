"""Lower a problem to the one form that checker, replay, oracle and solvers read.

Aliases become their root storage (home and keep merged), a write to an alias of a live storage becomes an update, the
workspace of an op becomes the tensor ``op@workspace`` that it writes, a split tensor becomes pieces ``w#0``, ``w#1`` …,
durations that are not stated come from the machine's roofline, and ``reads`` includes what is updated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from planner.aliases import merge_aliases
from planner.errors import Fault, InputError
from planner.graph import Op, Placement, Tensor
from planner.units import LIMIT

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["Lowered", "lower"]

#: More pieces than this and every algorithm would drown in them.
MOST_PIECES = 1_000_000


@dataclass(frozen=True)
class Lowered:
    """A problem's graph in lowered form.

    Attributes
    ----------
    tensors : tuple of Tensor
        Storages only; ``alias_of`` is None.
    ops : tuple of Op
        ``reads`` holds every operand that must be valid (updates included, no duplicates), ``duration`` is an
        integer, ``workspace`` is 0, an op with updates is not recomputable.
    pinned : dict of str to str
        Tensor to the tier it is pinned to.
    warnings : tuple of str
    """

    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    pinned: dict[str, str]
    warnings: tuple[str, ...] = ()

    @cached_property
    def tensor(self) -> dict[str, Tensor]:
        """Tensors by name."""
        return {t.name: t for t in self.tensors}

    @cached_property
    def op(self) -> dict[str, Op]:
        """Ops by name."""
        return {o.name: o for o in self.ops}


def lower(problem: Problem) -> Lowered:
    """Lower a problem. See the module's text.

    Raises
    ------
    InputError
        Lists every fault that only shows with graph and machine together.
    """
    faults: list[Fault] = []
    from planner.lower_faults import pins, tier_faults, warnings_of

    tensors, ops = merge_aliases(problem.graph.tensors, problem.graph.ops, faults)
    tensors, ops = _add_workspace(tensors, ops)
    ops = _add_durations(problem, ops, faults)
    ops = [_placed(i, op, problem.machine.device.name, faults) if op.placements else op for i, op in enumerate(ops)]
    if problem.rules.split:
        tensors, ops = _split(problem.rules.chunk, tensors, ops, faults)
    pinned = pins(problem, tensors, faults)
    faults += tier_faults(problem, tensors, ops)
    total = sum(t.size for t in tensors) + max(t.granule for t in problem.machine.tiers) * len(tensors)
    if total > LIMIT:
        faults.append(Fault("graph.tensors", f"all sizes together are {total} bytes, more than 2^62"))
    if sum(op.duration or 0 for op in ops) > LIMIT:
        faults.append(Fault("graph.ops", "all durations together are more than 2^62 ns"))
    if faults:
        raise InputError(faults)
    return Lowered(tuple(tensors), tuple(ops), pinned, warnings_of(problem, tensors, ops))


def _add_workspace(tensors: list[Tensor], ops: list[Op]) -> tuple[list[Tensor], list[Op]]:
    extra = [Tensor(f"{op.name}@workspace", op.workspace, kind="workspace") for op in ops if op.workspace]
    changed = [
        replace(op, writes=(*op.writes, f"{op.name}@workspace"), workspace=0) if op.workspace else op for op in ops
    ]
    return [*tensors, *extra], changed


def _add_durations(problem: Problem, ops: list[Op], faults: list[Fault]) -> list[Op]:
    compute = problem.machine.compute
    out: list[Op] = []
    for i, op in enumerate(ops):
        if op.duration is not None:
            out.append(op)
            continue
        if op.flops is None and op.bytes is None:
            faults.append(Fault(f"graph.ops[{i}]", f"the time of op {op.name!r} is unknown: it has no duration, flops or "
                                "bytes"))
        elif compute is None:
            faults.append(Fault(f"graph.ops[{i}]", f"op {op.name!r} has no duration and machine {problem.machine.name!r} "
                                "states no compute speed; give the op a duration or the machine a 'compute' entry"))
        else:
            from planner.cost.roofline import roofline_ns

            try:
                out.append(replace(op, duration=roofline_ns(op.flops, op.bytes, op.dtype, compute)))
            except InputError as error:
                faults += [Fault(f"graph.ops[{i}]", f"op {op.name!r}: {f}") for f in error.faults]
    return out


def _placed(i: int, op: Op, device: str, faults: list[Fault]) -> Op:
    """Leave out of placements what is on the device anyway, as programs do; each must say something of its own."""
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for j, p in enumerate(op.placements):
        at = tuple((n, tier) for n, tier in p.at if tier != device)
        where = f"graph.ops[{i}].placements[{j}].at"
        if not at:
            faults.append(Fault(where, f"places no operand off {device!r}; that is what 'duration' is for"))
        elif len(dict(at)) < len(at):
            faults.append(Fault(where, f"{dict(p.at)}: places one storage on two tiers"))
        elif at in found:
            faults.append(Fault(where, f"{dict(at)}: this placement has a duration already"))
        else:
            found[at] = p.duration
    return replace(op, placements=tuple(Placement(at, duration) for at, duration in found.items()))


def _split(
    chunk: int, tensors: Sequence[Tensor], ops: Sequence[Op], faults: list[Fault]
) -> tuple[list[Tensor], list[Op]]:
    total = sum(-(-t.size // chunk) for t in tensors)
    if total > MOST_PIECES:
        faults.append(Fault("rules.chunk", f"{chunk}: cuts the tensors into {total} pieces, more than {MOST_PIECES}"))
        return list(tensors), list(ops)
    pieces: dict[str, list[Tensor]] = {}
    for t in tensors:
        if t.size <= chunk or t.kind == "workspace":
            pieces[t.name] = [t]
            continue
        count = -(-t.size // chunk)
        sizes = [chunk] * (count - 1) + [t.size - chunk * (count - 1)]
        pieces[t.name] = [replace(t, name=f"{t.name}#{k}", size=s) for k, s in enumerate(sizes)]
    names = {name: tuple(p.name for p in parts) for name, parts in pieces.items()}

    def spread(listed: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(part for name in listed for part in names[name])

    changed = [
        replace(
            op, reads=spread(op.reads), writes=spread(op.writes), updates=spread(op.updates),
            placements=tuple(
                Placement(tuple(sorted((part, tier) for n, tier in p.at for part in names[n])), p.duration)
                for p in op.placements
            ),
        )
        for op in ops
    ]
    return [part for t in tensors for part in pieces[t.name]], changed
