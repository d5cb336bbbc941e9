"""A problem as tables of small integers, for the exhaustive search.

Tensor ``t``, tier ``k`` (0 is the device), copy ``c = t·K + k``. Only ``problem.lowered``, ``problem.machine``,
``problem.capacity`` and ``problem.rules`` are read; nothing is shared with the package's checker, replay or solvers.

Versions: a tensor's version is the number of updates that have run. What version an op must read follows from the
listed order alone (the updates listed before it), for first runs and, by the rulings, for reruns alike. A rerun may not
create the first version of what was updated since: it would be a stale copy.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

from planner.graph import Op
from planner.problem import Problem
from planner.program import Copy, Drop, Run


@dataclass(frozen=True)
class Way:
    """A link: ends, channel, and the time of each tensor's copy, ns."""

    src: int
    dst: int
    channel: int
    time: tuple[int, ...]


@dataclass(frozen=True)
class Mode:
    """One way to run an op: duration, and the tier of each operand that is not on the device."""

    duration: int
    tier: dict[int, int]
    at: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class OpRow:
    """An op: operands as tensor indices, versions that it reads, and ways to run it."""

    name: str
    reads: tuple[tuple[int, int], ...]
    writes: tuple[int, ...]
    updates: frozenset[int]
    stream: int
    after: tuple[int, ...]
    before_first: int
    rerun: bool
    modes: tuple[Mode, ...]
    least: int


