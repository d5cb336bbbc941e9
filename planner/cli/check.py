"""``planner check``: is a plan legal for a problem, and is its claim true?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.output import ExitCode, emit_json, note, show, warn
from planner.errors import InputError
from planner.problem import Problem

if TYPE_CHECKING:
    from planner.check import CheckReport
    from planner.io.plan_json import PlanFile
    from planner.program import Program

__all__ = ["JSON", "PLAN", "check", "legal_program", "show_violations"]

PLAN = Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file.")]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def check(problem: Problem, plan: PLAN, as_json: JSON = False) -> int:
    """Check a plan and its claim with the independent checker; exit 5 if it is invalid."""
    from planner.check import check as check_plan
    from planner.io.plan_json import load_plan

    file = load_plan(plan)
    report = check_plan(problem, file)
    if as_json:
        emit_json(report.to_dict())
    elif report.valid:
        from planner.units import format_bytes

        peaks = ", ".join(f"{tier} {format_bytes(peak)} ({peak} B)" for tier, peak in report.peak_bytes.items())
        show(f"valid: {len(file.program or ())} instructions, peak {peaks}")
    else:
        show_violations(report, show)
    return ExitCode.DONE if report.valid else ExitCode.INVALID_PLAN


def legal_program(problem: Problem, path: Path) -> tuple[PlanFile, Program, CheckReport]:
    """Read a plan file and check its program alone, for commands that may use it on another problem; warn if they do.

    Raises
    ------
    InputError
        Not a plan file, or one without a program.
    """
    from planner.check import check as check_program
    from planner.io.plan_json import load_plan

    file = load_plan(path)
    if file.program is None:
        raise InputError(f"program: is null: an {file.claim.get('status', 'empty')} plan has nothing to run", str(path))
    if file.problem != problem.sha256:
        warn(f"{path} was made for problem {file.problem[:12]}…, this is {problem.sha256[:12]}…")
    return file, file.program, check_program(problem, file.program)


def show_violations(report: CheckReport, out: Callable[[str], None] = note) -> None:
    """Print each violation with its code; the message names the instruction."""
    count = len(report.violations)
    out(f"invalid: {count} violation{'s' if count != 1 else ''}")
    for found in report.violations:
        out(f"  {found.code}: {found.message}")
