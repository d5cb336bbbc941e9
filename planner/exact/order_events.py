"""Events and stays: the variables of the order formulation (`planner.exact.order_model`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.exact.linear import Linear, Literal
from planner.exact.precedence import Precedence
from planner.exact.scaling import Scaled
from planner.exact.slots import Slots, start_tiers

if TYPE_CHECKING:
    from planner.graph import Op
    from planner.problem import Problem

__all__ = ["Event", "OrderModel", "Stay", "create_events", "create_stays"]


@dataclass(eq=False)
class Event:
    """A run slot (``op``) or a copy slot (``tensor`` from ``src`` to ``dst``)."""

    name: str
    number: int
    present: Literal
    key: int
    start: int
    length: int
    lane: str
    op: Op | None = None
    tensor: str = ""
    src: str = ""
    dst: str = ""
    creates: dict[str, Literal] = field(default_factory=dict)


@dataclass(eq=False)
class Stay:
    """One residency of a tensor on a tier; K and R of its Drop, which is None where none is needed."""

    tensor: str
    tier: str
    creator: Event | None
    present: Literal
    drop_key: int
    drop_end: int
    droppable: bool = True
    dropped_before: dict[Event, Literal] = field(default_factory=dict)
    served: list[Literal] = field(default_factory=list)
    uses: list[tuple[Event, Literal]] = field(default_factory=list)


@dataclass(eq=False)
class OrderModel:
    """A built model and the handles to read a program from a solution."""

    problem: Problem
    scaled: Scaled
    slots: Slots
    horizon: int
    relaxed: bool
    facts: Precedence
    last: int = 0
    linear: Linear = field(default_factory=Linear)
    runs: dict[str, list[Event]] = field(default_factory=dict)
    copies: dict[tuple[str, str, str], list[Event]] = field(default_factory=dict)
    stays: dict[tuple[str, str], list[Stay]] = field(default_factory=dict)
    order: dict[tuple[Event, Event], Literal] = field(default_factory=dict)
    makespan: int = -1
    yes: Literal = (-1, True)

    @property
    def events(self) -> list[Event]:
        """All events."""
        return [e for group in (*self.runs.values(), *self.copies.values()) for e in group]

    @property
    def all_stays(self) -> list[Stay]:
        """All residencies."""
        return [s for group in self.stays.values() for s in group]

    def set_before(self, i: Event, j: Event) -> None:
        """Fix that i stands before j; call before `before` asks for the pair."""
        self.order[i, j], self.order[j, i] = self.yes, (self.yes[0], False)
        self._order_rows(i, j, self.yes)

    def before(self, i: Event, j: Event) -> Literal:
        """Return the literal "i before j in the list". (1)."""
        if (i, j) not in self.order:
            lit = self.linear.literal(f"{i.name} before {j.name}")
            self.order[i, j], self.order[j, i] = lit, (lit[0], not lit[1])
            self._order_rows(i, j, lit)
            self._order_rows(j, i, self.order[j, i])
        return self.order[i, j]

    def _order_rows(self, i: Event, j: Event, lit: Literal) -> None:
        self.linear.at_least([(1, j.key), (-1, i.key)], 1, [lit])
        if i.lane == j.lane:
            self.follow(j, i, [lit])

    def follow(self, j: Event, i: Event, when: Iterable[Literal]) -> None:
        """Demand that j starts after i has ended, if both are present and ``when`` holds."""
        conditions = [*when, i.present, j.present]
        self.linear.at_least([(1, j.start), (-1, i.start)], i.length, [c for c in conditions if c != self.yes])


def create_events(m: OrderModel) -> None:
    """Create presence, position and start of every slot; equal slots are used in order."""
    linear, device, facts = m.linear, m.problem.machine.device.name, m.facts

    def event(name: str, number: int, length: int, lane: str, present: Literal, window: tuple[int, int]) -> Event:
        key = linear.variable(0, m.last, f"position {name}")
        early, late = window
        start = linear.variable(early, max(early, m.horizon - max(length, late)), f"start {name}")
        return Event(name, number, present, key, start, length, lane)

    def after_needs(tensors: Iterable[str], length: int) -> int:
        needs: set[str] = set()
        for found in (facts.needs[n] for n in tensors):
            if not found:
                return 0
            needs |= found
        return length + min(facts.tail[p] for p in needs)

    for op in m.problem.lowered.ops:
        for j in range(m.slots.runs[op.name]):
            name = f"{op.name}/{j}"
            length = m.scaled.run[op.name]
            early = facts.head[op.name] + (length if j else 0)
            late = after_needs(op.writes, length) if j else facts.tail[op.name]
            present = m.yes if j == 0 else linear.literal(name)
            e = event(name, j, length, f"stream {op.stream}", present, (early, late))
            e.op, e.dst = op, device
            for w in op.writes:
                e.creates[w] = linear.literal(f"{name} creates {w}") if j and len(op.writes) > 1 else e.present
            m.runs.setdefault(op.name, []).append(e)
    for (tensor, src, dst), count in m.slots.copies.items():
        lane = f"channel {m.problem.machine.link[src, dst].channel}"
        for k in range(count):
            name = f"{tensor} {src}>{dst}/{k}"
            length = m.scaled.copy[tensor, src, dst]
            made = facts.producer.get(tensor)
            early = 0 if made is None else facts.head[made] + m.scaled.run[made]
            e = event(name, k, length, lane, linear.literal(name), (early, after_needs([tensor], length)))
            e.tensor, e.src, e.dst = tensor, src, dst
            e.creates[tensor] = e.present
            m.copies.setdefault((tensor, src, dst), []).append(e)


def create_stays(m: OrderModel) -> None:
    """Create a residency for everything that an event creates or the start holds."""
    linear = m.linear

    def stay(tensor: str, tier: str, creator: Event | None, present: Literal) -> None:
        key = linear.variable(0, m.last + 1, f"drop position {tensor}@{tier}")
        end = linear.variable(0, m.horizon, f"drop end {tensor}@{tier}")
        s = Stay(tensor, tier, creator, present, key, end)
        if creator is not None:
            linear.at_least([(1, key), (-1, creator.key)], 1)
            linear.at_least([(1, end), (-1, creator.start)], creator.length, [present])
        m.stays.setdefault((tensor, tier), []).append(s)

    for e in m.events:
        for w, made in e.creates.items():
            stay(w, e.dst, e, made)
    for t in m.problem.lowered.tensors:
        options = start_tiers(m.problem, t)
        if options is None:
            for tier in t.home:
                stay(t.name, tier, None, m.yes)
            continue
        chosen = [linear.literal(f"{t.name} starts on {tier}") for tier in options]
        linear.equal_literals([(1, c) for c in chosen], 1)
        for tier, lit in zip(options, chosen, strict=True):
            stay(t.name, tier, None, lit)
    updated = {n for op in m.problem.lowered.ops for n in op.updates}
    for s in m.all_stays:
        tight = m.scaled.capacity[s.tier] is not None and m.scaled.size[s.tensor, s.tier] > 0
        s.droppable = tight or s.tensor in updated or len(m.stays[s.tensor, s.tier]) > 1
        if not s.droppable:
            linear.low[s.drop_key] = m.last + 1
