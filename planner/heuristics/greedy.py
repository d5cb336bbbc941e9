"""Greedy choice of gaps: over-budget time covered, per time that the copies take.

Until the planned residency fits the budget everywhere, vacate the gap with the largest

    (time over budget inside the part of the gap in which the tensor can be away) · min(size, largest overrun) / copy time

where a tensor is away from the end of its copy-out, begun at its last use, to the latest start of its copy back. A version
that is already copied out, or that the backing tier holds, costs only the way back. Source: the rule that G10 and
HyperOffload share (benefit over the over-budget period, per byte moved), without their reservations: the list schedule
places the copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from planner.heuristics.list_schedule import schedule, schedule_input
from planner.lifetimes import Bools, gaps_of

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["best_greedy", "greedy_choice"]


def greedy_choice(problem: Problem, start: Bools | None = None, reach: float = 1.0) -> Bools | None:
    """Choose gaps to vacate.

    Parameters
    ----------
    problem : Problem
    start : (n_gaps,) bool, optional
        Gaps vacated to begin with.
    reach : float
        Factor on copy times where the usable part of a gap is worked out; 0 counts the whole gap.

    Returns
    -------
    (n_gaps,) bool or None
        None if no choice of gaps fits the budget.
    """
    data, g = schedule_input(problem), gaps_of(problem)
    vacated = g.forced.copy() if start is None else (start | g.forced)
    last = np.flatnonzero((g.mate >= 0) & ~g.choice)
    vacated[last] = vacated[g.mate[last]]  # what starts away ends away
    a = data.args
    duration, out_time, in_time = a[0], a[19], a[20]
    ok = _greedy(vacated, g.resident(data.occupied, vacated), data.capacity, duration, out_time, in_time, data.occupied,
                 g.tensor, g.version, g.lo, g.hi, g.free, g.clean, g.mate, reach)
    return vacated if ok else None


def best_greedy(problem: Problem) -> Bools | None:
    """Return the best of the greedy choices for a few values of ``reach``, timed by the list schedule."""
    data = schedule_input(problem)
    best, found = None, None
    for reach in (1.0, 0.5, 2.0, 0.0):
        vacated = greedy_choice(problem, None, reach)
        if vacated is None:
            return None
        makespan, moved, _, _ = schedule(data, vacated)
        if makespan >= 0 and (found is None or (makespan, moved) < found):
            best, found = vacated, (makespan, moved)
    return best


@numba.njit(cache=True)
def _set(g, value, vac, resident, occ, tensor, lo, hi, mate):  # type: ignore[no-untyped-def]
    """Vacate (or keep) a gap and its mate."""
    while g >= 0:
        if vac[g] != value:
            vac[g] = value
            size = -occ[tensor[g]] if value else occ[tensor[g]]
            for j in range(lo[g] + 1, hi[g] + 2):
                resident[j] += size
            g = mate[g]
        else:
            g = -1


@numba.njit(cache=True)
def _greedy(vac, resident, room, dur, out_time, in_time, occ, tensor, version, lo, hi, free, clean, mate, reach):  # type: ignore[no-untyped-def]
    n, n_gaps = len(dur), len(tensor)
    clock = np.zeros(n + 2, np.int64)  # start time of position j at index j + 1; −1 and 0 start at once
    for j in range(n):
        clock[j + 1 + 0] = clock[j] if j == 0 else clock[j] + dur[j - 1]
    clock[n + 1] = clock[n] + (dur[n - 1] if n else 0)
    weight = np.zeros(n + 3, np.float64)
    from_ = np.zeros(n_gaps, np.int64)
    to = np.zeros(n_gaps, np.int64)
    for g in range(n_gaps):
        t = tensor[g]
        away = clock[min(lo[g] + 1, n + 1)]
        if not clean[g]:
            away += np.int64(reach * out_time[t])
        back = clock[min(hi[g] + 1, n)] + (dur[hi[g]] if 0 <= hi[g] < n else 0) - np.int64(reach * in_time[t])
        a = lo[g] + 1
        while a <= hi[g] + 1 and clock[a] < away:
            a += 1
        b = hi[g] + 1
        if hi[g] < n:
            while b >= a and (clock[b] + (dur[b - 1] if 0 < b <= n else 0)) > back:
                b -= 1
        from_[g] = a
        to[g] = b
    while True:
        worst = 0
        for j in range(n + 2):
            excess = resident[j] - room
            worst = max(worst, excess)
            weight[j + 1] = weight[j] + ((dur[j - 1] if 0 < j <= n else 0) + 1.0 if excess > 0 else 0.0)
        if worst <= 0:
            return True
        best, best_score = -1, 0.0
        for g in range(n_gaps):
            if vac[g] or not free[g]:
                continue
            whole = weight[hi[g] + 2] - weight[lo[g] + 1]
            if whole <= 0:
                continue
            t = tensor[g]
            gain = 1e-4 * whole
            if to[g] >= from_[g]:
                gain += weight[to[g] + 1] - weight[from_[g]]
            cost = in_time[t] + 1
            if not clean[g]:
                shared = False
                h = g - 1
                while h >= 0 and tensor[h] == t and version[h] == version[g]:
                    shared = shared or vac[h]
                    h -= 1
                h = g + 1
                while h < n_gaps and tensor[h] == t and version[h] == version[g]:
                    shared = shared or vac[h]
                    h += 1
                if not shared:
                    cost += out_time[t]
            m = mate[g]
            if m >= 0:
                gain += weight[hi[m] + 2] - weight[lo[m] + 1]
                if not clean[m]:
                    cost += out_time[t]
            score = gain * min(occ[t], worst) / cost
            if score > best_score:
                best_score = score
                best = g
        if best < 0:
            return False
        _set(best, True, vac, resident, occ, tensor, lo, hi, mate)
