"""``planner export``: a plan as a trace, a memory snapshot, a table or a picture."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.check import PLAN, legal_program, show_violations
from planner.cli.output import ExitCode, note
from planner.problem import Problem

if TYPE_CHECKING:
    from planner.io.plan_json import PlanFile
    from planner.plan import Plan

__all__ = ["Format", "export"]


class Format(StrEnum):
    """What a plan can be exported as."""

    PERFETTO = "perfetto"
    MEMORY_VIZ = "memory_viz"
    CSV = "csv"
    HTML = "html"
    PNG = "png"


def export(
    problem: Problem,
    plan: PLAN,
    to: Annotated[
        Format,
        typer.Option(
            "--format",
            help="perfetto: ui.perfetto.dev; memory_viz: pytorch.org/memory_viz; "
            "csv: one row an instruction; html: a page; png: a picture.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File to write.")],
) -> int:
    """Export a checked plan."""
    from planner.io.files import write_bytes

    file, _, report = legal_program(problem, plan)
    if not report.valid:
        show_violations(report)
        return ExitCode.INVALID_PLAN
    write_bytes(output, _render(_as_plan(problem, file), to))
    note(f"{to} written to {output}")
    return ExitCode.DONE


def _render(plan: Plan, to: Format) -> bytes:
    if to is Format.PNG:
        return _picture(plan)
    from planner.io import exporters

    make = {
        Format.PERFETTO: exporters.to_perfetto,
        Format.MEMORY_VIZ: exporters.to_memory_viz,
        Format.CSV: exporters.to_csv,
        Format.HTML: exporters.to_html,
    }[to]
    return make(plan)


def _as_plan(problem: Problem, file: PlanFile) -> Plan:
    """Return the plan with the file's claim and the replay's own figures."""
    from planner.plan import Plan, Scope, Status
    from planner.replay import replay

    timeline, claim = replay(problem, file), file.claim
    rules = problem.rules
    tiers = tuple(t.name for t in problem.machine.tiers)
    scope = Scope("free" if rules.reorder else "fixed", rules.recompute, rules.split, tiers)
    known = claim.get("status") in (Status.OPTIMAL, Status.FEASIBLE)
    return Plan(
        problem,
        file.program,
        Status(claim["status"]) if known else Status.FEASIBLE,
        str(claim.get("method", "")),
        scope,
        makespan_ns=timeline.makespan_ns,
        lower_bound_ns=claim.get("lower_bound_ns"),
        ideal_ns=claim.get("ideal_ns"),
        peak_bytes=timeline.peak_bytes,
        moved_bytes=timeline.moved_bytes,
        recomputed_ns=timeline.recomputed_ns,
        stall_ns=timeline.stall_ns,
        message=str(claim.get("message", "")),
        provenance=file.provenance,
    )


def _picture(plan: Plan) -> bytes:
    import io

    from planner.errors import MissingDependencyError

    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingDependencyError("png needs matplotlib: pip install 'offload-planner[viz]'") from None
    mpl.use("agg")
    buffer = io.BytesIO()
    plan.plot().savefig(buffer, format="png", dpi=150, bbox_inches="tight")
    return buffer.getvalue()
