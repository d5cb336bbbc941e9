"""The table of methods: gaps against the best bound of all, invalid plans shown as such."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.compare import Comparison
from planner.errors import InputError, InvalidPlanError, SolverError
from planner.plan import Plan, Status
from planner.program import Program
from tests.duplex import PROGRAM, SLOW, make_plan, write_files


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Folder with the toy problem."""
    return write_files(tmp_path)


@pytest.fixture
def table(files: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Comparison]:
    """Run compare with a solve that answers from ``plans`` by method."""
    problem = planner.load(files / "problem.json")

    def run(**plans: Plan | Exception) -> Comparison:
        def solve(_problem: Any, *, method: str, **_options: Any) -> Plan:
            answer = plans[method]
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(sys.modules["planner.solve"], "solve", solve)
        monkeypatch.setattr("planner.heuristics.registry.available", lambda: dict.fromkeys(plans))
        return planner.compare(problem, methods=list(plans))

    return run


def test_gap_is_against_the_best_bound(table: Callable[..., Comparison], files: Path) -> None:
    file = files / "problem.json"
    rows = table(
        slow=make_plan(file, SLOW, lower_bound_ns=2),
        fast=make_plan(file, PROGRAM, lower_bound_ns=6),
        proof=make_plan(file, None, Status.UNKNOWN, lower_bound_ns=7),
    )
    assert (rows.lower_bound_ns, rows.bound_method) == (7, "proof")
    assert [row.gap for row in rows] == [1.0, 0.0, None]
    assert [row.status for row in rows] == ["feasible", "optimal", "unknown"]
    assert [row.valid for row in rows] == [True, True, False]
    assert rows["slow"].moved_bytes == {"host>device": 12, "device>host": 12}


def test_invalid_and_failing_methods_are_shown(table: Callable[..., Comparison], files: Path) -> None:
    file = files / "problem.json"
    wrong = make_plan(file, SLOW)
    object.__setattr__(wrong, "program", Program(SLOW.instructions[1:]))
    rows = table(
        wrong=wrong,
        refused=InvalidPlanError("a rejected plan"),
        broken=SolverError("crashed"),
        good=make_plan(file, PROGRAM),
    )
    assert [row.valid for row in rows] == [False, False, False, True]
    assert [cells[-1] for cells in rows.cells()] == ["INVALID", "INVALID", "–", "yes"]
    assert rows.lower_bound_ns is None
    assert "no bound was proved" in rows.footer()
    assert "crashed" in rows.footer()


def test_forms(table: Callable[..., Comparison], files: Path) -> None:
    rows = table(fast=make_plan(files / "problem.json", PROGRAM, lower_bound_ns=7))
    frame = rows.to_dataframe()
    assert frame.loc[0, "makespan_ns"] == 7
    assert frame.loc[0, "moved_bytes.host>device"] == 12
    assert "<td>fast</td>" in rows._repr_html_()
    assert rows.to_dict()["rows"][0].keys() >= {
        "method",
        "status",
        "makespan_ns",
        "gap",
        "peak_bytes",
        "moved_bytes",
        "seconds",
        "valid",
    }
    with pytest.raises(KeyError):
        rows["other"]


@pytest.mark.parametrize("methods", [["nosuch"], ["auto", "auto"], []])
def test_bad_methods(files: Path, methods: list[str]) -> None:
    with pytest.raises(InputError):
        planner.compare(planner.load(files / "problem.json"), methods=methods)


def test_every_heuristic_against_the_optimum(files: Path) -> None:
    rows = planner.compare(planner.load(files / "problem.json"), time_limit=10)
    assert rows["auto"].makespan_ns == rows.lower_bound_ns == 7
    assert all(row.valid and row.gap is not None and row.gap >= 0 for row in rows if row.makespan_ns is not None)
    assert len(rows) >= 3
