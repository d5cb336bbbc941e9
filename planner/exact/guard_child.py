"""The child process of `planner.exact.guard`: one request in, lines of JSON out.

Standard output carries the messages; whatever a solver prints goes to standard error. When standard input closes, the
parent is gone and the child ends itself.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from planner.exact.result import ExactResult
from planner.io.problem_json import problem_from_dict
from planner.program import Program

__all__ = ["main", "program_from_dict", "program_to_dict"]


def program_to_dict(program: Program | None) -> dict[str, Any] | None:
    """Return a program as plain data."""
    return None if program is None else {"program": program.to_list(), "start": dict(program.start)}


def program_from_dict(data: dict[str, Any] | None) -> Program | None:
    """Read what `program_to_dict` wrote."""
    return None if data is None else Program.from_list(data["program"], data["start"])


def main() -> None:
    """Serve one request from standard input."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        result = _solve(request, out)
    except BaseException as error:  # the parent decides what a failure means
        _send(out, {"error": f"{type(error).__name__}: {error}"})
        raise SystemExit(1) from error
    _send(out, {
        "status": str(result.status), "program": program_to_dict(result.program), "bound": result.lower_bound_ns,
        "message": result.message, "scope_note": result.scope_note, "ties_proved": result.ties_proved,
    })


def _solve(request: dict[str, Any], out: TextIO) -> ExactResult:
    module, name = request["solver"].split(":")
    solver: Callable[..., ExactResult] = getattr(importlib.import_module(module), name)

    def progress(program: Program | None, bound: int | None) -> None:
        _send(out, {"better": program_to_dict(program), "bound": bound})

    options = dict(request["options"])
    options["hint"] = program_from_dict(options["hint"])
    problem = problem_from_dict(request["problem"])
    # Wall-clock time, since the two processes share no other; a little is kept back for the last message.
    left = request["deadline"] - time.time()
    return solver(problem, time_limit=max(0.01, 0.97 * left - 0.05), on_progress=progress, **options)


def _send(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _end_with_parent() -> None:
    while sys.stdin.readline():
        pass
    os._exit(3)


if __name__ == "__main__":
    main()
