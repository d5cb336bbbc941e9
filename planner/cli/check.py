"""``planner check``: is a plan legal for a problem, and is its claim true?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.output import ExitCode, emit_json, note, show, warn
from planner.errors import InputError
from planner.problem import Problem

if TYPE_CHECKING:
    from planner.io.plan_json import PlanFile

__all__ = ["check", "judge", "open_plan"]

PLAN = Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file.")]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def check(problem: Problem, plan: PLAN, as_json: JSON = False) -> int:
    """Check a plan; exit 5 if it is invalid."""
    file = open_plan(problem, plan)
    verdict = judge(problem, file)
    if as_json:
        emit_json(verdict)
    elif verdict["valid"]:
        from planner.units import format_bytes

        peaks = ", ".join(f"{tier} {format_bytes(peak)} ({peak} B)" for tier, peak in verdict["peak_bytes"].items())
        show(f"valid: {len(file.program or ())} instructions, peak {peaks}")
    else:
        show_violations(verdict, show)
    return ExitCode.DONE if verdict["valid"] else ExitCode.INVALID_PLAN


def open_plan(problem: Problem, path: Path) -> PlanFile:
    """Read a plan file; warn if it was made for another problem.

    Raises
    ------
    InputError
        Not a plan file, or one without a program.
    """
    from planner.io.plan_json import load_plan

    file = load_plan(path)
    if file.program is None:
        raise InputError(f"program: is null: an {file.claim.get('status', 'empty')} plan has nothing to run", str(path))
    if file.problem != problem.sha256:
        warn(f"{path} was made for problem {file.problem[:12]}…, this is {problem.sha256[:12]}…")
    return file


def judge(problem: Problem, file: PlanFile) -> dict[str, Any]:
    """Return the verdict under the keys of the contract: valid, violations, peak_bytes."""
    from planner.check import check as check_program

    report = check_program(problem, file)
    rows = [
        {"index": v.index, "instruction": v.instruction, "code": v.code, "message": v.message}
        for v in report.violations
    ]
    return {"valid": report.valid, "violations": rows, "peak_bytes": dict(report.peak_bytes)}


def show_violations(verdict: dict[str, Any], out: Any = note) -> None:
    """Print each violation with its instruction."""
    rows = verdict["violations"]
    out(f"invalid: {len(rows)} violation{'s' if len(rows) != 1 else ''}")
    for row in rows:
        where = "end" if row["index"] is None else f"program[{row['index']}]"
        out(f"  {where} {row['instruction'] or ''} {row['code']}: {row['message']}".replace("  ", " ", 1))
