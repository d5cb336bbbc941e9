"""List schedule: turn a choice of vacated gaps into a program, in one forward pass over the ops.

Given the set of gaps to vacate, the pass walks the listed ops and writes instructions with their times as it goes:

* a version with a vacated gap is copied out once, when the outward channel is idle, earliest gap first;
* a copy on the device is dropped only when room is needed: first what has left already, farthest next use first, then
  what leaves soonest (the op waits for it);
* a vacated tensor comes back in the order of next uses, when the inward channel is idle and the room is free at every op
  up to its use; a tensor whose room was never needed is not dropped at all and nothing is copied back;
* at the op that needs it, it comes back in any case.

Every choice whose planned residency fits the budget at each op gives a program (with unbounded backing tier), since all
that is not planned to be resident can be dropped. Times follow `planner.replay`; the finished program is replayed and
checked by others all the same. Source of the scheme: ../design notes on list schedules; HyperOffload places its
transfers in a fixed order of ops, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.arrays import Ints, problem_arrays
from planner.heuristics.list_pass import run_pass
from planner.lifetimes import Bools, Gaps, gaps_of
from planner.program import Copy, Drop, Instruction, Program, Run

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["ScheduleInput", "decode", "schedule", "schedule_input", "schedule_program", "supports"]

@dataclass(frozen=True)
class ScheduleInput:
    """Arrays that the pass reads; everything but the choice of gaps.

    Attributes
    ----------
    gaps : Gaps
    args : tuple of arrays
        In the order of the kernel.
    occupied : (n_tensors,) int64
        Device bytes.
    capacity : int
        Device bytes.
    length : int
        Longest program the pass can write.
    """

    gaps: Gaps
    args: tuple[object, ...]
    occupied: Ints
    capacity: int
    length: int


def supports(problem: Problem) -> str | None:
    """Return why the list schedule cannot serve a problem; None if it can."""
    names = {t.name for t in problem.machine.tiers}
    back = gaps_of(problem).backing
    near = {problem.machine.device.name} | ({problem.machine.tiers[back].name} if back >= 0 else set())
    changed = {n for op in problem.lowered.ops for n in op.updates}
    for t in problem.lowered.tensors:
        if isinstance(t.home, tuple) and t.name in changed and set(t.home) - near:
            return f"tensor {t.name!r} is updated and starts on a tier other than the backing tier, too"
        if isinstance(t.home, tuple) and t.home and not near & set(t.home):
            return f"tensor {t.name!r} starts on a tier without a direct link to the device"
        if t.keep in names - near:
            return f"tensor {t.name!r} must end on {t.keep!r}, which is not the backing tier"
    for name, tier in problem.lowered.pinned.items():
        if tier != problem.machine.device.name:
            return f"tensor {name!r} is pinned to {tier!r}"
    return None


def schedule_input(problem: Problem) -> ScheduleInput:
    """Return the arrays for a problem (built once, kept on it)."""
    cached = problem.__dict__.get("_schedule_input")
    if cached is None:
        cached = _build(problem)
        problem.__dict__["_schedule_input"] = cached
    return cached


def _build(problem: Problem) -> ScheduleInput:
    a, g = problem_arrays(problem), gaps_of(problem)
    b = max(g.backing, 0)
    way_out, way_in = int(a.link[0, b]), int(a.link[b, 0])
    zero = np.zeros(a.n_tensors, np.int64)
    out_time = a.copy_time[:, way_out].copy() if g.backing > 0 else zero
    in_time = a.copy_time[:, way_in].copy() if way_in >= 0 and g.backing > 0 else zero
    channels = np.array([a.channel[way_out], a.channel[way_in], a.n_channels] if g.backing > 0 else [0, 0, 1], np.int64)
    back_name = problem.machine.tiers[b].name
    first: dict[tuple[int, int], int] = {}
    for i, (t, v) in enumerate(zip(g.tensor.tolist(), g.version.tolist(), strict=True)):
        first.setdefault((v, t), i)
    ops = np.repeat(np.arange(a.n_ops), np.diff(g.operands.start))
    born = np.array([first.get(key, -1) for key in zip(ops.tolist(), g.operands.item.tolist(), strict=True)], np.int64)
    start_born = np.array([first.get((-1, t), -1) for t in range(a.n_tensors)], np.int64)
    stay = np.array([t.keep is not None and (t.keep == back_name or (t.keep == "home"
                     and (t.home == "any" or back_name in t.home))) for t in problem.lowered.tensors], np.bool_)
    is_any = np.array([t.home == "any" for t in problem.lowered.tensors], np.bool_)
    free_start = np.array([bool(t.home == "any" and problem.rules.offload and g.backing > 0
                                and t.name not in problem.lowered.pinned) for t in problem.lowered.tensors], np.bool_)
    home_dev = a.home[:, 0].copy()
    home_host = a.home[:, b].copy() if g.backing > 0 else np.zeros(a.n_tensors, np.bool_)
    args = (
        a.duration, a.stream, a.n_streams, g.operands.start, g.operands.item, g.after.item, born, start_born,
        a.reads.start, a.reads.item, a.writes.start, a.writes.item, a.updates.start, a.updates.item,
        a.after.start, a.after.item, a.occupied[:, 0].copy(), a.occupied[:, b].copy(), a.size, out_time, in_time, channels,
        g.tensor, g.start, g.stop, g.version, g.kind, g.choice, g.at_start, home_dev, home_host, is_any,
        free_start, stay, int(a.capacity[0]), int(a.capacity[b]) if g.backing > 0 else 2**62,
    )
    length = a.n_ops + 4 * len(g) + 3 * a.n_tensors + 16
    return ScheduleInput(g, args, a.occupied[:, 0].copy(), int(a.capacity[0]), length)


def schedule(data: ScheduleInput, vacated: Bools) -> tuple[int, int, int, Ints]:
    """Run the pass.

    Parameters
    ----------
    data : ScheduleInput
    vacated : (n_gaps,) bool
        Forced gaps are vacated in any case.

    Returns
    -------
    makespan_ns : int
        −1 if the choice does not fit.
    moved : int
        Bytes copied.
    peak : int
        Device bytes.
    code : (n, 4) int64
        The program; kind, op or tensor, from (or tier), to.
    """
    planned = data.gaps.resident(data.occupied, vacated)
    code = np.empty((data.length, 4), np.int64)
    makespan, moved, peak, n = run_pass(vacated | data.gaps.forced, planned, code, *data.args)
    return int(makespan), int(moved), int(peak), code[:n]


def schedule_program(problem: Problem, vacated: Bools) -> Program | None:
    """Return the program that the pass writes; None if the choice does not fit."""
    data = schedule_input(problem)
    makespan, _, _, code = schedule(data, vacated)
    return None if makespan < 0 else decode(problem, code, vacated)


def decode(problem: Problem, code: Ints, vacated: Bools) -> Program:
    """Turn the pass's rows into a program, with the start tiers that the choice implies."""
    g, low = gaps_of(problem), problem.lowered
    device = problem.machine.device.name
    back = problem.machine.tiers[g.backing].name if g.backing > 0 else device
    ops, tensors, tier = [o.name for o in low.ops], [t.name for t in low.tensors], (device, back)
    rows: list[Instruction] = []
    for kind, x, src, dst in code.tolist():
        if kind == 0:
            rows.append(Run(ops[x]))
        elif kind == 1:
            rows.append(Copy(tensors[x], tier[src], tier[dst]))
        else:
            rows.append(Drop(tensors[x], tier[src]))
    start: dict[str, str] = {}
    for t, tensor in enumerate(low.tensors):
        if tensor.home == "any":
            gap = int(g.at_start[t])
            away = (gap >= 0 and bool(g.choice[gap]) and bool(vacated[gap])) or (
                gap == -2 and problem.rules.offload and g.backing > 0 and tensor.name not in low.pinned)
            start[tensor.name] = back if away else device
    return Program(tuple(rows), start)
