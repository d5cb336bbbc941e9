"""``planner-plan/1``: a plan to and from JSON.

A plan read from a file is a program with a claim that nobody has checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.errors import Fault, InputError
from planner.io.canonical import canonical_bytes
from planner.io.fields import Fields
from planner.io.files import read_json
from planner.io.forms import PlanFileForm, members
from planner.program import Program

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["FORMAT", "PlanFile", "load_plan", "plan_bytes", "plan_from_dict", "plan_to_dict"]

FORMAT = "planner-plan/1"


@dataclass(frozen=True)
class PlanFile:
    """What a plan file holds.

    Attributes
    ----------
    problem : str
        Hash of the problem it was made for.
    program : Program, optional
    claim, provenance : mapping
        As written.
    """

    problem: str
    program: Program | None
    claim: Mapping[str, Any]
    provenance: Mapping[str, Any]


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain data."""
    program = plan.program
    return {
        "format": FORMAT, "problem": plan.problem.sha256,
        "start": dict(sorted(program.start.items())) if program else {},
        "program": program.to_list() if program else None,
        "claim": plan.claim(), "provenance": dict(plan.provenance),
    }


def plan_bytes(plan: Plan) -> bytes:
    """Return the file's bytes: one instruction a line, canonical otherwise."""
    data = plan_to_dict(plan)
    lines = []
    for key in sorted(data):
        if key == "program" and data[key]:
            rows = b",\n  ".join(canonical_bytes(row) for row in data[key])
            lines.append(b'"program": [\n  ' + rows + b"\n ]")
        else:
            lines.append(canonical_bytes(key) + b": " + canonical_bytes(data[key]))
    return b"{\n " + b",\n ".join(lines) + b"\n}\n"


def plan_from_dict(data: object) -> PlanFile:
    """Read a plan; `InputError` lists every fault."""
    faults: list[Fault] = []
    top = Fields(data, "", members(PlanFileForm), faults)
    top.format(FORMAT)
    start = top.get("start", dict, {})
    if not all(isinstance(v, str) for v in start.values()):
        top.fault("start", "must map tensors to tiers")
    rows = top.get("program", (list, type(None)))
    program = None
    if rows is not None:
        try:
            program = Program.from_list(rows, start)
        except InputError as error:
            faults += error.faults
    problem = top.get("problem", str)
    claim, provenance = top.get("claim", dict, {}), top.get("provenance", dict, {})
    if faults:
        raise InputError(faults)
    return PlanFile(problem, program, claim, provenance)


def load_plan(path: str | os.PathLike[str]) -> PlanFile:
    """Read a plan file; `InputError` names file, path and value."""
    try:
        return plan_from_dict(read_json(path))
    except InputError as error:
        raise error.in_source(str(path)) from None
