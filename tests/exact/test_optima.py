"""Known optima, and the hazards of solvers."""

from __future__ import annotations

import pytest

from planner.check import check
from planner.exact.result import ExactResult
from planner.exact.segments_cpsat import solve_cpsat
from planner.exact.segments_milp import solve_milp
from planner.plan import Status
from planner.problem import Problem
from planner.replay import replay
from tests.exact.problems import joint_choice, three_that_do_not_fit, two_loads, zero_time
from tests.toys import toy

SOLVERS = [pytest.param(solve_cpsat, id="cpsat"), pytest.param(solve_milp, id="milp")]
#: Case 71: budget → keep only, offload only, recompute only, all.
JOINT = {12: (None, 38, None, 25), 13: (None, 28, 20, 20), 14: (None, 24, 20, 20), 18: (None, 22, 20, 20),
         19: (18, 18, 18, 18)}
RULES = [(False, False), (True, False), (False, True), (True, True)]


def solved(problem: Problem, result: ExactResult) -> int | None:
    """Return the proved optimum; None if proved infeasible."""
    assert result.scope_note == ""
    if result.status is Status.INFEASIBLE:
        return None
    assert result.status is Status.OPTIMAL, result.message
    assert result.program is not None
    assert check(problem, result.program).valid
    makespan = replay(problem, result.program).makespan_ns
    assert makespan == result.lower_bound_ns
    return makespan


@pytest.mark.parametrize("budget", sorted(JOINT))
def test_joint_choice_cpsat(budget: int) -> None:
    for (offload, recompute), expected in zip(RULES, JOINT[budget], strict=True):
        problem = joint_choice(budget, offload=offload, recompute=recompute)
        assert solved(problem, solve_cpsat(problem, time_limit=60)) == expected


@pytest.mark.parametrize(
    ("budget", "rules", "expected"), [(12, 1, 38), (13, 2, 20), (14, 1, 24), (12, 0, None), (19, 3, 18)]
)
def test_joint_choice_milp(budget: int, rules: int, expected: int | None) -> None:
    offload, recompute = RULES[rules]
    problem = joint_choice(budget, offload=offload, recompute=recompute)
    assert solved(problem, solve_milp(problem, time_limit=60)) == expected


@pytest.mark.parametrize("solve", SOLVERS)
def test_a_zero_time_op_holds_its_memory(solve) -> None:  # type: ignore[no-untyped-def]
    for budget, expected in ((11, None), (12, 1)):
        problem = zero_time(budget)
        assert solved(problem, solve(problem, time_limit=30)) == expected


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize("size", [10, 2**20, 2**30, 2**34])
def test_one_byte_too_big_is_too_big(solve, size: int) -> None:  # type: ignore[no-untyped-def]
    fits = three_that_do_not_fit(size, 3 * size)
    short = three_that_do_not_fit(size, 3 * size - 1)
    assert solved(fits, solve(fits, time_limit=60)) == 6
    answer = solved(short, solve(short, time_limit=60))
    reference = three_that_do_not_fit(3, 8)
    assert answer == solved(reference, solve_cpsat(reference, time_limit=60)) != 6


@pytest.mark.parametrize("unit", [2**30, 2**40])
def test_sizes_times_a_power_of_two_give_the_same_plan(unit: int) -> None:
    for budget, offload, recompute in ((12, True, True), (13, True, False), (12, False, True)):
        plain = joint_choice(budget, offload=offload, recompute=recompute)
        large = joint_choice(budget, offload=offload, recompute=recompute, unit=unit)
        a = solve_cpsat(plain, time_limit=60, deterministic=True)
        b = solve_cpsat(large, time_limit=60, deterministic=True)
        assert (a.status, a.program, a.lower_bound_ns) == (b.status, b.program, b.lower_bound_ns)


def test_deterministic_mode_repeats_itself() -> None:
    problem = two_loads()
    runs = [solve_cpsat(problem, time_limit=30, deterministic=True, seed=3) for _ in range(3)]
    assert solved(problem, runs[0]) == 9
    assert len({str(r.program) for r in runs}) == 1


def test_ties_go_to_fewer_bytes_then_lower_peak() -> None:
    problem = joint_choice(19, offload=True, recompute=True)
    result = solve_cpsat(problem, time_limit=60)
    assert result.ties_proved
    assert result.program is not None
    assert sum(replay(problem, result.program).moved_bytes.values()) == 0


@pytest.mark.parametrize("solve", SOLVERS)
def test_without_time_no_claim(solve) -> None:  # type: ignore[no-untyped-def]
    problem = joint_choice(12, offload=True, recompute=True)
    result = solve(problem, time_limit=0.0)
    assert result.status is Status.FEASIBLE  # the search without time found a program; nothing is claimed for it
    assert check(problem, result.program).valid
    assert result.lower_bound_ns is None or result.lower_bound_ns <= 25


@pytest.mark.parametrize("solve", SOLVERS)
def test_hint_and_bounds(solve) -> None:  # type: ignore[no-untyped-def]
    problem = joint_choice(13, offload=True, recompute=False)
    best = solve_cpsat(problem, time_limit=60).program
    again = solve(problem, hint=best, time_limit=60)
    assert solved(problem, again) == 28
    given = solve(problem, hint=best, lower_bound_ns=28, time_limit=60)
    assert solved(problem, given) == 28
    below = solve(problem, upper_bound_ns=27, time_limit=60)
    assert below.lower_bound_ns == 28  # nothing is as fast as that: a bound, not infeasibility
    assert below.status is not Status.INFEASIBLE


def test_rules_that_cannot_be_expressed_are_refused_by_name() -> None:
    from dataclasses import replace

    problem = two_loads()
    for rule in ("reorder", "direct"):
        other = replace(problem, rules=replace(problem.rules, **{rule: True}))
        for solve in (solve_cpsat, solve_milp):
            result = solve(other, time_limit=5)
            assert result.status is Status.UNKNOWN
            assert rule in result.message


@pytest.mark.parametrize("solve", SOLVERS)
def test_a_rerun_may_follow_an_update_of_what_it_leaves_alone(solve) -> None:  # type: ignore[no-untyped-def]
    # f makes a and b; u changes b, which stays; c needs a room that a has to make; then f runs again for a alone.
    problem = toy(
        "x=1@D", "f(1): x -> a(4),b(1)", "u(1!): b -> ~b,s(0)", "c(1!): x -> big(4)", "g(1!): a,b -> y(0)", D=6,
        out="y@D", recompute=True, offload=False,
    )
    assert solved(problem, solve(problem, time_limit=60)) == 5


@pytest.mark.parametrize("solve", SOLVERS)
def test_a_pin_holds_for_reruns(solve) -> None:  # type: ignore[no-untyped-def]
    rows = ("f(1): x -> a(4)", "c(1!): x -> big(4)", "g(1!): a -> y(0)")
    for pins, expected in ((), 4), ((("a", "device"),), None):
        problem = toy("x=1@D", *rows, D=5, out="y@D", recompute=True, offload=False, pin=pins)
        assert solved(problem, solve(problem, time_limit=60)) == expected
