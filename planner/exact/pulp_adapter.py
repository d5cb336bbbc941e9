"""The one module that knows PuLP: a `Linear` model in, a normalised outcome out.

Uses only what PuLP 3.3 and 4 share. PuLP's own status says Optimal for a run that was stopped with a solution, so the
outcome is read from HiGHS itself: its model status and its dual bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from math import isfinite
from typing import Any

import highspy
import pulp

from planner.errors import SolverError
from planner.exact.linear import Linear

__all__ = ["MilpOutcome", "MilpStatus", "minimise", "versions"]


class MilpStatus(StrEnum):
    """What HiGHS proved."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MilpOutcome:
    """Outcome of one run.

    Attributes
    ----------
    status : MilpStatus
        ``optimal`` and ``infeasible`` up to the solver's tolerances.
    values : tuple of float, optional
        One per variable; None without a solution.
    bound : float, optional
        Lower bound on the objective, in floating point.
    message : str
        The solver's own words.
    """

    status: MilpStatus
    values: tuple[float, ...] | None
    bound: float | None
    message: str


def versions() -> str:
    """Return solver and versions in words."""
    return f"HiGHS {metadata.version('highspy')} (PuLP {pulp.__version__})"


def minimise(linear: Linear, *, time_limit: float, seed: int = 0, threads: int = 1) -> MilpOutcome:
    """Minimise a model with HiGHS.

    Parameters
    ----------
    linear : Linear
    time_limit : float
        Seconds.
    seed, threads : int

    Raises
    ------
    SolverError
        PuLP cannot find or run HiGHS.
    """
    problem = pulp.LpProblem("planner", pulp.LpMinimize)
    x = [
        problem.add_variable(f"x{i}", lowBound=low, upBound=high, cat="Integer" if whole else "Continuous")
        for i, (low, high, whole) in enumerate(zip(linear.low, linear.high, linear.integer, strict=True))
    ]
    problem += pulp.lpSum(a * x[i] for i, a in linear.objective.items())
    for row, right in linear.flat_rows():
        problem += pulp.lpSum(a * x[i] for i, a in row.items()) >= right
    solver = pulp.getSolver(
        "HiGHS", msg=False, timeLimit=max(0.01, time_limit), threads=threads, gapRel=0.0, gapAbs=1e-6,
        random_seed=seed, mip_feasibility_tolerance=1e-7, primal_feasibility_tolerance=1e-8,
    )
    # HiGHS keeps one pool of threads a process and fails where a later run asks for another number.
    highspy.Highs.resetGlobalScheduler(True)
    try:
        problem.solve(solver)
    except pulp.PulpError as error:
        raise SolverError(f"PuLP could not run HiGHS: {error}") from error
    return _outcome(problem.solverModel, x, linear)


def _outcome(highs: Any, x: list[Any], linear: Linear) -> MilpOutcome:
    state, info = highs.getModelStatus(), highs.getInfo()
    words = highs.modelStatusToString(state)
    # 2 is kSolutionStatusFeasible: the column values are a solution, whatever stopped the run.
    values: tuple[float, ...] | None = None
    if info.primal_solution_status == 2:
        # A variable in no row has no value; any within its bounds will do.
        values = tuple(
            float(low) if v.varValue is None else float(v.varValue) for v, low in zip(x, linear.low, strict=True)
        )
    kinds = highspy.HighsModelStatus
    if state in (kinds.kOptimal, kinds.kModelEmpty):
        status = MilpStatus.OPTIMAL
    elif state == kinds.kInfeasible:
        status, values = MilpStatus.INFEASIBLE, None
    elif state in (kinds.kTimeLimit, kinds.kIterationLimit, kinds.kInterrupt, kinds.kSolutionLimit):
        status = MilpStatus.STOPPED
    else:
        status, values = MilpStatus.FAILED, None
    bound = info.mip_dual_bound
    return MilpOutcome(status, values, float(bound) if isfinite(bound) else None, words)
