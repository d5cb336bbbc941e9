"""A plan: a checked program and what is claimed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from planner.problem import Problem
from planner.program import Program

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

    from planner.replay import Timeline

__all__ = ["BudgetNeed", "Plan", "Scope", "Status", "Witness", "gap_of"]


class Status(StrEnum):
    """What is known about a plan."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Scope:
    """What the bound holds for.

    Attributes
    ----------
    order : str
        ``"fixed"`` (the listed order) or ``"free"``.
    recompute : bool
        Does the bound hold for plans that recompute?
    split : bool
        Does it hold for tensors in pieces?
    tiers : tuple of str
        Tiers that plans may use.
    """

    order: str
    recompute: bool
    split: bool
    tiers: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"order": self.order, "recompute": self.recompute, "split": self.split, "tiers": list(self.tiers)}


@dataclass(frozen=True, slots=True)
class BudgetNeed:
    """The least budget of one tier that would do.

    Attributes
    ----------
    value : int, optional
        Bytes for which a plan is known; None if none is.
    lower_bound : int
        Bytes below which there is no plan.
    proved : bool
        Are both the same?
    """

    value: int | None
    lower_bound: int

    @property
    def proved(self) -> bool:
        """Is the value the least possible?"""
        return self.value == self.lower_bound

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"value": self.value, "lower_bound": self.lower_bound, "proved": self.proved}


@dataclass(frozen=True, slots=True)
class Witness:
    """The op and tensors that set the least budget.

    Attributes
    ----------
    op : str, optional
        None when what starts (or must end) on the tier sets it.
    tensors : tuple of (str, int)
        Names and occupied bytes, largest first.
    bytes : int
        Their sum.
    tier : str
    """

    op: str | None
    tensors: tuple[tuple[str, int], ...]
    bytes: int
    tier: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"op": self.op, "tensors": dict(self.tensors), "bytes": self.bytes, "tier": self.tier}


def gap_of(makespan: int | None, bound: int | None) -> float | None:
    """Return (makespan − bound) / bound; 0 if both are 0, None without a makespan or a bound."""
    if makespan is None or bound is None:
        return None
    if makespan == bound:
        return 0.0
    return float("inf") if bound == 0 else (makespan - bound) / bound


@dataclass(frozen=True)
class Plan:
    """A program with its claim. Attributes have the names of the JSON keys.

    Attributes
    ----------
    problem : Problem
    program : Program, optional
        None if infeasible or unknown.
    status : Status
    makespan_ns, lower_bound_ns, ideal_ns : int, optional
        Nanoseconds; ``ideal_ns`` is the longest path without memory or copy limits.
    peak_bytes : mapping of str to int
        Largest list-order use of each tier, occupied bytes.
    moved_bytes : mapping of str to int
        Raw bytes over each link, ``"host>device"``.
    recomputed_ns, stall_ns : int
        Time in repeated runs; time in which the compute stream waits.
    method : str
    scope : Scope
    message : str
    seconds : float
        Wall-clock time of the solve; not part of the file.
    minimum_budget_bytes : mapping of str to BudgetNeed
    witness : Witness, optional
    lower_bound_bytes : int, optional
        Objective ``peak``: proved lower bound on the device peak of plans that keep the limit, bytes; the gap is to this.
    ties_proved : bool
        Are bytes moved and peak the least among all optimal plans?
    provenance : mapping
        Versions, seed, mode, method.
    """

    problem: Problem
    program: Program | None
    status: Status
    method: str
    scope: Scope
    makespan_ns: int | None = None
    lower_bound_ns: int | None = None
    ideal_ns: int | None = None
    peak_bytes: Mapping[str, int] = field(default_factory=dict)
    moved_bytes: Mapping[str, int] = field(default_factory=dict)
    recomputed_ns: int = 0
    stall_ns: int = 0
    message: str = ""
    seconds: float = 0.0
    minimum_budget_bytes: Mapping[str, BudgetNeed] = field(default_factory=dict)
    witness: Witness | None = None
    ties_proved: bool = False
    lower_bound_bytes: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """(makespan − bound) / bound (objective ``peak``: of the device peak); 0 if both are 0, None without a bound."""
        if self.problem.objective.kind == "peak":
            return gap_of(self.peak_bytes.get(self.problem.machine.device.name), self.lower_bound_bytes)
        return gap_of(self.makespan_ns, self.lower_bound_ns)

    @cached_property
    def timeline(self) -> Timeline:
        """Start and end of every instruction, by replay.

        Raises
        ------
        ValueError
            There is no program.
        """
        if self.program is None:
            raise ValueError(f"a plan that is {self.status} has no program")
        from planner.replay import replay

        return replay(self.problem, self.program)

    def claim(self) -> dict[str, Any]:
        """Return the claim as plain data, keys as in the contract; no wall-clock time."""
        out: dict[str, Any] = {
            "status": str(self.status), "makespan_ns": self.makespan_ns, "lower_bound_ns": self.lower_bound_ns,
            "gap": self.gap, "ideal_ns": self.ideal_ns, "peak_bytes": dict(self.peak_bytes),
            "moved_bytes": dict(self.moved_bytes), "recomputed_ns": self.recomputed_ns, "stall_ns": self.stall_ns,
            "method": self.method, "scope": self.scope.to_dict(), "message": self.message,
            "ties_proved": self.ties_proved,
        }
        if self.lower_bound_bytes is not None:
            out["lower_bound_bytes"] = self.lower_bound_bytes
        if self.minimum_budget_bytes:
            out["minimum_budget_bytes"] = {k: v.to_dict() for k, v in self.minimum_budget_bytes.items()}
        if self.witness is not None:
            out["witness"] = self.witness.to_dict()
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return the ``planner-plan/1`` object."""
        from planner.io.plan_json import plan_to_dict

        return plan_to_dict(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file, whole or not at all; ``.gz`` is packed without a time stamp."""
        import gzip

        from planner.io.files import write_bytes
        from planner.io.plan_json import plan_bytes

        data = plan_bytes(self)
        write_bytes(path, gzip.compress(data, 9, mtime=0) if str(path).endswith(".gz") else data)

    def summary(self) -> str:
        """Return a few lines of text: status, times, memory, traffic, scope."""
        from planner.report import summary_text

        return summary_text(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row an instruction: kind, op or tensor, from, to, start, end, bytes, stream or channel."""
        from planner.report import plan_dataframe

        return plan_dataframe(self)

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw ops, copies per channel, and memory per tier against its budget.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Draw only the lanes into these axes; without it a figure with lanes and memory is made.

        Returns
        -------
        matplotlib Figure or Axes
        """
        from planner.plotting.timeline import plot_plan

        return plot_plan(self, ax)

    def _repr_html_(self) -> str:
        from planner.report import summary_html

        return summary_html(self)

    def __repr__(self) -> str:
        gap = "none" if self.gap is None else f"{100 * self.gap:.3f} %"
        return f"Plan({self.status}, makespan_ns={self.makespan_ns}, gap={gap}, method={self.method!r})"
