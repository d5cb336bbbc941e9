"""The segment formulation: residency segments in continuous time, as a CP-SAT model.

Sets. Runs r of op o(r); copies c of a tensor over a link (k, l); both optional slots (`planner.exact.slots`). A
*segment* s is one residency of a tensor on a tier: it is created by a copy, by a run that writes the tensor, or by the
start. Variables: presence and start of each slot, drop time δ(s) of each segment, a Boolean for "use u is served by s".

    minimise T                                                                                     `set_objective`
    (1)  end of every run and copy ≤ M·T + M − 1                                                   `add_makespan`
    (2)  runs of a stream, and copies of a channel, do not overlap; first runs keep the order      `add_order`
    (3)  every present read, copy source and keep is served by exactly one segment of the right
         tensor and tier, created (its creator ended) before the use starts, dropped after it ends  `add_uses`
    (4)  segments of one tensor on one tier do not overlap                                         `add_residency`
    (5)  on every tier, the segments alive at any instant fit                                      `add_residency`
    (6)  a run creates each output, unless a segment of it covers the start of a rerun; it creates
         at least one                                                                              `add_outputs`
    (7)  during an update no other segment of the tensor is on another tier and no copy of it
         runs; readers listed before an update end before it, those listed after start after it    `add_updates`
    (8)  the runs that use a pinned tensor are all served by one segment                           `add_pins`
    (9)  relaxed only, instead of the segments of (6): what the list order of runs implies         `add_list_memory`

Time. An instruction of zero length still holds memory and has a place in the list, and solvers ignore empty intervals.
So a run or copy of d > 0 units lasts M·d, one of 0 units lasts 1, and M = 1 + number of zero-length slots.

*A list gives a schedule.* Take a list with makespan T. Time it with the stretched lengths; a path of length D through z
zero-length instructions becomes M·D + z ≤ M·T + M − 1: that is (1). With segments from their creator's start to the end
of their Drop, take an instant and the newest allocation X alive on a tier then: whatever is alive there was allocated
no later in the list, and not dropped before X in the list, since X waits for every earlier Drop; so it is part of the
list-order residency at X: (5). For (7): a copy of the old version on another tier that ends after the update starts
serves, directly or by further copies, no segment that a Run reads, because each such segment ended before the updated
one was created, or is that one; so it can be left out together with its Drop.

*A schedule gives a list.* Sort Drops by δ and runs and copies by start, at one instant Drops first, then copies, then
runs. All lengths are positive, so nothing is dropped at the instant at which it is used, and every wait of the list is
for something that has ended; (5) bounds the list-order sums. A path of length D through z zero-length instructions
took M·D + z, so D ≤ T.

What (6) does not see: a Run leaves alone an output whose copy stands earlier *in the list*, even if it is created
later, or dropped earlier, *in time*. Programs that use this are legal and beyond this model; they need a rerun of an op
with two outputs or more (workspace counts), see `restrictions`. The same holds for an ``after`` edge to a rerun on
another stream, which binds in list order. The relaxed model lets a rerun skip outputs and ``after`` wait for first runs
only; both models together prove an optimum whenever their values agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ortools.sat.python import cp_model

from planner.exact.scaling import SUM_LIMIT, Scaled
from planner.exact.segments import RunSlot, SegmentModel, create_copies, create_runs, create_start
from planner.exact.slots import Slots, keep_tiers

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["build", "restrictions"]


def restrictions(problem: Problem, counted: Slots) -> tuple[str, ...]:
    """Return what the model leaves out of the programs that fit the slots, unless relaxed; empty if nothing."""
    found: list[str] = []
    low = problem.lowered
    if any(counted.runs[op.name] > 1 and len(op.writes) > 1 for op in low.ops):
        found.append("outputs that a rerun leaves alone are there when it starts")
    if any(counted.runs[p] > 1 and low.op[p].stream != op.stream for op in low.ops for p in op.after):
        found.append("an op waits for every rerun of its 'after' ops that starts before it")
    return tuple(found)


def build(
    problem: Problem, scaled: Scaled, counted: Slots, horizon: int, lower: int = 0, *, relaxed: bool = False
) -> SegmentModel:
    """Build the model.

    Parameters
    ----------
    problem, scaled, counted
    horizon, lower : int
        Makespans to look at, units.
    relaxed : bool
        A rerun may skip outputs under (9) alone, and ``after`` waits for first runs only. Every program is then
        covered, also those that (6) does not see, and the optimum is a bound; its programs may break the rules.
    """
    low = problem.lowered
    empty = sum(counted.runs[op.name] for op in low.ops if scaled.run[op.name] == 0)
    empty += sum(n for key, n in counted.copies.items() if scaled.copy[key] == 0)
    m = SegmentModel(problem, scaled, counted, cp_model.CpModel(), 1 + empty, horizon, relaxed=relaxed)
    create_runs(m)
    create_copies(m)
    create_start(m)
    add_makespan(m, lower)
    add_order(m)
    add_residency(m)
    add_outputs(m)
    add_uses(m)
    add_updates(m)
    add_pins(m)
    if relaxed:
        add_list_memory(m)
    set_objective(m)
    return m


def add_makespan(m: SegmentModel, lower: int) -> None:
    """(1)."""
    m.makespan = m.model.new_int_var(lower, m.horizon, "makespan")
    for slot in m.all_slots():
        m.model.add(slot.end <= m.stretch * m.makespan + (m.stretch - 1)).only_enforce_if(slot.present)


def add_order(m: SegmentModel) -> None:
    """(2), and ``after``: a run follows the first run of each op it names, and does not overlap the others."""
    low = m.problem.lowered
    streams: dict[str, list[Any]] = {}
    last: dict[str, RunSlot] = {}
    for op in low.ops:
        group = m.runs[op.name]
        streams.setdefault(op.stream, []).extend(r.interval for r in group)
        if op.stream in last:
            m.model.add(group[0].start >= last[op.stream].end)
        last[op.stream] = group[0]
        for name in op.after:
            for r in group:
                m.model.add(r.start >= m.runs[name][0].end).only_enforce_if(r.present)
                if low.op[name].stream != op.stream and not m.relaxed:
                    for other in m.runs[name][1:]:
                        ahead = m.model.new_bool_var("")
                        m.model.add(r.start >= other.end).only_enforce_if([ahead, r.present, other.present])
                        m.model.add(r.start <= other.start).only_enforce_if([~ahead, r.present, other.present])
    channels: dict[str, list[Any]] = {}
    for c in m.all_copies():
        channels.setdefault(m.problem.machine.link[c.src, c.dst].channel, []).append(c.interval)
    for intervals in [*streams.values(), *channels.values()]:
        if len(intervals) > 1:
            m.model.add_no_overlap(intervals)


def add_residency(m: SegmentModel) -> None:
    """(4) and (5)."""
    device = m.problem.machine.device.name
    for group in m.segments.values():
        if len(group) > 1:
            m.model.add_no_overlap([s.interval for s in group])
    for tier, capacity in m.scaled.capacity.items():
        limit: Any = capacity
        if tier == device:
            total = sum(m.scaled.size[t.name, tier] for t in m.problem.lowered.tensors)
            if total <= SUM_LIMIT:
                most = total if capacity is None else min(total, capacity)
                limit = m.device_capacity = m.model.new_int_var(0, most, "device peak")
        if limit is None:
            continue
        held = [(s.interval, m.scaled.size[s.tensor, tier]) for s in m.all_segments() if s.tier == tier]
        held = [(interval, size) for interval, size in held if size]
        m.model.add_cumulative([i for i, _ in held], [n for _, n in held], limit)


def add_outputs(m: SegmentModel) -> None:
    """(6)."""
    device = m.problem.machine.device.name
    for group in m.runs.values():
        for r in group[1:]:
            if len(r.creates) < 2:
                continue
            m.model.add_bool_or([*r.creates.values(), ~r.present])
            if m.relaxed:
                continue
            for w, creates in r.creates.items():
                there = []
                for s in m.segments[w, device]:
                    if s.creator is r:
                        continue
                    covers = m.model.new_bool_var("")
                    m.model.add_implication(covers, s.present)
                    m.model.add(s.start <= r.start).only_enforce_if(covers)
                    m.model.add(s.drop >= r.start + 1).only_enforce_if(covers)
                    there.append(covers)
                    s.served.append(covers)
                m.model.add(sum(there) == 1).only_enforce_if([r.present, ~creates])
                m.model.add(sum(there) == 0).only_enforce_if(creates)
                m.model.add(sum(there) == 0).only_enforce_if(~r.present)


def _serve(m: SegmentModel, tensor: str, tier: str, present: Any, start: Any, end: Any, user: Any) -> None:
    chosen = []
    for s in m.segments.get((tensor, tier), []):
        if s.creator is user and user is not None:
            continue
        y = m.model.new_bool_var("")
        m.model.add_implication(y, s.present)
        if s.creator is not None and start is not None:
            m.model.add(start >= s.ready).only_enforce_if(y)
        m.model.add(s.drop >= end).only_enforce_if(y)
        s.served.append(y)
        m.serves.append((s, user, y))
        chosen.append(y)
    m.model.add(sum(chosen) == present)


def add_uses(m: SegmentModel) -> None:
    """(3); a copy whose segment serves nothing is not made."""
    device = m.problem.machine.device.name
    for op in m.problem.lowered.ops:
        for r in m.runs[op.name]:
            for name in op.reads:
                _serve(m, name, device, r.present, r.start, r.end, r)
    for c in m.all_copies():
        _serve(m, c.tensor, c.src, c.present, c.start, c.end, c)
    for t in m.problem.lowered.tensors:
        wanted = keep_tiers(t)
        if wanted is None:
            for s in [s for s in m.all_segments() if s.tensor == t.name and s.creator is None]:
                _serve(m, t.name, s.tier, s.present, None, m.end, None)
        elif wanted:
            here = [m.model.new_bool_var(f"keep {t.name} on {tier}") for tier in wanted]
            m.model.add_exactly_one(here)
            for tier, literal in zip(wanted, here, strict=True):
                _serve(m, t.name, tier, literal, None, m.end, None)
    for c in m.all_copies():
        assert c.segment is not None
        m.model.add_bool_or([*c.segment.served, ~c.present])


def add_updates(m: SegmentModel) -> None:
    """(7)."""
    low, device = m.problem.lowered, m.problem.machine.device.name
    for i, op in enumerate(low.ops):
        u = m.runs[op.name][0]
        for name in op.updates:
            for s in [s for (n, tier), group in m.segments.items() if n == name and tier != device for s in group]:
                m.model.add_no_overlap([u.interval, s.interval])
            for c in [c for (n, _, _), group in m.copies.items() if n == name for c in group]:
                m.model.add_no_overlap([u.interval, c.interval])
            for j, other in enumerate(low.ops):
                if other is op or name not in (*other.reads, *other.writes):
                    continue
                for r in m.runs[other.name]:
                    if j < i:  # a rerun that leaves the tensor alone may come later
                        concerned = r.present if name in other.reads else r.creates[name]
                        m.model.add(r.end <= u.start).only_enforce_if(concerned)
                    else:
                        m.model.add(r.start >= u.end).only_enforce_if(r.present)


def add_pins(m: SegmentModel) -> None:
    """(8). Pins to other tiers than the device are settled before any model is built."""
    low, device = m.problem.lowered, m.problem.machine.device.name
    for name in low.pinned:
        made = [r for op in low.ops if name in op.writes for r in m.runs[op.name]]
        for r in made[1:]:
            m.model.add(r.creates[name] == 0)
        for s in m.segments.get((name, device), []):
            serving = [y for t, user, y in m.serves if t is s and isinstance(user, RunSlot)]
            for y in serving:
                if made and s.creator is not made[0]:
                    m.model.add(y == 0)
                elif not made:
                    m.model.add_implication(y, serving[0])


def add_list_memory(m: SegmentModel) -> None:
    """(9), relaxed only: runs of one stream stand in the list in order of time, so a segment that serves runs (or comes
    from one) is in list-order memory at every run of the stream between its first and its last; and at a rerun, each
    output counts, whether it is created or left alone.
    """
    low, device = m.problem.lowered, m.problem.machine.device.name
    capacity = m.scaled.capacity[device]
    if capacity is None:
        return
    for stream in {op.stream: None for op in low.ops}:
        held: list[tuple[Any, int]] = []
        for s in m.all_segments():
            size = m.scaled.size[s.tensor, device]
            if s.tier != device or not size:
                continue
            spans: list[tuple[RunSlot, Any]] = [
                (user, y) for t, user, y in m.serves if t is s and isinstance(user, RunSlot)
            ]
            if isinstance(s.creator, RunSlot):
                spans.append((s.creator, s.present))
            spans = [(r, y) for r, y in spans if low.op[r.op].stream == stream]
            if not spans:
                continue
            begin, end = m.model.new_int_var(0, m.end, ""), m.model.new_int_var(0, m.end, "")
            for r, y in spans:
                m.model.add(begin <= r.start).only_enforce_if(y)
                m.model.add(end >= r.end).only_enforce_if(y)
            length = m.model.new_int_var(0, m.end, "")
            held.append((m.model.new_optional_interval_var(begin, length, end, s.present, ""), size))
        for op in low.ops:
            for r in m.runs[op.name] if op.stream == stream else []:
                for w, creates in r.creates.items():
                    if r.index and len(r.creates) > 1 and m.scaled.size[w, device]:
                        skipped = m.model.new_bool_var("")
                        m.model.add(skipped == r.present - creates)
                        left = m.model.new_optional_fixed_size_interval_var(r.start, r.length, skipped, "")
                        held.append((left, m.scaled.size[w, device]))
        m.model.add_cumulative([i for i, _ in held], [n for _, n in held], capacity)


def set_objective(m: SegmentModel) -> None:
    """Minimise the makespan; ties are broken by later solves."""
    m.model.minimize(m.makespan)
