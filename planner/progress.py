"""What a long solve reports while it runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProgressEvent"]


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """One report.

    Attributes
    ----------
    elapsed_s : float
        Seconds since the solve began.
    phase : str
        What is running.
    incumbent_ns, bound_ns : int, optional
        Best checked makespan and best proved bound so far, ns.
    gap : float, optional
        Their gap as a fraction of the bound.
    """

    elapsed_s: float
    phase: str
    incumbent_ns: int | None
    bound_ns: int | None
    gap: float | None
