"""What a timed program allocates and releases, and when: the common ground of pictures, counters and snapshots.

A copy takes room on its tier from the start of the instruction that creates it to the end of its Drop. At one instant
the order of the list counts, so the running sum never exceeds the list-order peak (fact 1 of the execution model).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.program import Copy, Drop, Run

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["MemoryEvent", "copies_created", "memory_events", "starting_copies"]


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """One allocation or release.

    Attributes
    ----------
    time : int
        Nanoseconds.
    index : int
        Instruction that causes it; −1 for what is there at the start.
    tier, tensor : str
    change : int
        Occupied bytes; negative for a release.
    """

    time: int
    index: int
    tier: str
    tensor: str
    change: int


def copies_created(plan: Plan) -> list[list[tuple[str, str]]]:
    """Return, for each instruction, the (tensor, tier) copies that it creates; what starts somewhere is not among them.

    Raises
    ------
    ValueError
        The plan has no program.
    """
    if plan.program is None:
        raise ValueError(f"a plan that is {plan.status} has no program")
    low, device = plan.problem.lowered, plan.problem.machine.device.name
    present = set(starting_copies(plan))
    created: list[list[tuple[str, str]]] = []
    for ins in plan.program.instructions:
        new: list[tuple[str, str]] = []
        if isinstance(ins, Run):
            at = dict(ins.at)
            new = [c for c in ((t, at.get(t, device)) for t in low.op[ins.op].writes) if c not in present]
        elif isinstance(ins, Copy):
            new = [(ins.tensor, ins.dst)]
        else:
            present.discard((ins.tensor, ins.tier))
        present.update(new)
        created.append(new)
    return created


def starting_copies(plan: Plan) -> list[tuple[str, str]]:
    """Return the (tensor, tier) copies that exist before the first instruction."""
    start = plan.program.start if plan.program is not None else {}
    found: list[tuple[str, str]] = []
    for t in plan.problem.lowered.tensors:
        if isinstance(t.home, str):
            if t.name in start:
                found.append((t.name, start[t.name]))
        else:
            found += [(t.name, tier) for tier in t.home]
    return found


def memory_events(plan: Plan) -> list[MemoryEvent]:
    """Return every allocation and release in order of time, those of one instant in list order.

    Parameters
    ----------
    plan : Plan
        With a program.

    Returns
    -------
    list of MemoryEvent
        Zero-size copies are left out.

    Raises
    ------
    ValueError
        The plan has no program.
    """
    created = copies_created(plan)
    assert plan.program is not None
    low, tiers, line = plan.problem.lowered, plan.problem.machine.tier, plan.timeline

    def room(tensor: str, tier: str) -> int:
        return tiers[tier].occupied(low.tensor[tensor].size)

    events = [MemoryEvent(0, -1, tier, tensor, room(tensor, tier)) for tensor, tier in starting_copies(plan)]
    rows = zip(plan.program.instructions, created, line.start.tolist(), line.end.tolist(), strict=True)
    for i, (ins, new, start, end) in enumerate(rows):
        events += [MemoryEvent(start, i, tier, tensor, room(tensor, tier)) for tensor, tier in new]
        if isinstance(ins, Drop):
            events.append(MemoryEvent(end, i, ins.tier, ins.tensor, -room(ins.tensor, ins.tier)))
    return sorted((e for e in events if e.change), key=lambda e: (e.time, e.index))
