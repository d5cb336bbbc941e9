"""Objective ``peak``: the least device memory under a limit on the makespan, against the verified table of case 71."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import planner
from planner.least_peak import makespan_limit
from planner.problem import Objective, Problem
from tests.toys import toy

CHAIN = toy(
    "x=1@DH", "f1(2): x->a1(6)", "f2(2): a1->a2(6)", "f3(2): a2->a3(6)", "b3(4): a3->g3(1)", "b2(4): a2,g3->g2(1)",
    "b1(4): a1,g2->g1(1)", D=30, h2d=1, d2h=1, out="g1@D")


def peak_problem(limit: int) -> Problem:
    return replace(CHAIN, objective=Objective("peak", max_makespan=limit))


@pytest.mark.parametrize(("limit", "peak"), [(18, 19), (21, 19), (22, 18), (24, 14), (28, 13), (38, 12), (1000, 12)])
def test_least_peak_is_the_inverse_of_the_budget_curve(limit: int, peak: int) -> None:
    plan = planner.solve(peak_problem(limit), gap=0, time_limit=60)
    assert plan.peak_bytes["device"] == peak
    assert plan.makespan_ns is not None
    assert plan.makespan_ns <= limit
    assert plan.status == "optimal"
    assert plan.lower_bound_bytes == peak
    assert plan.gap == 0
    assert planner.check(plan.problem, plan).valid


def test_a_limit_below_the_ideal_time_is_infeasible() -> None:
    plan = planner.solve(peak_problem(17), time_limit=10)
    assert plan.status == "infeasible"
    assert plan.program is None
    assert "18" in plan.message


def test_slowdown_is_over_the_ideal_time() -> None:
    problem = replace(CHAIN, objective=Objective("peak", max_slowdown=Fraction(4, 3)))
    assert makespan_limit(problem) == 24
    assert planner.solve(problem, gap=0, time_limit=60).peak_bytes["device"] == 14


def test_a_real_model_keeps_its_limit_and_saves_memory() -> None:
    graph, machine = planner.load_model("vgg19-train"), planner.preset("h100-pcie5")
    problem = planner.Problem(graph, machine, objective=Objective("peak", max_slowdown=Fraction(11, 10)))
    plan = planner.solve(problem, time_limit=8, gap=0.05)
    assert plan.makespan_ns is not None
    assert plan.makespan_ns <= makespan_limit(problem)
    assert plan.lower_bound_bytes is not None
    assert plan.lower_bound_bytes <= plan.peak_bytes["device"] < planner.info(problem).resident_peak_bytes["device"]
