"""What only shows with graph, machine and rules together: pins, ways between tiers, and things probably not meant."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.errors import Fault
from planner.graph import Op, Tensor

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["pins", "tier_faults", "warnings_of"]


def pins(problem: Problem, tensors: Sequence[Tensor], faults: list[Fault]) -> dict[str, str]:
    """Return tensor → tier for every tensor that a pattern of the rules matches, by its own name or an alias."""
    pinned: dict[str, str] = {}
    if not problem.rules.pin:
        return pinned
    names = [t.name for t in tensors if t.kind != "workspace"]
    alias = [(t.name, t.alias_of) for t in problem.graph.tensors if t.alias_of is not None]
    for pattern, tier in problem.rules.pin:
        where = f"rules.pin.{pattern}"
        if tier not in problem.machine.tier:
            faults.append(Fault(where, f"unknown tier {tier!r}; tiers are {sorted(problem.machine.tier)}"))
            continue
        roots = {r for a, r in alias if fnmatch.fnmatchcase(a, pattern)}
        hits = [n for n in names if (base := n.split("#")[0]) in roots or fnmatch.fnmatchcase(base, pattern)]
        if not hits:
            faults.append(Fault(where, "matches no tensor"))
        for n in hits:
            if pinned.setdefault(n, tier) != tier:
                faults.append(Fault(where, f"pins {n!r} to {tier!r}, another pattern to {pinned[n]!r}"))
    return pinned


def tier_faults(problem: Problem, tensors: Sequence[Tensor], ops: Sequence[Op]) -> list[Fault]:
    """Return unknown tiers, and tensors that no link can bring to where they must be."""
    machine, device = problem.machine, problem.machine.device.name
    faults: list[Fault] = []
    used = {n for op in ops for n in op.reads}
    in_place = _used_in_place(problem, ops)
    known = sorted(machine.tier)
    place = {t.name: f"graph.tensors[{i}]" for i, t in enumerate(problem.graph.tensors)}
    for t in tensors:
        where, name = place.get(t.name.split("#")[0], ""), t.name
        homes = machine.tier if t.home == "any" else t.home or (device,)
        unknown = [h for h in homes if h not in machine.tier]
        if unknown:
            faults += [Fault(f"{where}.home", f"tensor {name!r}: unknown home tier {h!r}; tiers are {known}")
                       for h in unknown]
            continue
        if t.name in used and t.name not in in_place and all(machine.route(h, device) is None for h in homes):
            faults.append(Fault(f"{where}.home", f"tensor {name!r}: no link leads from its home {list(homes)} to "
                                f"{device!r}, where ops read it"))
        if t.keep is None or t.keep == "home":
            continue
        if t.keep not in machine.tier:
            faults.append(Fault(f"{where}.keep", f"tensor {name!r}: unknown keep tier {t.keep!r}; tiers are {known}"))
        elif t.name not in in_place and all(machine.route(h, t.keep) is None for h in homes):
            faults.append(Fault(f"{where}.keep", f"tensor {name!r}: no link leads from "
                                f"{' or '.join(map(repr, homes))} to its keep tier {t.keep!r}"))
    for i, op in enumerate(ops):
        unknown = sorted({tier for p in op.placements for _, tier in p.at} - machine.tier.keys())
        faults += [Fault(f"graph.ops[{i}].placements", f"op {op.name!r} names unknown tier {tier!r}; tiers are {known}")
                   for tier in unknown]
    return faults


def _used_in_place(problem: Problem, ops: Sequence[Op]) -> set[str]:
    """Return the tensors that some op may use off the device."""
    if not problem.rules.direct:
        return set()
    if any(t.direct for t in problem.machine.tiers[1:]):
        return {n for op in ops for n in (*op.reads, *op.writes)}
    return {n for op in ops for p in op.placements for n, _ in p.at}


def warnings_of(problem: Problem, tensors: Sequence[Tensor], ops: Sequence[Op]) -> tuple[str, ...]:
    """Return things that are legal and probably not meant."""
    found: list[str] = []
    read = {n for op in ops for n in op.reads}
    idle = [t.name for t in tensors if t.home and t.name not in read and t.keep is None]
    if idle:
        found.append(f"{len(idle)} tensor(s) with a home are never used and stay where they are: {', '.join(idle[:5])}")
    wanted = read | {t.name for t in tensors if t.keep is not None}
    for op in ops:
        if op.writes and not op.updates and wanted.isdisjoint(op.writes):
            found.append(f"op {op.name!r} is run although nothing uses its results")
    for k in problem.machine.links:
        if k.bandwidth > 10**12:
            found.append(f"link {k.src}>{k.dst} has {k.bandwidth} B/s: more than device-memory class bandwidth")
    return tuple(found)
