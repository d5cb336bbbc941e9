"""The least budget of each tier that would do, with all else as given, and what sets it.

Lower bounds (occupied bytes)
    start    what starts on the tier in every plan
    end      what must end on it
    op       device: all operands of one op (not if operands may be used in place elsewhere); in a fixed order without
             recomputation also what has nowhere to go while the op runs
    spill    a tier that is the only other one: while an op runs, tensors that are alive and do not fit the device's budget
             beside the operands must be there; which of them stay is a subset sum, solved exactly

A budget is *feasible* when a heuristic's plan for it passes the checker. If the lower bound itself is feasible the least
budget is proved; else it is bracketed by bisection over what the heuristics can do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.arrays import problem_arrays
from planner.lifetimes import Gaps, gaps_of
from planner.plan import BudgetNeed, Witness
from planner.problem import Problem
from planner.program import Program

if TYPE_CHECKING:
    from planner.graph import Tensor

__all__ = ["feasible_program", "least_budget", "lower_bound"]

_SUBSET_LIMIT = 1 << 20


def feasible_program(problem: Problem) -> Program | None:
    """Return a program that the checker accepts, from the quickest heuristic that finds one; None if none does."""
    from planner.check import check
    from planner.heuristics.registry import available

    heuristics = available()
    for name in ("greedy", "demand"):
        program = heuristics[name].run(problem)
        if program is not None and check(problem, program).valid:
            return program
    return None


def unbounded(problem: Problem, tier: str, budget: int | None) -> Problem:
    """Return the problem with one tier's capacity replaced by a budget (None: unbounded), above its capacity or not."""
    tiers = tuple(replace(t, capacity=None, reserve=0) if t.name == tier else t for t in problem.machine.tiers)
    budgets = {k: v for k, v in problem.budgets.items() if k != tier}
    if budget is not None:
        budgets[tier] = budget
    return replace(problem, machine=replace(problem.machine, tiers=tiers), budgets=budgets)


def lower_bound(problem: Problem, tier: str) -> tuple[int, Witness]:
    """Return the bytes below which a tier's budget allows no plan, and what says so."""
    low, device = problem.lowered, problem.machine.device.name
    occupied = problem.machine.tier[tier].occupied

    def total(tensors: Iterator[Tensor], op: str | None) -> tuple[int, Witness]:
        rows = sorted(((t.name, occupied(t.size)) for t in tensors), key=lambda r: (-r[1], r[0]))
        size = sum(r[1] for r in rows)
        return size, Witness(op, tuple(rows), size, tier)

    found = [total((t for t in low.tensors if isinstance(t.home, tuple) and tier in t.home), None)]
    found.append(total((t for t in low.tensors if _ends_on(t, tier)), None))
    direct = problem.rules.direct and (
        any(t.direct for t in problem.machine.tiers[1:]) or any(o.placements for o in low.ops))
    if tier == device:
        if not direct:
            found += _operands(problem)
    elif len(problem.machine.tiers) == 2 and _order_known(problem) and not direct:
        spill = _spill(problem, tier)
        if spill is not None:
            found.append(spill)
    return max(found, key=lambda f: f[0])


def _ends_on(t: Tensor, tier: str) -> bool:
    if t.keep == "home":
        return isinstance(t.home, tuple) and t.home == (tier,)
    return t.keep == tier


def _order_known(problem: Problem) -> bool:
    """Is there only one order of runs?"""
    one_stream = len({o.stream for o in problem.lowered.ops}) <= 1
    return one_stream and not problem.rules.recompute and not problem.rules.reorder


def _operands(problem: Problem) -> list[tuple[int, Witness]]:
    """Return the largest set of bytes that one op needs on the device at once."""
    a, low = problem_arrays(problem), problem.lowered
    if not a.n_ops:
        return []
    g = gaps_of(problem)
    own = np.array([a.occupied[row, 0].sum() for row in (g.operands.row(i) for i in range(a.n_ops))], np.int64)
    into = any(k.dst == problem.machine.device.name for k in problem.machine.links)
    # what cannot be absent is only known where all that leaves goes to one tier and returns from it
    known = not into or (g.backing > 0 and len(problem.machine.tiers) == 2)
    fixed = known and _order_known(problem)
    at_op = g.base[1:-1] if fixed else own
    i = int(np.argmax(at_op))
    names = {low.tensors[t].name: int(a.occupied[t, 0]) for t in g.operands.row(i).tolist()}
    if fixed and int(at_op[i]) > int(own[i]):
        names |= _stuck(problem, g, i, set(names))
    rows = tuple(sorted(names.items(), key=lambda r: (-r[1], r[0])))
    return [(int(at_op[i]), Witness(low.ops[i].name, rows, int(at_op[i]), problem.machine.device.name))]


