"""What a picture shows, without drawing it."""

from __future__ import annotations

import numpy as np
import pytest

from planner.memory_events import memory_events
from planner.plan import Plan, Scope, Status
from planner.plotting.data import timeline_figure_data
from planner.program import Copy, Drop, Program, Run
from tests.plotting.plans import as_plan, offload_plan
from tests.toys import toy


def test_lanes_hold_every_run_and_copy() -> None:
    plan = offload_plan()
    data = timeline_figure_data(plan)
    lanes = {lane.name: lane for lane in data.lanes}
    assert list(lanes) == ["compute", "host>device", "device>host"]
    assert lanes["compute"].label == ("op1", "op2", "op3", "op2", "op4")
    assert lanes["compute"].group == ("op", "op", "op", "op again", "op")
    assert lanes["host>device"].group == ("weight", "activation")
    assert lanes["device>host"].label == ("a1 device>host", "y device>host")
    assert data.makespan == plan.makespan_ns
    for lane in data.lanes:
        assert (lane.start[1:] >= lane.end[:-1]).all(), "one bar at a time in a lane"


def test_curves_reach_the_peak_and_stay_under_the_budget() -> None:
    plan = offload_plan()
    device, host = timeline_figure_data(plan).tiers
    assert device.budget == 10
    assert device.used.max() <= plan.peak_bytes["device"] <= 10
    assert device.used[0] == 2 + 3  # x, and w on its way
    assert host.used[0] == 3  # w
    assert host.used[-1] == 3 + 4 + 1  # w, a1 and y stay
    assert np.all(np.diff(device.time) >= 0)
    assert device.time[-1] == plan.makespan_ns


def test_room_is_held_from_the_start_of_a_copy_to_its_drop() -> None:
    problem = toy("w=3@H", "op1(2): w -> y(1)", D=4, out="y@D")
    plan = as_plan(problem, Program((Copy("w", "host", "device"), Run("op1"), Drop("w", "device"))))
    found = [(e.time, e.tensor, e.change) for e in memory_events(plan) if e.tier == "device"]
    assert found == [(0, "w", 3), (3, "y", 1), (5, "w", -3)]
    assert timeline_figure_data(plan).tiers[0].used.tolist() == [3, 4, 1, 1]


def test_a_rerun_allocates_only_what_is_absent() -> None:
    problem = toy("x=1@D", "op1(1): x -> a(2),b(3)", "op2(1): a,b -> y(1)", D=20, out="y@D", recompute=True)
    program = Program((Run("op1"), Drop("a", "device"), Run("op1"), Run("op2")))
    plan = as_plan(problem, program)
    assert [e.tensor for e in memory_events(plan) if e.index == 2] == ["a"]


def test_a_plan_without_program_is_refused() -> None:
    plan = offload_plan()
    empty = Plan(plan.problem, None, Status.INFEASIBLE, "", Scope("fixed", False, False, ("device",)))
    with pytest.raises(ValueError, match="infeasible has no program"):
        timeline_figure_data(empty)
