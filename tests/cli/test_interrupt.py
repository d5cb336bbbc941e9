"""Ctrl-C, kill and time-out leave the best checked plan on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from planner.io.plan_json import load_plan
from tests.cli.conftest import ROOT, spawn
from tests.duplex import GPU, SLOW, make_plan

#: A solve that finds one plan and then searches for ever: interrupted it returns what it has, as the real one does.
ENDLESS = """
import sys, time
from dataclasses import replace
import planner
from planner.cli import main
from planner.plan import Status
from tests.duplex import GPU, SLOW, make_plan

def solve(problem, *, on_plan, **options):
    found = make_plan("problem.json", SLOW, lower_bound_ns=6)
    on_plan(found)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        return replace(found, message="interrupted")

sys.modules["planner.solve"].solve = solve
sys.exit(main(sys.argv[1:]))
"""


def _wait_for(path: Path, process: subprocess.Popen[str], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_reports_and_keeps_the_plan(files: Path, number: int) -> None:
    process = spawn(["plan", "problem.json", "-o", "out.json", "--json"], files, ENDLESS)
    _wait_for(files / "out.json", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 4, err
    assert json.loads(out)["message"] == "interrupted"
    assert load_plan(files / "out.json").program == SLOW


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_kill_keeps_the_plan(files: Path) -> None:
    process = spawn(["plan", "problem.json", "-o", "out.json"], files, ENDLESS)
    _wait_for(files / "out.json", process)
    process.kill()
    process.communicate(timeout=20)
    assert load_plan(files / "out.json").program == SLOW
    assert make_plan(files / "problem.json", load_plan(files / "out.json").program).makespan_ns == 14


def test_ctrl_c_in_a_real_solve(files: Path) -> None:
    (files / "gpu.json").write_text(json.dumps(GPU))
    command = [
        "plan",
        "gpt2-train",
        "--machine",
        "gpu.json",
        "--budget",
        "device=60%",
        "--gap",
        "0",
        "--time-limit",
        "90s",
    ]
    process = spawn([*command, "-o", "out.json", "--json"], files)
    _wait_for(files / "out.json", process, 60)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 15
    assert process.returncode == 4, err
    told = json.loads(out)
    assert (told["status"], "interrupted" in told["message"]) == ("feasible", True)
    assert load_plan(files / "out.json").claim["makespan_ns"] == told["makespan_ns"]


def test_tiny_time_limit_still_gives_a_plan(files: Path) -> None:
    process = spawn(
        ["plan", "problem.json", "--time-limit", "0.01s", "--gap", "0", "-o", "out.json", "--json"], files
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 4), err
    assert json.loads(out)["makespan_ns"] >= 7
    assert load_plan(files / "out.json").program is not None


def test_root_is_the_repository() -> None:
    assert (ROOT / "pyproject.toml").is_file()
