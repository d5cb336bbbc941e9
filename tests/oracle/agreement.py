"""Everything in the package that claims something about an optimum, held against the oracle's optimum."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

import planner
from planner.bounds.fluid import Fluid
from planner.bounds.fluid import supports as fluid_supports
from planner.bounds.simple import simple_bounds
from planner.heuristics.list_schedule import decode, schedule, schedule_input
from planner.heuristics.list_schedule import supports as list_supports
from planner.heuristics.registry import available
from planner.least_budget import lower_bound, unbounded
from planner.problem import Problem
from planner.program import Program
from tests.oracle.search import OracleResult, optimum

__all__ = ["disagreements"]


def disagreements(problem: Problem, *, time_limit: float = 4, seed: int = 0) -> list[str] | None:
    """Return one line per disagreement with the oracle; None if the oracle ran out of time."""
    found = optimum(problem, time_limit=time_limit)
    if found.status == "unknown":
        return None
    return [
        *_oracle(problem, found), *_bounds(problem, found), *_heuristics(problem, found),
        *_list_schedule(problem, found, random.Random(seed)), *_budgets(problem, found, time_limit),
    ]


def _oracle(problem: Problem, found: OracleResult) -> Iterator[str]:
    if found.program is None:
        return
    yield from _judge(problem, found.program, found, "oracle")
    line = planner.replay(problem, found.program)
    got = line.makespan_ns, sum(line.moved_bytes.values()), line.peak_bytes[problem.machine.device.name]
    if got != (found.makespan_ns, found.moved_bytes_total, found.peak_bytes):
        yield f"oracle: replay says {got}, the oracle {found.makespan_ns, found.moved_bytes_total, found.peak_bytes}"


def _judge(problem: Problem, program: Program, found: OracleResult, who: str) -> Iterator[str]:
    """A program that leaves the package must be valid, and no better than the optimum (ties included)."""
    report = planner.check(problem, program)
    if not report.valid:
        v = report.violations[0]
        yield f"{who}: invalid, {v.code} at {v.index}: {v.message}"
        return
    line = planner.replay(problem, program)
    if found.makespan_ns is None:
        yield f"{who}: a valid program of {line.makespan_ns} ns where the oracle finds none: {program.to_list()}"
        return
    peak = report.peak_bytes[problem.machine.device.name]
    if line.peak_bytes != report.peak_bytes:
        yield f"{who}: replay's peak {dict(line.peak_bytes)}, the checker's {dict(report.peak_bytes)}"
    got = line.makespan_ns, sum(line.moved_bytes.values()), peak
    best = found.makespan_ns, found.moved_bytes_total, found.peak_bytes
    if got < best:
        yield f"{who}: (makespan, moved, peak) {got} beats the oracle's {best}: {program.to_list()}"


def _bounds(problem: Problem, found: OracleResult) -> Iterator[str]:
    if found.makespan_ns is None:
        return
    for name, ns in simple_bounds(problem):
        if ns > found.makespan_ns:
            yield f"bound {name}: {ns} above the optimum {found.makespan_ns}"
    if fluid_supports(problem) is None:
        for ignore in (0.0005, 0.3):
            fluid = Fluid(problem, ignore)
            for step in range(8):
                value = fluid.solve(5)
                if max(value, fluid.bound_ns) > found.makespan_ns:
                    yield f"bound fluid (ignore {ignore}, step {step}): {value} above the optimum {found.makespan_ns}"
                    break
                if not fluid.refine():
                    break


def _heuristics(problem: Problem, found: OracleResult) -> Iterator[str]:
    for name, heuristic in available().items():
        program = heuristic.run(problem)
        if program is not None:
            yield from _judge(problem, program, found, f"heuristic {name}")


def _list_schedule(problem: Problem, found: OracleResult, rng: random.Random) -> Iterator[str]:
    if list_supports(problem) is not None:
        return
    data = schedule_input(problem)
    for share in (0.0, 0.3, 0.5, 1.0):
        vacated = np.array([rng.random() < share for _ in range(len(data.gaps))], np.bool_) | data.gaps.forced
        for a, b in enumerate(data.gaps.mate.tolist()):
            if b >= 0:
                vacated[a] = vacated[b] = vacated[min(a, b)]
        makespan, moved, peak, code = schedule(data, vacated)
        if makespan < 0:
            continue
        program = decode(problem, code, vacated)
        who = f"list schedule {vacated.astype(int).tolist()}"
        yield from _judge(problem, program, found, who)
        if planner.check(problem, program).valid:
            line = planner.replay(problem, program)
            got = line.makespan_ns, sum(line.moved_bytes.values()), line.peak_bytes[problem.machine.device.name]
            if got != (makespan, moved, peak):
                yield f"{who}: own figures {makespan, moved, peak}, replay's {got}: {program.to_list()}"


def _budgets(problem: Problem, found: OracleResult, time_limit: float) -> Iterator[str]:
    """No plan may exist one byte below a proved least budget."""
    for tier in problem.machine.tiers:
        bound, witness = lower_bound(problem, tier.name)
        capacity = problem.capacity[tier.name]
        if found.makespan_ns is not None and capacity is not None and bound > capacity:
            yield f"least budget of {tier.name}: {bound}, but {capacity} has a plan ({witness})"
        elif bound > 1:
            below = optimum(unbounded(problem, tier.name, bound - 1), time_limit=time_limit, ties=False)
            if below.program is not None:
                yield (f"least budget of {tier.name}: {bound}, but {bound - 1} has a plan ({witness}): "
                       f"{below.program.to_list()}")
