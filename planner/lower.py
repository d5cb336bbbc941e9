"""Lower a problem to the one form that checker, replay, oracle and solvers read.

Aliases become their root storage (home and keep merged), a write to an alias of a live storage becomes an update, the
workspace of an op becomes the tensor ``op@workspace`` that it writes, a split tensor becomes pieces ``w#0``, ``w#1``, …,
durations that are not stated come from the machine's roofline, and ``reads`` includes what is updated.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from planner.errors import Fault, InputError
from planner.graph import Op, Placement, Tensor
from planner.units import LIMIT

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["Lowered", "lower"]


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
    warnings: list[str] = []
    tensors, ops = _merge_aliases(problem.graph.tensors, problem.graph.ops, faults)
    tensors, ops = _add_workspace(tensors, ops)
    ops = _add_durations(problem, ops, faults)
    if problem.rules.split:
        tensors, ops = _split(problem, tensors, ops)
    pinned = _pins(problem, tensors, faults)
    _check_tiers(problem, tensors, ops, faults)
    total = sum(t.size for t in tensors) + max((problem.machine.tiers[0].granule, 1)) * len(tensors)
    if total > LIMIT:
        faults.append(Fault("tensors", f"all sizes together are {total} bytes, more than 2^62"))
    if sum(op.duration or 0 for op in ops) > LIMIT:
        faults.append(Fault("ops", "all durations together are more than 2^62 ns"))
    if faults:
        raise InputError(faults)
    _warn(problem, tensors, ops, warnings)
    return Lowered(tuple(tensors), tuple(ops), pinned, tuple(warnings))


def _merge_aliases(
    tensors: Sequence[Tensor], ops: Sequence[Op], faults: list[Fault]
) -> tuple[list[Tensor], list[Op]]:
    root = {t.name: t.alias_of or t.name for t in tensors}
    merged: dict[str, Tensor] = {t.name: t for t in tensors if t.alias_of is None}
    for t in tensors:
        if t.alias_of is None or t.alias_of not in merged:
            continue
        base = merged[t.alias_of]
        home, keep = base.home, base.keep
        if t.home and home != t.home:
            if home and "any" in (home, t.home):
                faults.append(Fault(f"tensor {t.name}", f"home {t.home!r} conflicts with {home!r} of its storage {base.name!r}"))
            home = t.home if not home else tuple(dict.fromkeys((*home, *t.home)))
        if t.keep is not None and keep not in (None, t.keep):
            faults.append(Fault(f"tensor {t.name}", f"keep {t.keep!r} conflicts with {keep!r} of its storage {base.name!r}"))
        merged[base.name] = replace(base, home=home, keep=keep or t.keep)
    live = {t.name for t in merged.values() if t.home}
    stale: dict[str, str] = {}
    written: dict[str, set[str]] = {}
    out: list[Op] = []
    for i, op in enumerate(ops):
        faults += [
            Fault(f"ops[{i}].reads", f"op {op.name!r} reads {n!r} after {stale[n]!r} overwrote it in place")
            for n in (*op.reads, *op.updates) if n in stale
        ]
        updates = dict.fromkeys(root[n] for n in op.updates)
        writes: dict[str, None] = {}
        for n in op.writes:
            r = root[n]
            if r in live:
                if merged[r].kind in ("input", "output"):
                    faults.append(Fault(f"ops[{i}].writes", f"{n!r} overwrites the protected {merged[r].kind} {r!r} in place"))
                updates[r] = None
                stale.update(dict.fromkeys((written.get(r, set()) | {r}) - {n}, op.name))
            else:
                writes[r] = None
            written.setdefault(r, set()).add(n)
        live.update(writes)
        reads = dict.fromkeys((*(root[n] for n in op.reads), *updates))
        placements = tuple(
            Placement(tuple(sorted((root[n], tier) for n, tier in p.at)), p.duration) for p in op.placements
        )
        out.append(replace(
            op, reads=tuple(reads), writes=tuple(writes), updates=tuple(updates), placements=placements,
            recomputable=op.recomputable and not updates, after=tuple(dict.fromkeys(op.after)),
        ))
    for t in merged.values():
        if t.keep is not None and t.name not in live:
            faults.append(Fault(f"tensor {t.name}", "is kept but no op writes it and it has no home"))
    return list(merged.values()), out


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
            faults.append(Fault(f"ops[{i}]", f"the time of op {op.name!r} is unknown: it has no duration, flops or bytes"))
        elif compute is None:
            faults.append(Fault(f"ops[{i}]", f"op {op.name!r} has no duration and machine {problem.machine.name!r} "
                                "states no compute speed; give the op a duration or the machine a 'compute' entry"))
        else:
            from planner.cost.roofline import roofline_ns

            try:
                out.append(replace(op, duration=roofline_ns(op.flops, op.bytes, op.dtype, compute)))
            except InputError as error:
                faults += [Fault(f"ops[{i}]", f"op {op.name!r}: {f}") for f in error.faults]
    return out


def _split(problem: Problem, tensors: list[Tensor], ops: list[Op]) -> tuple[list[Tensor], list[Op]]:
    chunk = problem.rules.chunk
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


def _pins(problem: Problem, tensors: list[Tensor], faults: list[Fault]) -> dict[str, str]:
    pinned: dict[str, str] = {}
    names = [t.name for t in tensors if t.kind != "workspace"]
    alias = [(t.name, t.alias_of) for t in problem.graph.tensors if t.alias_of is not None]
    for pattern, tier in problem.rules.pin:
        if tier not in problem.machine.tier:
            faults.append(Fault(f"rules.pin.{pattern}", f"unknown tier {tier!r}; tiers are {sorted(problem.machine.tier)}"))
            continue
        hits = {n for n in names if fnmatch.fnmatchcase(n.split("#")[0], pattern)}
        roots = {r for a, r in alias if fnmatch.fnmatchcase(a, pattern)}
        hits |= {n for n in names if n.split("#")[0] in roots}
        if not hits:
            faults.append(Fault(f"rules.pin.{pattern}", "matches no tensor"))
        for n in sorted(hits):
            if pinned.setdefault(n, tier) != tier:
                faults.append(Fault(f"rules.pin.{pattern}", f"pins {n!r} to {tier!r}, another pattern to {pinned[n]!r}"))
    return pinned


def _check_tiers(problem: Problem, tensors: list[Tensor], ops: list[Op], faults: list[Fault]) -> None:
    machine, device = problem.machine, problem.machine.device.name
    used = {n for op in ops for n in op.reads}
    known = sorted(machine.tier)
    for t in tensors:
        if isinstance(t.home, tuple):
            faults += [Fault(f"tensor {t.name}", f"unknown home tier {h!r}; tiers are {known}")
                       for h in t.home if h not in machine.tier]
            routes = [machine.route(h, device) for h in t.home if h in machine.tier]
            if t.name in used and t.home and routes and all(r is None for r in routes):
                faults.append(Fault(f"tensor {t.name}", f"no link leads from its home {list(t.home)} to {device!r}, where ops read it"))
        if t.keep is not None and t.keep != "home":
            if t.keep not in machine.tier:
                faults.append(Fault(f"tensor {t.name}", f"unknown keep tier {t.keep!r}; tiers are {known}"))
            elif machine.route(device, t.keep) is None and t.keep not in (t.home if isinstance(t.home, tuple) else ()):
                faults.append(Fault(f"tensor {t.name}", f"no link leads from {device!r} to its keep tier {t.keep!r}"))
    for op in ops:
        for p in op.placements:
            for _, tier in p.at:
                if tier not in machine.tier:
                    faults.append(Fault(f"op {op.name}", f"placement names unknown tier {tier!r}; tiers are {known}"))


def _warn(problem: Problem, tensors: list[Tensor], ops: list[Op], warnings: list[str]) -> None:
    read = {n for op in ops for n in op.reads}
    idle = [t.name for t in tensors if t.home and t.name not in read and t.keep is None]
    if idle:
        warnings.append(f"{len(idle)} tensor(s) with a home are never used and stay where they are: {', '.join(idle[:5])}")
    kept = {t.name for t in tensors if t.keep is not None}
    for op in ops:
        if op.writes and not op.updates and not any(n in read or n in kept for n in op.writes):
            warnings.append(f"op {op.name!r} is run although nothing uses its results")
    for k in problem.machine.links:
        if k.bandwidth > 10**12:
            warnings.append(f"link {k.src}>{k.dst} has {k.bandwidth} B/s: more than device-memory class bandwidth")
