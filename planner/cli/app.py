"""The application: its commands, and how errors become messages and exit codes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from planner.cli.capture import capture
from planner.cli.check import check
from planner.cli.compare import compare
from planner.cli.doctor import doctor
from planner.cli.export import export
from planner.cli.info import info
from planner.cli.output import ExitCode, error_lines, note
from planner.cli.plan import plan
from planner.cli.presets import presets
from planner.cli.replay import replay
from planner.cli.source import takes_problem
from planner.errors import PlannerError

__all__ = ["app", "main"]

app = typer.Typer(
    name="planner",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Provably good plans for moving tensors between memory tiers.",
    epilog="Exit codes: 0 done, 2 bad input, 3 infeasible, 4 time ran out above the gap (the best checked plan is "
    "still written), 5 invalid plan. Errors and progress go to stderr; PLANNER_DEBUG=1 shows tracebacks.",
)


def _exits(command: Callable[..., int]) -> Callable[..., None]:
    """Turn the code that a command returns into typer's way to end."""

    @functools.wraps(command)
    def wrapper(*args: Any, **options: Any) -> None:
        raise typer.Exit(command(*args, **options))

    return wrapper


for _command in (plan, check, compare, replay, info, export):
    app.command(_command.__name__)(_exits(takes_problem(_command)))
for _plain in (capture, presets, doctor):
    app.command(_plain.__name__)(_exits(_plain))


def _print_version(wanted: bool) -> None:
    if wanted:
        from planner import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version  # the callback has acted on it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; ``sys.argv`` by default.

    Returns
    -------
    int
        Exit code.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = os.environ.get("PLANNER_DEBUG", "") not in ("", "0")
    try:
        app(arguments, prog_name="planner", standalone_mode=True)
    except SystemExit as stop:
        return int(stop.code or 0)
    except PlannerError as error:
        if debug:
            raise
        for line in error_lines(error):
            note(line)
        return error.exit_code
    except Exception as error:
        if debug:
            raise
        note(f"error: {type(error).__name__}: {error} (PLANNER_DEBUG=1 shows where)")
        return ExitCode.FAILURE
    return ExitCode.DONE
