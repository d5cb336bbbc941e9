"""``planner plan``: find a plan, report it, save it."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.output import ExitCode, emit_json, note, show, warn
from planner.errors import InputError
from planner.problem import Problem

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["plan", "plan_json"]

_GAP = 0.01
_TIME = "60s"


def plan(
    problem: Problem,
    method: Annotated[
        str,
        typer.Option("--method", metavar="auto|optimal|NAME", help="How to plan; 'planner doctor' lists the names."),
    ] = "auto",
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time-limit", metavar="TIME", help=f"Wall-clock limit: 60s, 2min, or plain seconds. [default: {_TIME}]"
        ),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(
            "--gap",
            help=f"Certified gap at which to stop, a fraction of the bound; 0 asks for a proof. [default: {_GAP}]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of everything random.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PLAN", help="Write the plan here; each better plan at once."),
    ] = None,
    reproducible: Annotated[
        bool,
        typer.Option(
            "--reproducible",
            "--deterministic",
            help="Same input and seed give the same file: one worker, limits in work.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> int:
    """Find a plan with a certified gap."""
    from planner.cli.progress import Reporter
    from planner.cli.signals import terminate_as_interrupt
    from planner.cli.values import read_gap, read_time_limit
    from planner.solve import solve

    seconds, wanted = read_time_limit(time_limit or _TIME), read_gap(_GAP if gap is None else gap)
    heuristic = _is_heuristic(method)
    if heuristic and gap is not None:
        warn(f"--gap has no effect: {method!r} is a heuristic and stops when it is done")
    if output is not None:
        _require_writable(output)
    best: list[Plan] = []

    def keep(found: Plan) -> None:
        best[:] = [found]
        if output is not None:
            found.save(output)

    with ExitStack() as stack:
        report = stack.enter_context(Reporter())
        stack.enter_context(terminate_as_interrupt())
        try:
            result = solve(
                problem,
                method=method,
                time_limit=seconds,
                gap=wanted,
                seed=seed,
                reproducible=reproducible,
                progress=report,
                on_plan=keep,
            )
        except KeyboardInterrupt:
            if not best:
                raise
            result = best[0]
            note("interrupted: this is the best checked plan so far")
    if output is not None and result.program is not None:
        result.save(output)
    if as_json:
        emit_json(plan_json(result))
    else:
        show(result.summary())
    _say_where(result, output)
    return _exit_code(result, wanted, heuristic)


def _is_heuristic(method: str) -> bool:
    from planner.heuristics.registry import available

    return method in available()


def _require_writable(path: Path) -> None:
    """Find out before a long solve, not after it."""
    import os

    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError("cannot be written: no such folder, no permission, or a folder itself", str(path))


def plan_json(result: Plan) -> dict[str, Any]:
    """Return what ``--json`` prints: the claim, the wall-clock time and the hash of the problem."""
    return {
        **result.claim(),
        "seconds": round(result.seconds, 3),
        "problem": result.problem.sha256,
        "provenance": dict(result.provenance),
    }


def _say_where(result: Plan, output: Path | None) -> None:
    if result.program is None:
        note("no plan was written: there is none" if output is not None else "there is no plan to save")
    elif output is not None:
        note(f"plan written to {output}")
    elif sys.stderr.isatty() or not sys.stdout.isatty():
        note("plan not saved; add -o PLAN.json to keep it")


def _exit_code(result: Plan, wanted: float, heuristic: bool) -> ExitCode:
    from planner.plan import Status

    if result.status is Status.INFEASIBLE:
        return ExitCode.INFEASIBLE
    if result.program is None:
        return ExitCode.OUT_OF_TIME
    within = result.status is Status.OPTIMAL or (result.gap is not None and result.gap <= wanted)
    finished = heuristic and "interrupted" not in result.message
    return ExitCode.DONE if within or finished else ExitCode.OUT_OF_TIME
