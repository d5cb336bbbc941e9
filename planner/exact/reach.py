"""Does any program exist? A search over what is where, without time.

Whether a list is legal does not depend on durations. A state is which ops have run and which copies exist (all copies
of a tensor have one version, since an update is legal only on the single copy); moves are Run, Copy and Drop. The
search is best-first towards more ops done, so a program comes soon where one exists, and its exhaustion proves
infeasibility however many copies and reruns that would take: the one proof that needs no slots.

Three rules keep it small and lose nothing: what can never be used again is dropped at once; a copy on a tier with room
for everything stays, unless an update wants the tensor alone; the last copy of what is still needed is dropped only if
it can be made again.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.exact.scaling import Scaled
from planner.exact.slots import copy_allowed, keep_tiers, start_tiers
from planner.program import Copy, Drop, Instruction, Program, Run

if TYPE_CHECKING:
    from planner.graph import Op
    from planner.problem import Problem

__all__ = ["Reached", "reach"]

#: (start choice, ops done and above them pinned tensors dropped after a use, copies present)
_State = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Reached:
    """Outcome: a program, or a proof that there is none, or neither because the limit came first."""

    program: Program | None
    infeasible: bool
    states: int


def reach(problem: Problem, scaled: Scaled, limit: int = 60_000) -> Reached:
    """Search for any legal program.

    Parameters
    ----------
    problem : Problem
    scaled : Scaled
        Sizes and capacities; a proof needs ``scaled.exact``.
    limit : int
        States to visit at most.
    """
    return _Search(problem, scaled).run(limit)


@dataclass(eq=False)
class _Search:
    problem: Problem
    scaled: Scaled
    bit: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        low = self.problem.lowered
        self.device = self.problem.machine.device.name
        self.tiers = list(self.problem.machine.tier)
        pairs = [(t.name, k) for t in low.tensors for k in self.tiers]
        self.bit = {pair: 1 << i for i, pair in enumerate(pairs)}
        self.pairs = pairs
        self.size = [self.scaled.size[pair] for pair in pairs]
        self.number = {op.name: 1 << i for i, op in enumerate(low.ops)}
        self.all_done = (1 << len(low.ops)) - 1
        recompute = self.problem.rules.recompute
        self.rerunnable = {
            op.name: recompute and op.recomputable and not op.updates and bool(op.writes) for op in low.ops
        }
        self.producer = {w: op for op in low.ops for w in op.writes}
        self.must, self.must_not = self._conditions()
        self.links = [
            (t.name, k.src, k.dst) for t in low.tensors for k in self.problem.machine.links
            if copy_allowed(self.problem, t, k.src, k.dst)
        ]
        self.updated = {n for op in low.ops for n in op.updates}
        self.updaters = {
            t.name: sum(self.number[op.name] for op in low.ops if t.name in op.updates) for t in low.tensors
        }
        self.spoiled = {name: 1 << (len(low.ops) + i) for i, name in enumerate(low.pinned)}
        self.readers = {t.name: [op for op in low.ops if t.name in op.reads] for t in low.tensors}
        self.users = {t.name: sum(self.number[op.name] for op in low.ops if t.name in op.reads or t.name in op.writes)
                      for t in low.tensors}
        self.droppable = [(n, k) for n, k in pairs
                          if n in self.updated or (self.scaled.capacity[k] is not None and self.scaled.size[n, k])]

    def _conditions(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return per op the ops that must have run before its first run, and those that must not before any run."""
        must: dict[str, int] = {}
        must_not: dict[str, int] = {}
        ops = self.problem.lowered.ops
        for j, op in enumerate(ops):
            before = sum(self.number[n] for n in op.after)
            for other in ops[:j]:
                touched = set(other.reads) | set(other.writes)
                if other.stream == op.stream or set(op.updates) & touched or set(op.reads) & set(other.updates):
                    before |= self.number[other.name]
            must[op.name] = before
            must_not[op.name] = sum(self.number[p.name] for p in ops[j + 1:] if set(op.reads) & set(p.updates))
        return must, must_not

    def run(self, limit: int) -> Reached:
        order = itertools.count()
        parent: dict[_State, tuple[_State | None, tuple[Instruction, ...]]] = {}
        heap: list[tuple[int, int, int, _State]] = []
        choices = [start_tiers(self.problem, t) or () for t in self.problem.lowered.tensors]
        starts = list(itertools.product(*(c or (None,) for c in choices)))
        for i, start in enumerate(starts):
            present = 0
            for t, tier in zip(self.problem.lowered.tensors, start, strict=True):
                for k in t.home if tier is None else (tier,):
                    present |= self.bit[t.name, k]
            state = (i, 0, present)
            if self._fits(present) and state not in parent:
                parent[state] = (None, ())
                heapq.heappush(heap, (0, 0, next(order), state))
        while heap:
            _, depth, _, state = heapq.heappop(heap)
            if self._finished(state, starts[state[0]]):
                return Reached(self._program(parent, state, starts[state[0]]), False, len(parent))
            if len(parent) > limit:
                return Reached(None, False, len(parent))
            for after, instructions in self._moves(state):
                if after not in parent:
                    parent[after] = (state, instructions)
                    heapq.heappush(heap, (-(after[1] & self.all_done).bit_count(), depth + 1, next(order), after))
        return Reached(None, True, len(parent))

    def _program(
        self, parent: dict[_State, tuple[_State | None, tuple[Instruction, ...]]], state: _State,
        start: tuple[str | None, ...],
    ) -> Program:
        parts: list[tuple[Instruction, ...]] = []
        at: _State | None = state
        while at is not None:
            at, instructions = parent[at]
            parts.append(instructions)
        tensors = self.problem.lowered.tensors
        chosen = {t.name: tier for t, tier in zip(tensors, start, strict=True) if tier is not None}
        return Program(tuple(i for part in reversed(parts) for i in part), dict(sorted(chosen.items())))

    def _fits(self, present: int) -> bool:
        for k in self.tiers:
            capacity = self.scaled.capacity[k]
            if capacity is not None and self._held(present, k) > capacity:
                return False
        return True

    def _held(self, present: int, tier: str) -> int:
        return sum(self.size[i] for i, (_, k) in enumerate(self.pairs) if k == tier and present >> i & 1)

    def _wanted(self, tensor: str, start: tuple[str | None, ...]) -> tuple[str, ...]:
        low = self.problem.lowered
        t = low.tensor[tensor]
        found = keep_tiers(t)
        return (start[low.tensors.index(t)] or self.device,) if found is None else found

    def _finished(self, state: _State, start: tuple[str | None, ...]) -> bool:
        _, done, present = state
        if done & self.all_done != self.all_done:
            return False
        for t in self.problem.lowered.tensors:
            wanted = self._wanted(t.name, start)
            if wanted and not any(present & self.bit[t.name, k] for k in wanted):
                return False
        return True

    def _dead(self, tensor: str, done: int) -> bool:
        """Can the tensor never be used again?"""
        if self.problem.lowered.tensor[tensor].keep is not None:
            return False
        return all(done & self.number[op.name] and not self.rerunnable[op.name] for op in self.readers[tensor])

    def _moves(self, state: _State) -> Iterator[tuple[_State, tuple[Instruction, ...]]]:
        number, done, present = state
        for op in self.problem.lowered.ops:
            after = self._run(op, done, present)
            if after is not None:
                done2 = done | self.number[op.name]
                present2, drops = self._release(done2, after)
                yield (number, done2, present2), (Run(op.name), *drops)
        for name, src, dst in self.links:
            new = self.bit[name, dst]
            if not present & self.bit[name, src] or present & new or self._dead(name, done):
                continue
            if self._fits(present | new):
                yield (number, done, present | new), (Copy(name, src, dst),)
        for name, tier in self.droppable:
            if present & self.bit[name, tier] and self._may_drop(name, tier, done, present):
                spoils = self._pinned_here(name, tier) and self.users[name] & done
                yield (number, done | (self.spoiled[name] if spoils else 0), present & ~self.bit[name, tier]), (
                    Drop(name, tier),)

    def _run(self, op: Op, done: int, present: int) -> int | None:
        again = done & self.number[op.name]
        if done & self.must_not[op.name] or (again and not self.rerunnable[op.name]):
            return None
        if not again and self.must[op.name] & ~done:
            return None
        if any(done & bit and (n in op.reads or n in op.writes) for n, bit in self.spoiled.items()):
            return None
        if any(not present & self.bit[n, self.device] for n in op.reads):
            return None
        if again and any(done & self.updaters[w] and not present & self.bit[w, self.device] for w in op.writes):
            return None
        if any(present & self.bit[n, k] for n in op.updates for k in self.tiers if k != self.device):
            return None
        after = present
        for w in op.writes:
            after |= self.bit[w, self.device]
        if (again and after == present) or not self._fits(after):
            return None
        return after

    def _release(self, done: int, present: int) -> tuple[int, tuple[Instruction, ...]]:
        drops: list[Instruction] = []
        for name, tier in self.droppable:
            if present & self.bit[name, tier] and self._dead(name, done) and not self._pinned_here(name, tier):
                present &= ~self.bit[name, tier]
                drops.append(Drop(name, tier))
        return present, tuple(drops)

    def _pinned_here(self, name: str, tier: str) -> bool:
        return self.problem.lowered.pinned.get(name) == tier

    def _may_drop(self, name: str, tier: str, done: int, present: int) -> bool:
        if self._pinned_here(name, tier) and self.users[name] & done not in (0, self.users[name]):
            return False
        if any(present & self.bit[name, k] for k in self.tiers if k != tier):
            return True
        t = self.problem.lowered.tensor[name]
        if t.keep is None and all(done & self.number[op.name] for op in self.readers[name]):
            return True
        made = self.producer.get(name)
        return made is not None and self.rerunnable[made.name]
