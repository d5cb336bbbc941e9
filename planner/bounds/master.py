"""Master program of the fluid bound: mix behaviours of tensors so that the windows are short and the points fit.

    minimise  Σ_k L_k                                            L_k ≥ busy_k
    L_k − Σ_c λ_c · out time of c in window k ≥ 0                (and inward; one row if the channel is shared)
    y_k − y_{k−1} − Σ_c λ_c · (bytes that become absent at point k − bytes that are back at point k) = 0,   y_k ≥ over_k
    Σ_{c of tensor t} λ_c = 1                                    λ ≥ 0

y_k are the bytes absent at point k; writing changes instead of sums keeps the columns short. The price of memory at point k
is the reduced cost of y_k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints
from planner.bounds.highs import quiet_highs

__all__ = ["Master"]

Floats = NDArray[np.float64]


class Master:
    """Restricted master in HiGHS, grown by columns.

    Parameters
    ----------
    busy, over : (K,) float64
    shared : bool
    head : (n + 1,) int64
    size, out_cost, in_cost : (n,) float64
    r_hi : (gaps,) int64
        One past the last point of each gap.
    """

    def __init__(self, busy: Floats, over: Floats, shared: bool, head: Ints, size: Floats, out_cost: Floats,
                 in_cost: Floats, r_hi: Ints) -> None:
        self.k, self.n, self.shared = len(busy), len(head) - 1, shared
        self.head, self.size, self.out_cost, self.in_cost, self.r_hi = head, size, out_cost, in_cost, r_hi
        self.unit = max(1.0, float(busy.sum()) / 100.0, float(out_cost.sum() + in_cost.sum()) / 1000.0)
        self.byte = max(1.0, float(size.max(initial=1.0)))
        self.owner = np.repeat(np.arange(self.n), np.diff(head))
        self.columns: list[tuple[int, Ints]] = []
        self.known: set[bytes] = set()
        self.length: Floats = np.zeros(self.k)
        self._value: Floats = np.zeros(0)
        h: Any = quiet_highs()
        self.h = h
        inf = h.inf
        k, sides = self.k, 1 if shared else 2
        h.addVars(2 * k, np.r_[busy / self.unit, np.where(over > 0, over / self.byte, -inf)], np.full(2 * k, inf))
        h.changeColsCost(k, np.arange(k, dtype=np.int32), np.ones(k))
        rows_low = np.r_[np.zeros(sides * k), np.zeros(k), np.ones(self.n)]
        rows_high = np.r_[np.full(sides * k, inf), np.zeros(k), np.ones(self.n)]
        start: list[int] = [0]
        index: list[int] = []
        value: list[float] = []
        for _ in range(sides):
            for w in range(k):
                index.append(w)
                value.append(1.0)
                start.append(len(index))
        for w in range(k):
            index.append(k + w)
            value.append(1.0)
            if w:
                index.append(k + w - 1)
                value.append(-1.0)
            start.append(len(index))
        start += [len(index)] * self.n
        h.addRows(len(rows_low), rows_low, rows_high, len(index), np.array(start[:-1], np.int32),
                  np.array(index, np.int32), np.array(value))
        self.sides = sides

    def add(self, out_at: Ints, from_at: Ints, back_at: Ints) -> int:
        """Add the behaviours that are new; return how many.

        Parameters
        ----------
        out_at, from_at, back_at : (gaps,) int64
            Windows of copy-out (−1 none), first absent point (−1 kept), window of the copy back (K: none).
        """
        k, sides = self.k, self.sides
        starts: list[int] = []
        index: list[int] = []
        value: list[float] = []
        added = 0
        for i in range(self.n):
            lo, hi = int(self.head[i]), int(self.head[i + 1])
            what = np.concatenate([[i], out_at[lo:hi], from_at[lo:hi], back_at[lo:hi]])
            key = what.tobytes()
            if key in self.known:
                continue
            self.known.add(key)
            entries: dict[int, float] = {}
            seen_out = -1
            for j in range(lo, hi):
                a, d, b = int(out_at[j]), int(from_at[j]), int(back_at[j])
                if a >= 0 and a != seen_out:
                    entries[a] = entries.get(a, 0.0) - self.out_cost[i] / self.unit
                seen_out = a
                if d < 0:
                    continue
                end = min(b, int(self.r_hi[j]))
                if b < k:
                    row = b if self.shared else k + b
                    entries[row] = entries.get(row, 0.0) - self.in_cost[i] / self.unit
                if end > d:
                    base, share = sides * k, self.size[i] / self.byte
                    entries[base + d] = entries.get(base + d, 0.0) - share
                    if end < k:
                        entries[base + end] = entries.get(base + end, 0.0) + share
            entries[(sides + 1) * k + i] = 1.0
            starts.append(len(index))
            index += entries.keys()
            value += entries.values()
            self.columns.append((i, from_at[lo:hi].copy()))
            added += 1
        if added:
            self.h.addCols(added, np.zeros(added), np.zeros(added), np.full(added, self.h.inf), len(index),
                           np.array(starts, np.int32), np.array(index, np.int32), np.array(value, np.float64))
        return added

    def solve(self, time_limit: float) -> tuple[float, tuple[Floats, Floats, Floats]] | None:
        """Return the master's value (ns) and prices (α, β per ns; μ ns per byte); None if it was not solved."""
        h, k = self.h, self.k
        h.setOptionValue("time_limit", h.getRunTime() + max(0.05, time_limit))
        h.run()
        if h.modelStatusToString(h.getModelStatus()) != "Optimal":
            return None
        found = h.getSolution()
        self._value = np.array(found.col_value)
        self.length = self._value[:k] * self.unit
        dual = np.maximum(0.0, np.array(found.row_dual)[: self.sides * k])
        mu = np.maximum(0.0, np.array(found.col_dual)[k:2 * k]) * self.unit / self.byte
        alpha = dual[:k]
        beta = alpha if self.shared else dual[k:2 * k]
        total = alpha if self.shared else alpha + beta
        over = np.maximum(1.0, total)
        return h.getInfo().objective_function_value * self.unit, (alpha / over, beta / over, mu)

    def shares(self, n_gaps: int) -> Floats:
        """Return the share of each gap that the last solution drops."""
        share = np.zeros(n_gaps)
        weights = self._value[2 * self.k:]
        for (i, dropped), weight in zip(self.columns[: len(weights)], weights.tolist(), strict=True):
            if weight > 1e-9:
                lo = int(self.head[i])
                share[lo:lo + len(dropped)] += weight * (dropped >= 0)
        return share
