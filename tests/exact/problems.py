"""Small problems with known optima."""

from __future__ import annotations

from planner.graph import Graph, Op, Tensor
from planner.machine import Link, Machine, Tier
from planner.problem import Problem, Rules

__all__ = ["chain", "joint_choice", "machine", "three_that_do_not_fit", "two_loads", "zero_time"]

GB = 10**9


def machine(device: int | None, host: int | None = None, bandwidth: int = GB) -> Machine:
    """Device and host, one link each way."""
    links = (Link("host", "device", bandwidth), Link("device", "host", bandwidth))
    return Machine("toy", (Tier("device", device), Tier("host", host)), links)


def joint_choice(budget: int, *, offload: bool, recompute: bool, unit: int = 1) -> Problem:
    """Three layers forward and back; sizes in units of ``unit`` bytes. Case 71."""
    tensors = [Tensor("x", unit, ("device", "host")), *(Tensor(f"a{i}", 6 * unit) for i in (1, 2, 3)),
               Tensor("g3", unit), Tensor("g2", unit), Tensor("g1", unit, keep="device")]
    ops = [
        Op("f1", ("x",), ("a1",), duration=2), Op("f2", ("a1",), ("a2",), duration=2),
        Op("f3", ("a2",), ("a3",), duration=2), Op("b3", ("a3",), ("g3",), duration=4, recomputable=False),
        Op("b2", ("a2", "g3"), ("g2",), duration=4, recomputable=False),
        Op("b1", ("a1", "g2"), ("g1",), duration=4, recomputable=False),
    ]
    return Problem(Graph("joint", tuple(tensors), tuple(ops)), machine(budget * unit, bandwidth=GB * unit),
                   rules=Rules(offload=offload, recompute=recompute))


def zero_time(budget: int) -> Problem:
    """An op of no duration still needs room for its 6 + 6 bytes. Case 25."""
    tensors = (Tensor("x", 6, ("device",)), Tensor("y", 6), Tensor("z", 1, keep="device"))
    ops = (Op("op1", ("x",), ("y",), duration=0), Op("op2", ("y",), ("z",), duration=1))
    return Problem(Graph("zero", tensors, ops), machine(budget))


def three_that_do_not_fit(size: int, budget: int) -> Problem:
    """Three tensors of ``size`` are made, then used; a copy takes 3 ns, a run 1 ns."""
    tensors = (*(Tensor(f"t{i}", size) for i in range(3)), Tensor("end", 0, keep="device"))
    ops = (*(Op(f"make{i}", (), (f"t{i}",), duration=1) for i in range(3)),
           *(Op(f"use{i}", (f"t{i}",), (), duration=1) for i in range(2)), Op("use2", ("t2",), ("end",), duration=1))
    toy = machine(budget, bandwidth=-(-size * GB // 3))
    return Problem(Graph("three", tensors, ops), toy)


def two_loads() -> Problem:
    """Two equal copy orders; the makespan is 9. Case 84 f."""
    tensors = (Tensor("A", 4, ("host",)), Tensor("B", 4, ("host",)), Tensor("y", 0))
    return Problem(Graph("tie", tensors, (Op("op1", ("A", "B"), ("y",), duration=1),)), machine(8))


def chain(budget: int, host: int | None) -> Problem:
    """Two tensors swap places through a host that can hold one of them."""
    tensors = (Tensor("a", 4, ("device",)), Tensor("b", 4, ("device",)), Tensor("c", 4),
               Tensor("end", 0, keep="device"))
    ops = (Op("op1", ("a",), ("c",), duration=2), Op("op2", ("b",), (), duration=2),
           Op("op3", ("a", "b"), ("end",), duration=2))
    return Problem(Graph("chain", tensors, ops), machine(budget, host))
