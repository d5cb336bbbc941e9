"""Fluid bound and local search in turn, until plan and bound are close enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.bounds.fluid import Fluid, supports
from planner.heuristics.greedy import greedy_choice
from planner.heuristics.list_schedule import decode, schedule, schedule_input
from planner.heuristics.local_search import improve
from planner.lifetimes import gaps_of

if TYPE_CHECKING:
    from planner.anytime import Anytime
    from planner.lifetimes import Bools

__all__ = ["bound_and_search"]


def bound_and_search(session: Anytime, choice: Bools | None) -> None:
    """Improve plan and bound of a session in turn.

    Parameters
    ----------
    session : Anytime
    choice : (n_gaps,) bool, optional
        A choice of gaps that fits; without one only the bound is worked on.
    """
    problem, best = session.problem, session.best
    data, gaps = schedule_input(problem), gaps_of(problem)
    fluid = Fluid(problem) if supports(problem) is None and len(gaps) and gaps.n_ops else None
    growing = fluid is not None
    steps, burst, seed = 400, 1.0, session.seed
    while not session.is_done():
        if fluid is not None and growing:
            best.enter(f"fluid bound, {len(fluid.points)} points")
            limit = 600.0 if session.reproducible else min(session.left, max(2.0, 0.3 * session.left))
            best.raise_bound(fluid.solve(limit, goal_ns=best.makespan), f"fluid, {len(fluid.points)} points")
            if session.is_done():
                return
            if choice is None:
                growing = fluid.refine() and len(fluid.points) <= 600
                continue
            for threshold in (0.1, 0.3, 0.5, 0.7, 0.9):
                guided = greedy_choice(problem, (fluid.absent > threshold) & gaps.free)
                if guided is not None:
                    choice = _better(session, choice, guided)
            growing = fluid.refine() and not (session.reproducible and len(fluid.points) > 600)
        if session.is_done() or choice is None:
            return
        best.enter("local search")
        goal = int((best.bound or 0) * (1 + session.gap))
        seconds = None if session.reproducible else min(session.left, burst)
        _, _, choice = improve(data, choice, seconds=seconds, steps=steps if session.reproducible else 10**7,
                               seed=seed, goal_ns=goal, stop=lambda _: session.left <= 0)
        _, _, _, code = schedule(data, choice)
        best.offer(decode(problem, code, choice), "search")
        seed += 1
        burst *= 1.6
        steps *= 2
        if session.reproducible and steps > 7000:
            return


def _better(session: Anytime, held: Bools, new: Bools) -> Bools:
    """Return the better of two choices, offering the new plan if it is."""
    data = schedule_input(session.problem)
    a, b = schedule(data, held), schedule(data, new)
    if b[0] < 0 or (a[0], a[1]) <= (b[0], b[1]):
        return held
    session.best.offer(decode(session.problem, b[3], new), "fluid-guided")
    return np.asarray(new)
