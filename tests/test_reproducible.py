"""Reproducible mode: same problem, version and seed give the same bytes, in other processes, too."""

from __future__ import annotations

import subprocess
import sys

import planner
from planner.info import resident_peak
from planner.io.plan_json import plan_bytes
from planner.least_budget import lower_bound

SCRIPT = """
import sys
import planner
from planner.io.plan_json import plan_bytes
problem = planner.Problem(planner.load_model("unet-train"), planner.preset("a100-40g-pcie4"), {"device": int(sys.argv[1])})
plan = planner.solve(problem, reproducible=True, gap=0.0, seed=3, time_limit=600)
sys.stdout.buffer.write(plan_bytes(plan))
"""


def _budget() -> int:
    free = planner.Problem(planner.load_model("unet-train"), planner.preset("a100-40g-pcie4"))
    least, peak = lower_bound(free, "device")[0], resident_peak(free)["device"]
    return least + (peak - least) // 2


def test_same_bytes_in_two_processes() -> None:
    runs = [subprocess.run([sys.executable, "-c", SCRIPT, str(_budget())], capture_output=True, check=True, timeout=300).stdout
            for _ in range(2)]
    assert runs[0] == runs[1]
    assert b'"mode":"reproducible"' in runs[0]


def test_a_plan_that_needs_no_search_is_the_same_in_one_process() -> None:
    problem = planner.Problem(planner.load_model("vgg19-train"), planner.preset("h100-pcie5"))
    first, second = (plan_bytes(planner.solve(problem, reproducible=True)) for _ in range(2))
    assert first == second
