"""What the package claims against the optimum: bound ≤ optimum ≤ every plan; `optimal` and `infeasible` are true."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.bounds.simple import ideal_ns
from planner.graph import Graph
from planner.heuristics.registry import available
from planner.problem import Problem
from planner.program import Run
from tests.oracle.brute import play
from tests.oracle.search import ideal_path, least_capacity, optimum
from tests.properties.conftest import COUNT
from tests.properties.variants import more_memory, renamed, scaled_sizes
from tests.strategies import problems

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60 * COUNT)
@given(problems(ops=(1, 5)))
def test_bound_optimum_heuristic(problem: Problem) -> None:
    found = optimum(problem, ties=False, time_limit=1)
    if found.status == "unknown":
        return
    facts = planner.info(problem)
    assert not (facts.status == "infeasible" and found.status == "optimal")
    assert not (facts.status == "feasible" and found.status == "infeasible")
    if found.makespan_ns is not None:
        for name, bound in facts.bounds:
            assert bound <= found.makespan_ns, name
    for name, heuristic in available().items():
        program = heuristic.run(problem)
        if program is None or not planner.check(problem, program).valid:
            continue
        assert found.makespan_ns is not None, name
        assert planner.replay(problem, program).makespan_ns >= found.makespan_ns, name


@settings(max_examples=30 * COUNT)
@given(problems(ops=(1, 4)))
def test_ideal_is_the_longest_path(problem: Problem) -> None:
    if not problem.rules.reorder:
        assert ideal_ns(problem) == ideal_path(problem)


@settings(max_examples=25 * COUNT)
@given(problems(ops=(1, 4), direct=False), st.sampled_from(["device", "host"]))
def test_least_budget_brackets_the_truth(problem: Problem, tier: str) -> None:
    true = least_capacity(problem, tier, time_limit=None) if len(problem.lowered.ops) < 4 else None
    if true is None:
        return
    need = planner.info(problem).minimum_budget_bytes[tier]
    assert need.lower_bound <= true
    assert need.value is None or need.value >= true


@settings(max_examples=14 * COUNT)
@given(problems(ops=(2, 4), tiers=2), seeds)
def test_solve_claims_nothing_false(problem: Problem, seed: int) -> None:
    found = optimum(problem, ties=False, time_limit=2)
    plan = planner.solve(problem, gap=0, time_limit=2, seed=seed % 1000)
    if plan.program is not None:
        state = play(problem, plan.program)
        assert state is not None
        assert state.makespan == plan.makespan_ns
        assert planner.check(problem, plan).valid
    if found.status == "unknown":
        return
    if found.makespan_ns is None:
        assert plan.program is None
        return
    assert plan.status != "infeasible"
    assert plan.makespan_ns is None or plan.makespan_ns >= found.makespan_ns
    assert plan.lower_bound_ns is None or plan.lower_bound_ns <= found.makespan_ns
    if plan.status == "optimal":
        assert plan.makespan_ns == found.makespan_ns


@settings(max_examples=6 * COUNT)
@given(problems(ops=(2, 3), tiers=2, direct=False, reorder=False))
def test_solve_does_not_mind_names_or_units(problem: Problem) -> None:
    plain = planner.solve(problem, gap=0, time_limit=3)
    for other in (renamed(problem), scaled_sizes(problem, 2**30)):
        again = planner.solve(other, gap=0, time_limit=3)
        if plain.status in ("optimal", "infeasible") and again.status in ("optimal", "infeasible"):
            assert (again.status, again.makespan_ns) == (plain.status, plain.makespan_ns)


@settings(max_examples=20 * COUNT)
@given(problems(ops=(1, 6), direct=False, any_home=False, pins=False), seeds)
def test_what_fits_without_offload_stays_as_it_is(problem: Problem, seed: int) -> None:
    """All on the device from the start and room for all: the listed ops, nothing else, in the ideal time."""
    device = problem.machine.device.name
    tensors = tuple(
        replace(t, home=(device,) if t.home else (), keep=device if t.keep else None) for t in problem.graph.tensors
    )
    graph = Graph("resident", tensors, problem.graph.ops)
    room = sum(problem.machine.device.occupied(t.size) for t in problem.lowered.tensors)
    resident = more_memory(replace(problem, graph=graph, rules=replace(problem.rules, reorder=False)), device, room)
    plan = planner.solve(resident, gap=0, time_limit=5, seed=random.Random(seed).randrange(1000))
    assert plan.status == "optimal"
    assert plan.program is not None
    runs = [i.op for i in plan.program.instructions if isinstance(i, Run)]
    assert runs == [op.name for op in resident.graph.ops]
    assert not any(plan.moved_bytes.values())
    assert plan.makespan_ns == plan.ideal_ns == ideal_path(resident)
    assert plan.recomputed_ns == 0
