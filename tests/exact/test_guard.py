"""Whatever happens to a solver, what it had found is kept, and the wall clock is obeyed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.check import check
from planner.exact.guard import _State, solve_guarded
from planner.plan import Status
from planner.program import Program
from tests.exact.problems import joint_choice, two_loads

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("solver", ["cpsat", "milp"])
def test_a_solver_in_a_child_gives_what_it_gives_here(solver: str) -> None:
    heard: list[Program | None] = []
    result = solve_guarded(solver, two_loads(), time_limit=60, on_progress=lambda program, _: heard.append(program))
    assert result.status is Status.OPTIMAL
    assert result.lower_bound_ns == 9
    assert any(p is not None for p in heard)


@pytest.mark.parametrize(("fake", "words"), [
    ("overruns", "stopped at the limit"), ("is_killed", "ended with code -9"), ("runs_out_of_memory", "MemoryError"),
])
def test_what_was_found_survives(fake: str, words: str) -> None:
    if fake == "is_killed" and os.name != "posix":
        pytest.skip("needs SIGKILL")
    heard: list[tuple[Program | None, int | None]] = []
    problem = two_loads()
    began = time.monotonic()
    result = solve_guarded(
        f"tests.exact.fakes:{fake}", problem, time_limit=5 if fake == "overruns" else 60,
        on_progress=lambda program, bound: heard.append((program, bound)),
    )
    assert time.monotonic() - began < (7 if fake == "overruns" else 30)
    assert words in result.message
    assert result.status is Status.FEASIBLE
    assert result.program is not None
    assert check(problem, result.program).valid
    assert result.lower_bound_ns == 3
    assert heard == [(result.program, 3)]


@pytest.mark.parametrize("missing", ["no_such_package.solver:solve", "planner.exact.segments_cpsat:no_such_name"])
def test_a_missing_solver_is_an_answer(missing: str) -> None:
    result = solve_guarded(missing, two_loads(), time_limit=30)
    assert result.status is Status.UNKNOWN
    assert "no_such" in result.message


def test_the_hint_is_kept_when_nothing_else_is_found() -> None:
    problem = two_loads()
    known = solve_guarded("cpsat", problem, time_limit=60).program
    result = solve_guarded("no_such_package.solver:solve", problem, hint=known, time_limit=30)
    assert result.status is Status.FEASIBLE
    assert result.program == known


def test_talk_on_standard_output_does_no_harm() -> None:
    result = solve_guarded("tests.exact.fakes:prints", two_loads(), time_limit=30)
    assert result.status is Status.FEASIBLE
    assert result.message == "done"


def test_a_program_that_breaks_the_rules_is_not_believed() -> None:
    result = solve_guarded("tests.exact.fakes:returns_nonsense", two_loads(), time_limit=30)
    assert result.status is Status.UNKNOWN
    assert result.program is None
    assert "checker rejects" in result.message


@pytest.mark.parametrize("line", ["", "garbage", "[1, 2]", "null", '{"better": 7, "bound": "x"}', '{"status": "best"}'])
def test_unreadable_lines_are_noted(line: str) -> None:
    state = _State(two_loads(), None, None, None, None)
    state.take(line)
    assert state.final is None
    assert "unreadable" in state.failure


def test_a_model_too_large_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.exact import segments_cpsat, segments_milp

    monkeypatch.setattr(segments_cpsat, "MODEL_LIMIT", 5)
    monkeypatch.setattr(segments_milp, "MODEL_LIMIT", 5)
    for solve in (segments_cpsat.solve_cpsat, segments_milp.solve_milp):
        result = solve(joint_choice(13, offload=True, recompute=False), time_limit=30)
        assert result.status is Status.FEASIBLE
        assert "more than the limit of 5" in result.message


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_kills_the_child_and_hands_over_the_best() -> None:
    script = (
        "from planner.exact.guard import solve_guarded\n"
        "from tests.exact.problems import two_loads\n"
        "def heard(program, bound): print('found' if program else 'nothing', flush=True)\n"
        "try:\n"
        "    solve_guarded('tests.exact.fakes:overruns', two_loads(), time_limit=50, on_progress=heard)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "found\n"
    listed = ["ps", "-o", "pid=", "--ppid", str(parent.pid)]
    child = int(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()[0])
    parent.send_signal(signal.SIGINT)
    rest, _ = parent.communicate(timeout=20)
    assert rest.splitlines() == ["found", "interrupted"]
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
