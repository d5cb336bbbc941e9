"""``planner-problem/1``: a problem to and from plain JSON data; graph and machine may be names of files or presets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.errors import Fault, InputError
from planner.graph import Graph
from planner.io.fields import Fields
from planner.io.forms import ProblemFile, RulesForm, members
from planner.io.machine_json import as_fraction, fraction_out
from planner.machine import Machine
from planner.problem import Objective, Problem, Rules
from planner.units import parse_capacity, parse_duration, parse_size

__all__ = ["FORMAT", "problem_from_dict", "problem_to_dict", "rules_from_dict"]

FORMAT = "planner-problem/1"
_SWITCHES = ("offload", "recompute", "reorder", "split", "direct")
#: Named in the field and not built: asking for them must not look as if they worked.
_UNBUILT = {"assume_unknown", "prune_dead", "inplace", "pow2", "assume-unknown", "prune-dead"}


def problem_to_dict(problem: Problem) -> dict[str, Any]:
    """Return the problem with everything resolved: durations, budgets in force, rules with defaults."""
    graph = problem.graph.to_dict()
    for row, op in zip(graph["ops"], problem.lowered.ops, strict=True):
        row["duration"] = op.duration
    rules: dict[str, Any] = {name: getattr(problem.rules, name) for name in _SWITCHES}
    if problem.rules.split:
        rules["chunk"] = problem.rules.chunk
    rules["pin"] = dict(problem.rules.pin)
    objective: dict[str, Any] = {"objective": problem.objective.kind}
    if problem.objective.max_slowdown is not None:
        objective["max_slowdown"] = fraction_out(problem.objective.max_slowdown)
    if problem.objective.max_makespan is not None:
        objective["max_makespan"] = problem.objective.max_makespan
    return {"format": FORMAT, "graph": graph, "machine": problem.machine.to_dict(),
            "budgets": {k: v for k, v in problem.capacity.items() if v is not None}, "rules": rules, **objective}


def problem_from_dict(
    data: object, load_graph: Callable[[str], Graph] | None = None, load_machine: Callable[[str], Machine] | None = None
) -> Problem:
    """Read a problem.

    Parameters
    ----------
    data : object
        The JSON data.
    load_graph, load_machine : callable, optional
        Turn a string found in place of a graph or machine into one; without them strings are faults.

    Raises
    ------
    InputError
        Lists every fault with its path.
    """
    faults: list[Fault] = []
    top = Fields(data, "", members(ProblemFile), faults)
    top.format(FORMAT)
    graph = _part(top, "graph", Graph.from_dict, load_graph)
    machine = _part(top, "machine", Machine.from_dict, load_machine)
    budgets: dict[str, int] = {}
    for tier, value in top.get("budgets", dict, {}).items():
        try:
            budgets[tier] = parse_capacity(value, f"budgets.{tier}")
        except InputError as error:
            faults += error.faults
    rules = rules_from_dict(top.get("rules", dict, {}), faults)
    objective = _objective(top)
    if faults or graph is None or machine is None:
        raise InputError(faults)
    return Problem(graph, machine, budgets, rules, objective)


def _part(top: Fields, key: str, build: Callable[[object], Any], load: Callable[[str], Any] | None) -> Any:
    value = top.get(key, (dict, str))
    if value is None:
        return None
    try:
        if isinstance(value, str):
            if load is None:
                top.fault(key, f"{value!r}: a name cannot be resolved here; write the {key} out")
                return None
            return load(value)
        return build(value)
    except InputError as error:
        # faults of another file name that file; those of a part written out here get its path
        top.faults += [Fault(key, str(error))] if error.source else error.within(key).faults
        return None


def rules_from_dict(data: object, faults: list[Fault]) -> Rules:
    """Read the rules; faults are appended."""
    unbuilt = [key for key in data if key in _UNBUILT] if isinstance(data, dict) else []
    faults += [Fault(f"rules.{key}", "this option is known and not built; leave it out") for key in unbuilt]
    if isinstance(data, dict) and unbuilt:
        data = {key: value for key, value in data.items() if key not in _UNBUILT}
    f = Fields(data, "rules", members(RulesForm), faults)
    pin = f.get("pin", dict, {})
    for pattern, tier in pin.items():
        if not isinstance(tier, str):
            f.fault(f"pin.{pattern}", f"{tier!r}: must be the name of a tier")
    split = f.get("split", bool, False)
    chunk = f.quantity("chunk", parse_size, Rules.chunk)
    if "chunk" in f.data and not split:
        f.fault("chunk", "has no effect without \"split\": true")
    if chunk < 1:
        f.fault("chunk", f"{chunk}: a piece has at least 1 byte")
    return Rules(
        f.get("offload", bool, True), f.get("recompute", bool, False), f.get("reorder", bool, False), split,
        f.get("direct", bool, False), tuple(sorted((p, t) for p, t in pin.items() if isinstance(t, str))), chunk,
    )


def _objective(top: Fields) -> Objective:
    kind = top.get("objective", str, "makespan")
    if kind not in ("makespan", "peak"):
        top.fault("objective", f"{kind!r}: must be 'makespan' or 'peak'")
    slowdown = None
    if top.data.get("max_slowdown") is not None:
        slowdown = as_fraction(top.data["max_slowdown"], "max_slowdown", top.faults)
        if slowdown < 1:
            top.fault("max_slowdown", f"{slowdown}: a factor over the ideal time, at least 1")
    makespan = top.quantity("max_makespan", parse_duration, None)
    if kind == "peak" and slowdown is None and makespan is None:
        top.fault("objective", "'peak' needs \"max_slowdown\" (a factor) or \"max_makespan\" (a duration)")
    if kind == "makespan" and (slowdown is not None or makespan is not None):
        top.fault("objective", "'max_slowdown' and 'max_makespan' have no effect on the objective 'makespan'")
    if slowdown is not None and makespan is not None:
        top.fault("objective", "give 'max_slowdown' or 'max_makespan', not both")
    return Objective(kind, slowdown, makespan)
