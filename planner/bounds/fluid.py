"""Fluid bound: a linear program whose value no schedule of the listed order can beat, whole tensors or split.

Sets. Ops 0 … n−1 are cut into windows k = 0 … K−1 of consecutive ops; window K is what follows the last op. w(j) is the
window of op j. G are the gaps of `planner.lifetimes`; gap g is open at ops lo_g … hi_g and ends at use q_g (window w(q_g),
or K). V are the versions with a gap that needs a copy-out; version v is written by op b_v.

Variables (all cumulative shares of a tensor's bytes, in [0, 1], non-decreasing in k)
    L_k        length of window k: from the end of the last op before it to the end of its own last op, ns
    o_{v,k}    copied out by the end of window k, k ≥ w(b_v)
    d_{g,k}    dropped by the end of window k; d ≤ o for a version with several gaps, d = o for one with a single gap,
               one number x_g for a gap that needs no copy-out
    i_{g,k}    copied back by the end of window k

    minimise  Σ_k L_k
    (compute)    L_k ≥ Σ duration of the window's ops, for each stream
    (channels)   L_k ≥ Σ_v out_v (o_{v,k} − o_{v,k−1}) over the outward channel, + Σ_g in_g (i_{g,k} − i_{g,k−1}) over the
                 inward channel (one row if both are one channel); out_v and in_g are times of whole copies
    (memory)     resident_j − Σ_{g open at j} size_g (d_{g,w(j)} − i_{g,w(j)−1}) ≤ budget     for ops j, and at the end
    (return)     i_{g,w(q_g)} = d_{g,w(q_g)},   i_{g,k} ≤ d_{g,k}
    (ends)       o_{v,K} = 1 where the end demands a copy on the backing tier
    (start)      for a tensor whose start is chosen, s is the share that starts on the backing tier: it enters o of the
                 first version without a copy, o_{v,0} ≥ s; if it must end where it started, o_{v,K} ≥ s for its last version
                 and d_{g,K} − i_{g,K} ≤ s for its last gap

Why it is a bound. In any schedule let τ_k be the end of window k and count shares at τ_k. A tensor is absent at op j only
if its copy-out ended before j, so by τ_{w(j)}, and its copy back had not begun by τ_{w(j)−1}: the memory row counts out at
the window's end and back at its start, and so allows at least what the schedule did. Channel bytes moved between τ_{k−1}
and τ_k take at most that long. Dropping memory rows, treating small tensors as always absent for free, and merging windows
only relax it further. Rows are added where the last solution breaks one, windows are split where rows bind.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Csr, Ints, problem_arrays
from planner.bounds.highs import INFINITE, LinearProgram
from planner.lifetimes import END_BACKING, END_DEVICE, END_EITHER, INNER, gaps_of

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["FluidBound", "fluid_bound", "supports"]

#: Columns, coefficients, lower and upper side of a row.
_Row = tuple[list[int], list[int], int, int]


@dataclass(frozen=True)
class FluidBound:
    """Result of the fluid bound.

    Attributes
    ----------
    bound_ns : int
        Proved for every schedule of the listed order without recomputation, ns.
    absent : (n_gaps,) float64
        Largest share of each gap's tensor that is dropped in it.
    windows : int
    rows : int
    seconds : float
    status : str
    window_of : (n_ops,) int64
    """

    bound_ns: int
    absent: NDArray[np.float64]
    windows: int
    rows: int
    seconds: float
    status: str
    window_of: Ints


def supports(problem: Problem) -> str | None:
    """Return why the bound does not hold for a problem; None if it does."""
    rules = problem.rules
    if rules.recompute and any(o.recomputable for o in problem.lowered.ops):
        return "recomputation"
    if rules.reorder:
        return "free op order"
    if rules.direct and any(t.direct for t in problem.machine.tiers):
        return "direct access"
    if len(problem.machine.tiers) > 2:
        return "more than two tiers"
    return None


def equal_windows(duration: Ints, count: int) -> Ints:
    """Return the window of each op when the order is cut into about ``count`` windows of equal compute time."""
    total = max(1, int(duration.sum()))
    middle = np.cumsum(duration) - duration // 2
    window = (middle * count) // (total + 1)
    return np.unique(window, return_inverse=True)[1].astype(np.int64)


class _Model:
    """The linear program for one choice of windows. A cumulative share is a run (first column, first and last window)."""

    def __init__(self, problem: Problem, window: Ints, cutoff: int, horizon: int) -> None:
        self.a, self.g = problem_arrays(problem), gaps_of(problem)
        self.window, self.n = window, len(window)
        self.count = int(window.max()) + 1 if self.n else 0
        self.horizon = horizon
        self.last_op = np.searchsorted(window, np.arange(self.count), side="right") - 1
        self.big = np.flatnonzero(self.a.size[self.g.tensor] >= cutoff)
        self._columns()
        self._rows()

    def _columns(self) -> None:
        g, last = self.g, self.count
        self.n_columns = self.count + 1
        self.out: dict[tuple[int, int], tuple[int, int, int]] = {}  # by (tensor, version)
        self.drop: dict[int, tuple[int, int, int]] = {}  # by gap; window −1: one column, no copy-out needed
        self.back: dict[int, tuple[int, int, int]] = {}  # by gap
        self.share: dict[int, int] = {}  # tensor whose start is chosen → column: share that starts on the backing tier
        for j in self.big[g.choice[self.big]].tolist():
            self.share[int(g.tensor[j])] = self._take(1)
        members: dict[tuple[int, int], list[int]] = {}
        for j in self.big.tolist():
            t = int(g.tensor[j])
            if t in self.share or not (g.clean[j] or self._starts_away(j)):
                members.setdefault((t, int(g.version[j])), []).append(j)
        for key, gaps in members.items():
            first = int(self.window[key[1]]) if key[1] >= 0 else 0
            final = max(self._final(j) for j in gaps)
            self.out[key] = (self._take(final - first + 1), first, final)
        for j in self.big.tolist():
            key = (int(g.tensor[j]), int(g.version[j]))
            first = int(self.window[g.lo[j]]) if 0 <= g.lo[j] < self.n else (0 if g.lo[j] < 0 else last)
            if key not in self.out:
                self.drop[j] = (self._take(1), -1, -1)
            elif len(members[key]) == 1:
                self.drop[j] = self.out[key]
            else:
                self.drop[j] = (self._take(self._final(j) - first + 1), first, self._final(j))
            if g.kind[j] in (INNER, END_DEVICE) or (g.kind[j] == END_EITHER and key[0] in self.share):
                self.back[j] = (self._take(self._final(j) - first + 1), first, self._final(j))
        self.cost = np.zeros(self.n_columns, np.int64)
        self.cost[: last + 1] = 1
        self.low, self.high = np.zeros(self.n_columns, np.int64), np.ones(self.n_columns, np.int64)
        for s in range(self.a.n_streams):
            mine = self.a.stream == s
            busy = np.zeros(last, np.int64)
            np.add.at(busy, self.window[mine], self.a.duration[mine])
            self.low[:last] = np.maximum(self.low[:last], busy)
        self.high[: last + 1] = np.maximum(self.horizon, self.low[: last + 1])
        for j in self.big[g.forced[self.big]].tolist():
            if self._starts_away(j):
                self.low[self.drop[j][0]] = 1
            if g.kind[j] == END_BACKING:
                self.low[self._at(self.drop[j], last)] = 1

    def _starts_away(self, j: int) -> bool:
        return bool(self.g.forced[j] and self.g.start[j] < 0 and self.g.lo[j] < 0)

    def _final(self, j: int) -> int:
        """Return the last window that matters for a gap: that of its use, or the one after the last op."""
        q = int(self.g.stop[j])
        return int(self.window[q]) if q < self.n else self.count

    def _take(self, count: int) -> int:
        self.n_columns += count
        return self.n_columns - count

    @staticmethod
    def _at(run: tuple[int, int, int], k: int) -> int:
        """Return the column of a cumulative run at window k; −1 before it begins."""
        col, first, final = run
        if first < 0:
            return col
        return -1 if k < first else col + min(k, final) - first

    def _rows(self) -> None:
        g, last = self.g, self.count
        scale = np.ones(self.n_columns)
        scale[: last + 1] = 2.0 ** round(np.log2(max(1.0, float(self.low.sum()) / max(1, last))))
        self.lp = LinearProgram(self.cost, self.low, self.high, scale)
        rows: list[_Row] = []
        for col, first, final in {*self.out.values(), *self.drop.values(), *self.back.values()}:
            rows += [([c + 1, c], [1, -1], 0, INFINITE) for c in range(col, col + max(0, final - first))]
        for (t, version), (col, _, _) in self.out.items():
            if version < 0 and t in self.share:
                rows.append(([col, self.share[t]], [1, -1], 0, INFINITE))
        for j in self.big.tolist():
            t = int(g.tensor[j])
            run, out = self.drop[j], self.out.get((t, int(g.version[j])))
            if out is not None and run is not out:
                rows += [([self._at(out, k), run[0] + k - run[1]], [1, -1], 0, INFINITE)
                         for k in range(run[1], run[2] + 1)]
            at_end = g.kind[j] == END_EITHER and t in self.share
            if j in self.back:
                col, first, final = self.back[j]
                rows += [([self._at(run, k), col + k - first], [1, -1], 0, INFINITE)
                         for k in range(first, final) if run[1] >= 0 and self._at(run, k) >= 0]
                if at_end:  # away at the end is only what started away
                    rows.append(([self.share[t], self._at(run, final), col + final - first], [1, -1, 1], 0, INFINITE))
                else:
                    rows.append(([self._at(run, final), col + final - first], [1, -1], 0, 0))
            if at_end and out is not None:  # what started away is away at the end, in its last version
                rows.append(([self._at(out, last), self.share[t]], [1, -1], 0, INFINITE))
        self._add(rows + self._channels())
        self.memory_done: set[tuple[int, int]] = set()
        delta = np.zeros(self.n + 3, np.int64)
        size = self.a.occupied[g.tensor[self.big], 0]
        np.add.at(delta, g.lo[self.big] + 1, size)
        np.subtract.at(delta, g.hi[self.big] + 2, size)
        self.over = g.base + np.cumsum(delta)[: self.n + 2] - int(self.a.capacity[0])

    def _channels(self) -> list[_Row]:
        a, b = self.a, self.g.backing
        if b < 0:
            return []
        out, back = int(a.channel[a.link[0, b]]), int(a.channel[a.link[b, 0]])
        per: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

        def charge(channel: int, run: tuple[int, int, int], cost: int, before: int) -> None:
            col, first, final = run
            for k in range(first, final + 1):
                index, value = per.setdefault((channel, k), ([], []))
                index.append(col + k - first)
                value.append(-cost)
                if k > first or before >= 0:
                    index.append(col + k - first - 1 if k > first else before)
                    value.append(cost)

        for (t, version), run in self.out.items():
            charge(out, run, int(a.copy_time[t, a.link[0, b]]), self.share.get(t, -1) if version < 0 else -1)
        for j, run in self.back.items():
            charge(back, run, int(a.copy_time[self.g.tensor[j], a.link[b, 0]]), -1)
        return [([k, *index], [1, *value], 0, INFINITE) for (_, k), (index, value) in sorted(per.items())]

    def _add(self, rows: list[tuple[list[int], list[int], int, int]]) -> None:
        if rows:
            packed = Csr.of(r[0] for r in rows)
            self.lp.add_rows(packed.start, packed.item, np.array([v for r in rows for v in r[1]], np.int64),
                             np.array([r[2] for r in rows], np.int64), np.array([r[3] for r in rows], np.int64))

    def absent(self, value: NDArray[np.float64]) -> list[tuple[int, int, int, float]]:
        """Return (gap, first position, last position, absent share) by window, positions shifted by one."""
        found = []
        for j in self.big.tolist():
            for k, lo, hi in self._spans(j):
                d = self._at(self.drop[j], k)
                i = self._at(self.back[j], k - 1) if j in self.back else -1
                share = (value[d] if d >= 0 else 0.0) - (value[i] if i >= 0 else 0.0)
                if share > 1e-9:
                    found.append((j, lo + 1, hi + 1, share))
        return found

    def _spans(self, j: int) -> list[tuple[int, int, int]]:
        """Return (window, first op, last op) of the positions where a gap is open."""
        lo, hi = int(self.g.lo[j]), int(self.g.hi[j])
        spans = []
        if lo < 0:
            spans.append((0, -1, -1))
            lo = 0
        while lo <= min(hi, self.n - 1):
            k = int(self.window[lo])
            end = min(hi, int(self.last_op[k]))
            spans.append((k, lo, end))
            lo = end + 1
        if hi >= self.n:
            spans.append((self.count, self.n, self.n))
        return spans

    def add_memory_rows(self, value: NDArray[np.float64] | None, tolerance: float) -> int:
        """Add the worst broken row of each window; all windows' largest at first. Returns how many were added."""
        excess = self.over.astype(np.float64)
        if value is not None:
            delta = np.zeros(self.n + 3)
            size = self.a.occupied[:, 0]
            for j, lo, hi, share in self.absent(value):
                delta[lo] -= share * size[self.g.tensor[j]]
                delta[hi + 1] += share * size[self.g.tensor[j]]
            excess = excess + np.cumsum(delta)[: self.n + 2]
        picks = []
        if excess[0] > tolerance:
            picks.append((0, 0))
        if excess[self.n + 1] > tolerance:
            picks.append((self.n + 1, self.count))
        for k in range(self.count):
            first = int(self.last_op[k - 1]) + 1 if k else 0
            at = first + int(np.argmax(excess[first + 1:int(self.last_op[k]) + 2])) + 1
            if excess[at] > tolerance:
                picks.append((at, k))
        picks = [p for p in picks if p not in self.memory_done]
        self.memory_done.update(picks)
        open_at: dict[int, list[int]] = {at: [] for at, _ in picks}
        places = sorted(open_at)
        for j in self.big.tolist():
            lo = np.searchsorted(places, self.g.lo[j] + 1)
            hi = np.searchsorted(places, self.g.hi[j] + 1, side="right")
            for at in places[lo:hi]:
                open_at[at].append(j)
        rows: list[_Row] = []
        for at, k in picks:
            index, weight = [], []
            for j in open_at[at]:
                size = int(self.a.occupied[self.g.tensor[j], 0])
                for column, sign in ((self._at(self.drop[j], k), 1),
                                     (self._at(self.back[j], k - 1) if j in self.back else -1, -1)):
                    if column >= 0:
                        index.append(column)
                        weight.append(sign * size)
            if index:
                rows.append((index, weight, int(self.over[at]), INFINITE))
        self._add(rows)
        return len(rows)


