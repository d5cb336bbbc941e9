"""Small plans with every kind of bar: ops, an op run again, copies both ways, drops, a tier of its own for NVMe."""

from __future__ import annotations

from planner.check import check
from planner.plan import Plan, Scope, Status
from planner.problem import Problem
from planner.program import Copy, Drop, Program, Run
from planner.replay import replay
from tests.toys import toy

__all__ = ["as_plan", "offload_plan"]


def as_plan(problem: Problem, program: Program) -> Plan:
    """Return a checked plan with the replay's figures."""
    assert check(problem, program).valid, check(problem, program).violations
    line = replay(problem, program)
    return Plan(problem, program, Status.FEASIBLE, "by hand", Scope("fixed", True, False, ("device", "host")),
                line.makespan_ns, peak_bytes=line.peak_bytes, moved_bytes=line.moved_bytes,
                recomputed_ns=line.recomputed_ns, stall_ns=line.stall_ns)


def offload_plan() -> Plan:
    """Return a plan that offloads a1 and fetches it again, and computes a2 twice."""
    problem = toy(
        "x=2@D w=3@H",
        "op1(4): x,w -> a1(4)", "op2(2): a1 -> a2(3)", "op3(5) ws=2: a2 -> a3(2)", "op4(3): a3,a1,a2 -> y(1)",
        D=10, H=100, h2d=2, d2h=1, out="y@H", kinds={"w": "weight", "a1": "activation", "y": "output"}, recompute=True,
    )
    return as_plan(problem, Program((
        Copy("w", "host", "device"), Run("op1"), Drop("w", "device"), Run("op2"), Copy("a1", "device", "host"),
        Drop("a1", "device"), Drop("x", "device"), Run("op3"), Drop("op3@workspace", "device"), Drop("a2", "device"),
        Copy("a1", "host", "device"), Run("op2"), Run("op4"), Copy("y", "device", "host"), Drop("a1", "device"),
    )))
