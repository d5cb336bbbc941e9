"""Chapters 3 and 4: tensors without consumers, ops without users, zero sizes, zero and unknown times."""

from __future__ import annotations

from dataclasses import replace

import pytest

import planner
from planner.errors import InputError
from planner.graph import Graph
from planner.io.problem_json import problem_from_dict
from planner.problem import Problem
from tests.cases.verified import joint, stream_weights
from tests.oracle.search import optimum
from tests.toys import toy

WEIGHTS = ("a0=1@D w1=4@H w2=6@H w3=5@H", "op1(5): a0,w1->a1(1)", "op2(5): a1,w2->a2(1)", "op3(5): a2,w3->a3(1)")


def test_22_a_weight_that_no_op_reads() -> None:
    """Case 22: same makespan, a warning that names it, never on the device; too big for the host: infeasible."""
    tensors, *ops = WEIGHTS
    problem = toy(tensors + " dead=1000@H", *ops, D=12, out="a3@D")
    assert any("dead" in w for w in problem.warnings)
    plan = planner.solve(problem, gap=0)
    assert (plan.status, plan.makespan_ns) == ("optimal", 25)
    assert plan.program is not None
    assert ["copy", "dead", "host", "device"] not in plan.program.to_list()
    found = planner.info(toy(tensors + " dead=1000@H", *ops, D=12, H=900, out="a3@D"))
    assert found.status == "infeasible"
    assert "host" in found.message


def test_23_an_op_whose_results_nobody_uses_still_runs() -> None:
    """Case 23: 100 ns more and a warning; leaving it out is an option that does not exist and is refused by name."""
    tensors, *ops = WEIGHTS
    problem = toy(tensors, *ops, "op4(100): a0->q(1)", D=16, out="a3@D")
    assert any("op4" in w for w in problem.warnings)
    plan = planner.solve(problem, gap=0)
    assert (plan.status, plan.makespan_ns) == ("optimal", 120)
    data = problem.to_dict()
    data["rules"]["prune-dead"] = True
    with pytest.raises(InputError, match="prune-dead"):
        problem_from_dict(data)


def test_24_zero_bytes() -> None:
    """Case 24: fits in 3 bytes; a zero-size copy costs the latency and nothing else."""
    for latency in (0, 7):
        problem = toy("z=0@H", "op1(1): z->y(0)", "op2(1): y->w(3)", D=3, h2d_latency=latency)
        plan = planner.solve(problem, gap=0)
        assert (plan.status, plan.makespan_ns) == ("optimal", 2 + latency)
        assert plan.peak_bytes["device"] == 3
        assert optimum(problem).makespan_ns == 2 + latency


def test_25_a_zero_time_op_holds_its_operands() -> None:
    """Case 25: 12 bytes at one instant; verified values are in `verified`; here the diagnosis."""
    found = planner.info(toy("x=6@D", "op1(0): x->y(6)", "op2(1): y->z(1)", D=10, out="z@D"))
    assert found.status == "infeasible"
    assert found.minimum_budget_bytes["device"].value == 12
    assert found.witness is not None
    assert found.witness.op == "op1"


def test_26_an_unknown_time_is_not_zero() -> None:
    """Case 26: without a time, and without flops, bytes or a compute speed, the op is named and nothing is planned."""
    problem = joint(13)
    ops = tuple(replace(op, duration=None) if op.name == "f1" else op for op in problem.graph.ops)
    with pytest.raises(InputError, match=r"time of op 'f1' is unknown"):
        Problem(Graph("case", problem.graph.tensors, ops), problem.machine)
    data = problem.to_dict()
    data["rules"]["assume-unknown"] = "norecompute"
    with pytest.raises(InputError, match="assume-unknown"):
        problem_from_dict(data)


def test_49_nothing_to_do() -> None:
    """Case 49: an empty graph is a plan of length 0."""
    plan = planner.solve(toy("x=2@D", D=2), gap=0)
    assert (plan.status, plan.makespan_ns, plan.gap) == ("optimal", 0, 0.0)
    assert plan.program is not None
    assert len(plan.program) == 0
    assert planner.solve(stream_weights(13), gap=0).makespan_ns == 20
