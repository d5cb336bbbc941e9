"""When each tensor must be on the device, and the gaps in which it need not be.

For the listed order, a *use* of a tensor is an op that reads, writes or updates it; position −1 is the start, position n
the end of the program. A *gap* (tensor, p, q) lies between two consecutive uses p < q with q − p > 1, between the start
and the first use, or between the last use and an end that demands the tensor somewhere. Only in a gap can a tensor be
absent. The *version* of a gap is the op that last wrote the tensor (−1: as it started); one copy-out serves all gaps of
a version.

*backing* is the tier that vacated tensors go to: the one that the device reaches fastest, both ways, with a link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Csr, Ints, ProblemArrays, problem_arrays

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["END_BACKING", "END_DEVICE", "END_EITHER", "INNER", "Gaps", "gaps_of"]

Bools = NDArray[np.bool_]
#: Kinds of a gap by what stands at its end: a use, or an end on the device, on the backing tier, or on either.
INNER, END_DEVICE, END_BACKING, END_EITHER = 0, 1, 2, 3
_STAYS, _DEAD = -1, -2


@dataclass(frozen=True)
class Gaps:
    """Gaps of a problem in its listed order, sorted by tensor, then position.

    Attributes
    ----------
    n_ops : int
    backing : int
        Index of the backing tier; −1 if there is none.
    tensor, start, stop, version : (n_gaps,) int64
        Tensor; positions p and q; op that wrote this version (−1 as started).
    lo, hi : (n_gaps,) int64
        First and last position (−1 … n) where the tensor is absent if the gap is vacated.
    kind : (n_gaps,) int64
        INNER, END_DEVICE, END_BACKING or END_EITHER.
    forced : (n_gaps,) bool
        Vacated in every plan (a tensor that starts on the backing tier, or must end there).
    free : (n_gaps,) bool
        The plan chooses.
    clean : (n_gaps,) bool
        The backing tier holds this version without a copy-out (as started).
    choice : (n_gaps,) bool
        First gap of a tensor whose start tier is chosen: vacated means that it starts on the backing tier.
    mate : (n_gaps,) int64
        Gap that must have the same value (start and end of a tensor that keeps its chosen home); −1 none.
    operands, after : Csr
        Distinct tensors that each op touches; what follows for each: a gap, −1 it stays, −2 it is dead.
    at_start : (n_tensors,) int64
        The same from the start: a gap, −1 stays or does not exist, −2 dead.
    base : (n_ops + 2,) int64
        Occupied device bytes of what cannot be absent, at positions −1 … n (index shifted by one).
    """

    n_ops: int
    backing: int
    tensor: Ints
    start: Ints
    stop: Ints
    version: Ints
    lo: Ints
    hi: Ints
    kind: Ints
    forced: Bools
    free: Bools
    clean: Bools
    choice: Bools
    mate: Ints
    operands: Csr
    after: Csr
    at_start: Ints
    base: Ints

    def __len__(self) -> int:
        return len(self.tensor)

    def resident(self, occupied: Ints, vacated: Bools) -> Ints:
        """Return occupied device bytes at positions −1 … n with these gaps vacated.

        Parameters
        ----------
        occupied : (n_tensors,) int64
            Bytes on the device.
        vacated : (n_gaps,) bool
        """
        delta = np.zeros(self.n_ops + 3, np.int64)
        kept = ~(vacated | self.forced)
        size = occupied[self.tensor[kept]]
        np.add.at(delta, self.lo[kept] + 1, size)
        np.subtract.at(delta, self.hi[kept] + 2, size)
        return self.base + np.cumsum(delta)[: self.n_ops + 2]


def backing_tier(problem: Problem) -> int:
    """Return the index of the tier that vacated tensors go to; −1 if no tier is linked both ways with the device."""
    machine = problem.machine
    device = machine.device.name
    best, found = 0, -1
    for i, tier in enumerate(machine.tiers[1:], start=1):
        out, back = machine.link.get((device, tier.name)), machine.link.get((tier.name, device))
        if out and back and min(out.bandwidth, back.bandwidth) > best:
            best, found = min(out.bandwidth, back.bandwidth), i
    return found


def gaps_of(problem: Problem) -> Gaps:
    """Return the gaps of a problem (built once, kept on it)."""
    cached = problem.__dict__.get("_gaps")
    if cached is None:
        cached = _Builder(problem).build()
        problem.__dict__["_gaps"] = cached
    return cached


class _Builder:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.a: ProblemArrays = problem_arrays(problem)
        self.device = problem.machine.device.name
        self.backing = backing_tier(problem)
        self.back_name = problem.machine.tiers[self.backing].name if self.backing >= 0 else None
        self.rows: list[tuple[int, ...]] = []
        self.follow: dict[tuple[int, int], int] = {}
        self.mate: dict[int, int] = {}
        self.delta = np.zeros(self.a.n_ops + 3, np.int64)
        self.at_start = np.full(self.a.n_tensors, _STAYS, np.int64)

    def build(self) -> Gaps:
        a = self.a
        uses: list[list[int]] = [[] for _ in range(a.n_tensors)]
        changed: list[set[int]] = [set() for _ in range(a.n_tensors)]
        operands: list[list[int]] = []
        for i in range(a.n_ops):
            writes = a.writes.row(i).tolist()
            operands.append(list(dict.fromkeys((*a.reads.row(i).tolist(), *writes))))
            for t in operands[-1]:
                uses[t].append(i)
            for t in (*writes, *a.updates.row(i).tolist()):
                changed[t].add(i)
        for t in range(a.n_tensors):
            self._tensor(t, uses[t], changed[t])
        table = np.array(self.rows, np.int64).reshape(-1, 11)
        mates = np.full(len(self.rows), -1, np.int64)
        for g, other in self.mate.items():
            mates[g] = other
        after = Csr.of([self.follow.get((i, t), _STAYS) for t in row] for i, row in enumerate(operands))
        column = [np.ascontiguousarray(table[:, c]) for c in range(11)]
        tensor, start, stop, version, lo, hi, kind = column[:7]
        forced, free, clean, choice = (c.astype(np.bool_) for c in column[7:])
        return Gaps(a.n_ops, self.backing, tensor, start, stop, version, lo, hi, kind, forced, free, clean, choice, mates,
                    Csr.of(operands), after, self.at_start, np.cumsum(self.delta)[: a.n_ops + 2].copy())

    def _hold(self, lo: int, hi: int, size: int) -> None:
        if hi >= lo:
            self.delta[lo + 1] += size
            self.delta[hi + 2] -= size

    def _end(self, t: int) -> int:
        """Return what the end demands; INNER if nothing."""
        tensor = self.problem.lowered.tensors[t]
        if tensor.keep is None:
            return INNER
        if tensor.keep != "home":
            return END_DEVICE if tensor.keep == self.device else END_BACKING
        if tensor.home == "any":
            return END_EITHER
        if self.device in tensor.home:
            return END_EITHER if self.back_name in tensor.home else END_DEVICE
        return END_BACKING

    def _on_the_way(self, keep: str | None, home: object) -> bool:
        """Is the backing tier on the way to where the end demands a tensor? Then it may go there in any case."""
        ends = home if keep == "home" and isinstance(home, tuple) else (keep,)
        route = self.problem.machine.route
        return any(link.dst == self.back_name for k in ends for link in route(self.device, str(k)) or ())

    def _tensor(self, t: int, points: list[int], changed: set[int]) -> None:
        problem, n, size = self.problem, self.a.n_ops, int(self.a.occupied[t, 0])
        tensor = problem.lowered.tensors[t]
        offload = problem.rules.offload
        is_any = tensor.home == "any"
        here = not is_any and self.device in tensor.home
        there = not is_any and self.back_name in tensor.home
        chosen = is_any and offload and self.backing >= 0
        if is_any and not chosen:
            here = True
        if not tensor.home and not points:
            return
        end = self._end(t)
        if end == END_EITHER and is_any and not chosen:
            end = END_DEVICE
        pinned = tensor.name in problem.lowered.pinned
        demanded = end == END_BACKING and self._on_the_way(tensor.keep, tensor.home)
        for j in points:
            self._hold(j, j, size)
        if here:
            self._hold(-1, -1, size)
        if end == END_DEVICE:
            self._hold(n, n, size)
        version = -1 if tensor.home else points[0]
        stops = points if tensor.home else points[1:]
        previous = -1 if tensor.home else points[0]
        first = -1
        for q in [*stops, n]:
            kind = end if q == n else INNER
            clean = version < 0 and (there or chosen)
            if q == n and (kind == INNER or (kind == END_BACKING and version < 0 and there)):
                self._set_follow(previous, t, _DEAD)
                return
            absent_at_start = previous < 0 and not here and not chosen
            forced = absent_at_start or kind == END_BACKING
            lo = -1 if previous < 0 and not here else previous + 1
            hi = n if kind in (END_BACKING, END_EITHER) else q - 1
            movable = self.backing >= 0 and (not pinned or previous < 0 or q == n)  # a pin holds from first to last use
            may = movable and (offload or clean or demanded) and hi >= lo
            if forced or may:
                g = len(self.rows)
                self._set_follow(previous, t, g)
                choice = chosen and previous < 0
                self.rows.append((t, previous, q, version, lo, hi, kind, forced, may and not forced, clean, choice))
                if choice:
                    first = g
                elif kind == END_EITHER and chosen and first >= 0:
                    self.mate[g], self.mate[first] = first, g
            else:
                self._hold(lo, hi, size)
            if q in changed:
                version = q
            previous = q

    def _set_follow(self, position: int, t: int, value: int) -> None:
        if position < 0:
            self.at_start[t] = value
        else:
            self.follow[position, t] = value
