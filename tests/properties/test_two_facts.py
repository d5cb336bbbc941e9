"""Facts 1 and 2 of the execution model: safe under any timing, and replayable."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.graph import Graph
from planner.machine import Machine
from planner.problem import Problem
from planner.program import Program, Run
from planner.replay import direct_duration
from tests.properties.conftest import COUNT
from tests.properties.timed import longest_path, memory_over_time, random_program, retimed, within_capacity
from tests.strategies import problems

seeds = st.integers(0, 2**32 - 1)


def in_place_ns(problem: Problem, program: Program) -> dict[int, int]:
    """Return the durations of Runs with operands elsewhere, by instruction."""
    return {i: direct_duration(problem, ins.op, ins.at) for i, ins in enumerate(program.instructions)
            if isinstance(ins, Run) and ins.at}


@settings(max_examples=120 * COUNT)
@given(problems(ops=(1, 5)), st.sampled_from([2, 3]), seeds)
def test_a_program_that_fits_never_overflows(problem: Problem, times: int, seed: int) -> None:
    """Fact 1: valid in list order, so no tier overflows whatever the durations, bandwidths and latencies."""
    rng = random.Random(seed)
    program = random_program(problem, rng)
    if program is None:
        return
    assert planner.check(problem, program).valid
    for _ in range(times):
        other = retimed(problem, rng)
        line = planner.replay(other, program)
        rooms = memory_over_time(other, program, line.start.tolist(), line.end.tolist())
        assert within_capacity(other, rooms)


@settings(max_examples=120 * COUNT)
@given(problems(ops=(1, 5), tiers=3), seeds)
def test_three_tiers_never_overflow_either(problem: Problem, seed: int) -> None:
    rng = random.Random(seed)
    program = random_program(problem, rng)
    if program is not None:
        other = retimed(problem, rng)
        line = planner.replay(other, program)
        assert within_capacity(other, memory_over_time(other, program, line.start.tolist(), line.end.tolist()))


@settings(max_examples=120 * COUNT)
@given(problems(ops=(1, 5)), seeds)
def test_replay_is_the_longest_path(problem: Problem, seed: int) -> None:
    """Fact 2: on its own times and on any others the replay is the longest path, instruction by instruction."""
    rng = random.Random(seed)
    program = random_program(problem, rng)
    if program is None:
        return
    for other in (problem, retimed(problem, rng)):
        start, end = longest_path(other, program, in_place_ns(other, program))
        line = planner.replay(other, program)
        assert (line.start.tolist(), line.end.tolist()) == (start, end)
        assert line.makespan_ns == max(end, default=0)


@settings(max_examples=60 * COUNT)
@given(
    problems(ops=(1, 5), direct=False), seeds, st.sampled_from([Fraction(1, 2), Fraction(3, 4), 1, 2, Fraction(5, 3)]),
    st.sampled_from([1, 2, Fraction(1, 3)]), st.integers(0, 20),
)
def test_scales_are_other_problems(
    problem: Problem, seed: int, width: Fraction, length: Fraction, latency: int
) -> None:
    """Scaling at replay equals replaying on a problem with those bandwidths, durations and latencies."""
    program = random_program(problem, random.Random(seed))
    if program is None:
        return
    ops = tuple(replace(op, duration=math.ceil((op.duration or 0) * Fraction(length))) for op in problem.graph.ops)
    links = tuple(replace(k, bandwidth=max(1, int(k.bandwidth * width)), latency=k.latency + latency)
                  for k in problem.machine.links)
    machine = Machine("m", problem.machine.tiers, links, problem.machine.compute)
    other = Problem(Graph("g", problem.graph.tensors, ops), machine, problem.budgets, problem.rules)
    line = planner.replay(problem, program, bandwidth_scale=width, duration_scale=length, added_latency=latency)
    plain = planner.replay(other, program)
    assert (line.start.tolist(), line.end.tolist()) == (plain.start.tolist(), plain.end.tolist())


@settings(max_examples=8 * COUNT)
@given(problems(ops=(2, 4), direct=False, reorder=False))
def test_a_claim_is_the_replay_at_scale_one(problem: Problem) -> None:
    plan = planner.solve(problem, gap=0, time_limit=2)
    if plan.program is None:
        return
    line = planner.replay(problem, plan)
    assert line.makespan_ns == plan.makespan_ns
    assert line.peak_bytes == plan.peak_bytes
    assert {k: v for k, v in line.moved_bytes.items() if v} == {k: v for k, v in plan.moved_bytes.items() if v}
    assert (line.recomputed_ns, line.stall_ns) == (plan.recomputed_ns, plan.stall_ns)
