"""Solvers that misbehave, run in the guard's child process."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from planner.exact.reach import reach
from planner.exact.result import ExactResult
from planner.exact.scaling import scale
from planner.plan import Status
from planner.problem import Problem
from planner.program import Drop, Program


def _stream(problem: Problem, on_progress: Any) -> None:
    on_progress(reach(problem, scale(problem)).program, 3)


def overruns(problem: Problem, on_progress: Any, **_: Any) -> ExactResult:
    """Find something, then ignore the time limit."""
    _stream(problem, on_progress)
    time.sleep(60)
    raise AssertionError("never reached")


def is_killed(problem: Problem, on_progress: Any, **_: Any) -> ExactResult:
    """Find something, then die as by the out-of-memory killer."""
    _stream(problem, on_progress)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("never reached")


def runs_out_of_memory(problem: Problem, on_progress: Any, **_: Any) -> ExactResult:
    """Find something, then fail."""
    _stream(problem, on_progress)
    raise MemoryError("too large")


def prints(problem: Problem, on_progress: Any, **_: Any) -> ExactResult:
    """Write on standard output as solvers do."""
    print("Running a solver that likes to talk", flush=True)
    os.write(1, b"{not json\n")
    _stream(problem, on_progress)
    sys.stdout.flush()
    return ExactResult(Status.UNKNOWN, message="done")


def returns_nonsense(problem: Problem, **_: Any) -> ExactResult:
    """Return a program that breaks the rules."""
    tensor = problem.lowered.tensors[0].name
    return ExactResult(Status.OPTIMAL, Program((Drop(tensor, "nowhere"),)), 1, "sure")
