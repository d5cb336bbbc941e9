"""Demand paging with knowledge of the future (Belady): load at the op that needs it, evict the farthest next use.

Before each op, operands that are not on the device are copied in over the shortest route; when room is short, the resident
tensor whose next use is farthest away is copied out (if no other tier holds its version) and dropped. Copies out go to the
nearest tier with room, by way of the tiers between. Works on any number of tiers, and is the synchronous baseline that
many systems ship; it never recomputes, splits, reorders or uses a tensor in place on a slow tier.

Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966,
with write-back of changed data only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.graph import Tensor
from planner.program import Copy, Drop, Instruction, Program, Run

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["demand_program"]

_NEVER = 1 << 60


def demand_program(problem: Problem) -> Program | None:
    """Return the program of demand paging; None where it finds no room.

    Parameters
    ----------
    problem : Problem
    """
    try:
        paging = _Paging(problem)
        paging.run()
    except _NoRoomError:
        return None
    return Program(tuple(paging.rows), paging.begin)


class _NoRoomError(Exception):
    """A tier is full and nothing on it may leave."""


@dataclass
class _Paging:
    problem: Problem
    rows: list[Instruction] = field(default_factory=list)
    begin: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        machine, low = self.problem.machine, self.problem.lowered
        self.device = machine.device.name
        self.tensor: dict[str, Tensor] = low.tensor
        self.on: dict[str, set[str]] = {}  # tensor → tiers with a valid copy
        self.used = {t.name: 0 for t in machine.tiers}
        self.room = self.problem.capacity
        uses: dict[str, list[int]] = {}
        for i, op in enumerate(low.ops):
            for name in dict.fromkeys((*op.reads, *op.writes)):
                uses.setdefault(name, []).append(i)
        self.uses = {name: list(reversed(at)) for name, at in uses.items()}
        for t in sorted(low.tensors, key=lambda t: t.home == "any"):  # these choose last, from what room is left
            homes = t.home if isinstance(t.home, tuple) else (self._start(t),)
            for home in homes:
                if not self._fits(t.name, home):
                    raise _NoRoomError
                self._add(t.name, home)

    def _start(self, t: Tensor) -> str:
        """Choose where a tensor with home "any" starts: away from the device if it can come and go."""
        tier = self.problem.lowered.pinned.get(t.name, self.device)
        if self.problem.rules.offload and t.name not in self.problem.lowered.pinned:
            for other in self.problem.machine.tiers[1:]:
                back = self.problem.machine.route(other.name, self.device)
                there = self.problem.machine.route(self.device, other.name)
                if back and there and self._fits(t.name, other.name):
                    tier = other.name
                    break
        self.begin[t.name] = tier
        return tier

    def _size(self, name: str, tier: str) -> int:
        return self.problem.machine.tier[tier].occupied(self.tensor[name].size)

    def _fits(self, name: str, tier: str) -> bool:
        room = self.room[tier]
        return room is None or self.used[tier] + self._size(name, tier) <= room

    def _add(self, name: str, tier: str) -> None:
        self.on.setdefault(name, set()).add(tier)
        self.used[tier] += self._size(name, tier)

    def _drop(self, name: str, tier: str) -> None:
        self.rows.append(Drop(name, tier))
        self.on[name].discard(tier)
        self.used[tier] -= self._size(name, tier)

    def _next(self, name: str) -> int:
        at = self.uses.get(name)
        if at:
            return at[-1]
        return len(self.problem.lowered.ops) if self.tensor[name].keep is not None else _NEVER

    def _dead(self, name: str) -> bool:
        return self._next(name) == _NEVER

    def run(self) -> None:
        for _i, op in enumerate(self.problem.lowered.ops):
            needed = set(op.reads) | set(op.writes)
            for name in op.reads:
                self._bring(name, self.device, needed)
            for name in op.writes:
                self._make_room(self._size(name, self.device), self.device, needed)
                self._add(name, self.device)
            for name in op.updates:
                for tier in sorted(self.on[name] - {self.device}):
                    self._drop(name, tier)
            self.rows.append(Run(op.name))
            for name in sorted(needed):
                self.uses[name].pop()
            for name in sorted(needed):
                if self._dead(name):
                    for tier in sorted(self.on[name]):
                        self._drop(name, tier)
        kept = [t for t in self.problem.lowered.tensors if t.keep is not None]
        kept.sort(key=lambda t: not set(self._places(t)) & self.on[t.name])
        settled: set[str] = set()
        for t in kept:
            settled.add(t.name)
            self._keep(t, settled)

    def _places(self, t: Tensor) -> tuple[str, ...]:
        """Return the tiers on one of which a kept tensor must end."""
        if t.keep != "home":
            return (str(t.keep),)
        return (self.begin[t.name],) if t.home == "any" else tuple(t.home)

    def _keep(self, t: Tensor, settled: set[str]) -> None:
        places = self._places(t)
        if not set(places) & self.on[t.name]:
            self._bring(t.name, places[0], settled)
        for tier in sorted(self.on[t.name] - set(places)):  # what is kept elsewhere need not stay here
            self._drop(t.name, tier)

    def _bring(self, name: str, dst: str, needed: set[str]) -> None:
        """Copy a tensor to a tier over the fastest route, dropping what lies between."""
        if dst in self.on[name]:
            return
        routes = [(src, self.problem.machine.route(src, dst)) for src in sorted(self.on[name])]
        reachable = [(len(r), src, r) for src, r in routes if r]
        if not reachable:
            raise _NoRoomError
        _, _, path = min(reachable, key=lambda x: x[:2])
        for link in path:
            if link.dst not in self.on[name]:
                self._make_room(self._size(name, link.dst), link.dst, needed | {name})
                self.rows.append(Copy(name, link.src, link.dst))
                self._add(name, link.dst)
            if link.src != path[0].src:
                self._drop(name, link.src)

    def _make_room(self, need: int, tier: str, needed: set[str]) -> None:
        room = self.room[tier]
        while room is not None and self.used[tier] + need > room:
            victims = [n for n, tiers in self.on.items() if tier in tiers and n not in needed and self._may_leave(n, tier)]
            if not victims:
                raise _NoRoomError
            self._evict(max(victims, key=lambda n: (self._next(n), len(self.on[n]), n)), tier, needed)

    def _may_leave(self, name: str, tier: str) -> bool:
        if self.problem.lowered.pinned.get(name) == tier and not self._dead(name):
            return False
        if self._dead(name) or len(self.on[name]) > 1:
            return not self._last_kept(name, tier)
        return self._away(name, tier) is not None

    def _last_kept(self, name: str, tier: str) -> bool:
        """Is this copy the one that the end demands, on a tier that cannot be reached again?"""
        t = self.tensor[name]
        places = {t.keep} if t.keep not in (None, "home") else (
            set(t.home) if t.keep == "home" and isinstance(t.home, tuple) else
            {self.begin.get(name)} if t.keep == "home" else set())
        return tier in places and not any(self.problem.machine.route(o, tier) for o in self.on[name] - {tier})

    def _away(self, name: str, tier: str) -> str | None:
        """Return a tier to move the only copy to."""
        if tier == self.device and not self.problem.rules.offload:
            return None
        for other in self.problem.machine.tiers:
            if other.name in (tier, self.device):
                continue
            route = self.problem.machine.route(tier, other.name)
            if route and self.problem.machine.route(other.name, self.device) and self._fits(name, other.name) and all(
                    self._fits(name, link.dst) for link in route):
                return other.name
        # full everywhere: a nearer tier may make room in a farther one
        for other in self.problem.machine.tiers[1:]:
            if other.name != tier and self.problem.machine.link.get((tier, other.name)) and tier == self.device:
                return other.name
        return None

    def _evict(self, name: str, tier: str, needed: set[str]) -> None:
        if not self._dead(name) and len(self.on[name]) == 1:
            target = self._away(name, tier)
            if target is None:
                raise _NoRoomError
            self._bring(name, target, needed | {name})
        self._drop(name, tier)
