"""Solve the segment formulation (`planner.exact.segments_model`) with CP-SAT.

The makespan is minimised first (`planner.exact.rounds`); ties then go to fewest bytes moved and to the least device
peak, each by a solve with the earlier values fixed. Every program passes the checker and the replay before it is
reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, isfinite
from typing import Any

import ortools
from ortools.sat.python import cp_model

from planner.errors import SolverError
from planner.exact.extract import program_of
from planner.exact.formulation import Best, Outcome, Round
from planner.exact.order_cpsat import to_cpsat
from planner.exact.order_model import build_order, read_order
from planner.exact.result import ExactResult, OnProgress
from planner.exact.rounds import solve_in_rounds
from planner.exact.scaling import SUM_LIMIT
from planner.exact.segments import SegmentModel
from planner.exact.segments_hint import add_hint
from planner.exact.segments_model import build, restrictions
from planner.exact.slots import Slots
from planner.exact.trust import certifies, harden
from planner.problem import Problem
from planner.program import Copy, Drop, Instruction, Program, Run

__all__ = ["MODEL_LIMIT", "solve_cpsat"]

#: Estimated Booleans above which no model is built.
MODEL_LIMIT = 400_000


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
        One worker and limits on deterministic time: the same input gives the same program.
    on_progress : callable, optional
        Called with each better checked program and each better bound.

    Returns
    -------
    ExactResult
        ``infeasible`` and ``optimal`` only if proved for every program, as is the bound.

    Raises
    ------
    SolverError
        The solver's program does not pass the checker, or the solver contradicts a checked program.
    """
    return solve_in_rounds(
        problem, _CpSat(problem, seed, workers, time_limit if deterministic else None), hint=hint,
        upper_bound_ns=upper_bound_ns, lower_bound_ns=lower_bound_ns, time_limit=time_limit, on_progress=on_progress,
    )


@dataclass(eq=False)
class _CpSat:
    """See `planner.exact.formulation.Formulation`; ``steady`` is the deterministic time of a round, if asked for."""

    problem: Problem
    seed: int
    workers: int
    steady: float | None
    name: str = f"CP-SAT (ortools {ortools.__version__})"
    size_limit: int = SUM_LIMIT
    has_literal: bool = True

    def trusted(self) -> bool:
        return certifies()

    def leaves_out(self, counted: Slots) -> bool:
        return bool(restrictions(self.problem, counted))

    def refuses(self, ask: Round) -> str:
        size = estimate(self.problem, ask.slots)
        if size <= MODEL_LIMIT:
            return ""
        return f"the segment model would have about {size} Booleans, more than the limit of {MODEL_LIMIT}"

    def _solver(self, seconds: float) -> cp_model.CpSolver:
        solver = cp_model.CpSolver()
        harden(solver)
        solver.parameters.random_seed = self.seed
        solver.parameters.num_workers = self.workers if self.steady is None else 1
        if self.steady is None:
            solver.parameters.max_time_in_seconds = seconds
        else:
            solver.parameters.max_deterministic_time = self.steady
        return solver

    def solve(self, ask: Round, best: Best) -> Outcome:
        m = build(self.problem, ask.scaled, ask.slots, ask.horizon, ask.lower, relaxed=ask.relaxed)
        if best.program is not None:
            add_hint(m, best.program)
        solver = self._solver(ask.seconds)
        unit = ask.scaled.time_unit
        failures: list[SolverError] = []

        class Callback(cp_model.CpSolverSolutionCallback):
            def on_solution_callback(self) -> None:
                try:
                    best.offer(read(m, self.value), self.value(m.makespan) * unit)
                except SolverError as error:
                    failures.append(error)
                    self.stop_search()

        if ask.certify:
            solver.best_bound_callback = lambda bound: best.raise_bound(round(bound) * unit)
        status = solver.solve(m.model, None if ask.relaxed else Callback())
        if failures:
            raise failures[0]
        if status == cp_model.MODEL_INVALID:
            raise SolverError(f"{self.name} refuses the model: {m.model.validate()}")
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) and not ask.relaxed:
            best.offer(read(m, solver.value), solver.value(m.makespan) * unit)
        infeasible = status == cp_model.INFEASIBLE
        size = f"{len(m.model.proto.variables)} variables, {ask.slots.total} slots"
        words = f"{solver.status_name(status)} ({size}, {solver.wall_time:.2f} s)"
        return Outcome(infeasible, _bound(solver, ask), words)

    def solve_literally(self, ask: Round, best: Best) -> Outcome:
        m = build_order(self.problem, ask.scaled, ask.slots, ask.horizon, ask.lower, relaxed=ask.relaxed)
        model, x = to_cpsat(m.linear)
        solver = self._solver(ask.seconds)
        status = solver.solve(model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) and not ask.relaxed:
            values = tuple(float(solver.value(v)) for v in x)
            best.offer(read_order(m, values), solver.value(x[m.makespan]) * ask.scaled.time_unit)
        infeasible = status == cp_model.INFEASIBLE
        size = f"{len(x)} variables"
        words = f"{solver.status_name(status)} ({size}, {solver.wall_time:.2f} s)"
        return Outcome(infeasible, _bound(solver, ask), words)

    def break_ties(self, ask: Round, best: Best) -> bool:
        deadline = time.monotonic() + ask.seconds
        m = build(self.problem, ask.scaled, ask.slots, ask.horizon, ask.lower)
        assert best.program is not None
        add_hint(m, best.program)
        copies = m.all_copies()
        sizes = [self.problem.lowered.tensor[c.tensor].size for c in copies]
        step = gcd(*sizes) or 1
        if sum(sizes) // step > SUM_LIMIT or m.device_capacity is None:
            return False
        moved = sum((size // step) * c.present for size, c in zip(sizes, copies, strict=True) if size)
        for goal in ([moved] if any(sizes) else []) + [m.device_capacity]:
            m.model.minimize(goal)
            solver = self._solver(max(0.01, deadline - time.monotonic()))
            status = solver.solve(m.model)
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                return False
            best.replace(read(m, solver.value))
            if status != cp_model.OPTIMAL:
                return False
            m.model.add(goal == round(solver.objective_value))
            m.model.clear_hints()
            for i in range(len(m.model.proto.variables)):
                var = m.model.get_int_var_from_proto_index(i)
                m.model.add_hint(var, solver.value(var))
        return True


def _bound(solver: cp_model.CpSolver, ask: Round) -> int:
    """Return the solver's bound, units; it may not have got as far as having one."""
    bound = solver.best_objective_bound
    return max(ask.lower, min(ask.horizon, round(bound))) if isfinite(bound) else ask.lower


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
