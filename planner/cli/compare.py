"""``planner compare``: several methods on one problem, against the best certified bound."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.check import JSON
from planner.cli.output import ExitCode, emit_json, show
from planner.errors import Fault, InputError
from planner.problem import Problem

__all__ = ["compare"]


def compare(
    problem: Problem,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B,…", help="Methods to run; by default every heuristic and auto."),
    ] = None,
    time_limit: Annotated[str, typer.Option("--time-limit", metavar="TIME", help="Limit for each method.")] = "60s",
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of everything random.")] = 0,
    as_json: JSON = False,
) -> int:
    """Compare methods; the gap is against the best certified bound of all."""
    from planner.cli.progress import Reporter
    from planner.cli.values import read_time_limit
    from planner.compare import compare as run

    names = None
    if methods is not None:
        names = [name.strip() for name in methods.split(",")]
        if not all(names):
            raise InputError([Fault("--methods", f"{methods!r}: an empty name; write names with commas between")])
    with Reporter() as report:
        result = run(problem, methods=names, time_limit=read_time_limit(time_limit), seed=seed, progress=report)
    if as_json:
        emit_json(result.to_dict())
    else:
        show(result.to_rich(), result.footer())
    return ExitCode.DONE
