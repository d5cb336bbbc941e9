"""Load (or, once a machine, compile) the kernels of the heuristics, on a problem of three ops."""

from __future__ import annotations

__all__ = ["load_kernels"]


def load_kernels() -> None:
    """Run every kernel once, so that the next call is quick."""
    from planner.bounds.fluid import Fluid
    from planner.graph import Graph, Op, Tensor
    from planner.heuristics.greedy import best_greedy
    from planner.heuristics.list_schedule import schedule_input
    from planner.heuristics.local_search import improve
    from planner.machine import Link, Machine, Tier
    from planner.problem import Problem

    tensors = (Tensor("a", 1, ("device",)), Tensor("b", 1), Tensor("c", 1, (), "device"))
    ops = (Op("f", ("a",), ("b",), duration=1), Op("g", ("a",), ("c",), duration=1), Op("h", ("b", "c"), duration=1))
    links = (Link("device", "host", 10**9), Link("host", "device", 10**9))
    problem = Problem(Graph("kernels", tensors, ops), Machine("kernels", (Tier("device", 3), Tier("host")), links))
    choice = best_greedy(problem)
    if choice is not None:
        improve(schedule_input(problem), choice, seconds=None, steps=2, seed=0)
    Fluid(problem).solve(1.0)
