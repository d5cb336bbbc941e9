"""Local search over vacated gaps: flip, exchange, keep what gets better.

Each step vacates or keeps a few gaps, repairs the residency if needed, times the whole plan with the list schedule and
accepts it if (makespan, bytes moved) did not get worse, or by a small and falling tolerance. Steps run in machine code in
bursts, between which the caller looks at the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
import numpy as np

from planner.heuristics.greedy import _set
from planner.heuristics.list_pass import run_pass
from planner.heuristics.list_schedule import ScheduleInput
from planner.lifetimes import Bools

__all__ = ["improve"]


def improve(
    data: ScheduleInput, start: Bools, *, seconds: float | None, steps: int, seed: int,
    goal_ns: int = 0, stop: Callable[[int], bool] | None = None,
) -> tuple[int, int, Bools]:
    """Improve a choice of gaps.

    Parameters
    ----------
    data : ScheduleInput
    start : (n_gaps,) bool
        A choice that fits.
    seconds : float, optional
        Wall-clock limit; None for a run that only depends on ``steps`` (reproducible).
    steps : int
        Most steps.
    seed : int
    goal_ns : int
        Stop when the makespan is no more than this.
    stop : callable, optional
        Asked after each burst with the best makespan.

    Returns
    -------
    makespan_ns, moved_bytes : int
    vacated : (n_gaps,) bool
    """
    g = data.gaps
    candidates = np.flatnonzero(g.free)
    best = start.copy()
    current = start.copy()
    score = np.array([-1, -1, -1, -1], np.int64)
    code = np.empty((data.length, 4), np.int64)
    weight = np.cumsum(data.occupied[g.tensor[candidates]].astype(np.float64)) if len(candidates) else np.zeros(0)
    if len(weight):
        weight /= weight[-1] if weight[-1] else 1.0
    state = np.array([seed * 2 + 1], np.int64)
    begin, done, burst = time.monotonic(), 0, 8
    while True:
        t0 = time.monotonic()
        _steps(burst if done else 0, done, steps, state, current, best, score, candidates, weight, g.lo, g.hi, g.mate, g.forced,
               data.occupied, g.tensor, data.capacity, g.base, code, data.args, goal_ns)
        if done == 0:
            done = 1
            if not len(candidates):
                break
            continue
        done += burst
        spent = time.monotonic() - t0
        if done >= steps or score[0] <= goal_ns or (stop is not None and stop(int(score[0]))):
            break
        if seconds is not None:
            if time.monotonic() - begin >= seconds:
                break
            burst = int(min(4000, max(1, burst * min(2.0, 0.15 / max(spent, 1e-6)))))
        else:
            burst = 64
        burst = max(1, min(burst, steps - done))
    return int(score[0]), int(score[1]), best


@numba.njit(cache=True)
def _rand(state):  # type: ignore[no-untyped-def]
    """Return a float in [0, 1): xorshift, so that runs are the same everywhere."""
    x = np.uint64(state[0])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = np.int64(x)
    return np.float64(x >> np.uint64(11)) / 9007199254740992.0


@numba.njit(cache=True)
def _resident(vac, forced, base, lo, hi, occ, tensor, out):  # type: ignore[no-untyped-def]
    n = len(base)
    delta = np.zeros(n + 1, np.int64)
    for g in range(len(vac)):
        if not vac[g] and not forced[g]:
            delta[lo[g] + 1] += occ[tensor[g]]
            delta[hi[g] + 2] -= occ[tensor[g]]
    total = 0
    for j in range(n):
        total += delta[j]
        out[j] = base[j] + total


@numba.njit(cache=True)
def _steps(count, done, total, state, current, best, score, candidates, weight, lo, hi, mate, forced, occ, tensor, room,  # type: ignore[no-untyped-def]
           base, code, args, goal):
    resident = np.empty(len(base), np.int64)
    _resident(current, forced, base, lo, hi, occ, tensor, resident)
    if score[0] < 0:
        makespan, moved, _, _ = run_pass(current, resident, code, *args)
        score[0] = makespan
        score[1] = moved
        score[2] = makespan
        score[3] = moved
    n_cand = len(candidates)
    changed = np.empty(n_cand + 1, np.int64)
    planned = resident.copy()
    for step in range(count):
        heat = 0.003 * (1.0 - (done + step) / total) ** 2
        planned[:] = resident
        n_changed = 0
        flips = 1 + int(_rand(state) * 2.5)
        focus = -1
        for f in range(flips):
            if f == 0 or _rand(state) < 0.3:
                pick = candidates[min(n_cand - 1, int(np.searchsorted(weight, _rand(state))))]
            else:
                # a gap that overlaps the first one
                pick = -1
                for _ in range(12):
                    trial = candidates[min(n_cand - 1, int(np.searchsorted(weight, _rand(state))))]
                    if lo[trial] <= hi[focus] and hi[trial] >= lo[focus] and current[trial] == current[focus]:
                        pick = trial
                        break
                if pick < 0:
                    continue
            if f == 0:
                focus = pick
            _set(pick, not current[pick], current, planned, occ, tensor, lo, hi, mate)
            changed[n_changed] = pick
            n_changed += 1
        # repair: vacate more where it is over budget
        feasible = True
        tries = 0
        while feasible:
            over = -1
            for j in range(len(planned)):
                if planned[j] > room:
                    over = j
                    break
            if over < 0:
                break
            tries += 1
            pick = -1
            start_at = int(_rand(state) * n_cand)
            for c in range(n_cand):
                h = candidates[(start_at + c) % n_cand]
                if not current[h] and lo[h] + 1 <= over <= hi[h] + 1 and h != focus:
                    pick = h
                    if occ[tensor[h]] * 2 >= planned[over] - room:
                        break
            if pick < 0 or tries > 12 or n_changed >= n_cand:
                feasible = False
                break
            _set(pick, True, current, planned, occ, tensor, lo, hi, mate)
            changed[n_changed] = pick
            n_changed += 1
        accept = False
        if feasible:
            makespan, moved, _, _ = run_pass(current, planned, code, *args)
            if makespan >= 0:
                accept = makespan < score[2] or (makespan == score[2] and moved <= score[3]) or (
                    makespan <= score[2] * (1.0 + heat * _rand(state)) and makespan <= score[0] * 1.01)
        if accept:
            score[2] = makespan
            score[3] = moved
            resident[:] = planned
            if makespan < score[0] or (makespan == score[0] and moved < score[1]):
                score[0] = makespan
                score[1] = moved
                best[:] = current
                if makespan <= goal:
                    return
        else:
            for c in range(n_changed - 1, -1, -1):
                _set(changed[c], not current[changed[c]], current, planned, occ, tensor, lo, hi, mate)
