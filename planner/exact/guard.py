"""Run an exact solver in a child process with a hard limit on wall-clock time.

A solver may overrun its limit, crash, be killed or be missing; none of that loses what it had found. Programs and
bounds are streamed back as lines of JSON, so no pickled code crosses the border and it works from scripts, notebooks
and the command line alike.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from planner.exact.guard_child import program_from_dict, program_to_dict
from planner.exact.result import ExactResult, OnProgress
from planner.exact.verify import accepted
from planner.plan import Status

if TYPE_CHECKING:
    from planner.problem import Problem
    from planner.program import Program

__all__ = ["SOLVERS", "solve_guarded"]

#: Solvers by name; any other ``module:function`` with the same parameters will do.
SOLVERS = {
    "cpsat": "planner.exact.segments_cpsat:solve_cpsat",
    "milp": "planner.exact.segments_milp:solve_milp",
}
_BOOT = "import sys; sys.path[:] = {path!r}; from planner.exact.guard_child import main; main()"


def solve_guarded(
    solver: str,
    problem: Problem,
    *,
    hint: Program | None = None,
    upper_bound_ns: int | None = None,
    lower_bound_ns: int = 0,
    time_limit: float,
    seed: int = 0,
    workers: int = 8,
    deterministic: bool = False,
    on_progress: OnProgress | None = None,
) -> ExactResult:
    """Solve in a child process. Parameters as of `planner.exact.segments_cpsat.solve_cpsat`.

    Parameters
    ----------
    solver : str
        A key of `SOLVERS` or ``module:function``.
    problem : Problem
    hint, upper_bound_ns, lower_bound_ns, seed, workers, deterministic, on_progress
        As of the solvers.
    time_limit : float
        Seconds of wall clock, the start of the child included; then the child is killed.

    Returns
    -------
    ExactResult
        Of the solver; or, if it did not end by itself, the best checked program that it streamed (or the hint) with
        status ``feasible``, or ``unknown``; ``message`` says what happened.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C; the child has been killed, and ``on_progress`` has had the best program.
    """
    deadline = time.monotonic() + time_limit
    request = {
        "solver": SOLVERS.get(solver, solver), "problem": problem.to_dict(), "deadline": time.time() + time_limit,
        "options": {
            "hint": program_to_dict(hint), "upper_bound_ns": upper_bound_ns, "lower_bound_ns": lower_bound_ns,
            "seed": seed, "workers": workers, "deterministic": deterministic,
        },
    }
    state = _State(problem, on_progress, hint, accepted(problem, hint), lower_bound_ns or None)
    with tempfile.TemporaryFile() as errors:
        try:
            child = _start(request, errors)
        except OSError as error:
            return state.result(f"the solver process could not be started: {error}")
        try:
            ended = _listen(child, state, deadline)
        except KeyboardInterrupt:
            _kill(child)
            state.tell()
            raise
        finally:
            _kill(child)
        if state.final is not None:
            return state.final
        if not ended:
            return state.result(f"{solver}: stopped at the limit of {time_limit:g} s")
        return state.result(f"{solver}: {state.failure or _obituary(child, errors)}")


@dataclass(eq=False)
class _State:
    """What has come back so far."""

    problem: Problem
    on_progress: OnProgress | None
    best: Program | None
    best_ns: int | None
    bound: int | None
    final: ExactResult | None = None
    failure: str = ""

    def __post_init__(self) -> None:
        if self.best_ns is None:
            self.best = None

    def tell(self) -> None:
        """Hand the best over."""
        if self.on_progress is not None:
            self.on_progress(self.best, self.bound)

    def take(self, line: str) -> None:
        """Read one line; what is not a message of the child is noted and otherwise ignored."""
        try:
            message = json.loads(line)
            if "error" in message:
                self.failure = str(message["error"])
            elif "better" in message:
                self._better(program_from_dict(message["better"]), message["bound"])
            else:
                self._end(message)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.failure = f"unreadable answer from the solver process: {error}"

    def _better(self, program: Program | None, bound: int | None) -> None:
        makespan = self._accepted(program)
        if bound is not None and (self.bound is None or bound > self.bound):
            self.bound = int(bound)
        if makespan is not None and (self.best_ns is None or makespan < self.best_ns):
            self.best, self.best_ns = program, makespan
        if self.on_progress is not None:
            self.on_progress(program if makespan is not None else None, bound)

    def _accepted(self, program: Program | None) -> int | None:
        return accepted(self.problem, program)

    def _end(self, message: dict[str, Any]) -> None:
        program = program_from_dict(message["program"])
        makespan = self._accepted(program)
        result = ExactResult(
            Status(message["status"]), program, message["bound"], str(message["message"]), str(message["scope_note"]),
            bool(message["ties_proved"]),
        )
        if program is not None and makespan is None:
            self.failure = "the checker rejects the program of the solver process"
        elif makespan is None and self.best is not None and result.status is not Status.INFEASIBLE:
            self.final = replace(result, status=Status.FEASIBLE, program=self.best)
        else:
            self.final = result

    def result(self, message: str) -> ExactResult:
        """Return what is known although the solver did not end by itself."""
        status = Status.UNKNOWN if self.best is None else Status.FEASIBLE
        return ExactResult(status, self.best, self.bound, message)


def _start(request: dict[str, Any], errors: IO[bytes]) -> subprocess.Popen[str]:
    # A session of its own: Ctrl-C reaches the parent alone, which then decides.
    child = subprocess.Popen(
        [sys.executable, "-c", _BOOT.format(path=sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=errors, encoding="utf-8", errors="replace", start_new_session=os.name == "posix",
    )
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()
    except OSError:
        pass  # it died at once; its standard error says why
    return child


def _listen(child: subprocess.Popen[str], state: _State, deadline: float) -> bool:
    """Take messages until the result, the end of the child (True) or the deadline (False)."""
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    while state.final is None:
        left = deadline - time.monotonic()
        try:
            # Short waits: on some systems a wait without limit cannot be interrupted.
            line = lines.get(timeout=min(0.5, left)) if left > 0 else lines.get_nowait()
        except queue.Empty:
            if left <= 0:
                return False
            continue
        if line is None:
            child.wait()
            return True
        state.take(line)
    return True


def _read(stream: IO[str] | None, lines: queue.Queue[str | None]) -> None:
    assert stream is not None
    try:
        for line in stream:
            lines.put(line)
    except ValueError:
        pass  # closed by the parent
    lines.put(None)


def _kill(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _obituary(child: subprocess.Popen[str], errors: IO[bytes]) -> str:
    errors.seek(0)
    last = errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
    return f"the solver process ended with code {child.returncode}" + (f": {last[0]}" if last else "")
