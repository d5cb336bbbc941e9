"""The checker: an independent interpreter of programs.

It knows the rules of the execution model and nothing of how a program was made; it shares no code with replay, solvers or
oracle. It goes on after a violation, in the state that the instruction would most sensibly have left, so that every
violation of a program is named, each with its instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from planner.program import Copy, Drop, Program, Run

if TYPE_CHECKING:
    from planner.graph import Op, Tensor
    from planner.io.plan_json import PlanFile
    from planner.plan import Plan
    from planner.problem import Problem

__all__ = ["CheckReport", "Code", "Violation", "check"]


class Code(StrEnum):
    """What can be wrong with a program."""

    WRONG_PROBLEM = "wrong-problem"  #: the plan was made for another problem
    WRONG_CLAIM = "wrong-claim"  #: the plan claims a figure that its program does not give
    NO_PROGRAM = "no-program"  #: there is nothing to check
    UNKNOWN_OP = "unknown-op"
    UNKNOWN_TENSOR = "unknown-tensor"
    UNKNOWN_TIER = "unknown-tier"
    START = "start"  #: a start tier is missing, unknown, not allowed, or given for a tensor that has none to choose
    OVER_BUDGET = "over-budget"
    NO_LINK = "no-link"
    COPY_EXISTS = "copy-exists"  #: a Copy onto a copy that is there
    SOURCE_MISSING = "source-missing"  #: a Copy from a tier that holds none
    DROP_MISSING = "drop-missing"  #: a Drop of a copy that is not there
    OFFLOAD_NOT_ALLOWED = "offload-not-allowed"
    OPERAND_MISSING = "operand-missing"
    OPERAND_TIER = "operand-tier"  #: an operand used in place on a tier where that is not allowed
    OP_MISSING = "op-missing"  #: an op never runs
    ORDER = "order"  #: first runs leave the listed order, or an op runs before one it must follow
    STALE = "stale"  #: an update while another tier holds a copy
    RERUN_NOT_ALLOWED = "rerun-not-allowed"  #: the rules forbid recomputation
    RERUN_NOT_RECOMPUTABLE = "rerun-not-recomputable"
    RERUN_NOTHING_ABSENT = "rerun-nothing-absent"
    RERUN_VERSION = "rerun-version"  #: a rerun would read another version than the first run did
    KEEP = "keep"  #: a tensor is not where it must be at the end
    PIN = "pin"


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding.

    Attributes
    ----------
    index : int, optional
        Position in the program; None for what no instruction did.
    instruction : list, optional
        Its JSON form.
    code : Code
    message : str
    """

    index: int | None
    instruction: list[Any] | None
    code: Code
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"index": self.index, "instruction": self.instruction, "code": str(self.code), "message": self.message}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Verdict on a program.

    Attributes
    ----------
    valid : bool
    violations : tuple of Violation
    peak_bytes : mapping of str to int
        Largest list-order use of each tier, occupied bytes.
    """

    valid: bool
    violations: tuple[Violation, ...]
    peak_bytes: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"valid": self.valid, "violations": [v.to_dict() for v in self.violations],
                "peak_bytes": dict(self.peak_bytes)}


def check(problem: Problem, program: Program | Plan | PlanFile) -> CheckReport:
    """Check a program against graph, machine, budgets and rules.

    Parameters
    ----------
    problem : Problem
    program : Program, Plan or PlanFile
        With a plan, its claim and the problem that it was made for are checked, too.

    Returns
    -------
    CheckReport
    """
    if isinstance(program, Program):
        return _Interpreter(problem, program).report()
    made_for = program.problem if isinstance(program.problem, str) else program.problem.sha256
    found: list[Violation] = []
    if made_for != problem.sha256:
        found.append(Violation(None, None, Code.WRONG_PROBLEM,
                               f"the plan was made for problem {made_for[:16]}…, this one is {problem.sha256[:16]}…"))
    if program.program is None:
        found.append(Violation(None, None, Code.NO_PROGRAM, "the plan has no program"))
        return CheckReport(False, tuple(found), {})
    report = _Interpreter(problem, program.program).report()
    found += report.violations
    if not report.violations:
        claim = program.claim() if callable(program.claim) else program.claim
        found += _claim_faults(problem, program.program, claim, report.peak_bytes)
    return CheckReport(not found, tuple(found), report.peak_bytes)


def _claim_faults(problem: Problem, program: Program, claim: Mapping[str, Any],
                  peak: Mapping[str, int]) -> Iterator[Violation]:
    from planner.replay import replay

    timeline = replay(problem, program)
    moved = {k: v for k, v in timeline.moved_bytes.items() if v}
    claimed_moved = claim.get("moved_bytes")
    facts = [("makespan_ns", claim.get("makespan_ns"), timeline.makespan_ns), ("peak_bytes", claim.get("peak_bytes"), dict(peak)),
             ("moved_bytes", claimed_moved and {k: v for k, v in claimed_moved.items() if v}, moved),
             ("recomputed_ns", claim.get("recomputed_ns"), timeline.recomputed_ns),
             ("stall_ns", claim.get("stall_ns"), timeline.stall_ns)]
    for name, claimed, true in facts:
        if claimed is not None and claimed != true and (claimed or true):
            yield Violation(None, None, Code.WRONG_CLAIM, f"the plan claims {name} {claimed}, its program gives {true}")
    bound, makespan = claim.get("lower_bound_ns"), claim.get("makespan_ns")
    if isinstance(bound, int) and isinstance(makespan, int) and bound > makespan:
        yield Violation(None, None, Code.WRONG_CLAIM, f"the plan claims a lower bound of {bound} ns above its own {makespan} ns")
    if claim.get("status") == "optimal" and bound != makespan:
        yield Violation(None, None, Code.WRONG_CLAIM, f"the plan claims to be optimal with bound {bound} and makespan {makespan}")


class _Interpreter:
    """State of one check: which copies exist, and in which version."""

    def __init__(self, problem: Problem, program: Program) -> None:
        self.problem, self.program = problem, program
        low, machine = problem.lowered, problem.machine
        self.ops, self.tensors = low.op, low.tensor
        self.device = machine.device.name
        self.tiers = machine.tier
        self.rules = problem.rules
        self.copies: dict[str, set[str]] = {}
        self.version = dict.fromkeys(self.tensors, 0)
        self.use = dict.fromkeys(self.tiers, 0)
        self.peak = dict.fromkeys(self.tiers, 0)
        self.worst: dict[str, tuple[int, int | None]] = {}
        self.full_at: dict[str, int | None] = {}
        self.room = {name: (2**63 if cap is None else cap) for name, cap in problem.capacity.items()}
        self.occupied: dict[str, dict[str, int]] = {
            k: {n: t.occupied(s.size) for n, s in self.tensors.items()} for k, t in self.tiers.items()}
        self.first_reads: dict[str, tuple[int, ...]] = {}
        self.wanted: dict[str, tuple[int, ...]] = {}  # versions that the listed order lets an op read
        seen: dict[str, int] = {}
        for op in low.ops:
            self.wanted[op.name] = tuple(seen.get(n, 0) for n in op.reads)
            for n in op.updates:
                seen[n] = seen.get(n, 0) + 1
        self.position = {op.name: i for i, op in enumerate(low.ops)}
        self.last_first: dict[str, int] = {}
        self.violations: list[Violation] = []
        self.pinned = low.pinned
        self.pin_used: set[str] = set()  # pinned tensors that some Run has used
        self.pin_left: dict[str, int] = {}  # those of them that were dropped from their tier since, and where

    def fault(self, index: int | None, code: Code, message: str) -> None:
        row = None
        if index is not None:
            row = Program((self.program.instructions[index],)).to_list()[0]
            message = f"instruction {index} {row}: {message}"
        self.violations.append(Violation(index, row, code, message))

    def report(self) -> CheckReport:
        self.begin()
        for i, ins in enumerate(self.program.instructions):
            kind = type(ins)
            if kind is Run:
                self.run(i, ins)  # type: ignore[arg-type]
            elif kind is Copy:
                self.copy(i, ins)  # type: ignore[arg-type]
            else:
                self.drop(i, ins)  # type: ignore[arg-type]
        self.finish()
        for tier, (most, at) in self.worst.items():
            self.fault(self.full_at[tier], Code.OVER_BUDGET,
                       f"tier {tier!r} first goes over its budget of {self.room[tier]} bytes here; it reaches {most} bytes "
                       f"({most - self.room[tier]} too many) at " + (f"instruction {at}" if at is not None else "the start"))
        self.violations.sort(key=lambda v: -1 if v.index is None else v.index)
        return CheckReport(not self.violations, tuple(self.violations), self.peak)

    def add(self, name: str, tier: str, index: int | None) -> None:
        self.copies.setdefault(name, set()).add(tier)
        use = self.use[tier] = self.use[tier] + self.occupied[tier][name]
        if use > self.peak[tier]:
            self.peak[tier] = use
            if use > self.room[tier]:
                self.full_at.setdefault(tier, index)
                self.worst[tier] = (use, index)

    def begin(self) -> None:
        for name in self.program.start:
            t = self.tensors.get(name)
            if t is None:
                self.fault(None, Code.START, f"a start tier is given for unknown tensor {name!r}")
            elif t.home != "any":
                self.fault(None, Code.START, f"a start tier is given for {name!r}, whose home is not \"any\"")
        for t in self.tensors.values():
            if t.home == "any":
                tier = self.program.start.get(t.name)
                if tier is None or tier not in self.tiers:
                    self.fault(None, Code.START, f"tensor {t.name!r} has home \"any\" and start tier {tier!r}; "
                               f"tiers are {sorted(self.tiers)}")
                    tier = self.device
                elif not self.rules.offload and tier != self.device:
                    self.fault(None, Code.START, f"tensor {t.name!r} starts on {tier!r}; without offload it starts on the device")
                self.add(t.name, tier, None)
            else:
                for tier in t.home:
                    self.add(t.name, tier, None)

    def run(self, i: int, ins: Run) -> None:
        op = self.ops.get(ins.op)
        if op is None:
            self.fault(i, Code.UNKNOWN_OP, f"there is no op {ins.op!r}")
            return
        at = self.places(i, op, ins) if ins.at else {}
        copies = self.copies
        for n in op.reads:
            tier = at.get(n, self.device)
            if tier not in copies.get(n, ()):
                where = sorted(copies.get(n, ())) or "nowhere"
                self.fault(i, Code.OPERAND_MISSING, f"op {op.name!r} needs {n!r} on {tier!r}; it is on {where}"
                           if where != "nowhere" else f"op {op.name!r} needs {n!r} on {tier!r}; no tier holds it")
        for n in op.after:
            if n not in self.first_reads:
                self.fault(i, Code.ORDER, f"op {op.name!r} must follow {n!r}, which has not run")
        absent = [n for n in op.writes if at.get(n, self.device) not in copies.get(n, ())]
        versions = tuple(self.version[n] for n in op.reads)
        before = self.first_reads.get(op.name)
        if before is None:
            self.first(i, op, versions)
            for n in op.writes:
                if copies.get(n):
                    self.fault(i, Code.COPY_EXISTS, f"op {op.name!r} creates {n!r}, which exists already")
        else:
            self.rerun(i, op, before, versions, absent)
        for n in op.updates:
            others = copies.get(n, set()) - {at.get(n, self.device)}
            if others:
                self.fault(i, Code.STALE, f"op {op.name!r} updates {n!r} while {sorted(others)} hold(s) a copy; drop it first")
                for tier in sorted(others):
                    self.remove(n, tier)
            self.version[n] += 1
        for n in absent:
            self.add(n, at.get(n, self.device), i)
        if self.pinned:
            self.pins_at(i, op, at)

    def first(self, i: int, op: Op, versions: tuple[int, ...]) -> None:
        self.first_reads[op.name] = versions
        for n, want, got in zip(op.reads, self.wanted[op.name], versions, strict=True):
            if want != got:
                self.fault(i, Code.ORDER, f"op {op.name!r} reads {n!r} after {got} in-place update(s); in the listed order it is {want}")
        if not self.rules.reorder:
            here = self.position[op.name]
            if here < self.last_first.get(op.stream, -1):
                ahead = self.problem.lowered.ops[self.last_first[op.stream]].name
                self.fault(i, Code.ORDER, f"op {op.name!r} runs after {ahead!r}, which the graph lists later")
            self.last_first[op.stream] = max(here, self.last_first.get(op.stream, -1))

    def rerun(self, i: int, op: Op, before: tuple[int, ...], versions: tuple[int, ...], absent: list[str]) -> None:
        if not self.rules.recompute:
            self.fault(i, Code.RERUN_NOT_ALLOWED, f"op {op.name!r} runs again, and the rules do not allow recomputation")
        elif not op.recomputable:
            why = "it updates tensors in place" if op.updates else "it is not recomputable"
            self.fault(i, Code.RERUN_NOT_RECOMPUTABLE, f"op {op.name!r} runs again, and {why}")
        if not absent:
            self.fault(i, Code.RERUN_NOTHING_ABSENT, f"op {op.name!r} runs again although all it writes is there")
        for n, old, new in zip(op.reads, before, versions, strict=True):
            if old != new:
                self.fault(i, Code.RERUN_VERSION, f"op {op.name!r} runs again, and {n!r} was updated since its first run")
        for n in absent:
            if self.version[n]:
                self.fault(i, Code.RERUN_VERSION, f"op {op.name!r} would create the first version of {n!r}, which was updated since")

    def places(self, i: int, op: Op, ins: Run) -> dict[str, str]:
        at: dict[str, str] = {}
        away = {n: k for n, k in ins.at if k != self.device}
        listed = any(dict(p.at) == away for p in op.placements)
        for n, tier in ins.at:
            if n not in op.reads and n not in op.writes:
                self.fault(i, Code.OPERAND_TIER, f"{n!r} is not an operand of op {op.name!r}")
                continue
            if tier not in self.tiers:
                self.fault(i, Code.UNKNOWN_TIER, f"there is no tier {tier!r}; tiers are {sorted(self.tiers)}")
                continue
            at[n] = tier
            if tier == self.device:
                continue
            if not self.rules.direct:
                self.fault(i, Code.OPERAND_TIER, f"op {op.name!r} uses {n!r} on {tier!r}, and the rules do not allow direct access")
            elif not listed and not self.tiers[tier].direct:
                self.fault(i, Code.OPERAND_TIER, f"op {op.name!r} uses {n!r} on {tier!r}: the tier allows no direct access and "
                           "no placement of the op names it")
        return at

    def copy(self, i: int, ins: Copy) -> None:
        name, src, dst = ins.tensor, ins.src, ins.dst
        t = self.tensors.get(name)
        if t is None:
            self.fault(i, Code.UNKNOWN_TENSOR, f"there is no tensor {name!r}")
            return
        unknown = [k for k in (src, dst) if k not in self.tiers]
        if unknown:
            self.fault(i, Code.UNKNOWN_TIER, f"there is no tier {unknown[0]!r}; tiers are {sorted(self.tiers)}")
            return
        if (src, dst) not in self.problem.machine.link:
            self.fault(i, Code.NO_LINK, f"there is no link from {src!r} to {dst!r}")
        held = self.copies.get(name, ())
        if src not in held:
            self.fault(i, Code.SOURCE_MISSING, f"{name!r} has no copy on {src!r}; it is on {sorted(held)}")
        if src == self.device and not self.rules.offload and dst not in self.demanded(t):
            self.fault(i, Code.OFFLOAD_NOT_ALLOWED, f"{name!r} is copied off the device; the rules allow that only where 'keep' "
                       "demands it")
        if dst in held:
            self.fault(i, Code.COPY_EXISTS, f"{dst!r} already holds a copy of {name!r}")
            return
        self.add(name, dst, i)

    def demanded(self, t: Tensor) -> set[str]:
        """Return the tiers off the device where the end demands a tensor, and those on the way there."""
        if t.keep is None:
            return set()
        ends: set[str] = {t.keep}
        if t.keep == "home":
            ends = {self.program.start.get(t.name, self.device)} if t.home == "any" else set(t.home)
            if self.device in ends:
                return set()
        machine = self.problem.machine
        return {link.dst for end in ends for link in machine.route(self.device, end) or ()}

    def drop(self, i: int, ins: Drop) -> None:
        if ins.tensor not in self.tensors:
            self.fault(i, Code.UNKNOWN_TENSOR, f"there is no tensor {ins.tensor!r}")
        elif ins.tier not in self.tiers:
            self.fault(i, Code.UNKNOWN_TIER, f"there is no tier {ins.tier!r}; tiers are {sorted(self.tiers)}")
        elif ins.tier not in self.copies.get(ins.tensor, ()):
            self.fault(i, Code.DROP_MISSING, f"{ins.tier!r} holds no copy of {ins.tensor!r}")
        else:
            self.remove(ins.tensor, ins.tier)
            if ins.tensor in self.pin_used and self.pinned[ins.tensor] == ins.tier:
                self.pin_left.setdefault(ins.tensor, i)

    def remove(self, name: str, tier: str) -> None:
        self.copies[name].discard(tier)
        self.use[tier] -= self.occupied[tier][name]

    def pins_at(self, i: int, op: Op, at: dict[str, str]) -> None:
        """A pinned tensor is used on its tier, at every use from first to last."""
        for n in {*op.reads, *op.writes} & self.pinned.keys():
            if at.get(n, self.device) != self.pinned[n]:
                self.fault(i, Code.PIN, f"op {op.name!r} uses {n!r} on {at.get(n, self.device)!r}; it is pinned to {self.pinned[n]!r}")
            if n in self.pin_left:
                self.fault(self.pin_left.pop(n), Code.PIN, f"{n!r} is pinned to {self.pinned[n]!r} and dropped there between "
                           f"its first and last use (op {op.name!r} uses it at instruction {i})")
            self.pin_used.add(n)

    def finish(self) -> None:
        for op in self.problem.lowered.ops:
            if op.name not in self.first_reads:
                self.fault(None, Code.OP_MISSING, f"op {op.name!r} never runs")
        for t in self.tensors.values():
            if t.keep is None:
                continue
            places = {t.keep}
            if t.keep == "home":
                places = {self.program.start.get(t.name, self.device)} if t.home == "any" else set(t.home)
            if not places & self.copies.get(t.name, set()):
                self.fault(None, Code.KEEP, f"{t.name!r} must be on {' or '.join(sorted(places))} at the end; it is on "
                           f"{sorted(self.copies.get(t.name, ())) or 'no tier'}")
