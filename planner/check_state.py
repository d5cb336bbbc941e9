"""State of one check: which copies exist, how full the tiers are, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.program import Program
from planner.violations import Code, Violation

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["END", "START", "CheckState"]

#: Positions of what no instruction did: before the first, after the last.
START, END = -1, 2**62


class CheckState:
    """One check: where valid copies are (bit masks of tiers), in which version, and how full the tiers get."""

    def __init__(self, problem: Problem, program: Program) -> None:
        low, machine = problem.lowered, problem.machine
        self.problem, self.program, self.rules = problem, program, problem.rules
        self.ops, self.tensors, self.links = low.op, low.tensor, machine.link
        self.device, self.tiers = machine.device.name, machine.tier
        self.bit = {name: 1 << i for i, name in enumerate(self.tiers)}
        self.on_device = self.bit[self.device]
        self.held = dict.fromkeys(self.tensors, 0)
        self.stale: dict[str, int] = {}
        self.start: dict[str, str] = {}  # where tensors with home "any" begin
        size = {n: t.size for n, t in self.tensors.items()}
        self.room = {k: size if t.granule == 1 else {n: t.occupied(s) for n, s in size.items()}
                     for k, t in self.tiers.items()}
        self.use = dict.fromkeys(self.tiers, 0)
        self.peak = dict.fromkeys(self.tiers, 0)
        self.peak_at = dict.fromkeys(self.tiers, START)
        self.cap = {k: END if v is None else v for k, v in problem.capacity.items()}
        self.first_over: dict[str, tuple[int, str]] = {}
        self.found: list[tuple[int, Code, str]] = []
        self.version = dict.fromkeys((n for op in low.ops for n in op.updates), 0)
        #: of each op that reads something updated in place: the versions that the listed order lets it read
        self.wanted: dict[str, dict[str, int]] = {}
        if self.version:
            self._listed_versions()
        self.read_first: dict[str, dict[str, int]] = {}
        self.ran: set[str] = set()
        self.position = {op.name: i for i, op in enumerate(low.ops)}
        self.reached: dict[str, int] = {}  # by stream: largest position of a first Run
        self.pinned = low.pinned
        self.pin_used: set[str] = set()
        self.pin_left: dict[str, int] = {}  # pinned tensors dropped from their tier after a use, and where

    def _listed_versions(self) -> None:
        seen = dict.fromkeys(self.version, 0)
        for op in self.problem.lowered.ops:
            watched = {n: seen[n] for n in op.reads if n in seen}
            if watched:
                self.wanted[op.name] = watched
            for n in op.updates:
                seen[n] += 1

    def findings(self) -> list[Violation]:
        """Return what was found, in program order."""
        for tier, (i, residents) in self.first_over.items():
            over, at = self.peak[tier] - self.cap[tier], self.peak_at[tier]
            where = "the start" if at == START else f"instruction {at}"
            self.fault(i, Code.OVER_BUDGET, f"tier {tier!r} first goes over its budget of {self.cap[tier]} bytes here, "
                       f"with {residents}; it reaches {self.peak[tier]} bytes ({over} too many) at {where}")
        self.found.sort(key=lambda row: row[0])
        return [self._violation(*row) for row in self.found]

    def _violation(self, i: int, code: Code, message: str) -> Violation:
        if i in (START, END):
            return Violation(None, None, code, message)
        row = Program((self.program.instructions[i],)).to_list()[0]
        return Violation(i, row, code, f"instruction {i} {row}: {message}")

    def fault(self, i: int, code: Code, message: str) -> None:
        """Note a violation."""
        self.found.append((i, code, message))

    def grow(self, tier: str, i: int) -> None:
        """Note the use of a tier after an instruction that created copies there."""
        use = self.use[tier]
        if use > self.peak[tier]:
            self.peak[tier], self.peak_at[tier] = use, i
            if use > self.cap[tier] and tier not in self.first_over:
                self.first_over[tier] = (i, f"{use} bytes in {self.residents(tier)}")

    def residents(self, tier: str) -> str:
        """Return the largest copies on a tier, for messages."""
        b, room = self.bit[tier], self.room[tier]
        rows = [(room[n], n) for n, mask in self.held.items() if (mask | self.stale.get(n, 0)) & b and room[n]]
        rows.sort(key=lambda row: (-row[0], row[1]))
        text = ", ".join(f"{n} ({size})" for size, n in rows[:5])
        return f"{text} and {len(rows) - 5} more" if len(rows) > 5 else text

    def places(self, name: str) -> str:
        """Return where valid copies of a tensor are, for messages."""
        found = [k for k, b in self.bit.items() if self.held[name] & b]
        return f"it is on {' and '.join(map(repr, found))}" if found else "no tier holds it"

    def unknown(self, i: int, tier: str) -> None:
        """Note a tier that the machine does not have."""
        self.fault(i, Code.UNKNOWN_TIER, f"there is no tier {tier!r}; tiers are {sorted(self.tiers)}")

    def begin(self) -> None:
        """Place what exists before the first instruction."""
        for name in self.program.start:
            t = self.tensors.get(name)
            if t is None:
                self.fault(START, Code.START, f"a start tier is given for {name!r}, and there is no such tensor")
            elif t.home != "any":
                self.fault(START, Code.START, f"a start tier is given for {name!r}, whose home is not \"any\"")
        for name, t in self.tensors.items():
            for tier in (self._start_of(name),) if t.home == "any" else t.home:
                self.held[name] |= self.bit[tier]
                self.use[tier] += self.room[tier][name]
        for tier in self.tiers:
            self.grow(tier, START)

    def _start_of(self, name: str) -> str:
        tier = self.program.start.get(name)
        if tier is None or tier not in self.tiers:
            self.fault(START, Code.START, f"tensor {name!r} has home \"any\" and start tier {tier!r}; tiers are "
                       f"{sorted(self.tiers)}")
            tier = self.device
        elif not self.rules.offload and tier != self.device:
            self.fault(START, Code.START, f"tensor {name!r} starts on {tier!r}; without offload it starts on the "
                       "device")
        self.start[name] = tier
        return tier
