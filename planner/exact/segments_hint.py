"""Give a known program to the segment model as a complete hint."""

from __future__ import annotations

from planner.exact.segments import CopySlot, RunSlot, Segment, SegmentModel
from planner.exact.slots import keep_tiers
from planner.program import Copy, Program, Run

__all__ = ["add_hint"]


def add_hint(m: SegmentModel, program: Program) -> None:
    """Time a checked program with the model's lengths, and hint every slot and segment it uses.

    What does not fit into the slots is left out of the hint.
    """
    low, machine, device = m.problem.lowered, m.problem.machine, m.problem.machine.device.name
    value: dict[int, tuple[object, int]] = {}

    def put(var: object, number: int) -> None:
        value[var.index] = (var, number)  # type: ignore[attr-defined]

    free: dict[str, int] = {}
    freed: dict[str, int] = {}
    op_end: dict[str, int] = {}
    ready: dict[tuple[str, str], int] = {}
    used: dict[tuple[str, str], int] = {}
    here: dict[tuple[str, str], Segment | None] = {}
    count: dict[object, int] = {}
    serve = {(id(s), id(user)): y for s, user, y in m.serves}
    by_creator = {(s.tensor, s.tier, id(s.creator)): s for s in m.all_segments()}
    for any_slot in m.all_slots():
        put(any_slot.present, 0)
    for s in m.all_segments():
        if s.creator is None and (s.tensor, s.tier) not in here:
            begins = program.start.get(s.tensor, s.tier) == s.tier
            if not isinstance(s.present, int) and low.tensor[s.tensor].home == "any":
                put(s.present, int(begins))
            if begins:
                here[s.tensor, s.tier], ready[s.tensor, s.tier], used[s.tensor, s.tier] = s, 0, 0

    def use(key: tuple[str, str], user: RunSlot | CopySlot | None, end: int) -> None:
        used[key] = max(used[key], end)
        s = here.get(key)
        if s is not None and user is not None and (id(s), id(user)) in serve:
            put(serve[id(s), id(user)], 1)

    for *_, y in m.serves:
        put(y, 0)
    for ins in program.instructions:
        if isinstance(ins, Run):
            op = low.op[ins.op]
            j = count.get(ins.op, 0)
            count[ins.op] = j + 1
            slot = m.runs[ins.op][j] if j < len(m.runs[ins.op]) else None
            made = [w for w in op.writes if (w, device) not in ready]
            begin = max(
                0, free.get("s" + op.stream, 0), freed.get(device, 0) if made else 0,
                *(ready[n, device] for n in op.reads), *(used[n, device] for n in op.updates),
                *(op_end[n] for n in op.after),
            )
            length = m.stretch * m.scaled.run[ins.op] or 1
            end = begin + length
            free["s" + op.stream] = end
            op_end[ins.op] = max(op_end.get(ins.op, 0), end)
            for n in op.reads:
                use((n, device), slot, end)
            for n in op.updates:
                ready[n, device] = end
            if slot is not None:
                put(slot.present, 1)
                put(slot.start, begin)
            for w in made:
                ready[w, device] = used[w, device] = end
                here[w, device] = by_creator[w, device, id(slot)] if slot is not None else None
            if slot is not None and j and len(op.writes) > 1:
                for w in op.writes:
                    put(slot.creates[w], int(w in made))
        elif isinstance(ins, Copy):
            key = (ins.tensor, ins.src, ins.dst)
            k = count.get(key, 0)
            count[key] = k + 1
            group = m.copies.get(key, [])
            copy = group[k] if k < len(group) else None
            channel = "c" + machine.link[ins.src, ins.dst].channel
            begin = max(free.get(channel, 0), ready[ins.tensor, ins.src], freed.get(ins.dst, 0))
            end = begin + (m.stretch * m.scaled.copy[key] or 1)
            free[channel] = end
            use((ins.tensor, ins.src), copy, end)
            ready[ins.tensor, ins.dst] = used[ins.tensor, ins.dst] = end
            here[ins.tensor, ins.dst] = copy.segment if copy is not None else None
            if copy is not None:
                put(copy.present, 1)
                put(copy.start, begin)
        else:
            at = (ins.tensor, ins.tier)
            freed[ins.tier] = max(freed.get(ins.tier, 0), used[at])
            dropped = here.pop(at, None)
            if dropped is not None:
                put(dropped.drop, used[at])
            del ready[at], used[at]
    for stays in here.values():
        if stays is not None:
            put(stays.drop, m.end)
    for t in low.tensors:
        for tier in keep_tiers(t) or ():
            last = here.get((t.name, tier))
            if last is not None and (id(last), id(None)) in serve:
                put(serve[id(last), id(None)], 1)
                break
    times = [op_end[name] for name in op_end] + [t for k, t in free.items()]
    makespan = max(times, default=0) // m.stretch
    if makespan > m.horizon:
        return  # the model looks for faster programs only
    put(m.makespan, makespan)
    for var, number in value.values():
        m.model.add_hint(var, number)
