"""Fluid bound: no schedule of the listed order, of whole tensors or split, ends before the value of this linear program.

Points. A point is the start or the end of an op, or the end of the program; some are selected, k = 0 … K−1 in order, the
last is the end of the program. Window k is the time from point k−1 to point k (window 0 begins at time 0). busy_k is the
duration of the ops between the two points. resident_k are the bytes on the device at point k if nothing is absent that need
not be, over_k = resident_k − budget.

Behaviour of a tensor, in cumulative shares of its bytes
    o_{v,k}   share of version v copied out by point k, from the window in which the op that writes v ends
    i_{g,k}   share copied back in gap g by point k, from the window in which the gap opens; all that was dropped in the gap
              is back by the window in which its next use starts
    a_{g,k}   share absent at a point k inside gap g: a_{g,k} ≤ o_{v,k} − i_{g,k}
    A version that the backing tier holds needs no copy-out. A tensor whose start tier is chosen starts there or on the
    device; starting there makes its first version free of charge, and asks for a copy-out of its last version if it must
    end where it started.

    minimise    Σ_k L_k
    L_k ≥ busy_k
    L_k ≥ Σ out_v (o_{v,k} − o_{v,k−1})            outward channel   } one row, the sum of both,
    L_k ≥ Σ in_g (i_{g,k} − i_{g,k−1})             inward channel    } if they share a channel
    Σ_{g open at k} size_g · a_{g,k} ≥ over_k      memory at point k

Why it is a bound. Take any schedule and let the shares be what it has moved by each point. At the start of an op all its
operands and results have room, and it keeps that room to its end; a tensor is away at such an instant only if its copy-out
has ended and its copy back has not begun, so the memory row holds. What a channel moves between two points takes that long.
Selecting fewer points, and treating the smallest tensors as absent for free, only relaxes it.

Solved by column generation: a column is one behaviour of one tensor, priced by `planner.bounds.pricing`, whose Lagrangian
value at any prices is a lower bound by itself; the master only has to propose good prices. Then windows that are long in
the solution are cut by new points. Source of the model: the project's fluid bound with coarse windows; of the
decomposition: Dantzig and Wolfe 1960, with smoothed prices (Wentges 1997).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints, problem_arrays
from planner.bounds.master import Master
from planner.bounds.pricing import lagrangian
from planner.lifetimes import END_BACKING, gaps_of

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["Fluid", "supports"]

Floats = NDArray[np.float64]


def supports(problem: Problem) -> str | None:
    """Return why the bound does not hold for a problem; None if it does."""
    rules = problem.rules
    if rules.recompute and any(o.recomputable for o in problem.lowered.ops):
        return "recomputation"
    if rules.reorder:
        return "free op order"
    if rules.direct and (any(t.direct for t in problem.machine.tiers) or any(o.placements for o in problem.lowered.ops)):
        return "direct access"
    if len(problem.machine.tiers) > 2 and not _one_gate(problem):
        return "several tiers that the device reaches by several links, or that tensors start or end on"
    if len({o.stream for o in problem.lowered.ops}) > 1:
        return "several streams"
    return None


def _one_gate(problem: Problem) -> bool:
    """Does all that leaves or enters the device cross the two links to its backing tier?

    Then what lies behind that tier, its capacity included, can be relaxed away: one backing tier without a limit.
    """
    names = [t.name for t in problem.machine.tiers]
    back = gaps_of(problem).backing
    near = {names[0]} | ({names[back]} if back > 0 else set())
    if any(names[0] in (k.src, k.dst) and not {k.src, k.dst} <= near for k in problem.machine.links):
        return False
    places = {h for t in problem.lowered.tensors if isinstance(t.home, tuple) for h in t.home}
    places |= {t.keep for t in problem.lowered.tensors if t.keep not in (None, "home")}
    return places <= near


@dataclass
class _Tensors:
    """The gaps of the tensors that are not ignored, grouped by tensor."""

    tensor: Ints
    gap: Ints
    head: Ints


class Fluid:
    """The fluid bound of one problem, refined as long as the caller likes.

    Parameters
    ----------
    problem : Problem
        `supports` must be None.
    ignore : float
        Share of all gap bytes that the smallest tensors may make up and be ignored.

    Attributes
    ----------
    bound_ns : int
        Best bound so far, proved for every schedule of the listed order without recomputation, ns.
    absent : (n_gaps,) float64
        Share of each gap's tensor that the last solution drops.
    points : (K,) int64
        2·j for the start of op j, 2·j + 1 for its end, 2·n for the end of the program.
    """

    def __init__(self, problem: Problem, ignore: float = 0.0005) -> None:
        self.a, self.g = problem_arrays(problem), gaps_of(problem)
        g, a = self.g, self.a
        self.bound_ns = 0
        self.absent = np.zeros(len(g))
        self.length: Floats = np.zeros(0)
        self.status = "new"
        size = a.size[g.tensor]
        keep = np.flatnonzero(size >= _cutoff(size, ignore))
        first = np.flatnonzero(np.r_[True, g.tensor[keep][1:] != g.tensor[keep][:-1]]) if len(keep) else keep
        self.t = _Tensors(g.tensor[keep][first], keep, np.r_[first, len(keep)].astype(np.int64))
        delta = np.zeros(a.n_ops + 3, np.int64)
        np.add.at(delta, g.lo[keep] + 1, a.occupied[g.tensor[keep], 0])
        np.subtract.at(delta, g.hi[keep] + 2, a.occupied[g.tensor[keep], 0])
        self.over = g.base + np.cumsum(delta)[: a.n_ops + 2] - int(a.capacity[0])
        b = g.backing
        self.shared = b > 0 and a.channel[a.link[0, b]] == a.channel[a.link[b, 0]]
        zero = np.zeros(len(self.t.tensor))
        self.size = a.occupied[self.t.tensor, 0].astype(np.float64)
        self.out_cost = a.copy_time[self.t.tensor, a.link[0, b]].astype(np.float64) if b > 0 else zero
        self.in_cost = a.copy_time[self.t.tensor, a.link[b, 0]].astype(np.float64) if b > 0 else zero
        self.clock = np.r_[0, np.cumsum(a.duration)]
        self.points = self._first_points(24)

    def _first_points(self, count: int) -> Ints:
        """Return the start and end of the op with the largest overrun in each of ``count`` slices of equal compute time."""
        n = self.a.n_ops
        slice_of = np.minimum(count - 1, self.clock[:-1] * count // max(1, int(self.clock[-1])))
        picks: list[int] = []
        for s in range(count):
            ops = np.flatnonzero(slice_of == s)
            if len(ops):
                j = int(ops[np.argmax(self.over[ops + 1])])
                picks += [2 * j, 2 * j + 1]
        return np.unique(np.array([*picks, 0, 2 * n], np.int64))

    def refine(self, factor: float = 2.0) -> bool:
        """Cut the windows that were longest in the last solution; return whether any point was added."""
        n, points = self.a.n_ops, self.points
        if len(points) >= 2 * n + 1:
            return False
        length = self.length if len(self.length) == len(points) else np.diff(np.r_[0, points]).astype(np.float64)
        want = int(len(points) * (factor - 1)) + 2
        pieces = np.maximum(0, np.floor(want * length / max(1e-9, length.sum()))).astype(np.int64)
        for k in np.argsort(-length)[: max(1, want // 2)]:
            pieces[k] = max(pieces[k], 1)
        new: list[int] = []
        for k in np.flatnonzero(pieces).tolist():
            lo = int(points[k - 1]) if k else -1
            inside = np.arange(lo + 1, int(points[k]))
            if not len(inside):
                continue
            for part in np.array_split(inside, min(len(inside), int(pieces[k]))):
                ops = np.minimum(part // 2, n - 1)
                j = int(ops[np.argmax(self.over[ops + 1])])
                new += [e for e in (2 * j, 2 * j + 1) if lo < e < points[k]]
        merged = np.unique(np.r_[points, np.array(new, np.int64)])
        grew = len(merged) > len(points)
        self.points = merged
        return grew

    def solve(self, time_limit: float, tolerance: float = 2e-4, goal_ns: int | None = None) -> int:
        """Solve for the points as they are; return the best bound so far.

        Parameters
        ----------
        time_limit : float
            Seconds.
        tolerance : float
            Stop when master and bound differ by no more than this share.
        goal_ns : int, optional
            Stop when the bound reaches this, ns.
        """
        begin = time.perf_counter()
        at, g, gap = self.points, self.g, self.t.gap
        n = self.a.n_ops
        clock_at = np.where(at >= 2 * n, self.clock[n], self.clock[np.minimum((at + 1) // 2, n)])
        busy = np.diff(np.r_[0, clock_at]).astype(np.float64)
        over = self.over[np.minimum(at // 2, n) + 1].astype(np.float64)
        closes = np.searchsorted(at, np.minimum(2 * g.stop[gap], 2 * n), "left")
        closes[g.kind[gap] >= END_BACKING] = len(at) - 1
        args = (
            self.t.head, g.kind[gap], g.version[gap], g.clean[gap], g.choice[gap], g.forced[gap],
            np.searchsorted(at, np.where(g.version[gap] < 0, -1, 2 * g.version[gap] + 1), "right"),
            np.searchsorted(at, np.where(g.start[gap] < 0, -1, 2 * g.start[gap] + 1), "right"), closes,
            np.searchsorted(at, 2 * g.lo[gap], "left"), np.searchsorted(at, np.minimum(2 * g.hi[gap] + 1, 2 * n), "right"),
            self.size, self.out_cost, self.in_cost,
        )
        master = Master(busy, over, self.shared, self.t.head, self.size, self.out_cost, self.in_cost, args[10])
        out_at, from_at, back_at = (np.full(len(gap), -1, np.int64) for _ in range(3))
        starts, values = np.zeros(len(self.t.tensor), np.bool_), np.zeros(len(self.t.tensor))

        def price(alpha: Floats, beta: Floats, mu: Floats) -> float:
            value, error = lagrangian(alpha, beta, mu, over, busy, self.shared, *args, out_at, from_at, back_at, starts,
                                      values)
            master.add(out_at, from_at, back_at)
            bound = int(np.ceil(value - error - 1e-9 * min(1.0, abs(value))))
            self.bound_ns = max(self.bound_ns, bound)
            return float(value)

        zero = np.zeros(len(at))
        best = price(zero, zero, np.where(over > 0, 1.0, 0.0))  # everything that helps is away
        best = max(best, price(zero, zero, zero))
        center: tuple[Floats, Floats, Floats] = (zero, zero, zero)
        self.status = "time"
        keep = 0.6
        for round_ in range(400):
            left = time_limit - (time.perf_counter() - begin)
            if left <= 0:
                break
            found = master.solve(left)
            if found is None:
                break
            value, prices = found
            self.length = master.length
            if value - best <= tolerance * max(1.0, abs(best)) or (goal_ns is not None and self.bound_ns >= goal_ns):
                self.status = "converged"
                break
            smooth = (keep * center[0] + (1 - keep) * prices[0], keep * center[1] + (1 - keep) * prices[1],
                      keep * center[2] + (1 - keep) * prices[2])
            here = price(*smooth)
            if here > best:
                best, center = here, smooth
                keep = min(0.85, keep + 0.05)
            else:
                keep = max(0.0, keep - 0.15)
                here = price(*prices)
                if here > best:
                    best, center = here, prices
            if round_ and time.perf_counter() - begin > time_limit:
                break
        self.absent[gap] = master.shares(len(gap))
        self.prices = center
        return self.bound_ns


def _cutoff(size: Ints, share: float) -> int:
    """Return the size below which tensors are ignored."""
    if len(size) <= 200:
        return 0
    ordered = np.sort(size)
    total = np.cumsum(ordered)
    return int(ordered[np.searchsorted(total, share * total[-1])])
