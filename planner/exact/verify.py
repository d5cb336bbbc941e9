"""No program leaves a solver before checker and replay agree with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.check import check
from planner.errors import SolverError
from planner.replay import replay

if TYPE_CHECKING:
    from planner.problem import Problem
    from planner.program import Program

__all__ = ["accepted", "verify"]


def verify(problem: Problem, program: Program, claimed_ns: int, solver: str) -> int:
    """Return the replayed makespan of a solver's program, ns.

    Raises
    ------
    SolverError
        The checker rejects the program, or it takes longer than the solver said.
    """
    report = check(problem, program)
    if not report.valid:
        raise SolverError(f"{solver} returned a program that the checker rejects: {report.violations[0]}")
    makespan = replay(problem, program).makespan_ns
    if makespan > claimed_ns:
        raise SolverError(f"{solver} claims {claimed_ns} ns for a program that takes {makespan} ns")
    return makespan


def accepted(problem: Problem, program: Program | None) -> int | None:
    """Return the makespan of a program that the checker accepts, ns; None for any other."""
    if program is None or not check(problem, program).valid:
        return None
    return replay(problem, program).makespan_ns
