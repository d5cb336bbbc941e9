"""What can be said about a problem before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planner.plan import BudgetNeed, Status, Witness

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["Info", "info"]


@dataclass(frozen=True)
class Info:
    """Facts about a problem; attributes have the names of the JSON keys.

    Attributes
    ----------
    status : Status
        ``infeasible`` if proved, ``feasible`` if a plan is known, else ``unknown``.
    resident_peak_bytes : mapping of str to int
        Peak of each tier when nothing leaves the device: tensors with a chosen start on the device, host inputs loaded
        just before first use, tensors without ``keep`` dropped after last use.
    budget_bytes : mapping of str to int or None
        Budgets in force; None is unbounded.
    minimum_budget_bytes : mapping of str to BudgetNeed
        Least budget of each tier with all else as given.
    witness : Witness, optional
        What sets the least budget of the tier that fails, else of the device.
    ideal_ns, lower_bound_ns : int
    bounds : list of (str, int)
        Bounds by name, ns.
    bytes_by_kind : mapping of str to int
    message : str
    warnings : tuple of str
    """

    status: Status
    resident_peak_bytes: Mapping[str, int]
    budget_bytes: Mapping[str, int | None]
    minimum_budget_bytes: Mapping[str, BudgetNeed]
    witness: Witness | None
    ideal_ns: int
    lower_bound_ns: int
    bounds: list[tuple[str, int]] = field(default_factory=list)
    bytes_by_kind: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, keys as in the contract."""
        return {
            "status": str(self.status), "resident_peak_bytes": dict(self.resident_peak_bytes),
            "budget_bytes": dict(self.budget_bytes),
            "minimum_budget_bytes": {k: v.to_dict() for k, v in self.minimum_budget_bytes.items()},
            "witness": self.witness.to_dict() if self.witness else None, "ideal_ns": self.ideal_ns,
            "lower_bound_ns": self.lower_bound_ns, "bounds": dict(self.bounds),
            "bytes_by_kind": dict(self.bytes_by_kind), "message": self.message, "warnings": list(self.warnings),
        }


def info(problem: Problem) -> Info:
    """Return what can be said about a problem before planning.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Info
    """
    from planner.bounds.simple import ideal_ns, simple_bounds
    from planner.least_budget import feasible_program, least_budget

    needs: dict[str, BudgetNeed] = {}
    witnesses: dict[str, Witness] = {}
    for tier in problem.machine.tiers:
        needs[tier.name], witnesses[tier.name] = least_budget(problem, tier.name)
    status, blamed = Status.UNKNOWN, problem.machine.device.name
    lines = []
    for name, need in needs.items():
        budget = problem.capacity[name]
        if budget is not None and budget < need.lower_bound:
            if status != Status.INFEASIBLE:
                blamed = name
            status = Status.INFEASIBLE
            lines.append(short_message(name, budget, need, witnesses[name]))
    if status != Status.INFEASIBLE and feasible_program(problem) is not None:
        status = Status.FEASIBLE
    kinds: dict[str, int] = {}
    for t in problem.lowered.tensors:
        kinds[t.kind or "other"] = kinds.get(t.kind or "other", 0) + t.size
    bounds = simple_bounds(problem)
    return Info(
        status, resident_peak(problem), dict(problem.capacity), needs, witnesses[blamed], ideal_ns(problem),
        max(ns for _, ns in bounds), bounds, dict(sorted(kinds.items(), key=lambda kv: (-kv[1], kv[0]))),
        "; ".join(lines), problem.warnings,
    )


def short_message(tier: str, budget: int, need: BudgetNeed, witness: Witness) -> str:
    """Return one sentence that says why a budget cannot do and what would."""
    from planner.units import format_bytes

    cause = f"op {witness.op!r} with " if witness.op else "what starts or ends there: "
    names = ", ".join(f"{n} ({format_bytes(b)})" for n, b in witness.tensors[:6])
    more = f" and {len(witness.tensors) - 6} more" if len(witness.tensors) > 6 else ""
    least = need.lower_bound
    return (f"tier {tier!r} needs at least {least} bytes ({format_bytes(least)}), short by {least - budget} "
            f"({format_bytes(least - budget)}): {cause}{names}{more}")


def resident_peak(problem: Problem) -> dict[str, int]:
    """Return the peak of each tier when nothing leaves the device (see `Info`), occupied bytes."""
    low, machine = problem.lowered, problem.machine
    device = machine.device.name
    last: dict[str, int] = {}
    for i, op in enumerate(low.ops):
        for name in (*op.reads, *op.writes):
            last[name] = i
    use = {t.name: 0 for t in machine.tiers}
    here: set[str] = set()
    for t in low.tensors:
        for tier in t.home if isinstance(t.home, tuple) else (device,):
            use[tier] += machine.tier[tier].occupied(t.size)
            if tier == device:
                here.add(t.name)
    peak = dict(use)
    occupied = {t.name: machine.device.occupied(t.size) for t in low.tensors}
    for i, op in enumerate(low.ops):
        for name in (*op.reads, *op.writes):
            if name not in here:
                here.add(name)
                use[device] += occupied[name]
        peak[device] = max(peak[device], use[device])
        for name in dict.fromkeys((*op.reads, *op.writes)):
            if last[name] == i and low.tensor[name].keep is None and name in here:
                here.discard(name)
                use[device] -= occupied[name]
    return peak
