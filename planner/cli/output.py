"""Exit codes, and the two streams: results on stdout, everything else on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from planner.errors import PlannerError

__all__ = ["ExitCode", "emit_json", "error_lines", "note", "show", "table", "warn"]


class ExitCode(IntEnum):
    """What the exit code of a command says."""

    DONE = 0
    FAILURE = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    OUT_OF_TIME = 4
    INVALID_PLAN = 5
    INTERRUPTED = 130


def emit_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of stdout; infinities become null, as JSON has none."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(data).decode() + "\n")
    sys.stdout.flush()


def show(*parts: object) -> None:
    """Print a result (text or a rich table) on stdout."""
    from rich.console import Console

    # A pipe has no width: without one, rich would fold tables at 80 columns.
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False, soft_wrap=True)
    for part in parts:
        if isinstance(part, str):
            sys.stdout.write(part if part.endswith("\n") else f"{part}\n")
            sys.stdout.flush()
        else:
            console.print(part)


def note(text: str) -> None:
    """Print a remark on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    """Print a warning on stderr."""
    note(f"warning: {text}")


def error_lines(error: PlannerError) -> list[str]:
    """Return one line for each fault: file, path inside it, what is wrong with which value."""
    from planner.errors import InputError

    if not isinstance(error, InputError):
        return [f"error: {error}"]
    source = f"{error.source}: " if error.source else ""
    return [f"error: {source}{' '.join(str(fault).split())}" for fault in error.faults]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], left: Sequence[str] = ()) -> Table:
    """Return a rich table; columns are right-aligned unless named in ``left``."""
    from rich import box
    from rich.table import Table

    out = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        out.add_column(name, justify="left" if name in left else "right", overflow="fold")
    for row in rows:
        out.add_row(*("–" if cell is None else str(cell) for cell in row))
    return out
