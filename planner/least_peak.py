"""Objective ``peak``: the least device budget under a limit on the makespan, by bisection over makespan problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.anytime import Anytime

__all__ = ["least_peak"]


def least_peak(session: Anytime) -> str:
    """Not in yet."""
    raise RuntimeError(f"objective peak: {session.method}")
