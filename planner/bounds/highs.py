"""One linear program in HiGHS, with a lower bound that holds exactly.

HiGHS works in floating point. Its dual values are only a suggestion: `LinearProgram.safe_bound` rounds them to multiples of
2^−60 and evaluates the Lagrangian bound

    Σ_i y_i · (y_i > 0 ? lower_i : upper_i) + Σ_j min(r_j · l_j, r_j · u_j),    r = c − Aᵀ y

in integers. By weak duality that is a lower bound for any y, whatever the solver did; so a solve that was cut short still
gives a bound, and no tolerance enters a claim. All data are integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints

__all__ = ["INFINITE", "LinearProgram", "Solution"]

#: Stands for no bound on a row.
INFINITE = 2**62
_SHIFT = 60


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Attributes
    ----------
    value : (n_columns,) float64
    dual : (n_rows,) float64
    status : str
    seconds : float
    """

    value: NDArray[np.float64]
    dual: NDArray[np.float64]
    status: str
    seconds: float


class LinearProgram:
    """minimise c·x subject to lower ≤ A x ≤ upper, l ≤ x ≤ u; integer data, finite l and u.

    Parameters
    ----------
    cost, low, high : (n_columns,) int64
    column_scale : (n_columns,) float64
        Powers of two; the solver sees x / scale.
    """

    def __init__(self, cost: Ints, low: Ints, high: Ints, column_scale: NDArray[np.float64]) -> None:
        import highspy

        self.cost, self.low, self.high, self.scale = cost, low, high, column_scale
        self._start: list[Ints] = [np.zeros(1, np.int64)]
        self._index: list[Ints] = []
        self._value: list[Ints] = []
        self._lower: list[Ints] = []
        self._upper: list[Ints] = []
        self.n_rows = 0
        self._nonzeros = 0
        self._highs: Any = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        n = len(cost)
        self._highs.addVars(n, low / column_scale, high / column_scale)
        for j in np.flatnonzero(cost).tolist():
            self._highs.changeColCost(j, float(cost[j] * column_scale[j]))

    def add_rows(self, start: Ints, index: Ints, value: Ints, lower: Ints, upper: Ints) -> None:
        """Add rows in compressed form: row i holds ``index[start[i]:start[i + 1]]``.

        Parameters
        ----------
        start : (n + 1,) int64
        index, value : (nonzeros,) int64
        lower, upper : (n,) int64
            ±INFINITE where there is no bound.
        """
        self._start.append(start[1:] + self._nonzeros)
        self._index.append(index)
        self._value.append(value)
        self._lower.append(lower)
        self._upper.append(upper)
        self._nonzeros += len(index)
        self.n_rows += len(lower)
        scaled = value * self.scale[index]
        size = np.maximum.reduceat(np.abs(scaled), start[:-1])
        self._add_scaled(start, index, scaled, lower, upper, 2.0 ** -np.round(np.log2(np.maximum(size, 1e-300))))

    def _add_scaled(self, start: Ints, index: Ints, value: NDArray[np.float64], lower: Ints, upper: Ints,
                    factor: NDArray[np.float64]) -> None:
        value = value * np.repeat(factor, np.diff(start))
        low = np.where(lower <= -INFINITE, -np.inf, lower * factor)
        high = np.where(upper >= INFINITE, np.inf, upper * factor)
        self._highs.addRows(len(lower), low, high, len(index), start[:-1].astype(np.int32), index.astype(np.int32), value)
        self._factor = np.concatenate([getattr(self, "_factor", np.zeros(0)), factor])

    def solve(self, time_limit: float, solver: str = "simplex") -> Solution:
        """Solve from where the last solve ended.

        Parameters
        ----------
        time_limit : float
            Seconds.
        solver : str
            ``"simplex"`` or ``"ipm"``.
        """
        h = self._highs
        h.setOptionValue("solver", solver)
        begin = h.getRunTime()
        h.setOptionValue("time_limit", begin + max(0.05, time_limit))
        h.run()
        found = h.getSolution()
        value, dual = np.array(found.col_value), np.array(found.row_dual)
        if len(value) != len(self.cost):
            value = np.zeros(len(self.cost))
        if len(dual) != self.n_rows:
            dual = np.zeros(self.n_rows)
        return Solution(value * self.scale, dual * self._factor, h.modelStatusToString(h.getModelStatus()),
                        h.getRunTime() - begin)

    def safe_bound(self, dual: NDArray[np.float64]) -> int:
        """Return an integer no larger than the optimum, from any dual values (see the module's text)."""
        start = np.concatenate(self._start)
        index, value = np.concatenate(self._index), np.concatenate(self._value)
        lower, upper = np.concatenate(self._lower), np.concatenate(self._upper)
        dual = np.where((dual > 0) & (lower <= -INFINITE), 0.0, dual)
        dual = np.where((dual < 0) & (upper >= INFINITE), 0.0, dual)
        used = np.flatnonzero(dual)
        exact = np.zeros(self.n_rows, object)
        exact[used] = [int(np.ldexp(d, _SHIFT)) for d in dual[used].tolist()]
        reduced = np.array([int(c) << _SHIFT for c in self.cost.tolist()], object)
        rows = np.repeat(np.arange(self.n_rows), np.diff(start))
        keep = exact[rows] != 0
        np.subtract.at(reduced, index[keep], exact[rows[keep]] * value[keep].astype(object))
        total = sum(int(y) * int(lower[i] if y > 0 else upper[i]) for i, y in zip(used.tolist(), exact[used], strict=True))
        total += sum(r * (lo if r > 0 else hi) for r, lo, hi in
                     zip(reduced.tolist(), self.low.tolist(), self.high.tolist(), strict=True) if r)
        return -((-total) >> _SHIFT)
