"""The order formulation: the list itself, as a mixed-integer linear model.

Runs, copies and segments as in `planner.exact.segments_model`, but instead of continuous time that is sorted into a
list, the list order is modelled directly and literally. Variables: presence p, list position k and start t of each run
and copy (*event*); list position K(s) and end R(s) of the Drop of each segment; Booleans "i before j in the list" and
"Drop of s before allocation i". Rows "if …" are switched off by the least constant that the bounds allow.

    minimise T ≥ t + d of every present event
    (1)  i before j: k_j ≥ k_i + 1; if they share a stream or channel, t_j ≥ t_i + d_i             `OrderModel.before`
    (2)  s serves use u: k_u > k of s's creator, t_u ≥ its end, K(s) > k_u, R(s) ≥ end of u        `add_uses`
    (3)  Drop of s before allocation i of the tier: k_i > K(s), t_i ≥ R(s); else K(s) > k_i        `add_residency`
    (4)  allocation i: what is created before it and not dropped before it fits beside it          `add_residency`
    (5)  no second copy of a tensor on a tier                                                      `add_residency`
    (6)  an output that a rerun does not create stands before it in the list, and its Drop after   `add_outputs`
    (7)  at an update no other tier holds the tensor, in list order; earlier users of the tensor
         on the device end before it, later ones start after it                                    `add_updates`
    (8)  ``after``: behind the first run; behind every other run that precedes it in the list      `add_order`
    (9)  the runs that use a pinned tensor are all served by one residency                         `add_pins`

Times are in whole units and need no stretching: order at one instant is order in the list. (7) asks all readers of the
old version to end first, not only those of the updated copy: the others have ended anyway, since the updated copy was
created behind their copy's Drop.

Segments that need no Drop (a single residency on a tier that never fills, of a tensor that is not updated) have none.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from planner.exact.extract import tidy
from planner.exact.linear import Literal
from planner.exact.order_events import Event, OrderModel, create_events, create_stays
from planner.exact.precedence import precedence
from planner.exact.scaling import Scaled
from planner.exact.slots import Slots, keep_tiers
from planner.program import Copy, Drop, Instruction, Program, Run

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["build_order", "read_order"]


def build_order(
    problem: Problem, scaled: Scaled, counted: Slots, horizon: int, lower: int = 0, *, relaxed: bool = False
) -> OrderModel:
    """Build the model for makespans between ``lower`` and ``horizon`` (units).

    With ``relaxed`` a rerun may skip outputs without (6): the optimum is then a bound for all programs.
    """
    facts = precedence(problem, scaled, counted.runs)
    m = OrderModel(problem, scaled, counted, horizon, relaxed, facts)
    # Positions: one for each event, for each residency's Drop.
    low = problem.lowered
    m.last = counted.total + sum(counted.runs[op.name] * len(op.writes) for op in low.ops)
    m.last += sum(counted.copies.values()) + len(low.tensors) * len(problem.machine.tiers)
    m.yes = m.linear.constant(True)
    create_events(m)
    create_stays(m)
    add_order(m)
    add_residency(m)
    add_outputs(m)
    add_uses(m)
    add_updates(m)
    add_pins(m)
    add_cuts(m)
    add_makespan(m, lower)
    return m


def add_order(m: OrderModel) -> None:
    """What is known of the order, slots in turn, one lane one event at a time. (1), (8)."""
    low, facts = m.problem.lowered, m.facts
    for op in low.ops:
        e = m.runs[op.name][0]
        for name in sorted(facts.ancestors[op.name]):
            m.set_before(m.runs[name][0], e)
        for group in m.runs.values():
            for r in group[1:]:
                assert r.op is not None
                if op is r.op or op.name in facts.ancestors[r.op.name]:
                    m.set_before(e, r)
                elif all(facts.ends_before(w, op.name) for w in r.op.writes):
                    m.set_before(r, e)
        for (tensor, _, _), copies in m.copies.items():
            for c in copies:
                if facts.begins_after(tensor, op.name):
                    m.set_before(e, c)
                elif facts.ends_before(tensor, op.name):
                    m.set_before(c, e)
    for group in (*m.runs.values(), *m.copies.values()):
        for a, b in itertools.pairwise(group):
            if (a, b) not in m.order:
                m.set_before(a, b)
            m.linear.at_least_literals([(1, a.present), (-1, b.present)], 0)
    for op in low.ops:
        for name in op.after:
            for r in m.runs[op.name]:
                for q in m.runs[name]:
                    m.follow(r, q, [m.before(q, r)])
    events = m.events
    for n, i in enumerate(events):
        for j in events[:n]:
            if i.lane == j.lane:
                m.before(j, i)


def add_residency(m: OrderModel) -> None:
    """(3), (4), (5)."""
    linear = m.linear
    for tier, capacity in m.scaled.capacity.items():
        here = [s for s in m.all_stays if s.tier == tier]
        if capacity is not None:
            linear.at_least_literals([(-m.scaled.size[s.tensor, tier], s.present) for s in here if s.creator is None],
                                     -capacity)
        for i in [e for e in m.events if e.creates and e.dst == tier]:
            row: list[tuple[float, int]] = []
            # A present run counts each of its outputs, created or left alone.
            own = [(-float(m.scaled.size[w, tier]), i.present) for w in i.creates]
            for s in here:
                if s.creator is i or not (s.droppable or capacity is not None):
                    continue
                ahead = None if s.creator is None else m.before(i, s.creator)
                if ahead == m.yes:
                    s.dropped_before[i] = (m.yes[0], False)
                    continue
                gone: list[tuple[float, Literal]] = [] if ahead is None else [(1, ahead)]
                if s.droppable:
                    dropped = linear.literal(f"{s.tensor}@{tier} dropped before {i.name}")
                    s.dropped_before[i] = dropped
                    linear.at_least([(1, i.key), (-1, s.drop_key)], 1, [dropped])
                    linear.at_least([(1, s.drop_key), (-1, i.key)], 1, [(dropped[0], False)])
                    both = [c for c in (dropped, i.present) if c != m.yes]
                    linear.at_least([(1, i.start), (-1, s.drop_end)], 0, both)
                    if ahead is not None:
                        linear.at_least_literals([(-1, dropped), (-1, ahead)], -1)
                    gone.append((1, dropped))
                if s.tensor in i.creates:
                    linear.at_least_literals([*gone, (-1, s.present), (-1, i.creates[s.tensor])], -1)
                size = m.scaled.size[s.tensor, tier]
                if capacity is not None and size and s.tensor not in i.creates:
                    alive = linear.variable(0, 1, f"{s.tensor}@{tier} beside {i.name}")
                    linear.at_least([(1, alive)], -1, (), [*gone, (-1, s.present), (-1, i.present)])
                    row.append((-size, alive))
            if capacity is not None:
                linear.at_least(row, -capacity, (), own)


def add_outputs(m: OrderModel) -> None:
    """(6); a present rerun creates at least one output."""
    for group in m.runs.values():
        for r in group[1:]:
            if len(r.creates) < 2:
                continue
            m.linear.at_least_literals([*((1.0, c) for c in r.creates.values()), (-1, r.present)], 0)
            for w, made in r.creates.items():
                m.linear.at_least_literals([(1, r.present), (-1, made)], 0)
                if m.relaxed:
                    continue
                there: list[tuple[float, Literal]] = []
                for s in m.stays[w, r.dst]:
                    if s.creator is r:
                        continue
                    stands = m.linear.literal(f"{w} stands at {r.name}")
                    m.linear.at_least_literals([(1, s.present), (-1, stands)], 0)
                    m.linear.at_least_literals([(-1, s.dropped_before[r]), (-1, stands)], -1)
                    if s.creator is not None:
                        m.linear.at_least_literals([(1, m.before(s.creator, r)), (-1, stands)], 0)
                    there.append((1, stands))
                    s.served.append(stands)
                m.linear.at_least_literals([*there, (1, made), (-1, r.present)], 0)


def add_uses(m: OrderModel) -> None:
    """(2); ``keep``; a copy whose residency serves nothing is not made."""
    linear, device = m.linear, m.problem.machine.device.name

    def serve(tensor: str, tier: str, present: Literal, user: Event | None) -> None:
        chosen: list[tuple[float, Literal]] = []
        for s in m.stays.get((tensor, tier), []):
            if user is not None and s.creator is user:
                continue
            y = linear.literal(f"{tensor}@{tier} serves {user.name if user else 'the end'}")
            linear.at_least_literals([(1, s.present), (-1, y)], 0)
            if user is None:
                linear.at_least([(1, s.drop_key)], m.last + 1, [y])
            else:
                linear.at_least([(1, s.drop_key), (-1, user.key)], 1, [y])
                linear.at_least([(1, s.drop_end), (-1, user.start)], user.length, [y])
                s.uses.append((user, y))
                if s.creator is not None:
                    linear.at_least([(1, user.key), (-1, s.creator.key)], 1, [y])
                    linear.at_least([(1, user.start), (-1, s.creator.start)], s.creator.length, [y])
            chosen.append((1, y))
            s.served.append(y)
        linear.equal_literals([*chosen, (-1, present)], 0)

    for e in m.events:
        if e.op is not None:
            for name in e.op.reads:
                serve(name, device, e.present, e)
        else:
            serve(e.tensor, e.src, e.present, e)
    for t in m.problem.lowered.tensors:
        wanted = keep_tiers(t)
        if wanted is None:
            for s in [s for s in m.all_stays if s.tensor == t.name and s.creator is None]:
                serve(t.name, s.tier, s.present, None)
        elif wanted:
            here = [linear.literal(f"keep {t.name} on {tier}") for tier in wanted]
            linear.equal_literals([(1, h) for h in here], 1)
            for tier, lit in zip(wanted, here, strict=True):
                serve(t.name, tier, lit, None)
    for s in m.all_stays:
        if s.creator is not None and s.creator.op is None:
            linear.at_least_literals([*((1.0, y) for y in s.served), (-1, s.present)], 0)


def add_updates(m: OrderModel) -> None:
    """(7)."""
    low, device, linear = m.problem.lowered, m.problem.machine.device.name, m.linear
    for i, op in enumerate(low.ops):
        u = m.runs[op.name][0]
        for name in op.updates:
            for s in [s for s in m.all_stays if s.tensor == name and s.tier != device]:
                gone = linear.literal(f"{name}@{s.tier} dropped before {op.name}")
                linear.at_least([(1, u.key), (-1, s.drop_key)], 1, [gone])
                choices: list[tuple[float, Literal]] = [(1, gone), (-1, s.present)]
                if s.creator is not None:
                    choices.append((1, m.before(u, s.creator)))
                linear.at_least_literals(choices, 0)
            for c in [c for key, group in m.copies.items() if key[:2] == (name, device) for c in group]:
                m.follow(u, c, [m.before(c, u)])
                m.follow(c, u, [m.before(u, c)])
            for j, other in enumerate(low.ops):
                if other is op or name not in (*other.reads, *other.writes):
                    continue
                for r in m.runs[other.name]:
                    a, b = (r, u) if j < i else (u, r)
                    # A rerun that leaves the tensor alone may come later.
                    concerned = r.creates[name] if j < i and name not in other.reads else r.present
                    linear.at_least([(1, b.key), (-1, a.key)], 1, [c for c in (concerned,) if c != m.yes])
                    if name in other.reads:
                        m.follow(b, a, [])


def add_pins(m: OrderModel) -> None:
    """(9)."""
    low, device, linear = m.problem.lowered, m.problem.machine.device.name, m.linear
    for name in low.pinned:
        made = [r for op in low.ops if name in op.writes for r in m.runs[op.name]]
        for r in made[1:]:
            linear.equal_literals([(1, r.creates[name])], 0)
        for s in m.stays.get((name, device), []):
            serving = [y for user, y in s.uses if user.op is not None]
            for y in serving:
                if made and s.creator is not made[0]:
                    linear.equal_literals([(1, y)], 0)
                elif not made:
                    linear.at_least_literals([(1, serving[0]), (-1, y)], 0)


def add_cuts(m: OrderModel) -> None:
    """State what the positions imply, without their large constants, where the order of two events is known.

    With i before j always: a Drop before i is one before j; what is created after j is created after i. With a use u of
    s: no Drop before i and no creation after i for i before u, u itself included, resp. after u.
    """
    linear, no = m.linear, (m.yes[0], False)
    for s in m.all_stays:
        for i, dropped in s.dropped_before.items():
            if dropped == no:
                continue
            for j, later in s.dropped_before.items():
                if m.order.get((i, j)) == m.yes:
                    linear.at_least_literals([(1, later), (-1, dropped)], 0)
            for u, y in s.uses:
                if u is i or m.order.get((i, u)) == m.yes:
                    linear.at_least_literals([(-1, dropped), (-1, y)], -1)
        if s.creator is None:
            continue
        for u, y in s.uses:
            if (s.creator, u) in m.order:
                linear.at_least_literals([(1, m.order[s.creator, u]), (-1, y)], 0)
            for i in s.dropped_before:
                if m.order.get((u, i)) == m.yes and (s.creator, i) in m.order:
                    linear.at_least_literals([(1, m.order[s.creator, i]), (-1, y)], 0)


def add_makespan(m: OrderModel, lower: int) -> None:
    """The objective, and that no stream or channel can be busier than the makespan (implied, it tightens the bound)."""
    linear = m.linear
    m.makespan = linear.variable(lower, m.horizon, "makespan", integer=True)
    lanes: dict[str, list[Event]] = {}
    for e in m.events:
        lanes.setdefault(e.lane, []).append(e)
        linear.at_least([(1, m.makespan), (-1, e.start)], e.length, [c for c in (e.present,) if c != m.yes])
    for group in lanes.values():
        linear.at_least([(1, m.makespan)], 0, (), [(-float(e.length), e.present) for e in group])
    linear.objective = {m.makespan: 1.0}


def read_order(m: OrderModel, values: tuple[float, ...]) -> Program:
    """Return the program of a solution: instructions by list position."""

    def holds(literal: tuple[int, bool]) -> bool:
        return (values[literal[0]] > 0.5) == literal[1]

    listed: list[tuple[float, int, Instruction]] = []
    start: dict[str, str] = {}
    for e in m.events:
        if holds(e.present):
            ins = Run(e.op.name) if e.op is not None else Copy(e.tensor, e.src, e.dst)
            listed.append((values[e.key], 1, ins))
    for s in m.all_stays:
        if holds(s.present):
            if s.creator is None and m.problem.lowered.tensor[s.tensor].home == "any":
                start[s.tensor] = s.tier
            if values[s.drop_key] < m.last + 0.5:
                listed.append((values[s.drop_key], 0, Drop(s.tensor, s.tier)))
    listed.sort(key=lambda row: (round(row[0], 4), row[1], repr(row[2])))
    return tidy(m.problem, Program(tuple(ins for *_, ins in listed), dict(sorted(start.items()))))
