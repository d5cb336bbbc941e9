"""``planner info``: does it fit, what is the least budget, and what binds?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.cli.check import JSON
from planner.cli.output import ExitCode, emit_json, show, table
from planner.problem import Problem

if TYPE_CHECKING:
    from rich.table import Table

    from planner.info import Info

__all__ = ["info"]


def info(problem: Problem, as_json: JSON = False) -> int:
    """Say before anything runs whether it fits, and the least budget that does."""
    from planner.info import info as inspect_problem

    found = inspect_problem(problem)
    if as_json:
        emit_json(found.to_dict())
    else:
        show(_headline(problem, found), _tiers(problem, found), _bounds(found), _kinds(found))
    return ExitCode.DONE


def _headline(problem: Problem, found: Info) -> str:
    graph = problem.graph
    lines = [
        f"{graph.name}: {len(graph.ops)} ops, {len(graph.tensors)} tensors on {problem.machine.name}",
        f"status {found.status}" + (f": {found.message}" if found.message else ""),
    ]
    witness = found.witness
    if witness is not None:
        from planner.units import format_bytes

        shown = ", ".join(f"{name} {format_bytes(size)}" for name, size in witness.tensors[:6])
        more = f" and {len(witness.tensors) - 6} more" if len(witness.tensors) > 6 else ""
        what = f"op {witness.op!r}" if witness.op is not None else "what starts or must end there"
        lines.append(f"least {witness.tier} budget is set by {what}: {format_bytes(witness.bytes)} = {shown}{more}")
    return "\n".join(lines)


def _tiers(problem: Problem, found: Info) -> Table:
    from planner.units import format_bytes

    def size(value: int | None) -> str | None:
        return None if value is None else format_bytes(value)

    rows = []
    for tier, capacity in problem.capacity.items():
        peak, need = found.resident_peak_bytes.get(tier), found.minimum_budget_bytes.get(tier)
        fits = None if peak is None else "yes" if capacity is None or peak <= capacity else "no"
        rows.append(
            (
                tier,
                "unbounded" if capacity is None else format_bytes(capacity),
                size(peak),
                fits,
                size(need.value if need else None),
                size(need.lower_bound if need else None),
                None if need is None else "yes" if need.proved else "no",
            )
        )
    return table(
        "memory",
        ("tier", "budget", "resident peak", "fits as is", "least budget", "at least", "proved"),
        rows,
        left=("tier",),
    )


def _bounds(found: Info) -> Table:
    from planner.units import format_duration

    rows = [("ideal (no limits)", found.ideal_ns, "")] if found.ideal_ns is not None else []
    rows += [(name, value, "binds" if value == found.lower_bound_ns else "") for name, value in found.bounds]
    return table(
        "time",
        ("bound", "at least", ""),
        [(name, format_duration(v), mark) for name, v, mark in rows],
        left=("bound", ""),
    )


def _kinds(found: Info) -> Table:
    from planner.units import format_bytes

    rows = [(kind or "(none)", format_bytes(size)) for kind, size in found.bytes_by_kind.items()]
    return table("bytes of all tensors, by kind", ("kind", "bytes"), rows, left=("kind",))
