"""The independent interpreter of programs: the rules of the execution model, and nothing of how a program was made.

It goes on after a violation in the state that the instruction most plainly leaves, so that every violation is named: an
unknown name does nothing; a Run whose operand is missing runs all the same; a Copy without a source creates its copy,
but not before the tensor ever existed; an update makes the copies on other tiers *stale*: they take room, and no more.

Readings of the rules that are not obvious
    * Versions: a tensor has one version, the number of updates that have run. A first Run must find the version that
      the listed order gives it (write after read and read after write on tensors updated in place, whatever the streams
      and with ``reorder``, too). A rerun must find the version of its first Run, and may not create what was updated
      since.
    * ``offload: false`` forbids copies from the device but to the tiers where ``keep`` demands the tensor, and to those
      on the fastest way there. ``keep: "home"`` demands nothing if the device is one of the homes.
    * ``pin``: every Run that uses (creation included) a pinned tensor uses it on its tier, with ``at`` if that is a
      slow one, and the copy there is not dropped between the first and the last such Run. It may be copied to that
      tier before, and copies elsewhere may exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.check_state import END, CheckState
from planner.program import Copy, Run
from planner.violations import Code, Violation

if TYPE_CHECKING:
    from planner.graph import Op, Tensor

__all__ = ["Interpreter"]


class Interpreter(CheckState):
    """What each instruction demands and does."""

    def judge(self) -> tuple[list[Violation], dict[str, int]]:
        """Interpret the program; return its violations in program order, and the peak of each tier in bytes."""
        self.begin()
        for i, ins in enumerate(self.program.instructions):
            kind = type(ins)
            if kind is Run:
                self.run(i, ins)  # type: ignore[arg-type]
            elif kind is Copy:
                self.copy(i, ins)  # type: ignore[arg-type]
            else:
                self.drop(i, ins.tensor, ins.tier)  # type: ignore[union-attr]
        self.finish()
        return self.findings(), self.peak

    # Run

    def run(self, i: int, ins: Run) -> None:
        """Interpret a Run."""
        op = self.ops.get(ins.op)
        if op is None:
            self.fault(i, Code.UNKNOWN_OP, f"there is no op {ins.op!r}")
            return
        at = self.operand_tiers(i, op, ins) if ins.at else {}
        held, device = self.held, self.on_device
        for n in op.reads:
            if not held[n] & (self.bit[at[n]] if n in at else device):
                tier = at.get(n, self.device)
                why = "the copy there misses an update" if self.stale.get(n, 0) & self.bit[tier] else self.places(n)
                self.fault(i, Code.OPERAND_MISSING, f"op {op.name!r} needs {n!r} on {tier!r}; {why}")
        for n in op.after:
            if n not in self.ran:
                self.fault(i, Code.ORDER, f"op {op.name!r} must follow {n!r}, which has not run")
        again = op.name in self.ran
        if again:
            self.rerun(i, op, at)
        else:
            self.ran.add(op.name)
            self.first(i, op)
        if op.updates:
            self.update(i, op, at, again)
        grown: tuple[str, ...] = ()
        for n in op.writes:
            tier = at.get(n, self.device)
            b = self.bit[tier]
            if not held[n] & b:
                if self.stale.get(n, 0) & b:
                    self.stale[n] &= ~b
                else:
                    self.use[tier] += self.room[tier][n]
                held[n] |= b
                grown = (tier,) if not grown or grown == (tier,) else (*grown, tier)
        for tier in grown:
            self.grow(tier, i)
        if self.pinned:
            self.pins_of(i, op, at)

    def first(self, i: int, op: Op) -> None:
        """Rules of the first Run of an op."""
        for n in op.writes:
            if self.held[n]:
                self.fault(i, Code.COPY_EXISTS, f"op {op.name!r} creates {n!r}, which exists already: {self.places(n)}")
        wanted = self.wanted.get(op.name)
        if wanted:
            for n, want in wanted.items():
                if want != self.version[n]:
                    self.fault(i, Code.ORDER, f"op {op.name!r} uses {n!r} after {self.version[n]} change(s) in place; "
                               f"in the listed order it is {want}")
            self.read_first[op.name] = {n: self.version[n] for n in wanted}
        if not self.rules.reorder:
            here, reached = self.position[op.name], self.reached.get(op.stream, -1)
            if here > reached:
                self.reached[op.stream] = here
            else:
                ahead = self.problem.lowered.ops[reached].name
                self.fault(i, Code.ORDER, f"op {op.name!r} first runs after {ahead!r}, which the graph lists later on "
                           f"stream {op.stream!r}")

    def rerun(self, i: int, op: Op, at: dict[str, str]) -> None:
        """Rules of every later Run of an op."""
        if not self.rules.recompute:
            self.fault(i, Code.RERUN_NOT_ALLOWED, f"op {op.name!r} runs again, and the rules forbid recomputation")
        elif not op.recomputable:
            why = "it changes tensors in place" if op.updates else "it is not recomputable"
            self.fault(i, Code.RERUN_NOT_RECOMPUTABLE, f"op {op.name!r} runs again, and {why}")
        absent = [n for n in op.writes if not self.held[n] & self.bit[at.get(n, self.device)]]
        if not absent:
            self.fault(i, Code.RERUN_NOTHING_ABSENT, f"op {op.name!r} runs again although all that it writes is there")
        for n, old in self.read_first.get(op.name, {}).items():
            if old != self.version[n]:
                self.fault(i, Code.RERUN_VERSION, f"op {op.name!r} runs again, and {n!r} was changed in place since "
                           "its first run")
        for n in absent:
            if self.version.get(n):
                self.fault(i, Code.RERUN_VERSION, f"op {op.name!r} would create the first version of {n!r}, which was "
                           "changed in place since")

    def update(self, i: int, op: Op, at: dict[str, str], again: bool) -> None:
        """An update needs the only copy, and gives the tensor its next version."""
        for n in op.updates:
            others = self.held[n] & ~self.bit[at.get(n, self.device)]
            if others:
                names = [k for k, b in self.bit.items() if others & b]
                self.fault(i, Code.STALE, f"op {op.name!r} changes {n!r} in place while {names} hold(s) a copy; drop "
                           "it first")
                self.held[n] &= ~others
                self.stale[n] = self.stale.get(n, 0) | others
            if not again:
                self.version[n] += 1

    def operand_tiers(self, i: int, op: Op, ins: Run) -> dict[str, str]:
        """Return the operand tiers that a Run states; faults where they are not allowed."""
        at: dict[str, str] = {}
        away = {n: k for n, k in ins.at if k != self.device}
        profiled = any(dict(p.at) == away for p in op.placements)
        for n, tier in ins.at:
            if n not in op.reads and n not in op.writes:
                self.fault(i, Code.OPERAND_TIER, f"{n!r} is not an operand of op {op.name!r}")
            elif tier not in self.tiers:
                self.unknown(i, tier)
            else:
                at[n] = tier
                if tier == self.device:
                    continue
                if not self.rules.direct:
                    self.fault(i, Code.OPERAND_TIER, f"op {op.name!r} uses {n!r} on {tier!r}, and the rules forbid "
                               "direct access")
                elif not profiled and not self.tiers[tier].direct:
                    self.fault(i, Code.OPERAND_TIER, f"op {op.name!r} uses {n!r} on {tier!r}: the tier allows no "
                               "direct access, and the op has no placement with these tiers")
        return at

    def pins_of(self, i: int, op: Op, at: dict[str, str]) -> None:
        """A pinned tensor is used on its tier, and has not left it since its first use."""
        for n in dict.fromkeys((*op.reads, *op.writes)):
            tier = self.pinned.get(n)
            if tier is None:
                continue
            used = at.get(n, self.device)
            if used != tier:
                self.fault(i, Code.PIN, f"op {op.name!r} uses {n!r} on {used!r}; it is pinned to {tier!r}")
            if n in self.pin_left:
                self.fault(self.pin_left.pop(n), Code.PIN, f"{n!r} is pinned to {tier!r} and dropped there between its "
                           f"first and last use (op {op.name!r} uses it at instruction {i})")
            self.pin_used.add(n)

    # Copy and Drop

    def copy(self, i: int, ins: Copy) -> None:
        """Interpret a Copy."""
        name, src, dst = ins.tensor, ins.src, ins.dst
        held = self.held.get(name)
        if held is None:
            self.fault(i, Code.UNKNOWN_TENSOR, f"there is no tensor {name!r}")
            return
        if src not in self.bit or dst not in self.bit:
            self.unknown(i, src if src not in self.bit else dst)
            return
        if (src, dst) not in self.links:
            self.fault(i, Code.NO_LINK, f"there is no link from {src!r} to {dst!r}")
        if not held & self.bit[src]:
            why = "the copy there misses an update" if self.stale.get(name, 0) & self.bit[src] else self.places(name)
            self.fault(i, Code.SOURCE_MISSING, f"{name!r} cannot be copied from {src!r}; {why}")
        if not self.rules.offload and src == self.device and dst not in self.demanded(self.tensors[name]):
            self.fault(i, Code.OFFLOAD_NOT_ALLOWED, f"{name!r} is copied off the device; the rules allow that only "
                       "where 'keep' demands it")
        if (held | self.stale.get(name, 0)) & self.bit[dst]:
            self.fault(i, Code.COPY_EXISTS, f"{dst!r} already holds a copy of {name!r}")
            return
        if not held and not self.existed(name):
            return
        self.held[name] = held | self.bit[dst]
        self.use[dst] += self.room[dst][name]
        self.grow(dst, i)

    def existed(self, name: str) -> bool:
        """Has a tensor that no tier holds now been there before?"""
        return bool(self.tensors[name].home) or any(name in self.ops[op].writes for op in self.ran)

    def ends(self, t: Tensor) -> tuple[str, ...]:
        """Return the tiers of which one must hold a tensor at the end; none if it may be gone."""
        if t.keep is None:
            return ()
        if t.keep != "home":
            return (t.keep,)
        return (self.start[t.name],) if t.home == "any" else tuple(t.home)

    def demanded(self, t: Tensor) -> set[str]:
        """Return the tiers off the device where the end demands a tensor, and those on the way there."""
        ends, machine = self.ends(t), self.problem.machine
        if self.device in ends:
            return set()
        return {link.dst for end in ends for link in machine.route(self.device, end) or ()}

    def drop(self, i: int, name: str, tier: str) -> None:
        """Interpret a Drop."""
        held, b = self.held.get(name), self.bit.get(tier)
        if held is None:
            self.fault(i, Code.UNKNOWN_TENSOR, f"there is no tensor {name!r}")
        elif b is None:
            self.unknown(i, tier)
        elif held & b:
            self.held[name] = held & ~b
            self.use[tier] -= self.room[tier][name]
            if name in self.pin_used and self.pinned[name] == tier:
                self.pin_left.setdefault(name, i)
        elif self.stale.get(name, 0) & b:
            self.stale[name] &= ~b
            self.use[tier] -= self.room[tier][name]
        else:
            self.fault(i, Code.DROP_MISSING, f"{tier!r} holds no copy of {name!r}; {self.places(name)}")

    # the end

    def finish(self) -> None:
        """What must hold after the last instruction."""
        for op in self.problem.lowered.ops:
            if op.name not in self.ran:
                self.fault(END, Code.OP_MISSING, f"op {op.name!r} never runs")
        for t in self.tensors.values():
            ends = self.ends(t)
            if ends and not any(self.held[t.name] & self.bit[k] for k in ends):
                self.fault(END, Code.KEEP, f"{t.name!r} must be on {' or '.join(map(repr, ends))} at the end; "
                           f"{self.places(t.name)}")
