"""A small problem with a known optimum, and plans for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.plan import Plan, Scope, Status
from planner.program import Copy, Drop, Program, Run

__all__ = ["GPU", "GRAPH", "MACHINE", "PROGRAM", "SLOW", "make_plan", "write_files"]

#: x=0@D; W=12@H; op1(1): x → o1(12); op2(1): x, W → y(0); o1 must end on H; links 2 bytes a ns.
GRAPH = {
    "format": "planner-graph/1",
    "name": "duplex",
    "tensors": [
        {"name": "x", "size": 0, "home": ["device"], "kind": "input"},
        {"name": "W", "size": 12, "home": ["host"], "kind": "weight"},
        {"name": "o1", "size": 12, "keep": "host", "kind": "activation"},
        {"name": "y", "size": 0, "kind": "output"},
    ],
    "ops": [
        {"name": "op1", "reads": ["x"], "writes": ["o1"], "duration": 1},
        {"name": "op2", "reads": ["x", "W"], "writes": ["y"], "duration": 1},
    ],
}
MACHINE = {
    "format": "planner-machine/1",
    "name": "toy",
    "tiers": [{"name": "device", "capacity": 24}, {"name": "host", "capacity": None}],
    "links": [
        {"src": "host", "dst": "device", "bandwidth": "2GB/s"},
        {"src": "device", "dst": "host", "bandwidth": "2GB/s"},
    ],
}
#: A machine that can price the bundled graphs.
GPU = {
    "format": "planner-machine/1",
    "name": "gpu",
    "tiers": [{"name": "device", "capacity": "40GiB", "granule": 512}, {"name": "host", "capacity": None}],
    "links": [
        {"src": "host", "dst": "device", "bandwidth": "25GB/s", "latency": "10us"},
        {"src": "device", "dst": "host", "bandwidth": "25GB/s", "latency": "10us"},
    ],
    "compute": {"flops": {"bf16": "312TFLOP/s", "fp32": "19.5TFLOP/s"}, "memory_bandwidth": "1.5TB/s"},
}
#: Its makespan is 7, which is the optimum: W takes 6 and op2 1.
PROGRAM = Program((Copy("W", "host", "device"), Run("op1"), Copy("o1", "device", "host"), Run("op2")))
#: Legal and slower (14): W waits for the room of o1.
SLOW = Program(
    (Run("op1"), Copy("o1", "device", "host"), Drop("o1", "device"), Copy("W", "host", "device"), Run("op2"))
)


def write_files(folder: Path) -> Path:
    """Write graph.json, machine.json, problem.json and the optimal plan.json; return the folder."""
    (folder / "graph.json").write_text(json.dumps(GRAPH))
    (folder / "machine.json").write_text(json.dumps(MACHINE))
    problem = {"format": "planner-problem/1", "graph": "graph.json", "machine": "machine.json"}
    (folder / "problem.json").write_text(json.dumps(problem))
    make_plan(folder / "problem.json", PROGRAM).save(folder / "plan.json")
    return folder


def make_plan(problem_file: Path, program: Program | None, status: Status = Status.FEASIBLE, **claim: Any) -> Plan:
    """Return a plan with the replay's figures, as solve would."""
    from planner.io import load_problem
    from planner.replay import replay

    problem = load_problem(problem_file)
    scope = Scope("fixed", False, False, ("device", "host"))
    if program is None:
        return Plan(problem, None, status, "stub", scope, **claim)
    line = replay(problem, program)
    return Plan(
        problem,
        program,
        status,
        "stub",
        scope,
        makespan_ns=line.makespan_ns,
        peak_bytes=line.peak_bytes,
        moved_bytes=line.moved_bytes,
        stall_ns=line.stall_ns,
        ideal_ns=1,
        **claim,
    )
