"""`planner.solve` on every verified value: proved, by a plan that the checker and brute force's reading accept."""

from __future__ import annotations

import pytest

import planner
from planner.problem import Problem
from tests.cases.verified import VERIFIED
from tests.oracle.brute import play


@pytest.mark.parametrize(("problem", "makespan"), [row[1:] for row in VERIFIED], ids=[row[0] for row in VERIFIED])
def test_solve_proves_the_verified_value(problem: Problem, makespan: int | None) -> None:
    plan = planner.solve(problem, gap=0, time_limit=20)
    if makespan is None:
        assert plan.status == "infeasible"
        assert plan.program is None
        assert plan.witness is not None
        return
    assert plan.status == "optimal"
    assert plan.makespan_ns == plan.lower_bound_ns == makespan
    assert plan.program is not None
    assert planner.check(problem, plan).valid
    state = play(problem, plan.program)
    assert state is not None
    assert state.makespan == makespan
