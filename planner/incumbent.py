"""The best checked plan and the best bound so far: certified at every moment of a solve."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from planner.errors import InvalidPlanError, SolverError
from planner.plan import Plan, Scope, Status, gap_of
from planner.program import Program
from planner.progress import ProgressEvent

if TYPE_CHECKING:
    from planner.problem import Problem
    from planner.replay import Timeline

__all__ = ["Incumbent"]


class Incumbent:
    """Keeps the best plan and bound of one solve, and tells who wants to know.

    Parameters
    ----------
    problem : Problem
    provenance : dict
        Written into every plan.
    progress : callable, optional
        Called with a `ProgressEvent`.
    on_plan : callable, optional
        Called with every better checked `Plan`.
    """

    def __init__(
        self, problem: Problem, provenance: dict[str, Any],
        progress: Callable[[ProgressEvent], None] | None = None, on_plan: Callable[[Plan], None] | None = None,
    ) -> None:
        self.problem, self.provenance = problem, provenance
        self.progress, self.on_plan = progress, on_plan
        self.begin = time.monotonic()
        self.program: Program | None = None
        self.timeline: Timeline | None = None
        self.method = ""
        self.bound: int | None = None
        self.bound_name = ""
        self.peak_bound: int | None = None
        self.ties_proved = False
        self.phase = "start"

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return time.monotonic() - self.begin

    @property
    def makespan(self) -> int | None:
        """Makespan of the best plan, ns."""
        return None if self.timeline is None else self.timeline.makespan_ns

    @property
    def peak(self) -> int | None:
        """Device peak of the best plan, bytes."""
        return None if self.timeline is None else self.timeline.peak_bytes[self.problem.machine.device.name]

    @property
    def gap(self) -> float | None:
        """Gap of the best plan to the best bound, in what the objective counts."""
        if self.problem.objective.kind == "peak":
            return gap_of(self.peak, self.peak_bound)
        return gap_of(self.makespan, self.bound)

    def raise_peak_bound(self, bound: int) -> None:
        """Take a proved lower bound on the device peak, bytes (objective ``peak``)."""
        if self.peak is not None and bound > self.peak:
            raise SolverError(f"peak bound of {bound} bytes is above a checked plan of {self.peak} bytes: one of them is wrong; "
                              f"please report problem {self.problem.sha256}")
        self.peak_bound = max(bound, self.peak_bound or 0)
        self.report()

    def enter(self, phase: str) -> None:
        """Name what runs now."""
        self.phase = phase
        self.report()

    def report(self) -> None:
        """Tell the listener where things stand."""
        if self.progress is not None:
            self.progress(ProgressEvent(self.elapsed, self.phase, self.makespan, self.bound, self.gap))

    def raise_bound(self, bound: int, name: str) -> None:
        """Take a proved lower bound.

        Raises
        ------
        SolverError
            It is above a plan that the checker accepted.
        """
        if self.bound is None or bound > self.bound:
            if self.makespan is not None and bound > self.makespan:
                raise SolverError(
                    f"bound {name!r} of {bound} ns is above a checked plan of {self.makespan} ns by {self.method!r}: one of "
                    f"them is wrong; please report problem {self.problem.sha256}"
                )
            self.bound, self.bound_name = bound, name
            self.report()

    def offer(self, program: Program | None, method: str, *, must_hold: bool = False) -> bool:
        """Take a program if the checker accepts it and it is better; return whether it was taken.

        Parameters
        ----------
        program : Program or None
        method : str
        must_hold : bool
            Raise `InvalidPlanError` if the checker rejects it, instead of ignoring it.
        """
        if program is None:
            return False
        from planner.check import check
        from planner.replay import replay

        report = check(self.problem, program)
        if not report.valid:
            if must_hold:
                first = report.violations[0]
                raise InvalidPlanError(f"{method}: {len(report.violations)} violation(s), first: {first.message}",
                                       report.violations)
            return False
        timeline = replay(self.problem, program)
        if timeline.peak_bytes != dict(report.peak_bytes):
            raise SolverError(f"replay and checker disagree on the peak: {timeline.peak_bytes} and {report.peak_bytes}")
        if self.timeline is not None and self._rank(timeline) >= self._rank(self.timeline):
            return False
        if self.bound is not None and timeline.makespan_ns < self.bound:
            raise SolverError(
                f"a checked plan of {timeline.makespan_ns} ns by {method!r} is below the bound {self.bound_name!r} of "
                f"{self.bound} ns: the bound is wrong; please report problem {self.problem.sha256}"
            )
        self.program, self.timeline, self.method = program, timeline, method
        if self.on_plan is not None:
            self.on_plan(self.plan("so far"))
        self.report()
        return True

    def _rank(self, timeline: Timeline) -> tuple[int, int, int]:
        peak = timeline.peak_bytes[self.problem.machine.device.name]
        moved = sum(timeline.moved_bytes.values())
        if self.problem.objective.kind == "peak":
            return peak, timeline.makespan_ns, moved
        return timeline.makespan_ns, moved, peak

    def plan(self, message: str, **more: Any) -> Plan:
        """Return the plan as it stands, with its claim."""
        from planner.bounds.simple import ideal_ns

        rules = self.problem.rules
        scope = Scope("free" if rules.reorder else "fixed", rules.recompute, rules.split,
                      tuple(t.name for t in self.problem.machine.tiers))
        t = self.timeline
        if t is None:
            status = more.pop("status", Status.UNKNOWN)
            return Plan(self.problem, None, status, self.method, scope, None, self.bound, ideal_ns(self.problem),
                        message=message, seconds=self.elapsed, provenance=self.provenance,
                        lower_bound_bytes=self.peak_bound, **more)
        status = Status.OPTIMAL if self.gap == 0 else Status.FEASIBLE
        return Plan(
            self.problem, self.program, status, self.method, scope, t.makespan_ns, self.bound, ideal_ns(self.problem),
            t.peak_bytes, {k: v for k, v in t.moved_bytes.items() if v}, t.recomputed_ns, t.stall_ns, message, self.elapsed,
            ties_proved=self.ties_proved and status == Status.OPTIMAL, provenance=self.provenance,
            lower_bound_bytes=self.peak_bound, **more,
        )
