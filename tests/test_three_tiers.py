"""A host that is too small: the third tier is used, and the bound of what crosses the device's links still holds."""

from __future__ import annotations

import planner
from planner.bounds.fluid import Fluid, supports


def test_overflow_goes_to_nvme_with_a_bound_above_compute() -> None:
    budgets = {"device": 6 * 2**30, "host": 2**30}
    problem = planner.Problem(planner.load_model("gpt2-train"), planner.preset("h100-pcie5-nvme"), budgets)
    assert supports(problem) is None
    bound = Fluid(problem).solve(20.0)
    plan = planner.solve(problem, time_limit=5)
    assert plan.program is not None
    assert planner.check(problem, plan).valid
    assert plan.peak_bytes["nvme"] > 0
    assert plan.peak_bytes["host"] <= 2**30
    assert plan.ideal_ns is not None
    assert plan.makespan_ns is not None
    assert 2 * plan.ideal_ns < bound <= plan.makespan_ns
    assert plan.lower_bound_ns is not None
    assert plan.lower_bound_ns >= bound // 2


def test_a_tensor_that_starts_on_the_third_tier_is_outside_the_bound() -> None:
    machine = planner.preset("h100-pcie5-nvme")
    graph = planner.Graph("g", (planner.Tensor("w", 8, ("nvme",)), planner.Tensor("y", 8, (), "device")),
                          (planner.Op("f", ("w",), ("y",), duration=5),))
    problem = planner.Problem(graph, machine)
    assert supports(problem) is not None
    plan = planner.solve(problem, gap=0)
    assert plan.status == "optimal"
    assert plan.moved_bytes == {"nvme>host": 8, "host>device": 8}
