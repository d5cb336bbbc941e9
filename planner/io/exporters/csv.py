"""One row an instruction, as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.report import plan_dataframe

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["to_csv"]


def to_csv(plan: Plan) -> bytes:
    """Return the table of `Plan.to_dataframe` as UTF-8 CSV.

    Parameters
    ----------
    plan : Plan
        With a program.

    Returns
    -------
    bytes
        Columns index, kind, name, src, dst, start_ns, end_ns, bytes, lane; times in nanoseconds.

    Raises
    ------
    ValueError
        The plan has no program.
    """
    plan.timeline  # noqa: B018  refuses a plan without a program
    frame = plan_dataframe(plan)
    return frame.to_csv(index_label="index", lineterminator="\n").encode()
