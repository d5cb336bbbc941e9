"""Objective ``peak``: the least device memory under a limit on the makespan, by bisection over budgets.

A budget b is *reached* if a checked plan under b keeps the limit. It is *refused* if a lower bound on the makespan under b is
above the limit, or no plan fits b at all: then every plan that keeps the limit has a larger peak. Both only move one way
with b, so bisection closes in on the least peak from both sides; what lies between is reported as the gap.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from planner.bounds.fluid import Fluid
from planner.bounds.fluid import supports as fluid_supports
from planner.bounds.simple import ideal_ns, simple_bounds
from planner.least_budget import lower_bound, unbounded
from planner.lifetimes import gaps_of
from planner.problem import Objective, Problem

if TYPE_CHECKING:
    from planner.anytime import Anytime

__all__ = ["least_peak", "makespan_limit"]


def makespan_limit(problem: Problem) -> int:
    """Return the limit on the makespan that the objective states, ns."""
    goal = problem.objective
    if goal.max_makespan is not None:
        return goal.max_makespan
    assert goal.max_slowdown is not None
    return math.floor(goal.max_slowdown * ideal_ns(problem))


def least_peak(session: Anytime) -> str:
    """Run the bisection of a session; returns the closing message."""
    from dataclasses import replace

    from planner.solve import solve

    problem, best = session.problem, session.best
    device = problem.machine.device.name
    limit = makespan_limit(problem)
    plain = replace(problem, objective=Objective())
    for name, bound in simple_bounds(plain):
        best.raise_bound(bound, name)
    if best.bound is not None and best.bound > limit:
        session.proved_infeasible = f"no plan keeps {limit} ns: bound {best.bound_name!r} is {best.bound} ns"
        return session.proved_infeasible
    floor, _ = lower_bound(plain, device)
    best.raise_peak_bound(floor)
    cap = problem.capacity[device]
    budget = cap
    trial_gap, rounds = 0.0, 0
    while session.left > 0 and rounds < 40:
        rounds += 1
        best.enter(f"peak under {limit} ns, trial {rounds}")
        trial = unbounded(plain, device, budget)
        if _refused(trial, limit, session):
            best.raise_peak_bound((budget or 0) + 1)
            if budget == cap:
                session.proved_infeasible = f"no plan within the budgets keeps the makespan limit of {limit} ns"
                return session.proved_infeasible
        else:
            share = session.left / 3 if session.best.program is None else session.left / 6
            plan = solve(trial, "auto", time_limit=max(0.2, min(share, session.left)), gap=trial_gap, seed=session.seed,
                         reproducible=session.reproducible, goal_ns=limit)
            if plan.makespan_ns is not None and plan.makespan_ns <= limit:
                best.offer(plan.program, plan.method)
            elif plan.lower_bound_ns is not None and plan.lower_bound_ns > limit:
                best.raise_peak_bound((budget or 0) + 1)
            elif budget == cap:
                return f"no plan found that keeps the makespan limit of {limit} ns"
            else:
                low_water = budget or 0
                session.unreached = max(session.unreached, low_water)
        above = best.peak
        below = max(best.peak_bound or 0, session.unreached + 1)
        if above is None or best.peak_bound is None:
            continue
        if above <= best.peak_bound:
            return "proved: no plan that keeps the limit has a smaller peak"
        if above <= below or (above - best.peak_bound) <= session.gap * best.peak_bound:
            break
        budget = (above - 1 + below) // 2
    return f"least peak found under a makespan limit of {limit} ns"


def _refused(trial: Problem, limit: int, session: Anytime) -> bool:
    """Is there a proof that no plan under this budget keeps the limit?"""
    device = trial.machine.device.name
    cap = trial.capacity[device]
    if cap is not None and lower_bound(trial, device)[0] > cap:
        return True
    if max(ns for _, ns in simple_bounds(trial)) > limit:
        return True
    if fluid_supports(trial) is None and len(gaps_of(trial)):
        fluid = Fluid(trial)
        for _ in range(3):
            if fluid.solve(max(0.1, min(session.left / 4, 10.0)), goal_ns=limit + 1) > limit:
                return True
            if session.left <= 0 or not fluid.refine():
                break
    return False
