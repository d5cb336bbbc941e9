"""The one door: a problem in, a checked plan with its claim out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.plan import Plan
    from planner.problem import Problem
    from planner.progress import ProgressEvent

__all__ = ["METHODS", "solve"]

#: Methods besides the heuristics of the registry.
METHODS = {
    "auto": "heuristics and bounds first; search and exact solvers until the gap is reached or time is up",
    "optimal": "auto with a gap of 0",
    "cpsat": "the exact CP-SAT formulation alone",
    "milp": "the exact MILP formulation alone (PuLP, HiGHS)",
}


def solve(
    problem: Problem,
    method: str = "auto",
    *,
    time_limit: float = 60.0,
    gap: float = 0.01,
    seed: int = 0,
    reproducible: bool = False,
    progress: Callable[[ProgressEvent], None] | None = None,
    on_plan: Callable[[Plan], None] | None = None,
    goal_ns: int = 0,
) -> Plan:
    """Plan a problem.

    Parameters
    ----------
    problem : Problem
    method : str
        One of `METHODS`, or a heuristic of `planner.heuristics.registry`.
    time_limit : float
        Seconds of wall clock; the best checked plan so far is returned when it is over.
    gap : float
        Certified gap at which to stop; 0 asks for a proof of optimality.
    seed : int
        Seed of random search.
    reproducible : bool
        Same problem, version and seed give the same plan: work is limited by steps instead of seconds, solvers use one
        worker. The time limit then only guards against a hanging solver.
    progress : callable, optional
        Called with a `planner.progress.ProgressEvent` now and then.
    on_plan : callable, optional
        Called with every better checked plan.
    goal_ns : int
        Stop, too, when a plan takes no longer than this, or is proved to take longer; 0 for none.

    Returns
    -------
    Plan
        ``infeasible`` and ``unknown`` are answers: a plan without a program, with the least budgets or the reason.

    Raises
    ------
    InputError
        Unknown method, or an option out of range.
    SolverError
        A bound and a checked plan contradict each other.
    """
    from planner.anytime import Anytime
    from planner.errors import Fault, InputError
    from planner.heuristics.registry import available

    faults = []
    known = [*METHODS, *available()]
    if method not in known:
        faults.append(Fault("method", f"{method!r} is not known; known are {', '.join(known)}"))
    if not (math.isfinite(time_limit) and time_limit > 0):
        faults.append(Fault("time_limit", f"{time_limit!r}: seconds above 0"))
    if not (math.isfinite(gap) and gap >= 0):
        faults.append(Fault("gap", f"{gap!r}: a fraction of at least 0"))
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
        faults.append(Fault("seed", f"{seed!r}: an integer from 0 to 2^31 − 1"))
    if faults:
        raise InputError(faults)
    return Anytime(problem, method, time_limit, gap, seed, reproducible, progress, on_plan, goal_ns).run()


def provenance(method: str, seed: int, reproducible: bool) -> dict[str, Any]:
    """Return what makes a run repeatable: versions, seed, mode and method."""
    from importlib.metadata import version

    from planner import __version__

    packages = ("highspy", "numba", "numpy", "ortools", "pulp")
    return {"planner": __version__, "method": method, "seed": seed, "mode": "reproducible" if reproducible else "free",
            "versions": {name: version(name) for name in packages}}
