"""Chapter 7: shapes of graphs, cycles, order, depth."""

from __future__ import annotations

import time

import pytest

import planner
from planner.errors import InputError
from planner.graph import Graph, Op, Tensor
from planner.machine import Link, Machine, Tier
from planner.problem import Problem
from tests.toys import toy


@pytest.mark.parametrize("reads", ["i,n", "i,n,i"])
def test_45_no_false_cycle(reads: str) -> None:
    """Case 45: i is an operand of op3 once, 12 bytes, however often it is named."""
    problem = toy("in0=4@D", "op1(1): in0->i(4)", "op2(1): i->n(4)", f"op3(1): {reads}->o(4)", D=12, out="o@D")
    assert problem.lowered.op["op3"].reads == ("i", "n")
    plan = planner.solve(problem, gap=0)
    assert (plan.status, plan.makespan_ns, plan.peak_bytes["device"]) == ("optimal", 3, 12)
    assert planner.info(problem).minimum_budget_bytes["device"].value == 12


def test_46_a_cycle_is_printed() -> None:
    """Case 46: one concrete cycle, from its first op."""
    tensors = tuple(Tensor(n, 1) for n in "abc")
    ops = (Op("op1", ("c",), ("a",), duration=1), Op("op2", ("a",), ("b",), duration=1),
           Op("op3", ("b",), ("c",), duration=1))
    with pytest.raises(InputError, match="op1 > op2 > op3 > op1"):
        Graph("g", tensors, ops)


def test_47_an_order_that_is_not_topological_names_op_and_tensor() -> None:
    tensors = (Tensor("a0", 1, ("device",)), Tensor("a1", 1), Tensor("a2", 1))
    ops = (Op("op2", ("a1",), ("a2",), duration=1), Op("op1", ("a0",), ("a1",), duration=1))
    with pytest.raises(InputError, match=r"op 'op2' reads 'a1'.*'op1'"):
        Graph("g", tensors, ops)


def test_50_a_deep_chain() -> None:
    """Case 50: 5,000 ops are read, validated and planned without recursion, in seconds."""
    n = 5000
    tensors = [Tensor("t0", 8, ("device",))]
    tensors += [Tensor(f"t{i}", 8, (), "device" if i == n else None) for i in range(1, n + 1)]
    ops = [Op(f"op{i}", (f"t{i}",), (f"t{i + 1}",), duration=10) for i in range(n)]
    machine = Machine("m", (Tier("device", 64), Tier("host")),
                      (Link("host", "device", 10**9), Link("device", "host", 10**9)))
    begin = time.monotonic()
    graph = Graph.from_dict(Graph("chain", tuple(tensors), tuple(ops)).to_dict())
    problem = Problem(graph, machine)
    assert time.monotonic() - begin < 5
    plan = planner.solve(problem, time_limit=30)
    assert (plan.status, plan.makespan_ns) == ("optimal", 10 * n)
