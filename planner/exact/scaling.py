"""Whole-number units in which a solver sees times and bytes.

Times are divided by the gcd of all durations: exact. Bytes of a tier are divided by the gcd of all occupied sizes
there; the capacity is then rounded down, which is exact too, because every sum of sizes is a multiple of that gcd. Only
where the sizes of a tier still sum past ``SUM_LIMIT`` is there rounding: the *plan* scaling rounds sizes up and
capacities down (what it accepts fits), the *bound* scaling the other way round (what it rejects does not fit).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from planner.machine import copy_ns

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["SUM_LIMIT", "Scaled", "scale"]

#: No row of sizes may sum to this many units: see the module `planner.exact.trust`.
SUM_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Scaled:
    """A problem's numbers in solver units.

    Attributes
    ----------
    time_unit : int
        Nanoseconds of one unit.
    run : dict of str to int
        Op to duration, units.
    copy : dict of (tensor, src, dst) to int
        Duration, units, for every tensor and link.
    size : dict of (tensor, tier) to int
        Occupied size, units of that tier.
    capacity : dict of str to int or None
        Units of that tier; None also where all tensors fit together, so the tier never limits.
    exact : bool
        Was nothing rounded?
    """

    time_unit: int
    run: dict[str, int]
    copy: dict[tuple[str, str, str], int]
    size: dict[tuple[str, str], int]
    capacity: dict[str, int | None]
    exact: bool


def scale(problem: Problem, *, for_bound: bool = False, limit: int = SUM_LIMIT) -> Scaled:
    """Return the problem's numbers in solver units.

    Parameters
    ----------
    problem : Problem
    for_bound : bool
        Round so that every real plan stays feasible, instead of so that every accepted plan is real.
    limit : int
        Largest sum of the sizes of one tier, units.
    """
    low, machine = problem.lowered, problem.machine
    run = {op.name: op.duration or 0 for op in low.ops}
    copy = {
        (t.name, k.src, k.dst): copy_ns(t.size, k.bandwidth, k.latency) for t in low.tensors for k in machine.links
    }
    unit = gcd(*run.values(), *copy.values()) or 1
    size: dict[tuple[str, str], int] = {}
    capacity: dict[str, int | None] = {}
    exact = True
    for tier in machine.tiers:
        occupied = {t.name: tier.occupied(t.size) for t in low.tensors}
        usable = problem.capacity[tier.name]
        if usable is not None and usable >= sum(occupied.values()):
            usable = None
        step = gcd(*occupied.values()) or 1
        coarse = 1
        if usable is not None:
            total = sum(occupied.values()) // step
            coarse = -(-total // max(1, limit - len(occupied))) if total > limit else 1
        exact = exact and coarse == 1
        step *= coarse
        for name, value in occupied.items():
            size[name, tier.name] = value // step if for_bound else -(-value // step)
        up = for_bound and coarse > 1
        capacity[tier.name] = None if usable is None else -(-usable // step) if up else usable // step
    return Scaled(
        unit, {n: d // unit for n, d in run.items()}, {n: d // unit for n, d in copy.items()}, size, capacity, exact
    )
