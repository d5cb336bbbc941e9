"""Problem and plan files with random damage: each is read or refused by name, and nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.check import check
from planner.errors import InputError
from planner.io.files import load_problem
from planner.io.plan_json import load_plan

PROBLEM: dict[str, Any] = {
    "format": "planner-problem/1", "budgets": {"device": 9}, "objective": "peak", "max_slowdown": 2,
    "graph": {
        "format": "planner-graph/1", "name": "g",
        "tensors": [{"name": "a", "size": 1, "home": ["device"]}, {"name": "w", "size": 4, "home": ["host"], "alias_of": None},
                    {"name": "b", "size": 1, "keep": "device", "kind": "output"}],
        "ops": [{"name": "f", "reads": ["a", "w"], "writes": ["b"], "updates": [], "after": [], "duration": 5, "workspace": 1,
                 "stream": "s", "flops": 3, "bytes": 4, "dtype": "bf16", "placements": [{"at": {"w": "host"}, "duration": 9}]}],
    },
    "machine": {
        "format": "planner-machine/1", "name": "m", "notes": {"from": "here"},
        "tiers": [{"name": "device", "capacity": 10}, {"name": "host", "capacity": None}],
        "links": [{"src": "host", "dst": "device", "bandwidth": "1GB/s", "latency": 0},
                  {"src": "device", "dst": "host", "bandwidth": "1GB/s"}],
        "compute": {"flops": {"bf16": "1TFLOP/s"}, "memory_bandwidth": "1GB/s", "efficiency": 0.5, "launch": 1},
    },
    "rules": {"recompute": True, "split": True, "chunk": 2, "direct": True, "pin": {"b": "device"}},
}
PLAN: dict[str, Any] = {
    "format": "planner-plan/1", "start": {}, "provenance": {},
    "program": [["copy", "w#0", "host", "device"], ["copy", "w#1", "host", "device"], ["run", "f"]],
    "claim": {"status": "feasible", "makespan_ns": 9, "peak_bytes": {"device": 7, "host": 4}, "moved_bytes": {"host>device": 4},
              "recomputed_ns": 0, "stall_ns": 9, "lower_bound_ns": 3, "lower_bound_bytes": 7, "gap": 0.0},
}
JUNK: list[Any] = [
    None, True, 0, 1, -1, 2**62, 2**62 + 1, 10**30, 1.5, 1e308, "", "a", "w", "f", "any", "home", "device", "host", "1GB",
    "1GB/s", "5ns", "1/0", "a@b", "w#9", "x.json", "\0", [], ["a"], [[]], [None], {}, {"a": "b"}, {"": ""}, [{}], {"at": {}},
    ["run", "f", {"w#0": "host"}], ["drop", "w#0", "device"],
]


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every member."""
    for key in range(len(data)) if isinstance(data, list) else list(data) if isinstance(data, dict) else ():
        yield data, key
        yield from places(data[key])


def damaged(data: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a copy with a few members replaced, removed or doubled."""
    found = copy.deepcopy(data)
    for _ in range(rng.choice([1, 1, 2, 3])):
        where, key = rng.choice(list(places(found)) or [(found, "x")])
        what = rng.choice(["replace", "replace", "remove", "add"])
        if what == "remove" and where is not found:
            del where[key]
        elif what == "add" and isinstance(where, list):
            where.append(copy.deepcopy(where[key]))
        elif what == "add":
            where[rng.choice(["x", "name", "a"])] = copy.deepcopy(rng.choice(JUNK))
        else:
            where[key] = copy.deepcopy(rng.choice(JUNK))
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the damaged file goes."""
    return tmp_path / "damaged.json"


@pytest.mark.parametrize("seed", range(4))
def test_problems(seed: int, file: Path) -> None:
    rng, read = random.Random(seed), 0
    refusals: list[str] = []
    for _ in range(250):
        file.write_text(json.dumps(damaged(PROBLEM, rng)))
        try:
            problem = load_problem(file)
        except InputError as error:
            refusals.append(str(error))
            continue
        read += 1
        file.write_text(json.dumps(problem.to_dict()))
        assert load_problem(file).sha256 == problem.sha256
    assert read
    assert all(text.startswith(f"{file}: ") for text in refusals)


@pytest.mark.parametrize("seed", range(4))
def test_plans(seed: int, file: Path) -> None:
    file.write_text(json.dumps(PROBLEM))
    problem, rng, judged = load_problem(file), random.Random(seed), 0
    refusals: list[str] = []
    whole = PLAN | {"problem": problem.sha256}
    file.write_text(json.dumps(whole))
    assert check(problem, load_plan(file)).violations == ()
    for _ in range(250):
        file.write_text(json.dumps(damaged(whole, rng)))
        try:
            report = check(problem, load_plan(file))
        except InputError as error:
            refusals.append(str(error))
            continue
        judged += not report.valid
        json.dumps(report.to_dict())
    assert judged
    assert all(text.startswith(f"{file}: ") for text in refusals)
