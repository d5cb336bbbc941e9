"""Random small problems, seeded or drawn by Hypothesis, for every test that compares two ways to the same answer."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from planner.graph import Graph, Op, Placement, Tensor
from planner.machine import Compute, Link, Machine, Tier
from planner.problem import Problem, Rules

__all__ = ["problems", "random_problem"]

GB = 10**9


def random_problem(
    rng: random.Random, *, ops: int = 4, tiers: int = 2, half: bool | None = None, recompute: bool | None = None,
    offload: bool | None = None, reorder: bool | None = None, direct: bool | None = None, streams: int | None = None,
    updates: bool | None = None, any_home: bool | None = None, host_capacity: bool | None = None,
    workspace: bool | None = None, granule: bool | None = None, latency: bool | None = None, after: bool | None = None,
    zeros: bool | None = None, pins: bool | None = None, tight: float | None = None,
) -> Problem:
    """Return a small problem; every feature that is None is drawn.

    Parameters
    ----------
    rng : random.Random
        Same state, same problem.
    ops : int
        Number of ops (at least 1).
    tiers : int
        2 or 3; with 3 a skip link may exist.
    half, recompute, offload, reorder, direct, … : bool, optional
        Is the feature there? For latency, zeros and the like: may it be?
    tight : float, optional
        Device capacity between the largest working set (0) and all tensors together (1); drawn low by default. It
        may be infeasible: homes on the device count as well.

    Returns
    -------
    Problem
    """

    def flag(value: bool | None, chance: float) -> bool:
        return rng.random() < chance if value is None else value

    half, recompute, offload = flag(half, 0.3), flag(recompute, 0.35), flag(offload, 0.75)
    reorder, direct = flag(reorder, 0.15), flag(direct, 0.1)
    updates, any_home, zeros = flag(updates, 0.25), flag(any_home, 0.2), flag(zeros, 0.3)
    names = ["device", "host", "nvme"][:tiers]
    sizes = [0, *range(1, 7)] if zeros else list(range(1, 7))
    times = [0, *range(1, 7)] if zeros else list(range(1, 7))
    tensors: list[Tensor] = []
    rows: list[Op] = []
    n_streams = streams if streams is not None else (2 if rng.random() < 0.25 else 1)
    with_space, with_after = flag(workspace, 0.25), flag(after, 0.2)

    def homed(name: str) -> Tensor:
        kind = rng.random()
        home: Any
        if any_home and kind < 0.4:
            home = "any"
        elif kind < 0.65:
            home = (rng.choice(names[1:]),)
        elif kind < 0.85:
            home = ("device",)
        else:
            home = ("device", rng.choice(names[1:]))
        keep = "home" if rng.random() < (0.5 if home == "any" else 0.15) else None
        if keep is None and rng.random() < 0.1:
            keep = rng.choice(names)
        return Tensor(name, rng.choice(sizes), home, keep, "weight")

    for i in range(rng.randint(1, 3)):
        tensors.append(homed(f"w{i}"))
    for i in range(ops):
        known = [t.name for t in tensors]
        reads = rng.sample(known, min(len(known), rng.choice([1, 1, 2, 2, 3])))
        if i and rng.random() < 0.6 and rows[-1].writes and rows[-1].writes[0] not in reads:
            reads.append(rows[-1].writes[0])
        changed: list[str] = []
        if updates and rng.random() < 0.5:
            changed = [rng.choice(reads)]
        writes: list[str] = []
        for j in range(rng.choice([0, 1, 1, 1, 2]) if changed else rng.choice([1, 1, 1, 2])):
            keep = rng.choice(names) if rng.random() < (0.5 if i == ops - 1 else 0.12) else None
            tensors.append(Tensor(f"t{i}{'ab'[j]}", rng.choice(sizes), (), keep, "activation"))
            writes.append(tensors[-1].name)
        placements: list[Placement] = []
        if direct and rng.random() < 0.3:
            placements = [Placement(((reads[0], names[-1]),), rng.choice(times) + 1)]
        rows.append(Op(
            f"op{i}", tuple(dict.fromkeys(reads)), tuple(writes), tuple(changed), rng.choice(times),
            rng.choice([1, 2, 3]) if with_space and rng.random() < 0.4 else 0,
            f"s{rng.randrange(n_streams)}" if n_streams > 1 else "compute", rng.random() < 0.75,
            (f"op{rng.randrange(i)}",) if i and with_after and rng.random() < 0.4 else (), tuple(placements),
        ))
    rules = Rules(offload, recompute, reorder, False, direct, _pins(rng, tensors, flag(pins, 0.1)))
    machine = _machine(rng, names, half, flag(latency, 0.25), flag(granule, 0.15), flag(host_capacity, 0.3), direct,
                       tensors, rows, tight)
    return Problem(Graph("random", tuple(tensors), tuple(rows)), machine, rules=rules)


def _pins(rng: random.Random, tensors: list[Tensor], wanted: bool) -> tuple[tuple[str, str], ...]:
    if not wanted:
        return ()
    return ((rng.choice(tensors).name, "device"),)


def _machine(
    rng: random.Random, names: list[str], half: bool, latency: bool, granule: bool, host_capacity: bool, direct: bool,
    tensors: list[Tensor], rows: list[Op], tight: float | None,
) -> Machine:
    grain = rng.choice([2, 4]) if granule else 1
    size = {t.name: -(-t.size // grain) * grain for t in tensors}
    working = max(sum(size[n] for n in dict.fromkeys((*op.reads, *op.writes))) + -(-op.workspace // grain) * grain
                  for op in rows)
    resident = sum(size[t.name] for t in tensors if t.home != "any" and "device" in t.home)
    low, high = max(1, working, resident), max(1, sum(size.values()) + sum(op.workspace for op in rows))
    share = rng.random() ** 2 if tight is None else tight
    device = round(low + share * max(0, high - low))
    host = None
    if host_capacity:
        start = sum(size[t.name] for t in tensors if t.home != "any" and "host" in t.home)
        host = max(1, start + rng.randint(0, 8))
    speeds = [w * GB for w in (1, 1, 2, 3)]

    def late() -> int:
        return rng.choice([0, 1, 2]) if latency else 0

    ends = [("host", "device"), ("device", "host")]
    links = [Link(a, b, rng.choice(speeds), late(), "bus" if half else "") for a, b in ends]
    if len(names) > 2:
        drive = rng.random() < 0.5
        links += [Link(a, b, rng.choice(speeds), late(), "drive" if drive else "")
                  for a, b in (("nvme", "host"), ("host", "nvme"))]
        if rng.random() < 0.4:
            links.append(Link("nvme", "device", rng.choice(speeds), late()))
        if rng.random() < 0.3:
            links.append(Link("device", "nvme", rng.choice(speeds), late(), "drive" if drive else ""))
    tiers = [Tier("device", device, granule=grain)]
    for name in names[1:]:
        slow = direct and rng.random() < 0.7
        tiers.append(Tier(name, host if name == "host" else None, direct=slow, direct_bandwidth=GB if slow else None))
    compute = Compute(memory_bandwidth=4 * GB) if direct and rng.random() < 0.5 else None
    return Machine("random", tuple(tiers), tuple(links), compute)


@st.composite
def problems(draw: st.DrawFn, /, **features: Any) -> Problem:
    """Draw a problem from a seed; ``features`` as in `random_problem`, ``ops`` may be a (least, most) pair."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = random.Random(seed)
    ops = features.pop("ops", (1, 4))
    count = rng.randint(*ops) if isinstance(ops, tuple) else ops
    return random_problem(rng, ops=count, **features)