def fluid_bound(problem: Problem, *, time_limit: float = 20.0, windows: int = 48, cutoff_share: float = 0.0005,
                rounds: int = 6, horizon: int | None = None) -> FluidBound | None:
    """Bound the makespan of every schedule of the listed order from below.

    Parameters
    ----------
    problem : Problem
    time_limit : float
        Seconds.
    windows : int
        About how many windows of equal compute time.
    cutoff_share : float
        The smallest tensors are treated as absent for free while they make up no more than this share of all gap bytes.
    rounds : int
        How often broken memory rows are added.
    horizon : int, optional
        Nanoseconds that some plan is known not to exceed.

    Returns
    -------
    FluidBound or None
        None if the bound does not hold for the problem (see `supports`).
    """
    begin = time.perf_counter()
    if supports(problem) is not None:
        return None
    a, g = problem_arrays(problem), gaps_of(problem)
    if a.n_ops == 0 or len(g) == 0:
        return None
    if horizon is None:
        copies = a.copy_time.sum(axis=1)[g.tensor] if a.n_links else np.zeros(len(g), np.int64)
        horizon = 10 * (int(a.duration.sum()) + int(copies.sum())) + 1
    window = equal_windows(a.duration, min(windows, a.n_ops))
    model = _Model(problem, window, _cutoff(a.size[g.tensor], cutoff_share), horizon)
    model.add_memory_rows(None, 0.0)
    best, found = 0, None
    tolerance = 1e-5 * max(1, int(a.capacity[0]))
    for _ in range(rounds):
        left = time_limit - (time.perf_counter() - begin)
        if left < 0.05 and found is not None:
            break
        found = model.lp.solve(left)
        best = max(best, model.lp.safe_bound(found.dual))
        if found.status != "Optimal" or not model.add_memory_rows(found.value, tolerance):
            break
    assert found is not None
    absent = np.zeros(len(g))
    for j in model.big.tolist():
        column = model._at(model.drop[j], model._final(j))
        absent[j] = found.value[column] if column >= 0 else 0.0
    return FluidBound(best, absent, model.count, model.lp.n_rows, time.perf_counter() - begin, found.status, window)


def _cutoff(size: Ints, share: float) -> int:
    """Return the size below which tensors are ignored."""
    ordered = np.sort(size)
    total = np.cumsum(ordered)
    if not len(ordered) or len(ordered) <= 400:
        return 0
    return int(ordered[np.searchsorted(total, share * total[-1])])
