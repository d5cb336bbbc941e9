"""A plan in words, HTML and as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.plan import BudgetNeed, Status, Witness
from planner.report import moved_by_kind
from tests.duplex import PROGRAM, SLOW, make_plan, write_files


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Folder with the toy problem."""
    return write_files(tmp_path)


def test_summary_says_what_moved_even_if_nothing_did(files: Path) -> None:
    text = make_plan(files / "problem.json", PROGRAM, lower_bound_ns=7, provenance={"seed": 3}).summary()
    for part in (
        "duplex on toy: feasible (stub)",
        "7 ns",
        "gap 0.000 %",
        "24 B of budget 24 B",
        "host peak",
        "of unbounded",
        "weight 12 B",
        "activation 12 B",
        "fixed order, no recompute, whole tensors",
        "seed 3",
    ):
        assert part in text, part
    idle = make_plan(files / "problem.json", PROGRAM.__class__(PROGRAM.instructions[1:2]))
    assert "moved host>device  0 B" in idle.summary()


def test_infeasible_summary_names_budget_and_witness(files: Path) -> None:
    plan = make_plan(
        files / "problem.json",
        None,
        Status.INFEASIBLE,
        witness=Witness(None, (("x", 12),), 12, "device"),
        minimum_budget_bytes={"device": BudgetNeed(13, 12), "host": BudgetNeed(None, 5)},
    )
    text = plan.summary()
    assert "13 B is enough, at least 12 B is needed" in text
    assert "no plan known, at least 5 B is needed" in text
    assert "what starts or must end there on device: 12 B = x 12 B" in text


def test_html_escapes(files: Path) -> None:
    page = make_plan(files / "problem.json", PROGRAM, message="<b>")._repr_html_()
    assert "host&gt;device" in page
    assert "<b>" not in page


def test_moved_by_kind(files: Path) -> None:
    assert moved_by_kind(make_plan(files / "problem.json", SLOW)) == {
        "host>device": {"weight": 12},
        "device>host": {"activation": 12},
    }


def test_dataframe_has_one_row_an_instruction(files: Path) -> None:
    frame = make_plan(files / "problem.json", SLOW).to_dataframe()
    assert list(frame["kind"]) == ["run", "copy", "drop", "copy", "run"]
    assert list(frame["end_ns"]) == [1, 7, 7, 13, 14]
    assert list(frame["bytes"]) == [0, 12, 12, 12, 0]
    assert list(frame["lane"])[:2] == ["compute", "device>host"]
    assert len(make_plan(files / "problem.json", None, Status.UNKNOWN).to_dataframe()) == 0
