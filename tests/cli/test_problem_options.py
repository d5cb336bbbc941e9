"""PROBLEM and the options that shape it: each changes the problem, or says that it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.cli.source import read_problem
from planner.errors import InputError
from planner.problem import Problem
from tests.duplex import GRAPH, MACHINE


def _read(files: Path, **options: object) -> Problem:
    return read_problem(str(files / "problem.json"), **options)  # type: ignore[arg-type]


def test_no_options_is_the_file_itself(files: Path) -> None:
    from planner.io import load_problem

    assert _read(files).sha256 == load_problem(files / "problem.json").sha256


def test_graph_and_machine_make_the_same_problem(files: Path) -> None:
    made = read_problem(str(files / "graph.json"), machine=str(files / "machine.json"))
    assert made.sha256 == _read(files).sha256


@pytest.mark.parametrize("name", ["offload", "recompute", "reorder", "split", "direct"])
@pytest.mark.parametrize("value", [True, False])
def test_each_switch_sets_its_rule(files: Path, name: str, value: bool) -> None:
    assert getattr(_read(files, **{name: value}).rules, name) is value


def test_options_leave_the_rest_of_a_problem_alone(files: Path) -> None:
    data = {
        "format": "planner-problem/1",
        "graph": "graph.json",
        "machine": "machine.json",
        "budgets": {"device": 20, "host": 99},
        "rules": {"recompute": True, "split": True, "chunk": 4, "pin": {"W": "device"}},
        "objective": "peak",
        "max_slowdown": 1.05,
    }
    (files / "problem.json").write_text(json.dumps(data))
    made, plain = _read(files, budget=["device=18"], reorder=True, pin=["o1=device"]), _read(files)
    assert made.budgets == {"device": 18, "host": 99}
    assert made.rules.pin == (("W", "device"), ("o1", "device"))
    assert (made.rules.recompute, made.rules.reorder, made.rules.chunk) == (True, True, 4)
    assert made.objective == plain.objective
    assert _read(files, split=False).rules.split is False
    back = _read(files, objective="makespan")
    assert (back.objective.kind, back.objective.max_slowdown) == ("makespan", None)
    assert _read(files, objective="peak", max_makespan="9ns").objective.max_makespan == 9


def test_another_machine_replaces_the_own(files: Path) -> None:
    (files / "wide.json").write_text(json.dumps({**MACHINE, "name": "wide"}))
    assert _read(files, machine=str(files / "wide.json")).machine.name == "wide"


def test_percent_is_a_share_of_the_resident_peak(files: Path) -> None:
    # Resident: op1 makes o1 (12), op2 loads W (12) while o1 waits for its copy to the host.
    import planner

    peak = planner.info(_read(files)).resident_peak_bytes["device"]
    assert _read(files, budget=["device=75%"]).budgets["device"] == peak * 75 // 100
    with pytest.raises(InputError, match="unknown tier 'vram'"):
        _read(files, budget=["vram=50%"])


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ({"recompute": True}, "--recompute has no effect"),
        ({"split": True}, "--split has no effect"),
        ({"direct": True}, "--direct has no effect"),
        ({"reorder": True}, "--reorder has no effect"),
        ({"offload": True}, "--offload has no effect"),
    ],
)
def test_options_that_cannot_matter_are_reported(
    files: Path, capsys: pytest.CaptureFixture[str], options: dict[str, object], warning: str
) -> None:
    graph = json.loads(json.dumps(GRAPH))
    for op in graph["ops"]:
        op["recomputable"] = False
    graph["ops"][1]["after"] = ["op1"]
    graph["tensors"][2]["keep"] = None
    machine = {**MACHINE, "links": MACHINE["links"][:1]}  # type: ignore[index]
    (files / "graph.json").write_text(json.dumps(graph))
    (files / "machine.json").write_text(json.dumps(machine))
    _read(files)
    assert "no effect" not in capsys.readouterr().err
    _read(files, **options)
    assert warning in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [{"recompute": True}, {"split": True, "chunk": "4"}, {"reorder": True}, {"offload": True}]
)
def test_options_that_can_matter_are_not(
    files: Path, capsys: pytest.CaptureFixture[str], options: dict[str, object]
) -> None:
    _read(files, **options)
    assert "no effect" not in capsys.readouterr().err
