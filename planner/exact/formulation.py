"""What `planner.exact.rounds` asks of a formulation, and where the best program and bound are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from planner.exact.result import OnProgress
from planner.exact.scaling import Scaled
from planner.exact.slots import Slots
from planner.exact.verify import verify

if TYPE_CHECKING:
    from planner.problem import Problem
    from planner.program import Program

__all__ = ["Best", "Formulation", "Outcome", "Round"]


@dataclass(frozen=True)
class Round:
    """What a formulation is asked: the best program between two makespans, units.

    Attributes
    ----------
    relaxed : bool
        Solve the relaxation instead; its programs do not count.
    seconds : float
        Time limit.
    certify : bool
        May the solver's bound be reported while it runs?
    """

    scaled: Scaled
    slots: Slots
    lower: int
    horizon: int
    relaxed: bool
    seconds: float
    certify: bool


@dataclass(frozen=True)
class Outcome:
    """What a formulation answers; ``bound`` in units, ``infeasible`` within the asked makespans."""

    infeasible: bool
    bound: int
    message: str


class Formulation(Protocol):
    """A solver with a model behind it."""

    name: str
    size_limit: int
    has_literal: bool

    def trusted(self) -> bool:
        """May this solver certify?"""

    def refuses(self, ask: Round) -> str:
        """Return why the model would be too large, or an empty string."""

    def leaves_out(self, counted: Slots) -> bool:
        """Are there legal programs within the slots that only the relaxation has?"""

    def solve(self, ask: Round, best: Best) -> Outcome:
        """Solve; offers programs to ``best``."""

    def solve_literally(self, ask: Round, best: Best) -> Outcome:
        """Do the same with a formulation of the list itself, which has the programs that `solve` leaves out."""

    def break_ties(self, ask: Round, best: Best) -> bool:
        """Least bytes moved, then least device peak, at the makespan ``ask.horizon``; return whether proved."""


class Best:
    """The best checked program and the best bound of a solve."""

    def __init__(self, problem: Problem, solver: str, on_progress: OnProgress | None, bound_ns: int) -> None:
        self.problem, self.solver, self.on_progress = problem, solver, on_progress
        self.program: Program | None = None
        self.ns: int | None = None
        self.bound_ns = bound_ns

    def offer(self, program: Program, claimed_ns: int) -> None:
        """Check and replay a solver's program and keep it if it is faster.

        Raises
        ------
        SolverError
            The checker rejects it, or it takes longer than claimed.
        """
        self.take(program, verify(self.problem, program, claimed_ns, self.solver))

    def take(self, program: Program, makespan: int) -> None:
        """Keep a checked program if it is faster."""
        if self.ns is None or makespan < self.ns:
            self.program, self.ns = program, makespan
            if self.on_progress is not None:
                self.on_progress(program, self.bound_ns or None)

    def replace(self, program: Program) -> None:
        """Keep another program of the same makespan."""
        if self.ns is not None and verify(self.problem, program, self.ns, self.solver) == self.ns:
            self.program = program

    def raise_bound(self, bound_ns: int) -> None:
        """Take a proved bound, ns."""
        if bound_ns > self.bound_ns:
            self.bound_ns = bound_ns
            if self.on_progress is not None:
                self.on_progress(None, bound_ns)

    def proved(self) -> bool:
        """Is the best program optimal?"""
        return self.ns is not None and self.ns <= self.bound_ns
