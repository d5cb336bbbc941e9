"""PROBLEM on the command line: a problem file, a graph file or a bundled model, and the options that shape it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli.output import warn
from planner.errors import Fault, InputError
from planner.graph import Graph
from planner.problem import Problem

__all__ = ["read_problem", "takes_problem"]


def read_problem(
    problem: Annotated[
        str,
        typer.Argument(
            metavar="PROBLEM", help="Problem file, graph file (.json, .json.gz), or name of a bundled model."
        ),
    ],
    machine: Annotated[
        str | None, typer.Option("--machine", metavar="NAME|FILE", help="Machine preset or file; needed with a graph.")
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            metavar="TIER=SIZE",
            help="Usable bytes of a tier (device=6GiB), or a share of the resident peak, "
            "the peak when nothing leaves the device (device=60%). Repeatable.",
        ),
    ] = None,
    offload: Annotated[
        bool | None, typer.Option("--offload/--no-offload", help="May tensors be copied off the device?")
    ] = None,
    recompute: Annotated[bool | None, typer.Option("--recompute/--no-recompute", help="May ops run again?")] = None,
    reorder: Annotated[
        bool | None, typer.Option("--reorder/--no-reorder", help="May ops leave the listed order?")
    ] = None,
    split: Annotated[bool | None, typer.Option("--split/--no-split", help="May tensors move in pieces?")] = None,
    direct: Annotated[
        bool | None, typer.Option("--direct/--no-direct", help="May ops use operands on a slow tier in place?")
    ] = None,
    chunk: Annotated[
        str | None, typer.Option("--chunk", metavar="SIZE", help="Size of a piece; only with --split.")
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option("--pin", metavar="PATTERN=TIER", help="Fix matching tensors to a tier ('w*=device'). Repeatable."),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective", metavar="makespan|peak", help="Least time, or least device peak under a limit on the time."
        ),
    ] = None,
    max_slowdown: Annotated[
        str | None,
        typer.Option(
            "--max-slowdown", metavar="FACTOR", help="Limit for --objective peak: a factor over the ideal time."
        ),
    ] = None,
    max_makespan: Annotated[
        str | None,
        typer.Option("--max-makespan", metavar="TIME", help="Limit for --objective peak: a duration such as 1.2s."),
    ] = None,
) -> Problem:
    """Return the problem that the arguments describe.

    A problem file's own settings hold where no option is given.

    Raises
    ------
    InputError
        Lists every fault with file, path and value.
    """
    from planner.cli.values import pairs, read_budgets

    options = {"offload": offload, "recompute": recompute, "reorder": reorder, "split": split, "direct": direct}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if chunk is not None:
        given["chunk"] = chunk
    pins = pairs("--pin", pin or (), "PATTERN=TIER such as 'w*=device'")
    budgets = read_budgets(budget or ())
    base = _open(problem)
    shaped = _shape(
        base,
        problem,
        machine,
        {k: v for k, v in budgets.items() if isinstance(v, int)},
        given,
        pins,
        {"objective": objective, "max_slowdown": max_slowdown, "max_makespan": max_makespan},
    )
    shares = {k: v for k, v in budgets.items() if isinstance(v, float)}
    if shares:
        shaped = shaped.with_budgets(_resident_shares(shaped, shares))
    for text in (*shaped.warnings, *_idle_options(shaped, given)):
        warn(text)
    return shaped


def _open(name: str) -> Problem | Graph:
    from planner.io import load

    if Path(name).is_file():
        found = load(name)
        if isinstance(found, (Problem, Graph)):
            return found
        raise InputError(
            f"holds a {type(found).__name__.removesuffix('File').lower()}; PROBLEM must be a problem or a graph", name
        )
    if name.endswith((".json", ".gz")) or "/" in name or Path(name).is_dir():
        raise InputError("no such file", name)
    from planner.models import available, load_model

    if name not in available():
        raise InputError(
            f"PROBLEM: {name!r} is neither a file nor a bundled model; models are {', '.join(available())}"
        )
    return load_model(name)


def _shape(
    base: Problem | Graph,
    name: str,
    machine: str | None,
    budgets: dict[str, int],
    rules: dict[str, Any],
    pins: dict[str, str],
    objective: dict[str, str | None],
) -> Problem:
    from planner.io import load_machine
    from planner.io.machine_json import fraction_out
    from planner.io.problem_json import FORMAT, problem_from_dict

    is_problem = isinstance(base, Problem)
    if not is_problem and machine is None:
        raise InputError([Fault("--machine", f"{name!r} is a graph: name a machine ('planner presets' lists them)")])
    chosen = load_machine(machine) if machine is not None else base.machine  # type: ignore[union-attr]
    if is_problem and not (machine or budgets or rules or pins or any(objective.values())):
        return base  # type: ignore[return-value]
    graph: Graph = base.graph if is_problem else base  # type: ignore[union-attr,assignment]
    data: dict[str, Any] = {"format": FORMAT, "graph": name, "machine": "machine", "budgets": {}, "rules": {}}
    if isinstance(base, Problem):
        own = base.rules
        data["budgets"] = dict(base.budgets)
        data["rules"] = {k: getattr(own, k) for k in ("offload", "recompute", "reorder", "split", "direct")}
        data["rules"]["pin"] = dict(own.pin)
        if own.split and rules.get("split", True):
            data["rules"]["chunk"] = own.chunk
        data["objective"] = base.objective.kind
        if not any(objective.values()):
            if base.objective.max_slowdown is not None:
                data["max_slowdown"] = str(fraction_out(base.objective.max_slowdown))
            if base.objective.max_makespan is not None:
                data["max_makespan"] = base.objective.max_makespan
    data["budgets"] |= budgets
    data["rules"] |= rules
    if pins:
        data["rules"]["pin"] = {**data["rules"].get("pin", {}), **pins}
    data |= {k: v for k, v in objective.items() if v is not None}
    return problem_from_dict(data, lambda _: graph, lambda _: chosen)


def _resident_shares(problem: Problem, shares: dict[str, float]) -> dict[str, int]:
    from planner.info import resident_peak

    peak = resident_peak(problem)
    unknown = [t for t in shares if t not in peak]
    if unknown:
        raise InputError([Fault("--budget", f"unknown tier {t!r}; tiers are {sorted(peak)}") for t in unknown])
    return {tier: int(peak[tier] * share / 100) for tier, share in shares.items()}


def _idle_options(problem: Problem, given: dict[str, Any]) -> list[str]:
    """Name the options that were switched on and cannot change a plan of this problem."""
    low, machine = problem.lowered, problem.machine
    device = machine.device.name
    out: list[str] = []
    if given.get("recompute") and not any(op.recomputable for op in low.ops):
        out.append("--recompute has no effect: no op of this graph may run again")
    if given.get("offload") and not any(link.src == device for link in machine.links):
        out.append(f"--offload has no effect: machine {machine.name!r} has no link that leaves {device!r}")
    if given.get("split") and not any("#" in t.name for t in low.tensors):
        out.append(f"--split has no effect: no tensor is larger than a piece of {problem.rules.chunk} bytes")
    if given.get("direct") and not (any(t.direct for t in machine.tiers[1:]) or any(op.placements for op in low.ops)):
        out.append(f"--direct has no effect: machine {machine.name!r} has no direct tier and no op lists placements")
    if given.get("reorder") and _one_order(problem):
        out.append("--reorder has no effect: the dependencies leave one order of the ops")
    return out


def _one_order(problem: Problem) -> bool:
    """Does every op depend on the one listed before it?"""
    made: set[str] = set()
    previous = ""
    for op in problem.lowered.ops:
        if previous and previous not in op.after and not made.intersection(op.reads):
            return False
        made, previous = {*op.writes, *op.updates}, op.name
    return True


def takes_problem(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command, whose first parameter is a Problem, the arguments of `read_problem` in its place."""
    shape = inspect.signature(read_problem, eval_str=True)
    own = inspect.signature(command, eval_str=True)
    rest = list(own.parameters.values())[1:]
    arguments = [p for p in rest if p.default is inspect.Parameter.empty]
    options = [p for p in rest if p.default is not inspect.Parameter.empty]
    first, *others = shape.parameters.values()

    @functools.wraps(command)
    def wrapper(**values: Any) -> int:
        problem = read_problem(**{name: values.pop(name) for name in shape.parameters})
        return command(problem, **values)

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (first, *arguments, *options, *others)]
    wrapper.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    del wrapper.__wrapped__  # it would bring the undecorated signature back
    return wrapper
