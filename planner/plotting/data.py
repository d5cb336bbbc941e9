"""What a timeline shows, as plain arrays: bars of each stream and channel, bytes of each tier.

Pure: it draws nothing and needs no plotting package; every renderer reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.memory_events import MemoryEvent, memory_events
from planner.program import Copy, Run

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["FigureData", "Lane", "TierCurve", "timeline_figure_data"]


@dataclass(frozen=True)
class Lane:
    """The bars of one stream or channel.

    Attributes
    ----------
    name : str
    copies : bool
        A channel's copies, not a stream's ops.
    start, end : (n,) int64
        Nanoseconds.
    group : tuple of str
        Legend entry of each bar: "op" or "op again", or the kind of the tensor copied.
    label : tuple of str
        Op, or tensor with its link.
    """

    name: str
    copies: bool
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    group: tuple[str, ...]
    label: tuple[str, ...]


@dataclass(frozen=True)
class TierCurve:
    """Bytes in use on a tier: ``used[i]`` from ``time[i]`` to ``time[i + 1]``.

    Attributes
    ----------
    tier : str
    time : (n,) int64
        Nanoseconds, starts at 0 and ends at the makespan.
    used : (n,) int64
        Occupied bytes: the highest use at that instant.
    peak : int
        Largest list-order use, the one that a budget binds; the use at any instant is no larger.
    budget : int, optional
        Usable bytes; None is unbounded.
    """

    tier: str
    time: NDArray[np.int64]
    used: NDArray[np.int64]
    peak: int
    budget: int | None


@dataclass(frozen=True)
class FigureData:
    """All that a timeline shows."""

    title: str
    makespan: int
    lanes: tuple[Lane, ...]
    tiers: tuple[TierCurve, ...]


def timeline_figure_data(plan: Plan) -> FigureData:
    """Return the bars and curves of a plan.

    Parameters
    ----------
    plan : Plan
        With a program.

    Returns
    -------
    FigureData
        Streams in order of first use, then the machine's channels, used or not; tiers in the machine's order.

    Raises
    ------
    ValueError
        The plan has no program.
    """
    line = plan.timeline
    assert plan.program is not None
    low, machine = plan.problem.lowered, plan.problem.machine
    bars: dict[tuple[bool, str], list[tuple[int, int, str, str]]] = {}
    for op in low.ops:
        bars.setdefault((False, op.stream), [])
    for channel in machine.channels:
        bars.setdefault((True, channel), [])
    ran: set[str] = set()
    for ins, start, end in zip(plan.program.instructions, line.start.tolist(), line.end.tolist(), strict=True):
        if isinstance(ins, Run):
            bars[False, low.op[ins.op].stream].append((start, end, "op again" if ins.op in ran else "op", ins.op))
            ran.add(ins.op)
        elif isinstance(ins, Copy):
            kind = low.tensor[ins.tensor].kind or "tensor"
            channel = machine.link[ins.src, ins.dst].channel
            bars[True, channel].append((start, end, kind, f"{ins.tensor} {ins.src}>{ins.dst}"))
    lanes = tuple(_lane(name, copies, rows) for (copies, name), rows in bars.items())
    events = memory_events(plan)
    curves = tuple(
        TierCurve(t.name, *_steps((e for e in events if e.tier == t.name), line.makespan_ns),
                  line.peak_bytes[t.name], plan.problem.capacity[t.name])
        for t in machine.tiers
    )
    title = f"{plan.problem.graph.name} on {machine.name}"
    return FigureData(title, line.makespan_ns, lanes, curves)


def _lane(name: str, copies: bool, rows: list[tuple[int, int, str, str]]) -> Lane:
    return Lane(name, copies, np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64),
                tuple(r[2] for r in rows), tuple(r[3] for r in rows))


def _steps(events: Iterable[MemoryEvent], makespan: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sum the changes; of several at one instant the highest sum is shown as a spike, then where they end."""
    times, used = [0], [0]
    level = 0
    for e in events:
        level += e.change
        if e.time != times[-1]:
            times.append(e.time)
            used.append(level)
        elif level > used[-1]:
            used[-1] = level
        elif level < used[-1]:
            times.append(e.time)
            used.append(level)
    times.append(makespan)
    used.append(level)
    return np.array(times, np.int64), np.array(used, np.int64)