class Model:
    """Tables of one problem, with a device capacity that may be overridden."""

    def __init__(self, problem: Problem, device_capacity: int | None = None) -> None:
        low, machine, rules = problem.lowered, problem.machine, problem.rules
        self.problem = problem
        self.tensor_names = [t.name for t in low.tensors]
        self.tier_names = [t.name for t in machine.tiers]
        self.T, self.K = len(low.tensors), len(machine.tiers)
        index = {n: i for i, n in enumerate(self.tensor_names)}
        tier = {n: i for i, n in enumerate(self.tier_names)}
        self.size = [t.size for t in low.tensors]
        self.occ = [machine.tier[k].occupied(t.size) for t in low.tensors for k in self.tier_names]
        self.cap: list[int | None] = []
        for k, name in enumerate(self.tier_names):
            cap = problem.capacity[name]
            if k == 0 and device_capacity is not None:
                cap = device_capacity if cap is None else min(cap, device_capacity)
            everything = sum(self.occ[t * self.K + k] for t in range(self.T))
            self.cap.append(None if cap is None or cap >= everything else cap)
        self.recompute, self.reorder, self.direct = rules.recompute, rules.reorder, rules.direct
        self.pinned = {index[n]: tier[k] for n, k in low.pinned.items()}
        # versions
        seen = [0] * self.T
        needs: list[tuple[tuple[int, int], ...]] = []
        for op in low.ops:
            needs.append(tuple((index[n], seen[index[n]]) for n in op.reads))
            for n in op.updates:
                seen[index[n]] += 1
        self.final = seen
        self.updated = [v > 0 for v in seen]
        # streams and ops
        streams: dict[str, int] = {}
        position = {op.name: i for i, op in enumerate(low.ops)}
        last: dict[int, int] = {}
        self.ops: list[OpRow] = []
        for i, op in enumerate(low.ops):
            s = streams.setdefault(op.stream, len(streams))
            modes = self._modes(problem, op, index, tier)
            self.ops.append(OpRow(
                op.name, needs[i], tuple(index[n] for n in op.writes), frozenset(index[n] for n in op.updates), s,
                tuple(position[n] for n in op.after), -1 if rules.reorder else last.get(s, -1),
                rules.recompute and op.recomputable and not op.updates and bool(op.writes), modes,
                min((m.duration for m in modes), default=0),
            ))
            last[s] = i
        self.S = len(streams)
        self.producer = [-1] * self.T
        for i, row in enumerate(self.ops):
            for t in row.writes:
                self.producer[t] = i
        self.updaters = [sum(1 << i for i, row in enumerate(self.ops) if t in row.updates) for t in range(self.T)]
        self.after_ops = sorted({a for row in self.ops for a in row.after})
        # links
        channels: dict[str, int] = {}
        self.ways: list[Way] = []
        for link in machine.links:
            time = tuple(link.latency + -(-s * 10**9 // link.bandwidth) for s in self.size)
            channel = channels.setdefault(link.channel, len(channels))
            self.ways.append(Way(tier[link.src], tier[link.dst], channel, time))
        self.C = len(channels)
        # homes and what must hold at the end
        self.keep: list[tuple[int, ...] | str | None] = []
        self.homes: list[tuple[int, ...] | None] = []
        for tensor in low.tensors:
            home = None if tensor.home == "any" else tuple(tier[h] for h in tensor.home)
            self.homes.append(home)
            if tensor.keep is None:
                self.keep.append(None)
            elif tensor.keep == "home":
                self.keep.append("start" if home is None else home)
            else:
                self.keep.append((tier[tensor.keep],))
        self.offload = rules.offload
        self.corners = self._corners(problem)

    def _modes(self, problem: Problem, op: Op, index: dict[str, int], tier: dict[str, int]) -> tuple[Mode, ...]:
        found: list[Mode] = []
        pins = {n: k for n, k in problem.lowered.pinned.items() if n in op.reads or n in op.writes}
        device = problem.machine.device.name

        def add(at: dict[str, str], duration: int) -> None:
            if all(at.get(n, device) == k for n, k in pins.items()):
                found.append(Mode(duration, {index[n]: tier[k] for n, k in at.items()}, tuple(sorted(at.items()))))

        profiled: dict[tuple[tuple[str, str], ...], int] = {}
        if problem.rules.direct:
            for p in op.placements:
                at = tuple(sorted((n, k) for n, k in p.at if k != device))
                if at:
                    profiled.setdefault(at, p.duration)
        base = op.duration or 0
        add({}, base)
        for at, duration in profiled.items():
            add(dict(at), duration)
        if problem.rules.direct:
            operands = list(dict.fromkeys((*op.reads, *op.writes)))
            slow = [t.name for t in problem.machine.tiers[1:] if t.direct]
            for choice in itertools.product([None, *slow], repeat=len(operands)):
                at_map = {n: k for n, k in zip(operands, choice, strict=True) if k is not None}
                if at_map and tuple(sorted(at_map.items())) not in profiled:
                    add(at_map, _penalised(problem, base, at_map))
        return tuple(found)

    def _corners(self, problem: Problem) -> bool:
        """Is there anything for which lists do more than schedules in continuous time (see `search`)?"""
        if self.recompute:
            if any(row.rerun and len(row.writes) > 1 for row in self.ops):
                return True
            if any(self.ops[a].rerun and self.ops[a].stream != row.stream for row in self.ops for a in row.after):
                return True
        return any(self.updated) and problem.rules.direct

    def starts(self) -> list[tuple[int, ...]]:
        """Return every choice of start tiers for the tensors whose home is ``any`` (−1 for the others)."""
        options: list[tuple[int, ...]] = []
        for t in range(self.T):
            if self.homes[t] is not None:
                options.append((-1,))
            else:
                options.append(tuple(range(self.K)) if self.offload else (0,))
        return list(itertools.product(*options))

    def keep_tiers(self, start: tuple[int, ...]) -> list[tuple[int, ...] | None]:
        """Return, per tensor, the tiers of which one must hold its final version at the end."""
        return [((start[t],) if k == "start" else k) for t, k in enumerate(self.keep)]  # type: ignore[misc]

    def leaves(self, keep: tuple[int, ...] | None) -> frozenset[int]:
        """Return the tiers to which a tensor may be copied from the device where ``offload`` is false.

        Those where `keep` demands it and those on the fastest way there; none if it may end on the device.
        """
        if keep is None or 0 in keep:
            return frozenset()
        names = self.tier_names
        ways = [self.problem.machine.route(names[0], names[k]) or () for k in keep]
        return frozenset(names.index(link.dst) for way in ways for link in way)

    def instruction(self, code: tuple[int, ...]) -> Run | Copy | Drop:
        """Decode ``(0, op, mode)``, ``(1, way, tensor)`` or ``(2, copy)``."""
        if code[0] == 0:
            return Run(self.ops[code[1]].name, self.ops[code[1]].modes[code[2]].at)
        if code[0] == 1:
            way = self.ways[code[1]]
            return Copy(self.tensor_names[code[2]], self.tier_names[way.src], self.tier_names[way.dst])
        return Drop(self.tensor_names[code[1] // self.K], self.tier_names[code[1] % self.K])


def _penalised(problem: Problem, duration: int, at: dict[str, str]) -> int:
    """duration + Σ bytes · (1 / direct bandwidth − 1 / memory bandwidth), rounded up once, never below 0."""
    memory = problem.machine.compute.memory_bandwidth if problem.machine.compute else None
    total = Fraction(duration)
    for name, tier in at.items():
        slow = problem.machine.tier[tier].direct_bandwidth
        if slow:
            size = problem.lowered.tensor[name].size * 10**9
            total += Fraction(size, slow) - (Fraction(size, memory) if memory else 0)
    return max(0, -(-total.numerator // total.denominator))
