"""plan → check → replay → export on a problem whose optimum is known; one JSON object on stdout each time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.program import Program
from tests.cli.conftest import Result
from tests.duplex import PROGRAM, SLOW, make_plan

Cli = Callable[..., Result]


def test_optimum_is_found_and_stands(cli: Cli) -> None:
    made = cli("plan", "problem.json", "--gap", "0", "--time-limit", "30s", "-o", "new.json", "--json")
    assert made.code == 0, made.err
    assert (made.json["status"], made.json["makespan_ns"], made.json["gap"]) == ("optimal", 7, 0.0)
    checked = cli("check", "problem.json", "new.json", "--json")
    assert (checked.code, checked.json["valid"], checked.json["violations"]) == (0, True, [])
    assert checked.json["peak_bytes"]["device"] == made.json["peak_bytes"]["device"]
    replayed = cli("replay", "problem.json", "new.json", "--json")
    for key in ("makespan_ns", "peak_bytes", "moved_bytes", "recomputed_ns", "stall_ns"):
        assert replayed.json[key] == made.json[key], key


def test_budget_changes_the_answer(cli: Cli) -> None:
    tight = cli("plan", "problem.json", "--budget", "device=12", "--gap", "0", "--time-limit", "30s", "--json")
    assert (tight.code, tight.json["makespan_ns"], tight.json["peak_bytes"]["device"]) == (0, 14, 12)


def test_infeasible_budget(cli: Cli) -> None:
    result = cli("plan", "problem.json", "--budget", "device=11", "--time-limit", "30s", "--json")
    assert (result.code, result.json["status"]) == (3, "infeasible")
    assert result.json["minimum_budget_bytes"]["device"]["value"] == 12
    assert result.json["witness"]["op"] in ("op1", "op2")


def test_reproducible_plans_are_equal_bytes(cli: Cli, files: Path) -> None:
    for name in ("a.json", "b.json"):
        assert cli("plan", "problem.json", "--reproducible", "--seed", "3", "-o", name).code == 0
    assert (files / "a.json").read_bytes() == (files / "b.json").read_bytes()


def test_slower_links_take_longer(cli: Cli) -> None:
    result = cli("replay", "problem.json", "plan.json", "--bandwidth-scale", "0.5", "--json")
    assert (result.code, result.json["makespan_ns"], result.json["claimed_makespan_ns"]) == (0, 13, 7)
    assert result.json["scale"] == {"bandwidth": 0.5}
    assert cli("replay", "problem.json", "plan.json", "--added-latency", "3ns", "--json").json["makespan_ns"] == 10
    assert cli("replay", "problem.json", "plan.json", "--duration-scale", "2", "--json").json["makespan_ns"] == 8
    assert "13 ns" in cli("replay", "problem.json", "plan.json", "--bandwidth-scale", "0.5").out


@pytest.mark.parametrize("command", [["check"], ["replay"], ["export", "--format", "csv", "-o", "x.csv"]])
def test_invalid_plan(cli: Cli, files: Path, command: list[str]) -> None:
    broken = Program(SLOW.instructions[1:])
    data = make_plan(files / "problem.json", SLOW).to_dict() | {"program": broken.to_list()}
    (files / "broken.json").write_text(json.dumps(data))
    name, *options = command
    result = cli(name, "problem.json", "broken.json", *options)
    assert result.code == 5
    assert "instruction 0 ['copy', 'o1', 'device', 'host']" in result.out + result.err
    assert not (files / "x.csv").exists()
    if name != "export":
        verdict = cli(name, "problem.json", "broken.json", "--json", *options)
        assert (verdict.code, verdict.json["valid"]) == (5, False)
        assert verdict.json["violations"][0].keys() == {"index", "instruction", "code", "message"}


def test_plan_of_another_problem_is_noticed(cli: Cli) -> None:
    result = cli("check", "problem.json", "plan.json", "--recompute")
    assert (result.code, "wrong-problem" in result.out) == (5, True)
    # Replaying elsewhere is legal if the program is: that is what robustness curves are made of.
    result = cli("replay", "problem.json", "plan.json", "--recompute")
    assert (result.code, "was made for problem" in result.err) == (0, True)
    assert cli("replay", "problem.json", "plan.json", "--budget", "device=23").code == 5


def test_false_claims_are_found(cli: Cli, files: Path) -> None:
    data = make_plan(files / "problem.json", PROGRAM).to_dict()
    data["claim"]["makespan_ns"] = 6
    (files / "liar.json").write_text(json.dumps(data))
    result = cli("check", "problem.json", "liar.json", "--json")
    assert (result.code, [v["code"] for v in result.json["violations"]]) == (5, ["wrong-claim"])


@pytest.mark.parametrize(
    ("kind", "head"),
    [("perfetto", b"{"), ("memory_viz", b""), ("csv", b"index,kind,name"), ("html", b"<!"), ("png", b"\x89PNG")],
)
def test_export(cli: Cli, files: Path, kind: str, head: bytes) -> None:
    result = cli("export", "problem.json", "plan.json", "--format", kind, "-o", "out.bin")
    assert result.code == 0, result.err
    assert (files / "out.bin").read_bytes().lower().startswith(head.lower())


def test_info(cli: Cli) -> None:
    found = cli("info", "problem.json", "--json")
    assert found.code == 0
    assert found.json["minimum_budget_bytes"]["device"] == {"value": 12, "lower_bound": 12, "proved": True}
    assert found.json["resident_peak_bytes"]["device"] == 24
    assert {"op", "tensors", "bytes"} <= found.json["witness"].keys()
    shown = cli("info", "problem.json").out
    assert "resident peak" in shown
    assert "12 B" in shown
    small = cli("info", "problem.json", "--budget", "device=11", "--json")
    assert (small.code, small.json["status"]) == (0, "infeasible")


def test_summary_shows_bytes_of_every_tier(cli: Cli) -> None:
    shown = cli("plan", "problem.json", "--time-limit", "30s").out
    for text in ("device peak", "host peak", "moved host>device", "moved device>host", "scope", "problem "):
        assert text in shown


def test_doctor(cli: Cli) -> None:
    doctor = cli("doctor", "--json")
    assert doctor.code == 0, doctor.out
    assert doctor.json["ok"]
    assert "doctor" not in doctor.err


def test_presets_lists_machines_and_models(cli: Cli) -> None:
    listed = cli("presets", "--json")
    assert listed.json["machines"]
    assert listed.json["models"]
    assert listed.json["machines"][0]["name"] in cli("presets").out


def test_plan_is_the_known_optimum(files: Path) -> None:
    assert make_plan(files / "problem.json", PROGRAM).makespan_ns == 7
    assert make_plan(files / "problem.json", SLOW).makespan_ns == 14
