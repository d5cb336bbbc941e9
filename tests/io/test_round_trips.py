"""Files say what objects say, there and back, byte for byte."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.graph import Graph
from planner.io.files import load_graph, load_machine, load_problem, save_graph
from planner.io.graph_json import _read_slowly
from planner.io.plan_json import PlanFile, load_plan, plan_bytes
from planner.io.problem_json import problem_from_dict
from planner.machine import Compute, Machine
from planner.presets import presets
from planner.problem import Problem
from planner.program import Program
from planner.replay import replay
from tests.strategies import random_problem
from tests.toys import toy

PROBLEMS = [random_problem(random.Random(f"file {i}"), tiers=2 + i % 2) for i in range(30)]

def full() -> dict[str, Any]:
    """Return a problem in which every member of the format has a value of its own."""
    return {
        "format": "planner-problem/1",
        "graph": {
            "format": "planner-graph/1", "name": "full",
            "tensors": [
                {"name": "a", "size": "1kB", "home": ["device"], "kind": "input"},
                {"name": "w", "size": 4096, "home": ["host", "nvme"], "keep": "home", "kind": "weight"},
                {"name": "s", "size": 100, "home": "any", "keep": "home", "kind": "optimizer state"},
                {"name": "b", "size": 64}, {"name": "view", "size": 8, "alias_of": "b"},
                {"name": "c", "size": 0, "keep": "host", "kind": "output"},
            ],
            "ops": [
                {"name": "f", "reads": ["a", "w", "a"], "writes": ["b"], "updates": ["s"], "duration": "5us", "workspace": 96,
                 "stream": "net", "recomputable": False, "placements": [{"at": {"w": "host"}, "duration": "9us"}]},
                {"name": "g", "reads": ["view"], "writes": ["c"], "after": ["f"], "flops": 10**9, "bytes": 10**6,
                 "dtype": "bf16"},
            ],
        },
        "machine": {
            "format": "planner-machine/1", "name": "box",
            "tiers": [
                {"name": "device", "capacity": "24GiB", "reserve": "1GiB", "granule": 512},
                {"name": "host", "capacity": None, "direct": True, "direct_bandwidth": "10GB/s"},
                {"name": "nvme", "capacity": "1TB"},
            ],
            "links": [
                {"src": "host", "dst": "device", "bandwidth": "25GB/s", "latency": "10us", "channel": "bus"},
                {"src": "device", "dst": "host", "bandwidth": "25GB/s", "channel": "bus"},
                {"src": "nvme", "dst": "host", "bandwidth": "3GB/s"},
            ],
            "compute": {"flops": {"bf16": "989TFLOP/s"}, "memory_bandwidth": "3.35TB/s", "efficiency": 0.7, "launch": "3us"},
            "notes": {"source": "a test"},
        },
        "budgets": {"device": "6GiB"},
        "rules": {"offload": False, "recompute": True, "reorder": True, "split": True, "direct": True,
                  "pin": {"b": "device"}, "chunk": "1kB"},
        "objective": "peak", "max_slowdown": 1.05,
    }


@pytest.mark.parametrize("problem", [*PROBLEMS, problem_from_dict(full())], ids=str)
def test_problems(problem: Problem, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(problem.to_dict()))
    found = planner.load(file)
    assert isinstance(found, Problem)
    assert found.to_dict() == problem.to_dict()
    assert found.sha256 == problem.sha256
    assert (found.lowered.tensors, found.lowered.ops) == (problem.lowered.tensors, problem.lowered.ops)
    assert (found.capacity, found.rules, found.objective) == (problem.capacity, problem.rules, problem.objective)


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
@pytest.mark.parametrize("problem", PROBLEMS[:10], ids=str)
def test_graphs_plain_and_packed(problem: Problem, suffix: str, tmp_path: Path) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    save_graph(problem.graph, one)
    found = planner.load(one)
    assert isinstance(found, Graph)
    assert (found.tensors, found.ops, found.name) == (problem.graph.tensors, problem.graph.ops, problem.graph.name)
    save_graph(load_graph(one), two)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("problem", [*PROBLEMS, problem_from_dict(full())], ids=str)
def test_both_ways_of_reading_a_graph_agree(problem: Problem) -> None:
    data = json.loads(json.dumps(problem.graph.to_dict()))
    assert Graph.from_dict(data) == _read_slowly(data) == problem.graph
    written = full()["graph"]
    assert Graph.from_dict(written) == _read_slowly(written)


@pytest.mark.parametrize("machine", [p.machine for p in PROBLEMS[:10]] + [p.machine for p in presets()[:6]], ids=repr)
def test_machines(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(machine.to_dict()))
    assert planner.load(file) == load_machine(file) == machine


def test_an_efficiency_is_kept_exactly() -> None:
    machine = replace(PROBLEMS[0].machine, compute=Compute({"bf16": 10**15}, None, Fraction(2, 3), 5))
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine


def test_parts_in_other_files(tmp_path: Path) -> None:
    problem = PROBLEMS[0]
    (tmp_path / "sub").mkdir()
    save_graph(problem.graph, tmp_path / "sub" / "g.json.gz")
    (tmp_path / "m.json").write_text(json.dumps(problem.machine.to_dict()))
    data = problem.to_dict() | {"graph": "sub/g.json.gz", "machine": "m.json"}
    (tmp_path / "p.json").write_text(json.dumps(data))
    assert load_problem(tmp_path / "p.json").sha256 == problem.sha256
    data = {"format": "planner-problem/1", "graph": "vgg19-train", "machine": "h100-pcie5"}
    (tmp_path / "p.json").write_text(json.dumps(data))
    assert load_problem(tmp_path / "p.json").graph == planner.load_model("vgg19-train")


def solved() -> planner.Plan:
    """Return a small plan."""
    return planner.solve(toy("a=1@D w=4@H v=4@H", "f(5): a,w -> b(1)", "g(5): b,v -> c(1)", D=10, out="c@D"), gap=0)


@pytest.mark.parametrize("name", ["plan.json", "plan.json.gz"])
def test_plans(name: str, tmp_path: Path) -> None:
    plan = solved()
    plan.save(tmp_path / name)
    found = planner.load(tmp_path / name)
    assert isinstance(found, PlanFile)
    assert found.program == plan.program
    assert found.problem == plan.problem.sha256
    assert found.claim == json.loads(json.dumps(plan.claim()))
    assert planner.check(plan.problem, found).valid
    assert replay(plan.problem, found).makespan_ns == plan.makespan_ns


def test_plan_files_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    plan = solved()
    again = replace(plan, seconds=99.0)
    assert plan_bytes(plan) == plan_bytes(again) == plan_bytes(solved())
    for name in ("a.json.gz", "b.json.gz"):
        plan.save(tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plan_bytes(plan)


def test_a_plan_without_program(tmp_path: Path) -> None:
    tight = toy("a=1@D w=4@H", "f(5): a,w -> b(1)", D=5)
    plan = planner.solve(tight)
    plan.save(tmp_path / "none.json")
    found = load_plan(tmp_path / "none.json")
    assert (found.program, found.claim["status"]) == (None, "infeasible")


def test_programs_with_start_and_places() -> None:
    rows = [["run", "f", {"w": "host", "a": "device"}], ["copy", "w", "host", "device"], ["drop", "w", "host"]]
    program = Program.from_list(rows, {"w": "host"})
    assert Program.from_list(json.loads(json.dumps(program.to_list())), dict(program.start)) == program


# the hash


def shuffled(data: Any, rng: random.Random) -> Any:
    """Return the same data with the members of objects in another order."""
    if isinstance(data, dict):
        rows = list(data.items())
        rng.shuffle(rows)
        return {k: shuffled(v, rng) for k, v in rows}
    return [shuffled(v, rng) for v in data] if isinstance(data, list) else data


def changed(*path: Any, value: Any) -> dict[str, Any]:
    """Return the full problem with one member changed."""
    data = full()
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


def test_hash_knows_no_order_of_members() -> None:
    one = problem_from_dict(full()).sha256
    assert all(problem_from_dict(shuffled(full(), random.Random(i))).sha256 == one for i in range(5))


@pytest.mark.parametrize(("path", "value"), [
    (("graph", "tensors", 0, "size"), 1000), (("graph", "tensors", 0, "size"), "1000 B"),
    (("graph", "tensors", 3, "home"), []), (("graph", "tensors", 3, "home"), None), (("graph", "tensors", 3, "keep"), None),
    (("graph", "ops", 0, "duration"), 5000), (("graph", "ops", 0, "reads"), ["a", "w"]),
    (("graph", "ops", 1, "workspace"), 0), (("graph", "ops", 1, "stream"), "compute"), (("graph", "ops", 1, "updates"), []),
    (("graph", "ops", 1, "recomputable"), True), (("machine", "tiers", 1, "granule"), 1),
    (("machine", "links", 2, "channel"), "nvme>host"), (("machine", "links", 1, "latency"), "0s"),
    (("machine", "compute", "efficiency"), "7/10"), (("budgets", "device"), 6 * 2**30),
    (("budgets", "nvme"), 10**12), (("rules", "chunk"), 1000), (("max_slowdown",), "21/20"),
])
def test_hash_is_that_of_the_meaning(path: tuple[Any, ...], value: Any) -> None:
    assert problem_from_dict(changed(*path, value=value)).sha256 == problem_from_dict(full()).sha256


@pytest.mark.parametrize(("path", "value"), [
    (("graph", "tensors", 0, "size"), 1001), (("graph", "tensors", 1, "home"), ["host"]),
    (("graph", "tensors", 1, "keep"), None), (("graph", "tensors", 2, "home"), ["device"]),
    (("graph", "ops", 0, "duration"), 5001), (("graph", "ops", 0, "reads"), ["w"]), (("graph", "ops", 0, "workspace"), 97),
    (("graph", "ops", 0, "stream"), "compute"), (("graph", "ops", 0, "updates"), []),
    (("graph", "ops", 1, "recomputable"), False), (("graph", "ops", 1, "after"), []), (("graph", "ops", 1, "flops"), 10**13),
    (("graph", "ops", 0, "placements"), []), (("machine", "tiers", 0, "granule"), 256),
    (("machine", "tiers", 1, "direct_bandwidth"), 5), (("machine", "tiers", 2, "capacity"), None),
    (("machine", "links", 0, "bandwidth"), 5), (("machine", "links", 0, "latency"), 5),
    (("machine", "links", 1, "channel"), "other"), (("machine", "compute", "launch"), 0), (("budgets",), {}),
    (("rules", "offload"), True), (("rules", "recompute"), False), (("rules", "reorder"), False), (("rules", "direct"), False),
    (("rules", "pin"), {}), (("rules", "chunk"), 999), (("max_slowdown",), 1.06),
])
def test_hash_sees_every_change(path: tuple[Any, ...], value: Any) -> None:
    assert problem_from_dict(changed(*path, value=value)).sha256 != problem_from_dict(full()).sha256
