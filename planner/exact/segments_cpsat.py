"""Solve the segment formulation (`planner.exact.segments_model`) with CP-SAT.

Rounds: the makespan first; then, if it is proved and time is left, fewest bytes moved, then least device peak, each
with the earlier values fixed. Every program passes the checker and the replay before it is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import ortools
from ortools.sat.python import cp_model

from planner.errors import SolverError
from planner.exact.extract import program_of
from planner.exact.result import ExactResult, OnProgress
from planner.exact.scaling import SUM_LIMIT, Scaled, scale
from planner.exact.segments_hint import add_hint
from planner.exact.segments_model import SegmentModel, build, restrictions
from planner.exact.slots import Slots, slots, supports
from planner.exact.trust import certifies, harden
from planner.exact.verify import accepted, verify
from planner.plan import Status
from planner.problem import Problem
from planner.program import Copy, Drop, Instruction, Program, Run

__all__ = ["MODEL_LIMIT", "solve_cpsat"]

#: Estimated Booleans above which no model is built.
MODEL_LIMIT = 400_000
_NAME = f"CP-SAT (ortools {ortools.__version__})"


def solve_cpsat(
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
    """Find the fastest program and prove it, by CP-SAT on residency segments.

    Parameters
    ----------
    problem : Problem
    hint : Program, optional
        A known program; one that the checker rejects is ignored.
    upper_bound_ns : int, optional
        Look only for programs with at most this makespan, ns.
    lower_bound_ns : int
        A proved bound, ns.
    time_limit : float
        Seconds.
    seed, workers : int
    deterministic : bool
        One worker and a limit on deterministic time: the same input gives the same program.
    on_progress : callable, optional
        Called with each better checked program and each better bound.

    Returns
    -------
    ExactResult
        ``infeasible`` and ``optimal`` only from models without rounding; see ``scope_note`` for what they hold for.

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
    scaled = scale(problem)
    limit = min((v for v in (upper_bound_ns, best_ns) if v is not None), default=None)
    known = None if limit is None else limit // scaled.time_unit
    counted = slots(problem, scaled, known)
    horizon = _serial(scaled, counted)
    if known is not None:
        horizon = min(horizon, known)
    size = estimate(problem, counted)
    if size > MODEL_LIMIT:
        return ExactResult(
            Status.FEASIBLE if best else Status.UNKNOWN, best, lower_bound_ns or None,
            f"the segment model would have about {size} Booleans, more than the limit of {MODEL_LIMIT}",
        )
    lower = -(-lower_bound_ns // scaled.time_unit)
    if horizon < lower:
        return ExactResult(
            Status.FEASIBLE if best else Status.UNKNOWN, best, lower_bound_ns,
            f"the bound of {lower_bound_ns} ns leaves nothing to look for below the limit",
        )
    def solve_round(relaxed: bool, horizon: int, lower: int) -> tuple[_Solve, Any]:
        m = build(problem, scaled, counted, horizon, lower, relaxed=relaxed)
        run = _Solve(problem, m, began + time_limit, seed, workers, deterministic, on_progress, best, best_ns)
        run.told_bound = lower_bound_ns or None
        if best is not None:
            add_hint(m, best)
        return run, run.minimise_makespan()

    run, status = solve_round(False, horizon, lower)
    message = f"{_NAME}: {run.solver.status_name(status)}; {run.size()}; {run.solver.wall_time:.2f} s"
    if status == cp_model.MODEL_INVALID:
        raise SolverError(f"{_NAME} refuses the model: {run.m.model.validate()}")
    trusted = scaled.exact and certifies()
    note = "; ".join(counted.restrictions)
    proof = trusted and not note
    infeasible = status == cp_model.INFEASIBLE
    if infeasible and best is not None and proof and not restrictions(problem, counted):
        raise SolverError(f"solver disagreement: {_NAME} says infeasible, the checker accepts {best_ns} ns")
    bound = None if infeasible else run.bound_ns
    if restrictions(problem, counted) and trusted:
        ceiling = horizon if run.best_ns is None else run.best_ns // scaled.time_unit
        loose, loose_status = solve_round(True, ceiling, lower)
        message += f"; relaxed: {loose.solver.status_name(loose_status)}; {loose.solver.wall_time:.2f} s"
        if loose_status == cp_model.INFEASIBLE and run.best is not None:
            raise SolverError(f"solver disagreement: {_NAME} finds a program, and nothing without its rules")
        infeasible = loose_status == cp_model.INFEASIBLE
        bound = None if infeasible else loose.bound_ns
    if infeasible and run.best is None and limit is None:
        return ExactResult(Status.INFEASIBLE if proof else Status.UNKNOWN, message=message, scope_note=note)
    if infeasible and run.best is None and limit is not None:
        bound, message = limit + 1, f"{message}; within the limit of {limit} ns"
    bound_ns = max(bound or 0, lower_bound_ns) if trusted else lower_bound_ns
    if run.best is None:
        return ExactResult(Status.UNKNOWN, None, bound_ns or None, message, note)
    if not proof or run.best_ns != bound_ns:
        return ExactResult(Status.FEASIBLE, run.best, bound_ns, message, note)
    ties = status == cp_model.OPTIMAL and run.break_ties() and not restrictions(problem, counted)
    return ExactResult(Status.OPTIMAL, run.best, bound_ns, message, ties_proved=ties)


def estimate(problem: Problem, counted: Slots) -> int:
    """Return about how many Booleans the model would have: each use may be served by each segment of its tensor."""
    low, device = problem.lowered, problem.machine.device.name
    made = {(w, device): counted.runs[op.name] for op in low.ops for w in op.writes}
    for t in low.tensors:
        for tier in problem.machine.tier if t.home == "any" else t.home:
            made[t.name, tier] = made.get((t.name, tier), 0) + 1
    for (tensor, _, dst), n in counted.copies.items():
        made[tensor, dst] = made.get((tensor, dst), 0) + n
    total = sum(counted.runs[op.name] * made.get((n, device), 0) for op in low.ops for n in op.reads)
    return total + sum(n * made.get((tensor, src), 0) for (tensor, src, _), n in counted.copies.items())


def _serial(scaled: Scaled, counted: Slots) -> int:
    runs = sum(n * scaled.run[name] for name, n in counted.runs.items())
    return runs + sum(n * scaled.copy[key] for key, n in counted.copies.items())


@dataclass(eq=False)
class _Solve:
    """One model, solved in rounds."""

    problem: Problem
    m: SegmentModel
    deadline: float
    seed: int
    workers: int
    deterministic: bool
    on_progress: OnProgress | None
    best: Program | None
    best_ns: int | None
    told_bound: int | None = None
    bound_ns: int = 0
    solver: cp_model.CpSolver = field(default_factory=cp_model.CpSolver)

    def size(self) -> str:
        """Return the size of the model in words."""
        return f"{len(self.m.model.proto.variables)} variables, {self.m.slots.total} slots"

    def run(self, callback: cp_model.CpSolverSolutionCallback | None = None) -> Any:
        self.solver = solver = cp_model.CpSolver()
        harden(solver)
        left = max(0.01, self.deadline - time.monotonic())
        solver.parameters.random_seed = self.seed
        solver.parameters.num_workers = 1 if self.deterministic else self.workers
        if self.deterministic:
            solver.parameters.max_deterministic_time = left
        solver.parameters.max_time_in_seconds = left * (10 if self.deterministic else 1)
        return solver.solve(self.m.model, callback)

    def minimise_makespan(self) -> Any:
        unit = self.m.scaled.time_unit
        failures: list[SolverError] = []

        def found(value: Callable[[Any], int]) -> None:
            if self.m.relaxed:
                return
            program = read(self.m, value)
            claimed = value(self.m.makespan) * unit
            makespan = verify(self.problem, program, claimed, _NAME)
            if self.best_ns is None or makespan < self.best_ns:
                self.best, self.best_ns = program, makespan
                if self.on_progress is not None:
                    self.on_progress(program, self.told_bound)

        class Callback(cp_model.CpSolverSolutionCallback):
            def on_solution_callback(self) -> None:
                try:
                    found(self.value)
                except SolverError as error:
                    failures.append(error)
                    self.stop_search()

        status = self.run(Callback())
        if failures:
            raise failures[0]
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            found(self.solver.value)
        if status != cp_model.INFEASIBLE:
            self.bound_ns = max(0, round(self.solver.best_objective_bound)) * unit
        return status

    def break_ties(self) -> bool:
        """Fewest bytes moved, then least device peak, among programs of the proved makespan."""
        model, m = self.m.model, self.m
        copies = m.all_copies()
        sizes = [self.problem.lowered.tensor[c.tensor].size for c in copies]
        step = gcd(*sizes) or 1
        if sum(sizes) // step > SUM_LIMIT:
            return False
        model.add(m.makespan == self.solver.value(m.makespan))
        moved = sum((size // step) * c.present for size, c in zip(sizes, copies, strict=True) if size)
        goals = [moved] if any(sizes) else []
        if m.device_capacity is not None:
            goals.append(m.device_capacity)
        for goal in goals:
            if time.monotonic() >= self.deadline:
                return False
            model.clear_hints()
            for i in range(len(model.proto.variables)):
                var = model.get_int_var_from_proto_index(i)
                model.add_hint(var, self.solver.value(var))
            model.minimize(goal)
            last = self.solver
            status = self.run()
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                self.solver = last
                return False
            assert self.best_ns is not None
            program = read(m, self.solver.value)
            if verify(self.problem, program, self.best_ns, _NAME) == self.best_ns:
                self.best = program
            if status != cp_model.OPTIMAL:
                return False
            model.add(goal == round(self.solver.objective_value))
        return m.device_capacity is not None


def read(m: SegmentModel, value: Callable[[Any], int]) -> Program:
    """Return the program of a solution."""
    timed: list[tuple[int, Instruction]] = []
    start: dict[str, str] = {}
    for group in m.runs.values():
        timed += [(value(r.start), Run(r.op)) for r in group if value(r.present)]
    timed += [(value(c.start), Copy(c.tensor, c.src, c.dst)) for c in m.all_copies() if value(c.present)]
    for s in m.all_segments():
        if value(s.present):
            if s.creator is None and m.problem.lowered.tensor[s.tensor].home == "any":
                start[s.tensor] = s.tier
            if value(s.drop) < m.end:
                timed.append((value(s.drop), Drop(s.tensor, s.tier)))
    return program_of(m.problem, timed, start)
