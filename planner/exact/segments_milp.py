"""Solve the order formulation (`planner.exact.order_model`) with HiGHS through PuLP.

The solver works in floating point, so nothing it says is taken at its word. A solution is rounded, turned into a list,
checked and replayed in exact integers. Its bound is on a whole number of units: with coefficients and values below 10^6
(else no bound is reported) a slack of 1e-5 per unit of the bound is far above the solver's tolerances (1e-7 on
integrality and rows), so ⌈bound − 1e-5·max(1, bound)⌉ is taken. An optimum needs that figure to equal the replay.
"""

from __future__ import annotations

import time
from math import ceil

from planner.errors import SolverError
from planner.exact.extract import tidy
from planner.exact.order_model import OrderModel, build_order
from planner.exact.pulp_adapter import MilpOutcome, MilpStatus, minimise, versions
from planner.exact.result import ExactResult, OnProgress
from planner.exact.scaling import scale
from planner.exact.slots import slots, supports
from planner.exact.verify import accepted, verify
from planner.plan import Status
from planner.problem import Problem
from planner.program import Copy, Drop, Instruction, Program, Run

__all__ = ["MODEL_LIMIT", "read_order", "solve_milp"]

#: Pairs of slots above which no model is built.
MODEL_LIMIT = 20_000
#: Largest number, in units, that the floating-point solver is trusted with.
_NUMBER_LIMIT = 10**6


def solve_milp(
    problem: Problem,
    *,
    hint: Program | None = None,
    upper_bound_ns: int | None = None,
    lower_bound_ns: int = 0,
    time_limit: float,
    seed: int = 0,
    workers: int = 8,
    deterministic: bool = False,
    on_progress: OnProgress | None = None,
) -> ExactResult:
    """Find the fastest program and prove it, by a MILP on the list order. Parameters as of `solve_cpsat`.

    The hint serves as a bound from above; HiGHS runs deterministically for a given seed, so ``deterministic`` only
    limits it to one thread.

    Raises
    ------
    SolverError
        The solver's program does not pass the checker, or the solver contradicts the hint.
    """
    began = time.monotonic()
    reason = supports(problem)
    if reason is not None:
        return ExactResult(Status.UNKNOWN, message=f"not expressible: {reason}")
    best, best_ns = hint, accepted(problem, hint)
    if best_ns is None:
        best = None
    scaled = scale(problem, limit=_NUMBER_LIMIT)
    limit = min((v for v in (upper_bound_ns, best_ns) if v is not None), default=None)
    known = None if limit is None else limit // scaled.time_unit
    counted = slots(problem, scaled, known)
    horizon = sum(n * scaled.run[name] for name, n in counted.runs.items())
    horizon += sum(n * scaled.copy[key] for key, n in counted.copies.items())
    horizon = horizon if known is None else min(horizon, known)
    lower = -(-lower_bound_ns // scaled.time_unit)
    pairs = counted.total**2
    refused = ""
    if pairs > MODEL_LIMIT:
        refused = f"the order model would have about {pairs} pairs of slots, more than the limit of {MODEL_LIMIT}"
    elif horizon > _NUMBER_LIMIT:
        refused = f"a horizon of {horizon} units is too fine for a floating-point solver"
    elif horizon < lower:
        refused = f"the bound of {lower_bound_ns} ns leaves nothing to look for below the limit"
    if refused:
        return ExactResult(Status.FEASIBLE if best else Status.UNKNOWN, best, lower_bound_ns or None, refused)

    def solve_round(relaxed: bool, horizon: int, lower: int) -> tuple[OrderModel, MilpOutcome]:
        m = build_order(problem, scaled, counted, horizon, lower, relaxed=relaxed)
        left = began + time_limit - time.monotonic()
        return m, minimise(m.linear, time_limit=left, seed=seed, threads=1 if deterministic else max(1, workers))

    m, outcome = solve_round(False, horizon, lower)
    name = versions()
    message = f"{name}: {outcome.message}; {len(m.linear.low)} variables, {len(m.linear.rows)} rows"
    if outcome.values is not None:
        program = read_order(m, outcome.values)
        units = round(outcome.values[m.makespan])
        makespan = verify(problem, program, units * scaled.time_unit, name)
        if best_ns is None or makespan < best_ns:
            best, best_ns = program, makespan
            if on_progress is not None:
                on_progress(best, lower_bound_ns or None)
    infeasible = outcome.status is MilpStatus.INFEASIBLE
    note = "; ".join(counted.restrictions)
    loose_runs = any(counted.runs[op.name] > 1 and len(op.writes) > 1 for op in problem.lowered.ops)
    if infeasible and best is not None and scaled.exact and not note and not loose_runs:
        raise SolverError(f"solver disagreement: {name} says infeasible, the checker accepts {best_ns} ns")
    bound = _whole(outcome.bound)
    if loose_runs:
        ceiling = horizon if best_ns is None else best_ns // scaled.time_unit
        _, outcome = solve_round(True, ceiling, lower)
        message += f"; relaxed: {outcome.message}"
        infeasible = outcome.status is MilpStatus.INFEASIBLE
        if infeasible and best is not None:
            raise SolverError(f"solver disagreement: {name} finds a program, and nothing without its rules")
        bound = _whole(outcome.bound)
    proof = scaled.exact and not note
    if infeasible and best is None:
        if limit is None:
            return ExactResult(Status.INFEASIBLE if proof else Status.UNKNOWN, message=message, scope_note=note)
        bound, message = limit // scaled.time_unit + 1, f"{message}; within the limit of {limit} ns"
    bound_ns = max((bound or 0) * scaled.time_unit if scaled.exact else 0, lower_bound_ns)
    if best is None:
        return ExactResult(Status.UNKNOWN, None, bound_ns or None, message, note)
    if not proof or best_ns != bound_ns:
        return ExactResult(Status.FEASIBLE, best, bound_ns, message, note)
    return ExactResult(Status.OPTIMAL, best, bound_ns, message)


def _whole(bound: float | None) -> int:
    return 0 if bound is None else max(0, ceil(bound - 1e-5 * max(1.0, abs(bound))))


def read_order(m: OrderModel, values: tuple[float, ...]) -> Program:
    """Return the program of a solution: instructions by list position."""

    def holds(literal: tuple[int, bool]) -> bool:
        return (values[literal[0]] > 0.5) == literal[1]

    listed: list[tuple[float, int, Instruction]] = []
    start: dict[str, str] = {}
    for e in m.events:
        if holds(e.present):
            ins = Run(e.op.name) if e.op is not None else Copy(e.tensor, e.src, e.dst)
            listed.append((values[e.key], 1, ins))
    for s in m.all_stays:
        if holds(s.present):
            if s.creator is None and m.problem.lowered.tensor[s.tensor].home == "any":
                start[s.tensor] = s.tier
            if values[s.drop_key] < m.last + 0.5:
                listed.append((values[s.drop_key], 0, Drop(s.tensor, s.tier)))
    listed.sort(key=lambda row: (round(row[0], 4), row[1], repr(row[2])))
    return tidy(m.problem, Program(tuple(ins for *_, ins in listed), dict(sorted(start.items()))))
