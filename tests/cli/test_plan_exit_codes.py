"""Exit codes, files and streams of ``planner plan``, with a solve that answers as told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.errors import SolverError
from planner.io.plan_json import load_plan
from planner.plan import BudgetNeed, Plan, Status, Witness
from tests.cli.conftest import Result
from tests.duplex import PROGRAM, SLOW, make_plan

Cli = Callable[..., Result]
Stub = Callable[[Callable[..., Plan]], None]


def _answer(plan: Plan) -> Callable[..., Plan]:
    return lambda *_args, **_options: plan


@pytest.mark.parametrize(
    ("status", "bound", "gap", "code"),
    [
        (Status.OPTIMAL, 7, "0", 0),
        (Status.FEASIBLE, 7, "0.01", 0),
        (Status.FEASIBLE, 6, "0.2", 0),
        (Status.FEASIBLE, 6, "0.1", 4),
        (Status.FEASIBLE, None, "0.5", 4),
    ],
)
def test_gap_decides(
    cli: Cli, stub_solve: Stub, files: Path, status: Status, bound: int | None, gap: str, code: int
) -> None:
    stub_solve(_answer(make_plan(files / "problem.json", PROGRAM, status, lower_bound_ns=bound)))
    result = cli("plan", "problem.json", "--gap", gap, "-o", "out.json", "--json")
    assert result.code == code
    assert load_plan(files / "out.json").program == PROGRAM
    assert result.json["makespan_ns"] == 7
    assert {
        "status",
        "lower_bound_ns",
        "gap",
        "ideal_ns",
        "peak_bytes",
        "moved_bytes",
        "recomputed_ns",
        "stall_ns",
        "method",
        "scope",
        "message",
        "seconds",
    } <= result.json.keys()


def test_infeasible_names_the_least_budget_and_writes_nothing(cli: Cli, stub_solve: Stub, files: Path) -> None:
    plan = make_plan(
        files / "problem.json",
        None,
        Status.INFEASIBLE,
        minimum_budget_bytes={"device": BudgetNeed(12, 12)},
        witness=Witness("op1", (("o1", 12),), 12, "device"),
    )
    stub_solve(_answer(plan))
    result = cli("plan", "problem.json", "-o", "out.json", "--json")
    assert result.code == 3
    assert not (files / "out.json").exists()
    assert result.json["minimum_budget_bytes"] == {"device": {"value": 12, "lower_bound": 12, "proved": True}}
    assert result.json["witness"]["op"] == "op1"
    shown = cli("plan", "problem.json").out
    assert "12 B" in shown
    assert "op 'op1'" in shown


def test_unknown_without_a_plan(cli: Cli, stub_solve: Stub, files: Path) -> None:
    stub_solve(_answer(make_plan(files / "problem.json", None, Status.UNKNOWN)))
    assert cli("plan", "problem.json", "-o", "out.json").code == 4
    assert not (files / "out.json").exists()


def test_better_plans_are_written_at_once(cli: Cli, stub_solve: Stub, files: Path) -> None:
    seen: list[Any] = []

    def solve(*_args: Any, on_plan: Callable[[Plan], None], **_options: Any) -> Plan:
        for program in (SLOW, PROGRAM):
            on_plan(make_plan(files / "problem.json", program))
            seen.append(load_plan(files / "out.json").program)
        return make_plan(files / "problem.json", PROGRAM)

    stub_solve(solve)
    cli("plan", "problem.json", "-o", "out.json")
    assert seen == [SLOW, PROGRAM]
    assert not list(files.glob(".out.json*"))


@pytest.mark.parametrize(("found", "code"), [(True, 4), (False, 130)])
def test_interrupt_that_escapes_solve(cli: Cli, stub_solve: Stub, files: Path, found: bool, code: int) -> None:
    def solve(*_args: Any, on_plan: Callable[[Plan], None], **_options: Any) -> Plan:
        if found:
            on_plan(make_plan(files / "problem.json", SLOW))
        raise KeyboardInterrupt

    stub_solve(solve)
    result = cli("plan", "problem.json", "-o", "out.json", "--json")
    assert result.code == code
    assert (files / "out.json").exists() == found
    if found:
        assert result.json["makespan_ns"] == 14


def test_options_reach_solve(cli: Cli, stub_solve: Stub, files: Path) -> None:
    got: dict[str, Any] = {}

    def solve(problem: Any, **options: Any) -> Plan:
        got.update(options, budgets=dict(problem.budgets), rules=problem.rules)
        return make_plan(files / "problem.json", PROGRAM, Status.OPTIMAL, lower_bound_ns=7)

    stub_solve(solve)
    code = cli(
        "plan",
        "problem.json",
        "--method",
        "optimal",
        "--time-limit",
        "2min",
        "--gap",
        "0.5",
        "--seed",
        "7",
        "--reproducible",
        "--budget",
        "device=23",
        "--recompute",
        "--no-offload",
    ).code
    assert code == 0
    assert (got["method"], got["time_limit"], got["gap"], got["seed"]) == ("optimal", 120, 0.5, 7)
    assert got["budgets"] == {"device": 23}
    assert got["rules"].recompute
    assert not got["rules"].offload


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("2min", 120), ("500ms", 0.5), ("5", 5), ("0.25", 0.25)])
def test_time_limits(cli: Cli, stub_solve: Stub, files: Path, text: str, seconds: float) -> None:
    got: dict[str, Any] = {}

    def solve(_problem: Any, **options: Any) -> Plan:
        got.update(options)
        return make_plan(files / "problem.json", PROGRAM, Status.OPTIMAL, lower_bound_ns=7)

    stub_solve(solve)
    cli("plan", "problem.json", "--time-limit", text)
    assert got["time_limit"] == seconds


def test_unexpected_errors_are_short(cli: Cli, stub_solve: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_args: Any, **_options: Any) -> Plan:
        raise ZeroDivisionError("inside")

    stub_solve(crash)
    result = cli("plan", "problem.json", "--json")
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines()[-1].startswith("error: ZeroDivisionError: inside")
    assert "Traceback" not in result.err
    monkeypatch.setenv("PLANNER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli("plan", "problem.json")


def test_solver_error_is_a_failure(cli: Cli, stub_solve: Stub) -> None:
    def disagree(*_args: Any, **_options: Any) -> Plan:
        raise SolverError("solver disagreement")

    stub_solve(disagree)
    result = cli("plan", "problem.json")
    assert (result.code, result.err.splitlines()[-1]) == (1, "error: solver disagreement")
