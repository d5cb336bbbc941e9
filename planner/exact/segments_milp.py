"""Solve the order formulation (`planner.exact.order_model`) with HiGHS through PuLP.

The solver works in floating point, so nothing it says is taken at its word. A solution is rounded, turned into a list,
checked and replayed in exact integers. Its bound is on a whole number of units: with coefficients and values below 10^6
(else no bound is reported) a slack of 1e-5 per unit of the bound is far above the solver's tolerances (1e-7 on
integrality and rows), so ⌈bound − 1e-5·max(1, bound)⌉ is taken. An optimum needs that figure to equal the replay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from planner.exact.formulation import Best, Outcome, Round
from planner.exact.order_model import build_order, read_order
from planner.exact.pulp_adapter import MilpStatus, minimise, versions
from planner.exact.result import ExactResult, OnProgress
from planner.exact.rounds import solve_in_rounds
from planner.exact.slots import Slots
from planner.problem import Problem
from planner.program import Program

__all__ = ["MODEL_LIMIT", "solve_milp"]

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
    return solve_in_rounds(
        problem, _Milp(problem, seed, 1 if deterministic else max(1, workers)), hint=hint,
        upper_bound_ns=upper_bound_ns, lower_bound_ns=lower_bound_ns, time_limit=time_limit, on_progress=on_progress,
    )


@dataclass(eq=False)
class _Milp:
    """See `planner.exact.formulation.Formulation`."""

    problem: Problem
    seed: int
    threads: int
    name: str = field(default_factory=versions)
    size_limit: int = _NUMBER_LIMIT
    has_literal: bool = False

    def trusted(self) -> bool:
        return True  # what HiGHS says is checked and rounded outward, see above

    def leaves_out(self, counted: Slots) -> bool:
        """A rerun whose only use is to be left alone by a later rerun has no slot."""
        return any(counted.runs[op.name] > 1 and len(op.writes) > 1 for op in self.problem.lowered.ops)

    def refuses(self, ask: Round) -> str:
        pairs = ask.slots.total**2
        if pairs > MODEL_LIMIT:
            return f"the order model would have about {pairs} pairs of slots, more than the limit of {MODEL_LIMIT}"
        if ask.horizon > _NUMBER_LIMIT:
            return f"a horizon of {ask.horizon} units is too fine for a floating-point solver"
        return ""

    def solve(self, ask: Round, best: Best) -> Outcome:
        m = build_order(self.problem, ask.scaled, ask.slots, ask.horizon, ask.lower, relaxed=ask.relaxed)
        found = minimise(m.linear, time_limit=ask.seconds, seed=self.seed, threads=self.threads)
        if found.values is not None and not ask.relaxed:
            units = round(found.values[m.makespan])
            best.offer(read_order(m, found.values), units * ask.scaled.time_unit)
        infeasible = found.status is MilpStatus.INFEASIBLE
        size = f"{len(m.linear.low)} variables, {len(m.linear.rows)} rows"
        return Outcome(infeasible, max(ask.lower, _whole(found.bound)), f"{found.message} ({size})")

    def solve_literally(self, ask: Round, best: Best) -> Outcome:
        return self.solve(ask, best)  # this is that formulation

    def break_ties(self, ask: Round, best: Best) -> bool:  # noqa: ARG002
        return False  # CP-SAT does that faster


def _whole(bound: float | None) -> int:
    return 0 if bound is None else max(0, ceil(bound - 1e-5 * max(1.0, abs(bound))))
