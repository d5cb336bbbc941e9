"""The Chrome trace event format, read by ui.perfetto.dev and chrome://tracing.

Complete events (``"ph": "X"``) for runs and copies, one thread each for a stream or channel; counters (``"ph": "C"``)
for the occupied bytes of each tier. Times in the file are microseconds; nanoseconds survive as three decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from planner.memory_events import memory_events
from planner.program import Copy, Run

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["to_perfetto"]

_OPS, _COPIES, _MEMORY = 1, 2, 3


def to_perfetto(plan: Plan) -> bytes:
    """Return a plan as a Chrome trace.

    Parameters
    ----------
    plan : Plan
        With a program.

    Returns
    -------
    bytes
        JSON: ``traceEvents`` with a track for every stream and channel, a counter for every tier with its budget beside
        it where there is one, and in ``args`` what each run reads and writes and what each copy moves.

    Raises
    ------
    ValueError
        The plan has no program.
    """
    events = [*_tracks(plan), *_bars(plan), *_counters(plan)]
    about = {"graph": plan.problem.graph.name, "machine": plan.problem.machine.name, "status": str(plan.status),
             "method": plan.method, "makespan_ns": plan.makespan_ns, "problem": plan.problem.sha256}
    return msgspec.json.encode({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about})


def _threads(plan: Plan) -> dict[tuple[int, str], int]:
    """Return the thread number of each (process, stream or channel)."""
    streams = dict.fromkeys(op.stream for op in plan.problem.lowered.ops)
    return {(_OPS, s): i for i, s in enumerate(streams, 1)} | {
        (_COPIES, c): i for i, c in enumerate(plan.problem.machine.channels, 1)}


def _tracks(plan: Plan) -> list[dict[str, Any]]:
    found = [_meta("process_name", pid, 0, name)
             for pid, name in ((_OPS, "ops"), (_COPIES, "copies"), (_MEMORY, "memory"))]
    for (pid, name), tid in _threads(plan).items():
        found += [_meta("thread_name", pid, tid, name)]
    return found


def _meta(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _bars(plan: Plan) -> list[dict[str, Any]]:
    line, low, machine, threads = plan.timeline, plan.problem.lowered, plan.problem.machine, _threads(plan)
    assert plan.program is not None
    found: list[dict[str, Any]] = []
    ran: set[str] = set()
    for i, (ins, start, end) in enumerate(
        zip(plan.program.instructions, line.start.tolist(), line.end.tolist(), strict=True)
    ):
        if isinstance(ins, Run):
            op = low.op[ins.op]
            args: dict[str, Any] = {"index": i, "reads": list(op.reads), "writes": list(op.writes)}
            if op.updates:
                args["updates"] = list(op.updates)
            if ins.at:
                args["in_place"] = dict(ins.at)
            if ins.op in ran:
                args["recomputed"] = True
            ran.add(ins.op)
            found.append(_bar(ins.op, "recompute" if "recomputed" in args else "op", _OPS, threads[_OPS, op.stream],
                              start, end, args))
        elif isinstance(ins, Copy):
            tensor, channel = low.tensor[ins.tensor], machine.link[ins.src, ins.dst].channel
            args = {"index": i, "tensor": ins.tensor, "src": ins.src, "dst": ins.dst, "bytes": tensor.size,
                    "kind": tensor.kind}
            found.append(_bar(ins.tensor, "copy", _COPIES, threads[_COPIES, channel], start, end, args))
    return found


def _bar(name: str, cat: str, pid: int, tid: int, start: int, end: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": start / 1000,
            "dur": (end - start) / 1000, "args": args}


def _counters(plan: Plan) -> list[dict[str, Any]]:
    """Return one counter event for each instant at which a tier changes; of several changes the last counts."""
    found: list[dict[str, Any]] = []
    for tier, budget in plan.problem.capacity.items():
        level, levels = 0, {0: 0}
        for event in memory_events(plan):
            if event.tier == tier:
                level += event.change
                levels[event.time] = level
        levels[plan.timeline.makespan_ns] = level
        for time, value in levels.items():
            found.append(_counter(f"{tier} bytes", time, {"used": value}))
        if budget is not None:
            found += [_counter(f"{tier} budget", t, {"bytes": budget}) for t in (0, plan.timeline.makespan_ns)]
    return found


def _counter(name: str, time: int, args: dict[str, int]) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": _MEMORY, "tid": 0, "ts": time / 1000, "args": args}
