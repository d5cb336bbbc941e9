"""The anytime solve: bounds and heuristics first, then search and exact solvers, certified at every moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from planner.bounds.simple import simple_bounds
from planner.errors import SolverError
from planner.incumbent import Incumbent
from planner.plan import BudgetNeed, Plan, Status, Witness
from planner.solve import METHODS, provenance

if TYPE_CHECKING:
    from planner.lifetimes import Bools
    from planner.problem import Problem
    from planner.program import Program
    from planner.progress import ProgressEvent

__all__ = ["Anytime"]

#: Problems up to this size go to an exact solver as soon as the heuristics and cheap bounds leave a gap.
_SMALL_OPS, _SMALL_TENSORS = 12, 40
_STEPS = 4000


class Anytime:
    """One solve. See `planner.solve.solve` for the parameters."""

    def __init__(
        self, problem: Problem, method: str, time_limit: float, gap: float, seed: int, reproducible: bool,
        progress: Callable[[ProgressEvent], None] | None, on_plan: Callable[[Plan], None] | None, goal_ns: int = 0,
    ) -> None:
        self.goal_ns, self.unreached = goal_ns, 0
        self.problem, self.method, self.seed, self.reproducible = problem, method, seed, reproducible
        self.time_limit = time_limit
        self.gap = 0.0 if method == "optimal" else gap
        self.best = Incumbent(problem, provenance(method, seed, reproducible), progress, on_plan)
        self.proved_infeasible = ""

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.time_limit - self.best.elapsed

    def is_done(self) -> bool:
        """Is the gap reached, or the time over?"""
        best = self.best
        gap, makespan = best.gap, best.makespan
        reached = (gap is not None and gap <= self.gap) or (makespan is not None and makespan <= self.goal_ns)
        return reached or (best.bound or 0) > self.goal_ns > 0 or self.left <= 0

    def run(self) -> Plan:
        """Run the phases until one of them settles it."""
        try:
            message = self._run()
        except KeyboardInterrupt:
            if self.best.program is None:
                raise
            message = "interrupted"
        if self.best.program is None and self.proved_infeasible:
            return self._infeasible(self.proved_infeasible)
        return self.best.plan(message)

    def _run(self) -> str:
        best, problem = self.best, self.problem
        if problem.objective.kind == "peak":
            from planner.least_peak import least_peak

            return least_peak(self)
        best.enter("bounds")
        reason = self._budgets()
        if reason:
            self.proved_infeasible = reason
            return reason
        for name, bound in simple_bounds(problem):
            best.raise_bound(bound, name)
        if self.method not in METHODS:
            return self._heuristic()
        if self.method in ("cpsat", "milp"):
            return self._exact(self.method)
        best.enter("greedy")
        choice = self._greedy()
        if not self.is_done() and self._is_small():
            message = self._exact("cpsat")
            if self.is_done() or self.proved_infeasible:
                return message
        if not self.is_done():
            self._improve(choice)
        if not self.is_done() and not self._is_small() and not self.reproducible:
            self._exact("cpsat")
        return self._ending()

    def _is_small(self) -> bool:
        low = self.problem.lowered
        return len(low.ops) <= _SMALL_OPS and len(low.tensors) <= _SMALL_TENSORS

    def _budgets(self) -> str:
        """Return why no plan can exist, or an empty string."""
        from planner.info import short_message
        from planner.least_budget import lower_bound

        for tier in self.problem.machine.tiers:
            budget = self.problem.capacity[tier.name]
            if budget is None:
                continue
            bound, witness = lower_bound(self.problem, tier.name)
            if budget < bound:
                return short_message(tier.name, budget, BudgetNeed(None, bound), witness)
        return ""

    def _infeasible(self, message: str) -> Plan:
        from planner.info import short_message
        from planner.least_budget import least_budget

        needs: dict[str, BudgetNeed] = {}
        blamed: Witness | None = None
        for tier in self.problem.machine.tiers:
            budget = self.problem.capacity[tier.name]
            need, witness = least_budget(self.problem, tier.name)
            needs[tier.name] = need
            if budget is not None and blamed is None and budget < need.lower_bound:
                blamed = witness
                message = short_message(tier.name, budget, need, witness)
        if blamed is None:
            _, blamed = least_budget(self.problem, self.problem.machine.device.name)
        self.best.bound = None
        return self.best.plan(message, status=Status.INFEASIBLE, minimum_budget_bytes=needs, witness=blamed)

    def _heuristic(self) -> str:
        from planner.heuristics.registry import available

        self.best.enter(self.method)
        program = available()[self.method].run(self.problem)
        if program is None:
            return f"heuristic {self.method!r} finds no plan for this problem"
        self.best.offer(program, self.method, must_hold=True)
        return f"heuristic {self.method!r} finished"

    def _greedy(self) -> Bools | None:
        """Offer the quick heuristics' plans; return the greedy choice of gaps, if there is one."""
        from planner.heuristics.demand import demand_program
        from planner.heuristics.greedy import best_greedy
        from planner.heuristics.list_schedule import schedule_program, supports

        choice = None
        if supports(self.problem) is None:
            if self._still_compiling():
                self.best.offer(demand_program(self.problem), "demand")
            choice = best_greedy(self.problem)
            if choice is not None:
                self.best.offer(schedule_program(self.problem, choice), "greedy")
        if self.best.program is None:
            self.best.offer(demand_program(self.problem), "demand")
        return choice

    def _still_compiling(self) -> bool:
        """Start to load the kernels; return whether they must be compiled first, which takes seconds once a machine.

        The plan of demand paging, which needs no kernel, then comes first, so that there is a checked plan at once.
        """
        if self._is_small():
            return False
        if self.reproducible:
            return True  # whether or not kernels are cached must not change the outcome
        from planner.heuristics.kernels import load_kernels

        loader = threading.Thread(target=load_kernels, daemon=True)
        loader.start()
        loader.join(1.0)
        return loader.is_alive()

    def _improve(self, choice: Bools | None) -> None:
        """Fluid bound and local search in turn."""
        from planner.improve import bound_and_search

        bound_and_search(self, choice)

    def _exact(self, name: str) -> str:
        from planner.exact.guard import solve_guarded

        if self.left < 0.5:
            return self._ending()
        best = self.best
        best.enter(name)

        def news(program: Program | None, bound: int | None) -> None:
            if program is not None:
                best.offer(program, name)
            if bound is not None:
                best.raise_bound(bound, name)

        result = solve_guarded(
            name, self.problem, hint=best.program, upper_bound_ns=best.makespan, lower_bound_ns=best.bound or 0,
            time_limit=self.left, seed=self.seed, workers=1 if self.reproducible else 8, deterministic=self.reproducible,
            on_progress=None if self.reproducible else news,
        )
        if result.program is not None:
            best.offer(result.program, name, must_hold=True)
        if result.status == Status.INFEASIBLE:
            if best.program is not None:
                raise SolverError(f"solver disagreement: {name} says infeasible, the checker accepted a plan by "
                                  f"{best.method!r}; {result.message}")
            self.proved_infeasible = f"proved by {name}: {result.message}"
            return self.proved_infeasible
        if result.lower_bound_ns is not None and not result.scope_note:
            best.raise_bound(result.lower_bound_ns, name)
        if result.status == Status.OPTIMAL and result.ties_proved:
            best.ties_proved = True
        return self._ending(result.message)

    def _ending(self, detail: str = "") -> str:
        best = self.best
        if best.program is None:
            return f"no plan found within {self.time_limit:g} s" + (f"; {detail}" if detail else "")
        if best.gap == 0:
            return f"proved optimal by bound {best.bound_name!r}"
        if best.gap is not None and best.gap <= self.gap:
            return f"gap {100 * best.gap:.3f} % reached; bound {best.bound_name!r}"
        return f"stopped above the gap asked for; bound {best.bound_name!r}" + (f"; {detail}" if detail else "")
