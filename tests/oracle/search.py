"""The exhaustive oracle: the least makespan, then bytes moved, then device peak, over all programs of the model.

Best-first search over lists of Run, Copy and Drop under the literal list semantics. What is not enumerated, and why
nothing is lost:

1. *Drops stand as late as they can.* Moving a Drop later in the list past an instruction that neither uses that copy
   nor needs its room (or, for an update, its absence) only makes fewer instructions wait. So a Drop stands directly
   before an allocation that would not fit without it (inclusion-minimal sets), or before an update that needs the copy
   gone. Dropping a copy and making the same one again at once is never better than keeping it. The one exception is
   free: a copy that nothing can need any more, whose users have ended before anything to come can start, is released
   at once.
2. *Useless copies are not made*: only what an op, a rerun or `keep` may still need is copied; a copy is not dropped if
   what is needed could then be had from nowhere.
3. *Lists in order of their starts are enough* (chronological mode). Sort a legal list by start of Run and Copy and
   end of Drop, ties as listed: dependencies keep their order, and what is resident at allocation X of the sorted list
   was resident, in the original list, at the newest allocation X* among it: a Drop listed before X* has ended when X*
   starts, so no later than X. All original starts satisfy the constraints of the sorted list, so replaying it only
   makes them earlier; repeat with rule 1 until nothing changes (starts are integers and only fall). Then times below
   the last start can be raised to it. Not true, and not used (`Model.corners`), where the list order says more than
   time does: reruns of ops with several outputs (outputs that are present are left alone), `after` on a rerun op of
   another stream (any Run counts), and updates with operands used in place elsewhere.
4. *Dominance*: of two prefixes with the same ops done and the same copies, the one with all times no later (and, for
   the second objective, no more bytes moved) can do whatever the other can, no later.

The third objective, and the objective ``peak``, are the least device capacity with which the first two (or the limit on
the makespan) can still be reached: bisection over capacities.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass
from fractions import Fraction
from operator import le

from planner.problem import Problem
from planner.program import Program
from tests.oracle.bound import Bound
from tests.oracle.model import Model
from tests.oracle.moves import Code, Key, Label, Moves


@dataclass(frozen=True)
class OracleResult:
    """What the oracle found.

    Attributes
    ----------
    status : str
        ``optimal``, ``infeasible``, or ``unknown`` when time ran out.
    makespan_ns, moved_bytes_total, peak_bytes : int or None
        ``peak_bytes`` is the device's. Without ``ties`` only the makespan is the least possible; the others are None.
    program : Program or None
    states : int
        Prefixes that were extended.
    """

    status: str
    makespan_ns: int | None = None
    moved_bytes_total: int | None = None
    peak_bytes: int | None = None
    program: Program | None = None
    states: int = 0


class _OutOfTimeError(Exception):
    pass


@dataclass
class _Node:
    key: Key
    label: Label
    moved: int
    codes: tuple[Code, ...]
    parent: _Node | None
    dead: bool = False


def optimum(
    problem: Problem, *, time_limit: float | None = None, ties: bool = True, chronological: bool | None = None,
) -> OracleResult:
    """Search all programs.

    Parameters
    ----------
    problem : Problem
        A handful of ops and tensors.
    time_limit : float, optional
        Seconds, after which the status is ``unknown``.
    ties : bool
        Also settle bytes moved and device peak (two more searches).
    chronological : bool, optional
        Force the restriction of point 3 on or off; by default it is on where it loses nothing.

    Returns
    -------
    OracleResult
    """
    until = None if time_limit is None else time.monotonic() + time_limit
    try:
        if problem.objective.kind == "peak":
            return _least_peak(problem, until, chronological)
        return _least_makespan(problem, until, ties, chronological)
    except _OutOfTimeError:
        return OracleResult("unknown")


def _least_makespan(problem: Problem, until: float | None, ties: bool, chronological: bool | None) -> OracleResult:
    model = Model(problem)
    first = _search(model, until, chronological)
    if first is None:
        return OracleResult("infeasible")
    makespan, program, states, _ = first
    if not ties:
        return OracleResult("optimal", makespan, None, None, program, states)
    second = _search(model, until, chronological, limit=makespan)
    assert second is not None
    moved = second[3]
    low, high, program = _start_bytes(model), device_peak(problem, second[1]), second[1]
    while low < high:
        middle = (low + high) // 2
        found = _search(Model(problem, middle), until, chronological, limit=makespan, moved_limit=moved)
        if found is None:
            low = middle + 1
        else:
            program = found[1]
            high = min(middle, device_peak(problem, program))
    return OracleResult("optimal", makespan, moved, high, program, states)


def _least_peak(problem: Problem, until: float | None, chronological: bool | None) -> OracleResult:
    objective = problem.objective
    limit = objective.max_makespan
    if limit is None:
        factor = objective.max_slowdown
        limit = None if factor is None else int(Fraction(factor) * ideal_path(problem))
    best = _search(Model(problem), until, chronological, limit=limit, any_plan=True)
    if best is None:
        return OracleResult("infeasible")
    low, high = 0, device_peak(problem, best[1])
    while low < high:
        middle = (low + high) // 2
        found = _search(Model(problem, middle), until, chronological, limit=limit, any_plan=True)
        if found is None:
            low = middle + 1
        else:
            high = min(middle, device_peak(problem, found[1]))
    final = _search(Model(problem, high), until, chronological)
    assert final is not None
    return OracleResult("optimal", final[0], None, high, final[1], final[2])


def least_capacity(problem: Problem, tier: str, *, time_limit: float | None = None) -> int | None:
    """Return the least budget of a tier with all else as given, bytes; None if none would do."""
    until = None if time_limit is None else time.monotonic() + time_limit
    model = Model(problem)
    k = model.tier_names.index(tier)
    everything = sum(model.occ[t * model.K + k] for t in range(model.T))
    original = model.cap[k]

    def fits(capacity: int) -> bool:
        model.cap[k] = capacity
        return _search(model, until, None, any_plan=True) is not None

    try:
        if not fits(everything):
            return None
        low, high = 0, everything
        while low < high:
            middle = (low + high) // 2
            if fits(middle):
                high = middle
            else:
                low = middle + 1
        return high
    finally:
        model.cap[k] = original


def ideal_path(problem: Problem) -> int:
    """Return the longest path through the ops in listed order without memory or copy limits, ns."""
    model = Model(problem)
    stream = [0] * model.S
    made: dict[int, int] = {}
    used: dict[int, int] = {}
    ends: list[int] = []
    for op in model.ops:
        begin = 0 if model.reorder else stream[op.stream]
        begin = max([begin, *(made.get(t, 0) for t, _ in op.reads), *(ends[a] for a in op.after),
                     *(used.get(t, 0) for t in op.updates)])
        end = begin + op.least
        stream[op.stream] = max(stream[op.stream], end)
        for t, _ in op.reads:
            used[t] = max(used.get(t, 0), end)
        for t in (*op.writes, *op.updates):
            made[t] = end
        ends.append(end)
    return max(ends, default=0)


def device_peak(problem: Problem, program: Program) -> int:
    """Return the largest list-order use of the device, occupied bytes."""
    device = problem.machine.device
    size = {t.name: device.occupied(t.size) for t in problem.lowered.tensors}
    held = {t.name for t in problem.lowered.tensors
            if (program.start.get(t.name) == device.name if t.home == "any" else device.name in t.home)}
    peak = sum(size[n] for n in held)
    for ins in program.instructions:
        name = type(ins).__name__
        if name == "Drop" and ins.tier == device.name:  # type: ignore[union-attr]
            held.discard(ins.tensor)  # type: ignore[union-attr]
        elif name == "Copy" and ins.dst == device.name:  # type: ignore[union-attr]
            held.add(ins.tensor)  # type: ignore[union-attr]
        elif name == "Run":
            at = dict(ins.at)  # type: ignore[union-attr]
            held.update(w for w in problem.lowered.op[ins.op].writes if at.get(w, device.name) == device.name)  # type: ignore[union-attr]
        peak = max(peak, sum(size[n] for n in held))
    return peak


def _start_bytes(model: Model) -> int:
    return sum(model.occ[t * model.K] for t, homes in enumerate(model.homes) if homes is not None and 0 in homes)


def _search(
    model: Model, until: float | None, chronological: bool | None, *, limit: int | None = None,
    moved_limit: int | None = None, any_plan: bool = False,
) -> tuple[int, Program, int, int] | None:
    """Return (makespan, program, states, bytes moved) of the best program, or None.

    Without ``limit`` the makespan is minimised. With it, bytes moved are, among programs no later than the limit; with
    ``moved_limit`` as well, or with ``any_plan``, the first program within the limits is returned.
    """
    in_order = not model.corners if chronological is None else chronological
    bytes_count = limit is not None and not any_plan
    sequence = itertools.count()
    heap: list[tuple[int, int, int, int, _Node]] = []
    seen: dict[tuple[int, Key], list[_Node]] = {}
    kinds: list[tuple[Moves, Bound]] = []

    def push(which: int, node: _Node) -> None:
        bound = kinds[which][1]
        makespan = bound.makespan(node.key, node.label)
        if makespan >= 1 << 59 or (limit is not None and makespan > limit):
            return
        if bytes_count and moved_limit is not None and node.moved + bound.moved(node.key) > moved_limit:
            return
        kept = seen.setdefault((which, node.key), [])
        label = node.label
        for other in kept:
            if (not bytes_count or other.moved <= node.moved) and all(map(le, other.label, label)):
                return
        for other in kept:
            if (not bytes_count or node.moved <= other.moved) and all(map(le, label, other.label)):
                other.dead = True
        kept[:] = [other for other in kept if not other.dead]
        kept.append(node)
        done = -node.key[0].bit_count()
        if any_plan or moved_limit is not None:
            rank = (done, makespan)
        elif bytes_count:
            rank = (node.moved + bound.moved(node.key), done)
        else:
            rank = (makespan, done)
        heapq.heappush(heap, (*rank, node.label[1], next(sequence), node))
        where[id(node)] = which

    where: dict[int, int] = {}
    for start in model.starts():
        moves = Moves(model, start, in_order)
        begin = moves.initial()
        if begin is None:
            continue
        kinds.append((moves, Bound(moves)))
        push(len(kinds) - 1, _Node(begin[0], begin[1], 0, begin[2], None))
    states = 0
    while heap:
        node = heapq.heappop(heap)[-1]
        if node.dead:
            continue
        which = where[id(node)]
        moves = kinds[which][0]
        if moves.finished(node.key):
            return node.label[0], _program(model, moves, node), states, node.moved
        states += 1
        if until is not None and states % 64 == 0 and time.monotonic() > until:
            raise _OutOfTimeError
        for key, label, codes, moved in moves.successors(node.key, node.label):
            push(which, _Node(key, label, node.moved + moved, codes, node))
    return None


def _program(model: Model, moves: Moves, node: _Node) -> Program:
    blocks: list[tuple[Code, ...]] = []
    step: _Node | None = node
    while step is not None:
        blocks.append(step.codes)
        step = step.parent
    start = {model.tensor_names[t]: model.tier_names[k] for t, k in enumerate(moves.start) if k >= 0}
    return Program(tuple(model.instruction(code) for block in reversed(blocks) for code in block), start)
