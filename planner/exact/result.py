"""What an exact solver hands back; its program is advice until the checker has passed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.plan import Status
from planner.program import Program

__all__ = ["ExactResult", "OnProgress"]

#: Called with each better program (or None) and the proved bound in ns (or None).
OnProgress = Callable[[Program | None, int | None], None]


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Outcome of one exact solve.

    Attributes
    ----------
    status : Status
        ``optimal`` and ``infeasible`` only if proved for ``scope_note``.
    program : Program, optional
    lower_bound_ns : int, optional
        Proved in exact units of the problem, nanoseconds.
    message : str
        Why it stopped; model size; solver and version.
    scope_note : str
        Restriction under which a proof holds; empty if none beyond the problem's rules.
    ties_proved : bool
        Are bytes moved, then peak, the least among all optimal programs?
    """

    status: Status
    program: Program | None = None
    lower_bound_ns: int | None = None
    message: str = ""
    scope_note: str = ""
    ties_proved: bool = False
