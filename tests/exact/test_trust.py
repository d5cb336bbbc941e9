"""A solver build that certifies wrong optima may certify nothing."""

from __future__ import annotations

import itertools

import pytest
from ortools.sat.python import cp_model

from planner.errors import SolverError
from planner.exact import segments_cpsat
from planner.exact.formulation import Outcome
from planner.exact.segments_cpsat import solve_cpsat
from planner.exact.trust import TRUE_OPTIMUM, certifies, reproducer
from planner.plan import Status
from tests.exact.problems import joint_choice


def test_the_true_optimum_by_enumeration() -> None:
    found = []
    for x in itertools.product((0, 1), repeat=10):
        row = 18253611009 * x[3] + 7516192770 * x[4] - 16106127357 * x[0] - 11811160061 * x[5]
        if x[5] + x[7] + x[6] + x[1] <= 1 and x[8] + x[3] + x[0] <= 1 and (
            not x[7] or -38654705664 <= row <= 3221225472
        ):
            found.append(-8589934592 * x[3] - 4294967296 * x[4] - 7516192768 * x[5] - 8589934592 * x[7])
    assert min(found) == TRUE_OPTIMUM


def test_this_build_certifies_as_it_is_used() -> None:
    assert certifies()


def test_the_fault_shows_without_the_parameter() -> None:
    import ortools

    if ortools.__version__ != "9.15.6755":
        pytest.skip("the fault is known for 9.15.6755")
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(reproducer()) == cp_model.OPTIMAL
    assert round(solver.objective_value) != TRUE_OPTIMUM


def test_a_build_that_fails_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_cpsat, "certifies", lambda: False)
    result = solve_cpsat(joint_choice(13, offload=True, recompute=False), time_limit=30)
    assert result.status is Status.FEASIBLE
    assert result.program is not None
    assert result.lower_bound_ns is None
    assert "nothing is claimed" in result.message


def test_infeasible_against_a_checked_program_is_a_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_cpsat._CpSat, "solve", lambda *_: Outcome(True, 0, "INFEASIBLE"))
    with pytest.raises(SolverError, match="solver disagreement: CP-SAT"):
        solve_cpsat(joint_choice(13, offload=True, recompute=False), time_limit=30)
