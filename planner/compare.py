"""Several methods on one problem, each checked, against the best certified bound of all.

A method's own bound is often weak or missing; the gap in a row is (makespan − bound) / bound with the largest bound
that any method proved for the whole problem. A plan that the checker rejects is shown as invalid rather than left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.comparison import Comparison, Row
from planner.errors import Fault, InputError, InvalidPlanError, SolverError

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.plan import Plan
    from planner.problem import Problem
    from planner.progress import ProgressEvent

__all__ = ["Comparison", "Row", "compare"]


def compare(
    problem: Problem,
    methods: Sequence[str] | None = None,
    time_limit: float = 60,
    *,
    gap: float = 0.0,
    seed: int = 0,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Comparison:
    """Run several methods on one problem.

    Parameters
    ----------
    problem : Problem
    methods : sequence of str, optional
        Names known to `planner.solve`; by default every heuristic, then ``"auto"``.
    time_limit : float
        Seconds for each method.
    gap : float
        Certified gap at which an exact method may stop.
    seed : int
    progress : callable, optional
        Called with each `ProgressEvent`.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        A method is unknown or named twice.
    """
    from planner.heuristics.registry import available
    from planner.solve import METHODS

    names = [*available(), "auto"] if methods is None else list(methods)
    _check_names(names, [*METHODS, *available()])
    found = [_run(problem, name, time_limit, gap, seed, progress) for name in names]
    bounds = [
        (plan.lower_bound_ns, name)
        for name, plan, *_ in found
        if plan is not None and plan.lower_bound_ns is not None and _covers(plan, problem)
    ]
    bound, by = max(bounds, key=lambda pair: pair[0], default=(None, ""))
    rows = tuple(_row(name, plan, seconds, message, bound) for name, plan, seconds, message in found)
    return Comparison(rows, bound, by, problem.sha256, problem.machine.device.name)


def _check_names(names: list[str], known: list[str]) -> None:
    faults = [
        Fault("methods", f"unknown method {name!r}; known are {', '.join(known)}")
        for name in names
        if name not in known
    ]
    faults += [Fault("methods", f"{name!r} is named twice") for name in dict.fromkeys(names) if names.count(name) > 1]
    if not names:
        faults.append(Fault("methods", "none is named"))
    if faults:
        raise InputError(faults)


def _run(
    problem: Problem,
    method: str,
    time_limit: float,
    gap: float,
    seed: int,
    progress: Callable[[ProgressEvent], None] | None,
) -> tuple[str, Plan | None, float, str]:
    from planner.solve import solve

    began = time.perf_counter()
    try:
        plan = solve(problem, method=method, time_limit=time_limit, gap=gap, seed=seed, progress=progress)
    except InvalidPlanError as error:
        return method, None, time.perf_counter() - began, f"invalid: {error}"
    except SolverError as error:
        return method, None, time.perf_counter() - began, str(error)
    return method, plan, time.perf_counter() - began, plan.message


def _row(method: str, plan: Plan | None, seconds: float, message: str, bound: int | None) -> Row:
    from planner.check import check
    from planner.plan import Status, gap_of

    if plan is None:
        return Row(
            method,
            "invalid" if message.startswith("invalid") else str(Status.UNKNOWN),
            None,
            None,
            {},
            {},
            seconds,
            False,
            message,
        )
    if plan.program is None:
        return Row(method, str(plan.status), None, None, {}, {}, seconds, False, message)
    report = check(plan.problem, plan.program)
    if not report.valid:
        return Row(
            method,
            str(plan.status),
            plan.makespan_ns,
            None,
            plan.peak_bytes,
            plan.moved_bytes,
            seconds,
            False,
            f"invalid: {report.violations[0].message}",
        )
    # A makespan that meets the bound of another method is proved by it.
    met = plan.problem.objective.kind == "makespan" and plan.makespan_ns == bound
    return Row(
        method,
        str(Status.OPTIMAL if met else plan.status),
        plan.makespan_ns,
        gap_of(plan.makespan_ns, bound),
        plan.peak_bytes,
        plan.moved_bytes,
        seconds,
        True,
        message,
    )


def _covers(plan: Plan, problem: Problem) -> bool:
    """Does the plan's bound hold for every plan that the problem allows?"""
    scope, rules = plan.scope, problem.rules
    return (
        (scope.order == "free" or not rules.reorder)
        and (scope.recompute or not rules.recompute)
        and (scope.split or not rules.split)
        and set(scope.tiers) >= set(problem.machine.tier)
    )
