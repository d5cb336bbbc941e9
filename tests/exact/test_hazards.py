"""Each trap of the solvers' floating point, statuses and numbers."""

from __future__ import annotations

import random

from planner.check import check
from planner.exact.linear import Linear
from planner.exact.pulp_adapter import MilpStatus, minimise
from planner.exact.reach import reach
from planner.exact.scaling import scale
from planner.exact.segments_cpsat import solve_cpsat
from planner.exact.segments_milp import solve_milp
from planner.exact.slots import slots
from planner.graph import Graph, Op, Tensor
from planner.plan import Status
from planner.problem import Problem
from tests.exact.problems import chain, joint_choice, machine, zero_time


def _market_split(items: int) -> Linear:
    """Split each row of random numbers in two halves: easy to come near, hard to prove how near."""
    linear, rng = Linear(), random.Random(1)
    x = [linear.variable(0, 1, f"x{i}", integer=True) for i in range(items)]
    for _ in range(5):
        a = [rng.randrange(100) for _ in range(items)]
        slack = [linear.variable(0, 10**4, "s") for _ in range(2)]
        half = sum(a) // 2
        linear.at_least([*((float(v), i) for v, i in zip(a, x, strict=True)), (1, slack[0]), (-1, slack[1])], half)
        linear.at_least([*((-float(v), i) for v, i in zip(a, x, strict=True)), (-1, slack[0]), (1, slack[1])], -half)
        linear.objective.update(dict.fromkeys(slack, 1.0))
    return linear


def test_stopped_with_a_solution_is_not_optimal() -> None:
    outcome = minimise(_market_split(40), time_limit=1.0)
    assert outcome.status is MilpStatus.STOPPED
    assert outcome.values is not None
    assert outcome.bound is not None
    assert outcome.bound < 1


def test_infeasible_has_no_values() -> None:
    linear = Linear()
    x = linear.variable(0, 1, "x", integer=True)
    linear.at_least([(1, x)], 2)
    outcome = minimise(linear, time_limit=5)
    assert outcome.status is MilpStatus.INFEASIBLE
    assert outcome.values is None


def test_the_number_of_threads_may_change() -> None:
    for threads in (1, 4, 2):
        linear = Linear()
        linear.objective = {linear.variable(3, 9, "x", integer=True): 1.0}
        outcome = minimise(linear, time_limit=5, threads=threads)
        assert outcome.status is MilpStatus.OPTIMAL
        assert outcome.bound == 3


def test_a_conditional_row_holds_only_under_its_condition() -> None:
    for on in (0, 1):
        linear = Linear()
        x, y = linear.variable(0, 10, "x"), linear.variable(on, on, "y", integer=True)
        linear.at_least([(1, x)], 7, [(y, True)])
        linear.objective = {x: 1.0}
        outcome = minimise(linear, time_limit=5)
        assert outcome.values is not None
        assert round(outcome.values[x], 6) == 7 * on


def _uneven(budget: int) -> Problem:
    """Sizes near 2^33 without a common divisor: they cannot be scaled below 2^31 exactly."""
    p, q, r = 2**33 + 17, 2**33 + 9, 2**33 - 9
    tensors = (Tensor("p", p, ("host",)), Tensor("q", q, ("host",)), Tensor("r", r), Tensor("end", 1, keep="device"))
    ops = (Op("a", ("p",), ("r",), duration=2), Op("b", ("q", "r"), ("end",), duration=1))
    return Problem(Graph("uneven", tensors, ops), machine(budget, bandwidth=2**33 * 10**9))


def test_what_does_not_scale_is_rounded_to_the_safe_side() -> None:
    total = 2**33 + 9 + 2**33 - 9 + 1  # op b's operands, to the byte
    assert not scale(_uneven(total)).exact
    plan, bound = scale(_uneven(total)), scale(_uneven(total), for_bound=True)
    for key, size in plan.size.items():
        assert bound.size[key] <= size
    assert (plan.capacity["device"] or 0) <= (bound.capacity["device"] or 0)
    short = solve_cpsat(_uneven(total - 2), time_limit=20)
    assert short.program is None or check(_uneven(total - 2), short.program).valid
    assert short.status is not Status.OPTIMAL
    easy = _uneven(2 * total)
    result = solve_cpsat(easy, time_limit=20)
    assert result.program is not None
    assert check(easy, result.program).valid
    assert result.status is Status.OPTIMAL  # everything fits: no size matters


def test_reachability_needs_no_slots() -> None:
    assert reach(zero_time(11), scale(zero_time(11))).infeasible
    found = reach(zero_time(12), scale(zero_time(12)))
    assert found.program is not None
    assert check(zero_time(12), found.program).valid


def test_a_full_host_gets_as_many_copies_as_time_allows() -> None:
    problem = chain(12, 4)
    scaled = scale(problem)
    assert slots(problem, scaled, None, full=True).restrictions
    assert not slots(problem, scaled, 40, full=True).restrictions
    for solve in (solve_cpsat, solve_milp):
        result = solve(problem, time_limit=60)
        assert result.status is Status.OPTIMAL
        assert result.lower_bound_ns == 6


def test_no_lower_tier_copy_can_make_room_where_the_host_is_full() -> None:
    roomy, full = joint_choice(12, offload=True, recompute=False), joint_choice(12, offload=True, recompute=False)
    tight = Problem(full.graph, machine(12, 1), rules=full.rules)  # x alone fills the host
    assert solve_cpsat(roomy, time_limit=60).lower_bound_ns == 38
    assert solve_cpsat(tight, time_limit=60).status is Status.INFEASIBLE
