"""The checker: is a program legal, and is what a plan claims for it true?

The verdict on the program is `planner.interpreter`, which shares no code with replay, solvers or oracle. The claim of a
plan, and the limit that the objective ``peak`` puts on the makespan, are about time: only for them the program is
replayed, and only if it is legal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.interpreter import Interpreter
from planner.program import Program
from planner.violations import CheckReport, Code, Violation

if TYPE_CHECKING:
    from planner.io.plan_json import PlanFile
    from planner.plan import Plan
    from planner.problem import Problem

__all__ = ["CheckReport", "Code", "Violation", "check"]


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
        Every violation, each with the instruction that commits it.
    """
    if isinstance(program, Program):
        return _verdict(problem, program, [])
    found: list[Violation] = []
    made_for = program.problem if isinstance(program.problem, str) else program.problem.sha256
    if made_for != problem.sha256:
        found.append(Violation(None, None, Code.WRONG_PROBLEM, f"the plan was made for problem {made_for[:16]}…, "
                               f"this one is {problem.sha256[:16]}…"))
    if program.program is None:
        found.append(Violation(None, None, Code.NO_PROGRAM, "the plan has no program"))
        return CheckReport(False, tuple(found), {})
    report = _verdict(problem, program.program, found)
    if not report.valid:
        return report
    from planner.claims import claim_faults
    from planner.replay import replay

    claim = program.claim() if callable(program.claim) else program.claim
    wrong = tuple(Violation(None, None, Code.WRONG_CLAIM, message)
                  for message in claim_faults(problem, replay(problem, program.program), report.peak_bytes, claim))
    return CheckReport(not wrong, wrong, report.peak_bytes)


def _verdict(problem: Problem, program: Program, found: list[Violation]) -> CheckReport:
    violations, peak = Interpreter(problem, program).judge()
    found += violations
    if not violations and problem.objective.kind == "peak":
        found += _limit(problem, program)
    return CheckReport(not found, tuple(found), peak)


def _limit(problem: Problem, program: Program) -> Iterator[Violation]:
    from planner.replay import replay

    goal = problem.objective
    limit = goal.max_makespan
    if limit is None:
        from planner.bounds.simple import ideal_ns

        assert goal.max_slowdown is not None
        limit = math.floor(goal.max_slowdown * ideal_ns(problem))
    makespan = replay(problem, program).makespan_ns
    if makespan > limit:
        yield Violation(None, None, Code.OVER_LIMIT, f"the makespan is {makespan} ns, {makespan - limit} ns above the "
                        f"limit of {limit} ns")
