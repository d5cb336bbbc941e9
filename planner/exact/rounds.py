"""The rounds of an exact solve, the same for every formulation.

1. *Is there any program?* `planner.exact.reach`, where no hint is given: a first program, or a proof of infeasibility.
2. *Find.* The formulation with slots that are enough in most cases.
3. *Complete the slots*, where round 2 had fewer than a proof needs, since a lower tier can be full. A bound with lower
   tiers that never fill often settles it; else only programs faster than the best one are looked for, so there are no
   more copies than fit into that time.
4. *Relax*, where the formulation leaves legal programs out: its relaxation has them all, and gives a bound. If that
   stays below the best program, the formulation of the list itself, relaxed, may give a better one; and it may find a
   program that the first leaves out.
5. *Ties*, if the optimum is proved and time is left.

Only rounds that hold for every program raise the bound, so a result needs no ``scope_note``.

Sizes that do not scale exactly: round 2 uses sizes rounded up, and a bound comes from a relaxed round with sizes
rounded down, never from round 2.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.errors import SolverError
from planner.exact.formulation import Best, Formulation, Outcome, Round
from planner.exact.reach import reach
from planner.exact.result import ExactResult, OnProgress
from planner.exact.scaling import Scaled, scale
from planner.exact.slots import Slots, impossible, slots, supports
from planner.exact.verify import accepted
from planner.plan import Status

if TYPE_CHECKING:
    from planner.problem import Problem
    from planner.program import Program

__all__ = ["solve_in_rounds"]


def solve_in_rounds(
    problem: Problem, formulation: Formulation, *, hint: Program | None, upper_bound_ns: int | None,
    lower_bound_ns: int, time_limit: float, on_progress: OnProgress | None,
) -> ExactResult:
    """Run the rounds. Parameters and errors as of `planner.exact.segments_cpsat.solve_cpsat`."""
    deadline = time.monotonic() + time_limit
    reason = supports(problem)
    if reason is not None:
        return ExactResult(Status.UNKNOWN, message=f"not expressible: {reason}")
    reason = impossible(problem)
    if reason is not None:
        return ExactResult(Status.INFEASIBLE, message=reason)
    best = Best(problem, formulation.name, on_progress, lower_bound_ns)
    said: list[str] = []
    given = accepted(problem, hint)
    if hint is not None and given is not None:
        best.program, best.ns = hint, given
    elif _no_program(problem, best, said):
        return ExactResult(Status.INFEASIBLE, message=said[0])
    return _Rounds(problem, formulation, best, deadline, upper_bound_ns, said).run()


def _no_program(problem: Problem, best: Best, said: list[str]) -> bool:
    loose = scale(problem, for_bound=True)
    reached = reach(problem, loose)
    if reached.infeasible:
        said.append(f"no program exists: all {reached.states} states of what can be where were searched")
        return True
    makespan = accepted(problem, reached.program)
    if reached.program is not None and makespan is not None:
        best.take(reached.program, makespan)
    elif reached.program is not None and loose.exact:
        raise SolverError("the search without time found a program that the checker rejects")
    return False


@dataclass(eq=False)
class _Rounds:
    problem: Problem
    formulation: Formulation
    best: Best
    deadline: float
    upper_bound_ns: int | None
    said: list[str]
    infeasible: bool = False

    def run(self) -> ExactResult:
        best, formulation = self.best, self.formulation
        plan = scale(self.problem, limit=formulation.size_limit)
        first = slots(self.problem, plan, self._horizon(plan), full=False)
        exact = formulation.trusted() and plan.exact
        whole = exact and not first.restrictions and not formulation.leaves_out(first)
        if not formulation.trusted():
            self.said.append("this build certifies wrong optima, so nothing is claimed")
        if not best.proved():
            outcome = self._round(plan, first, relaxed=False, certify=whole, share=1.0 if whole else 0.5, below=False)
            if outcome is not None:
                self._conclude(outcome, plan, whole, below=False)
        if not best.proved() and not whole and formulation.trusted():
            self._complete(plan, bool(first.restrictions))
        return self._result(plan, first, whole)

    def _complete(self, plan: Scaled, restricted: bool) -> None:
        """Rounds 3 and 4."""
        best, formulation = self.best, self.formulation
        self._unfill(plan)
        if best.proved():
            return
        counted = slots(self.problem, plan, self._horizon(plan, below=True), full=True)
        left_out = formulation.leaves_out(counted)
        if plan.exact and (restricted or not left_out):  # there may be fewer slots, below the best, than at first
            certain = not left_out and not counted.restrictions
            share = 0.5 if left_out else 1.0
            outcome = self._round(plan, counted, relaxed=False, certify=certain, share=share, below=True)
            if outcome is not None:
                self._conclude(outcome, plan, certain, below=True)
        if best.proved() or (plan.exact and not left_out):
            return
        loose = plan if plan.exact else scale(self.problem, for_bound=True, limit=formulation.size_limit)
        counted = slots(self.problem, loose, self._horizon(loose, below=True), full=True)
        certain = not counted.restrictions
        outcome = self._round(loose, counted, relaxed=True, certify=certain, share=1.0, below=True)
        if outcome is not None:
            self._conclude(outcome, loose, certain, below=True)
        if plan.exact and formulation.has_literal and not best.proved():
            outcome = self._round(plan, counted, relaxed=True, certify=False, share=0.5, below=True, literal=True)
            if outcome is not None:
                self._conclude(outcome, plan, certain, below=True)
            if not best.proved():
                self._round(plan, counted, relaxed=False, certify=False, share=1.0, below=True, literal=True)

    def _unfill(self, plan: Scaled) -> None:
        """Raise the bound by the relaxation in which lower tiers never fill, if they can: it needs few slots."""
        base = plan if plan.exact else scale(self.problem, for_bound=True, limit=self.formulation.size_limit)
        device = self.problem.machine.device.name
        if not self.formulation.trusted() or all(c is None for k, c in base.capacity.items() if k != device):
            return
        loose = replace(base, capacity={k: c if k == device else None for k, c in base.capacity.items()})
        counted = slots(self.problem, loose, self._horizon(loose, below=True), full=True)
        certain = not counted.restrictions
        outcome = self._round(loose, counted, relaxed=True, certify=certain, share=0.5, below=True)
        if outcome is not None:
            self._conclude(outcome, loose, certain, below=True)

    def _horizon(self, scaled: Scaled, below: bool = False) -> int | None:
        """Return the largest makespan to look at, units; with ``below`` only what is faster than the best program."""
        limits = [v for v in (self.upper_bound_ns,) if v is not None]
        if self.best.ns is not None:
            limits.append(self.best.ns - below)
        return min(limits) // scaled.time_unit if limits else None

    def _round(
        self, scaled: Scaled, counted: Slots, *, relaxed: bool, certify: bool, share: float, below: bool,
        literal: bool = False,
    ) -> Outcome | None:
        horizon = self._horizon(scaled, below)
        serial = sum(n * scaled.run[name] for name, n in counted.runs.items())
        serial += sum(n * scaled.copy[key] for key, n in counted.copies.items())
        horizon = serial if horizon is None else min(serial, horizon)
        lower = -(-self.best.bound_ns // scaled.time_unit)
        if horizon < lower:
            return Outcome(True, horizon + 1, "nothing between the bounds")
        seconds = (self.deadline - time.monotonic()) * share
        ask = Round(scaled, counted, lower, horizon, relaxed, max(0.01, seconds), certify)
        refused = self.formulation.refuses(ask)
        if refused or seconds <= 0:
            self.said.append(refused or "no time left for the proof")
            return None
        solve = self.formulation.solve_literally if literal else self.formulation.solve
        outcome = solve(ask, self.best)
        self.said.append(("literal, " if literal else "") + ("relaxed: " if relaxed else "") + outcome.message)
        return outcome

    def _conclude(self, outcome: Outcome, scaled: Scaled, certain: bool, *, below: bool) -> None:
        best = self.best
        if not certain:
            return
        if not outcome.infeasible:
            bound = outcome.bound * scaled.time_unit
            best.raise_bound(bound if best.ns is None else min(bound, best.ns))
        elif below and best.ns is not None:
            limit = best.ns if self.upper_bound_ns is None else min(best.ns, self.upper_bound_ns + 1)
            best.raise_bound(limit)
        elif best.ns is not None and (self.upper_bound_ns is None or best.ns <= self.upper_bound_ns):
            raise SolverError(
                f"solver disagreement: {self.formulation.name} says infeasible, the checker accepts {best.ns} ns"
            )
        elif self.upper_bound_ns is not None:
            best.raise_bound(self.upper_bound_ns + 1)
        else:
            self.infeasible = True

    def _result(self, plan: Scaled, first: Slots, whole: bool) -> ExactResult:
        best = self.best
        message = "; ".join([self.formulation.name, *self.said])
        bound = best.bound_ns or (0 if best.proved() else None)
        if best.ns is None:
            status = Status.INFEASIBLE if self.infeasible else Status.UNKNOWN
            return ExactResult(status, None, bound, message)
        if not best.proved():
            return ExactResult(Status.FEASIBLE, best.program, bound, message)
        ties = False
        left = self.deadline - time.monotonic()
        if left > 0 and plan.exact:
            units = best.ns // plan.time_unit
            ask = Round(plan, first, units, units, False, left, False)
            if not self.formulation.refuses(ask):
                ties = self.formulation.break_ties(ask, best) and whole
        return ExactResult(Status.OPTIMAL, best.program, best.ns, message, "", ties)
