"""The same problem in other clothes: renamed, scaled, relaxed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.graph import Graph
from planner.machine import Machine
from planner.problem import Problem

__all__ = ["more_bandwidth", "more_memory", "permitted", "renamed", "scaled_sizes", "scaled_times", "split_channels"]


def more_memory(problem: Problem, tier: str, extra: int) -> Problem:
    """Return the problem with ``extra`` more bytes on a tier."""
    tiers = tuple(replace(t, capacity=None if t.capacity is None else t.capacity + extra) if t.name == tier else t
                  for t in problem.machine.tiers)
    return replace(problem, machine=replace(problem.machine, tiers=tiers))


def more_bandwidth(problem: Problem, factor: int) -> Problem:
    """Return the problem with every link quicker."""
    links = tuple(replace(k, bandwidth=k.bandwidth * factor) for k in problem.machine.links)
    return replace(problem, machine=replace(problem.machine, links=links))


def split_channels(problem: Problem) -> Problem:
    """Return the problem with a channel of its own for every link."""
    links = tuple(replace(k, channel=f"{k.src}>{k.dst}") for k in problem.machine.links)
    return replace(problem, machine=replace(problem.machine, links=links))


def permitted(problem: Problem, **rules: bool) -> Problem:
    """Return the problem with other rules."""
    changed: dict[str, Any] = dict(rules)
    return replace(problem, rules=replace(problem.rules, **changed))


def scaled_sizes(problem: Problem, factor: int) -> Problem:
    """Return the problem with sizes, capacities, granules and bandwidths multiplied: the same times."""
    tensors = tuple(replace(t, size=t.size * factor) for t in problem.graph.tensors)
    ops = tuple(replace(op, workspace=op.workspace * factor) for op in problem.graph.ops)
    tiers = tuple(
        replace(t, capacity=None if t.capacity is None else t.capacity * factor, granule=t.granule * factor,
                direct_bandwidth=None if t.direct_bandwidth is None else t.direct_bandwidth * factor)
        for t in problem.machine.tiers
    )
    links = tuple(replace(k, bandwidth=k.bandwidth * factor) for k in problem.machine.links)
    compute = problem.machine.compute
    if compute is not None and compute.memory_bandwidth is not None:
        compute = replace(compute, memory_bandwidth=compute.memory_bandwidth * factor)
    return Problem(Graph("g", tensors, ops), Machine("m", tiers, links, compute), rules=problem.rules)


def scaled_times(problem: Problem, factor: int) -> Problem | None:
    """Return the problem with all times multiplied; None where rates or copy times do not come out even."""
    sizes = {t.size for t in problem.lowered.tensors}
    exact = all(s * 10**9 % k.bandwidth == 0 for s in sizes for k in problem.machine.links)
    if not exact or any(k.bandwidth % factor for k in problem.machine.links) or problem.rules.direct:
        return None
    ops = tuple(replace(op, duration=(op.duration or 0) * factor) for op in problem.graph.ops)
    links = tuple(
        replace(k, bandwidth=k.bandwidth // factor, latency=k.latency * factor) for k in problem.machine.links
    )
    machine = Machine("m", problem.machine.tiers, links, problem.machine.compute)
    return Problem(Graph("g", problem.graph.tensors, ops), machine, rules=problem.rules)


def renamed(problem: Problem) -> Problem:
    """Return the problem with other names for tensors, ops, streams and tiers, sorted the other way round."""
    tensor = {t.name: f"z{99 - i:02d}" for i, t in enumerate(problem.graph.tensors)}
    op = {o.name: f"k{99 - i:02d}" for i, o in enumerate(problem.graph.ops)}
    tier = {t.name: f"tier{9 - i}" for i, t in enumerate(problem.machine.tiers)}
    tensors = tuple(
        replace(t, name=tensor[t.name], home=t.home if t.home == "any" else tuple(tier[h] for h in t.home),
                keep=tier.get(t.keep, t.keep) if t.keep else None)
        for t in problem.graph.tensors
    )
    ops = tuple(
        replace(o, name=op[o.name], reads=tuple(tensor[n] for n in o.reads), writes=tuple(tensor[n] for n in o.writes),
                updates=tuple(tensor[n] for n in o.updates), stream=f"q-{o.stream}",
                after=tuple(op[n] for n in o.after),
                placements=tuple(replace(p, at=tuple(sorted((tensor[n], tier[k]) for n, k in p.at)))
                                 for p in o.placements))
        for o in problem.graph.ops
    )
    tiers = tuple(replace(t, name=tier[t.name]) for t in problem.machine.tiers)
    links = tuple(replace(k, src=tier[k.src], dst=tier[k.dst], channel=f"c-{k.channel}") for k in problem.machine.links)
    rules = replace(problem.rules, pin=tuple((tensor[n], tier[k]) for n, k in problem.rules.pin))
    return Problem(Graph("g", tensors, ops), Machine("m", tiers, links, problem.machine.compute), rules=rules)