def _stuck(problem: Problem, g: Gaps, i: int, operands: set[str]) -> dict[str, int]:
    """Return what is on the device at op i though the op does not use it, and cannot leave."""
    a, low = problem_arrays(problem), problem.lowered
    first, last = np.full(a.n_tensors, a.n_ops), np.full(a.n_tensors, -1)
    for j in range(a.n_ops):
        row = g.operands.row(j)
        first[row] = np.minimum(first[row], j)
        last[row] = np.maximum(last[row], j)
    device = problem.machine.device.name
    movable = set(g.tensor[(g.lo <= i) & (i <= g.hi)].tolist())
    found: dict[str, int] = {}
    for t, tensor in enumerate(low.tensors):
        begins = -1 if tensor.home and (tensor.home == "any" or device in tensor.home) else int(first[t])
        ends = a.n_ops if tensor.keep in (device, "home") else int(last[t])
        if begins <= i <= ends and t not in movable and tensor.name not in operands:
            found[tensor.name] = int(a.occupied[t, 0])
    return found


def _spill(problem: Problem, tier: str) -> tuple[int, Witness] | None:
    """Return what must be on the only other tier while some op runs, because the device has no room for it."""
    g, a, low = gaps_of(problem), problem_arrays(problem), problem.lowered
    room = problem.capacity[problem.machine.device.name]
    if room is None or not len(g):
        return None
    occupied = problem.machine.tier[tier].occupied
    size = a.occupied[g.tensor, 0]
    open_bytes = np.zeros(a.n_ops + 3, np.int64)
    np.add.at(open_bytes, g.lo + 1, size)
    np.subtract.at(open_bytes, g.hi + 2, size)
    total = np.cumsum(open_bytes)[: a.n_ops + 2]
    excess = total + g.base - room
    best: tuple[int, Witness] | None = None
    for at in np.argsort(-excess)[:8].tolist():
        if excess[at] <= 0 and best is not None:
            break
        members = np.flatnonzero((g.lo + 1 <= at) & (at <= g.hi + 1))
        names = [low.tensors[t].name for t in g.tensor[members].tolist()]
        there = [occupied(low.tensor[n].size) for n in names]
        stay = _largest_subset([int(s) for s in size[members]], int(room - g.base[at]), there)
        need = sum(there) - stay
        if best is None or need > best[0]:
            rows = tuple(sorted(zip(names, there, strict=True), key=lambda r: (-r[1], r[0])))
            op = low.ops[at - 1].name if 1 <= at <= a.n_ops else None
            best = (need, Witness(op, rows, need, tier))
    return best


def _largest_subset(sizes: list[int], room: int, values: list[int]) -> int:
    """Return the most bytes (by value) of a subset whose sizes fit the room; an upper bound if it is too large to solve."""
    if room <= 0:
        return sum(v for s, v in zip(sizes, values, strict=True) if s == 0)
    if sum(sizes) <= room:
        return sum(values)
    unit = int(np.gcd.reduce(sizes)) if sizes else 1
    if sizes == values and unit and room // unit <= _SUBSET_LIMIT:
        reach = 1
        for s in sizes:
            reach |= reach << (s // unit)
        reach &= (1 << (room // unit + 1)) - 1
        return (reach.bit_length() - 1) * unit
    ratio = max((v / s for s, v in zip(sizes, values, strict=True) if s), default=1.0)
    return min(sum(values), int(room * ratio) + 1)


def least_budget(problem: Problem, tier: str, *, tries: int = 14) -> tuple[BudgetNeed, Witness]:
    """Return the least budget of a tier with all else as given, and what sets its lower bound.

    Parameters
    ----------
    problem : Problem
    tier : str
    tries : int
        Plans made to bracket it where the lower bound is not feasible.
    """
    bound, witness = lower_bound(problem, tier)
    floor = max(bound, 1)
    if feasible_program(unbounded(problem, tier, floor)) is not None:
        return BudgetNeed(bound, bound), witness
    from planner.check import check

    free = unbounded(problem, tier, None)
    program = feasible_program(free)
    if program is None:
        return BudgetNeed(None, bound), witness
    above = max(check(free, program).peak_bytes[tier], floor)
    below = floor
    for _ in range(tries):
        if above - below <= max(1, above >> 10):
            break
        middle = (below + above) // 2
        program = feasible_program(unbounded(problem, tier, middle))
        if program is None:
            below = middle
        else:
            above = min(middle, max(floor, check(free, program).peak_bytes[tier]))
    return BudgetNeed(above, bound), witness
