"""Bad input: exit 2, one line a fault with file, path and value, nothing on stdout, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Result
from tests.duplex import GRAPH

Cli = Callable[..., Result]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["plan", "nowhere.json"], "nowhere.json: no such file"),
        (["plan", "no-such-model", "--machine", "machine.json"], "no-such-model"),
        (["plan", "graph.json"], "--machine: 'graph.json' is a graph"),
        (["plan", "machine.json"], "machine.json: holds a machine"),
        (["plan", "plan.json"], "plan.json: holds a plan"),
        (["plan", "problem.json", "--machine", "gone.json"], "gone.json"),
        (["plan", "problem.json", "--budget", "device=6G"], "--budget device: '6G'"),
        (["plan", "problem.json", "--budget", "device"], "--budget: 'device'"),
        (["plan", "problem.json", "--budget", "vram=6"], "budgets.vram: unknown tier"),
        (["plan", "problem.json", "--budget", "device=25"], "budgets.device: 25 bytes is above"),
        (["plan", "problem.json", "--budget", "device=101%"], "--budget device: '101%'"),
        (["plan", "problem.json", "--budget", "device=0%"], "--budget device: '0%'"),
        (["plan", "problem.json", "--budget", "device=x%"], "--budget device: 'x%'"),
        (["plan", "problem.json", "--budget", "device=9", "--budget", "device=8"], "'device' is given twice"),
        (["plan", "problem.json", "--chunk", "4"], "rules.chunk: has no effect without"),
        (["plan", "problem.json", "--pin", "nosuch=device"], "rules.pin.nosuch: matches no tensor"),
        (["plan", "problem.json", "--pin", "W=vram"], "rules.pin.W: unknown tier 'vram'"),
        (["plan", "problem.json", "--objective", "speed"], "objective: 'speed'"),
        (["plan", "problem.json", "--objective", "peak"], "objective: 'peak' needs"),
        (["plan", "problem.json", "--max-slowdown", "1.1"], "no effect on the objective 'makespan'"),
        (["plan", "problem.json", "--objective", "peak", "--max-slowdown", "0.5"], "max_slowdown"),
        (["plan", "problem.json", "--objective", "peak", "--max-makespan", "1.5"], "max_makespan: '1.5'"),
        (["plan", "problem.json", "--time-limit", "60m"], "--time-limit: '60m'"),
        (["plan", "problem.json", "--time-limit", "0"], "--time-limit: '0'"),
        (["plan", "problem.json", "--time-limit", "nan"], "--time-limit: 'nan'"),
        (["plan", "problem.json", "--gap", "-0.1"], "--gap: -0.1"),
        (["plan", "problem.json", "--gap", "inf"], "--gap: inf"),
        (["plan", "problem.json", "-o", "no/such/folder/plan.json"], "cannot be written"),
        (["check", "problem.json", "gone.json"], "gone.json: cannot be read"),
        (["check", "problem.json", "graph.json"], "graph.json: "),
        (["replay", "problem.json", "plan.json", "--bandwidth-scale", "0"], "--bandwidth-scale: 0.0"),
        (["replay", "problem.json", "plan.json", "--added-latency", "5"], None),
        (["replay", "problem.json", "plan.json", "--added-latency", "-5ns"], "--added-latency"),
        (["compare", "problem.json", "--methods", "greedy,,auto"], "--methods"),
        (["compare", "problem.json", "--methods", "nosuch"], "unknown method 'nosuch'"),
        (["capture", "a.csv", "b.csv", "--batch", "8", "-o", "g.json"], "--batch: has no effect on a G10 trace"),
        (["capture", "gpt2", "-o", "g.txt"], "--output: 'g.txt'"),
        (["capture", "a.onnx", "--optimizer", "adamw", "-o", "g.json"], "--optimizer: has no effect on an ONNX file"),
    ],
)
def test_one_line_with_place_and_value(cli: Cli, arguments: list[str], expected: str | None) -> None:
    result = cli(*arguments)
    if expected is None:
        assert result.code == 0, result.err
        return
    assert (result.code, result.out) == (2, ""), result.err
    assert expected in result.err
    assert "Traceback" not in result.err


def test_all_faults_of_a_file_are_listed_a_line_each(cli: Cli, files: Path) -> None:
    graph = json.loads(json.dumps(GRAPH))
    graph["tensors"][0]["size"] = -1
    graph["tensors"][1]["size"] = "12G"
    graph["ops"][0]["capasity"] = 1
    (files / "graph.json").write_text(json.dumps(graph))
    result = cli("info", "graph.json", "--machine", "machine.json")
    lines = [line for line in result.err.splitlines() if line.startswith("error: graph.json: ")]
    assert result.code == 2
    assert [line.split(": ")[2] for line in lines] == ["tensors[0].size", "tensors[1].size", "ops[0].capasity"]


@pytest.mark.parametrize(
    "text", ["", "{", '{"format": "planner-problem/1",}', "[" * 100_000, "\x00", '"problem"', "null"]
)
def test_broken_files(cli: Cli, files: Path, text: str) -> None:
    (files / "problem.json").write_text(text)
    result = cli("plan", "problem.json")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: problem.json: ")
    assert len(result.err.splitlines()) == 1


def test_a_plan_without_program_has_nothing_to_run(cli: Cli, files: Path) -> None:
    from planner.plan import Status
    from tests.duplex import make_plan

    make_plan(files / "problem.json", None, Status.INFEASIBLE).save(files / "none.json")
    assert cli("check", "problem.json", "none.json").code == 5
    result = cli("replay", "problem.json", "none.json")
    assert result.code == 2
    assert "none.json: program: is null" in result.err
