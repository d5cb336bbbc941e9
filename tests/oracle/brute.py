"""A literal interpreter of the execution model, and all programs by brute force: it tests the oracle itself.

No dominance, no bounds, no normal form: Drops may stand anywhere, anything legal may be copied or run again. Only
prefixes that lead to exactly the same state, times included, are merged, and prefixes later than the limit are cut.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from planner.problem import Problem
from planner.program import Copy, Drop, Instruction, Program, Run


class TooManyStatesError(Exception):
    """The instance is too big for brute force."""


@dataclass(frozen=True)
class Held:
    """A copy: version, time it was produced, time its users end."""

    version: int
    produced: int
    used: int


@dataclass(frozen=True)
class State:
    """Everything that later instructions can depend on."""

    ran: frozenset[tuple[str, int]] = frozenset()
    copies: frozenset[tuple[tuple[str, str], Held]] = frozenset()
    streams: frozenset[tuple[str, int]] = frozenset()
    channels: frozenset[tuple[str, int]] = frozenset()
    freed: frozenset[tuple[str, int]] = frozenset()
    pins: frozenset[tuple[str, str]] = frozenset()
    makespan: int = 0


class Literal:
    """The rules for one problem and one choice of start tiers."""

    def __init__(self, problem: Problem, start: dict[str, str]) -> None:
        self.problem, self.start = problem, start
        self.low = problem.lowered
        self.device = problem.machine.device.name
        seen: dict[str, int] = {}
        self.reads_version: dict[tuple[str, str], int] = {}
        for op in self.low.ops:
            for n in op.reads:
                self.reads_version[op.name, n] = seen.get(n, 0)
            for n in op.updates:
                seen[n] = seen.get(n, 0) + 1
        self.final = seen
        self.previous: dict[str, str | None] = {}
        last: dict[str, str] = {}
        for op in self.low.ops:
            self.previous[op.name] = last.get(op.stream)
            last[op.stream] = op.name

    def fits(self, copies: dict[tuple[str, str], Held]) -> bool:
        """Is no tier over its capacity?"""
        for name, cap in self.problem.capacity.items():
            tier = self.problem.machine.tier[name]
            if cap is not None and sum(tier.occupied(self.low.tensor[t].size) for t, k in copies if k == name) > cap:
                return False
        return True

    def initial(self) -> State | None:
        """Return the start, or None if it does not fit."""
        copies = {}
        for t in self.low.tensors:
            for k in (self.start[t.name],) if t.home == "any" else t.home:
                copies[t.name, k] = Held(0, 0, 0)
        return State(copies=frozenset(copies.items())) if self.fits(copies) else None

    def targets(self, name: str) -> tuple[str, ...] | None:
        """Return the tiers that `keep` accepts."""
        t = self.low.tensor[name]
        if t.keep is None:
            return None
        if t.keep != "home":
            return (t.keep,)
        return (self.start[name],) if t.home == "any" else tuple(t.home)

    def finished(self, state: State) -> bool:
        """Have all ops run, and does `keep` hold?"""
        if {n for n, _ in state.ran} != {o.name for o in self.low.ops}:
            return False
        copies = dict(state.copies)
        return all(
            (wanted := self.targets(t.name)) is None
            or any((t.name, k) in copies and copies[t.name, k].version == self.final.get(t.name, 0) for k in wanted)
            for t in self.low.tensors
        )

    def updates_run(self, name: str, ran: dict[str, int]) -> int:
        """Return how many updates of a tensor have run."""
        return sum(name in op.updates and op.name in ran for op in self.low.ops)

    def step(self, state: State, ins: Instruction) -> State | None:
        """Append one instruction; None if that is a violation."""
        if isinstance(ins, Drop):
            return self._drop(state, ins)
        return self._copy(state, ins) if isinstance(ins, Copy) else self._run(state, ins)

    def _drop(self, state: State, ins: Drop) -> State | None:
        copies, freed = dict(state.copies), dict(state.freed)
        held = copies.pop((ins.tensor, ins.tier), None)
        if held is None:
            return None
        freed[ins.tier] = max(freed.get(ins.tier, 0), held.used)
        pins = state.pins
        if self.low.pinned.get(ins.tensor) == ins.tier and (ins.tensor, "used") in pins:
            pins = pins | {(ins.tensor, "gone")}
        return replace(state, copies=frozenset(copies.items()), freed=frozenset(freed.items()), pins=pins)

    def _copy(self, state: State, ins: Copy) -> State | None:
        copies, channels = dict(state.copies), dict(state.channels)
        link = self.problem.machine.link.get((ins.src, ins.dst))
        source = copies.get((ins.tensor, ins.src))
        if link is None or source is None or (ins.tensor, ins.dst) in copies:
            return None
        if ins.src == self.device and not self.problem.rules.offload:
            wanted = self.targets(ins.tensor) or ()
            ways = [self.problem.machine.route(self.device, k) or () for k in wanted]
            if self.device in wanted or ins.dst not in {link.dst for way in ways for link in way}:
                return None
        start = max(channels.get(link.channel, 0), source.produced, dict(state.freed).get(ins.dst, 0))
        end = start + link.latency + -(-self.low.tensor[ins.tensor].size * 10**9 // link.bandwidth)
        channels[link.channel] = end
        copies[ins.tensor, ins.src] = replace(source, used=max(source.used, end))
        copies[ins.tensor, ins.dst] = Held(source.version, end, end)
        if not self.fits(copies):
            return None
        return replace(state, copies=frozenset(copies.items()), channels=frozenset(channels.items()),
                       makespan=max(state.makespan, end))

    def _run(self, state: State, ins: Run) -> State | None:
        op, at = self.low.op[ins.op], dict(ins.at)
        copies, streams, ran = dict(state.copies), dict(state.streams), dict(state.ran)
        again = op.name in ran
        duration = op.duration or 0
        if at:
            profile = [p.duration for p in op.placements if p.at == ins.at]
            if not self.problem.rules.direct:
                return None
            if not profile and not all(self.problem.machine.tier[k].direct for k in at.values()):
                return None
            duration = profile[0] if profile else self.in_place(duration, at)
        before = self.previous[op.name]
        if not again and not self.problem.rules.reorder and before is not None and before not in ran:
            return None
        if again and (not self.problem.rules.recompute or not op.recomputable or op.updates):
            return None
        if any(a not in ran for a in op.after):
            return None
        place = {n: (n, at.get(n, self.device)) for n in (*op.reads, *op.writes)}
        pins = state.pins
        for n in place:
            if n in self.low.pinned and (place[n][1] != self.low.pinned[n] or (n, "gone") in pins):
                return None
        start = max([streams.get(op.stream, 0), *(ran[a] for a in op.after)])
        for n in op.reads:
            held = copies.get(place[n])
            if held is None or held.version != self.reads_version[op.name, n]:
                return None
            start = max(start, held.produced)
            if n in op.updates:
                if any((n, k) in copies for k in self.problem.machine.tier if k != place[n][1]):
                    return None
                start = max(start, held.used)
        fresh = [n for n in op.writes if place[n] not in copies]
        if again and (not fresh or any(self.updates_run(n, ran) for n in fresh)):
            return None
        for n in fresh:
            start = max(start, dict(state.freed).get(place[n][1], 0))
        end = start + duration
        for n in op.reads:
            held = copies[place[n]]
            if n in op.updates:
                copies[place[n]] = Held(held.version + 1, end, end)
            else:
                copies[place[n]] = replace(held, used=max(held.used, end))
        for n in fresh:
            copies[place[n]] = Held(0, end, end)
        if not self.fits(copies):
            return None
        ran[op.name] = end
        streams[op.stream] = end
        pins = pins | {(n, "used") for n in place if n in self.low.pinned}
        return State(frozenset(ran.items()), frozenset(copies.items()), frozenset(streams.items()), state.channels,
                     state.freed, pins, max(state.makespan, end))

    def in_place(self, duration: int, at: dict[str, str]) -> int:
        """Return a Run's time with operands in place: bytes over the slow bandwidth instead of over the memory's."""
        compute, extra = self.problem.machine.compute, Fraction(0)
        for name, tier in at.items():
            nanobytes = self.low.tensor[name].size * 10**9
            if self.problem.machine.tier[tier].direct_bandwidth:
                extra += Fraction(nanobytes, self.problem.machine.tier[tier].direct_bandwidth)
                if compute and compute.memory_bandwidth:
                    extra -= Fraction(nanobytes, compute.memory_bandwidth)
        return max(0, math.ceil(duration + extra))

    def everything(self) -> list[Instruction]:
        """Return every instruction that names what exists."""
        machine = self.problem.machine
        out: list[Instruction] = []
        for op in self.low.ops:
            operands = list(dict.fromkeys((*op.reads, *op.writes)))
            tiers: list[str | None] = [None, *(list(machine.tier)[1:] if self.problem.rules.direct else [])]
            for choice in itertools.product(tiers, repeat=len(operands)):
                out.append(Run(op.name, tuple(sorted((n, k) for n, k in zip(operands, choice, strict=True) if k))))
        for t in self.low.tensors:
            out += [Copy(t.name, a, b) for a, b in machine.link]
            out += [Drop(t.name, k) for k in machine.tier]
        return out


def starts(problem: Problem) -> Iterator[dict[str, str]]:
    """Yield every choice of start tiers."""
    free = [t.name for t in problem.lowered.tensors if t.home == "any"]
    tiers = list(problem.machine.tier) if problem.rules.offload else [problem.machine.device.name]
    for choice in itertools.product(tiers, repeat=len(free)):
        yield dict(zip(free, choice, strict=True))


def play(problem: Problem, program: Program) -> State | None:
    """Carry out a program by the letter; None if it breaks a rule or does not finish."""
    rules = Literal(problem, dict(program.start))
    state = rules.initial()
    for ins in program.instructions:
        if state is None:
            return None
        state = rules.step(state, ins)
    return state if state is not None and rules.finished(state) else None


def any_program_within(problem: Problem, limit: int, most: int = 200_000) -> Program | None:
    """Return a legal complete program with a makespan of at most ``limit`` ns, None if there is none.

    Raises
    ------
    TooManyStatesError
        More than ``most`` states.
    """
    count = 0
    for start in starts(problem):
        rules = Literal(problem, start)
        first = rules.initial()
        if first is None:
            continue
        moves = rules.everything()
        seen = {first}
        stack: list[tuple[State, tuple[Instruction, ...]]] = [(first, ())]
        while stack:
            state, done = stack.pop()
            if rules.finished(state):
                return Program(done, start)
            for ins in moves:
                new = rules.step(state, ins)
                if new is None or new.makespan > limit or new in seen:
                    continue
                seen.add(new)
                count += 1
                if count > most:
                    raise TooManyStatesError(count)
                stack.append((new, (*done, ins)))
    return None
