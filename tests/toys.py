"""Write small problems the way people do on paper.

::

    toy("a0=1@D w1=4@H", "op1(5): a0,w1 -> a1(1)", D=12, out="a1@D")

``a0=1@D``: tensor of 1 byte that starts on the device, ``@H`` host, ``@N`` nvme, ``@DH`` valid on both, ``@*`` where
the planner chooses. ``op(5!) ws=8 on comm after op0: a,b -> c(1),~a``: not recomputable, workspace, stream, order, and
a is changed in place. One unit of size is a byte, one of time a nanosecond, so 1 byte a ns is 1 GB/s.
"""

from __future__ import annotations

import re
from typing import Any

from planner.graph import Graph, Op, Placement, Tensor
from planner.machine import Compute, Link, Machine, Tier
from planner.problem import Objective, Problem, Rules

__all__ = ["GB", "TIERS", "toy"]

GB = 10**9
TIERS = {"D": "device", "H": "host", "N": "nvme"}
_OP = re.compile(r"(\w+)\((\d+)(!?)\)\s*(?:ws=(\d+))?\s*(?:on (\w+))?\s*(?:after ([\w,]+))?\s*:\s*(.*?)\s*->\s*(.*)")


def toy(
    tensors: str, *ops: str, D: int | None, H: int | None = None, N: int | None = None,  # noqa: N803
    h2d: int = 1, d2h: int = 1, h2d_latency: int = 0, d2h_latency: int = 0, half: bool = False,
    n2h: int = 0, h2n: int = 0, out: str = "", kinds: dict[str, str] | None = None, granule: int = 1,
    placements: dict[str, list[tuple[dict[str, str], int]]] | None = None,
    direct: int | None = None, memory: int | None = None,
    objective: Objective | None = None, links: tuple[Link, ...] | None = None, **rules: Any,
) -> Problem:
    """Build a problem.

    Parameters
    ----------
    tensors, *ops : str
        See the module's text.
    D, H, N : int, optional
        Capacities in bytes; N only where nvme has links.
    h2d, d2h, n2h, h2n : int
        Bytes a ns (0: no such link).
    out : str
        ``"y@D z@H w@home"``: where tensors must end.
    direct, memory : int, optional
        Bytes a ns of ops on host operands in place, and of device memory.
    **rules
        Fields of `Rules`.

    Returns
    -------
    Problem
    """
    keep: dict[str, str] = {}
    for item in out.split():
        name, place = item.split("@")
        keep[name] = TIERS.get(place, place)
    found: dict[str, Tensor] = {}
    kinds = kinds or {}
    for item in tensors.split():
        match = re.fullmatch(r"(\w+)=(\d+)(?:@([DHN]+|\*))?", item)
        assert match, item
        name, size, home = match.groups()
        where: Any = "any" if home == "*" else tuple(TIERS[c] for c in home or "")
        found[name] = Tensor(name, int(size), where, keep.get(name), kinds.get(name, ""))
    rows: list[Op] = []
    for text in ops:
        match = _OP.fullmatch(text)
        assert match, text
        name, duration, random, space, stream, after, reads, results = match.groups()
        writes: list[str] = []
        updates: list[str] = []
        for item in filter(None, (x.strip() for x in results.split(","))):
            if item.startswith("~"):
                updates.append(item[1:])
                continue
            inner = re.fullmatch(r"(\w+)\((\d+)\)", item)
            assert inner, item
            found[inner[1]] = Tensor(inner[1], int(inner[2]), (), keep.get(inner[1]), kinds.get(inner[1], ""))
            writes.append(inner[1])
        rows.append(Op(
            name, tuple(x.strip() for x in reads.split(",") if x.strip()), tuple(writes), tuple(updates), int(duration),
            int(space or 0), stream or "compute", not random, tuple(filter(None, (after or "").split(","))),
            tuple(Placement(tuple(sorted((t, TIERS.get(k, k)) for t, k in at.items())), d)
                  for at, d in (placements or {}).get(name, [])),
        ))
    three = bool(n2h or h2n or N is not None)
    if links is None:
        shared = "bus" if half else ""
        table = [("host", "device", h2d, h2d_latency, shared), ("device", "host", d2h, d2h_latency, shared)]
        if three:
            table += [("nvme", "host", n2h, 0, "nvme"), ("host", "nvme", h2n, 0, "nvme")]
        links = tuple(Link(a, b, w * GB, lat, ch) for a, b, w, lat, ch in table if w)
    tiers = [Tier("device", D, granule=granule),
             Tier("host", H, direct=direct is not None, direct_bandwidth=direct * GB if direct else None)]
    if three or any("nvme" in (k.src, k.dst) for k in links):
        tiers.append(Tier("nvme", N))
    compute = Compute(memory_bandwidth=memory * GB) if memory else None
    return Problem(Graph("toy", tuple(found.values()), tuple(rows)), Machine("toy", tuple(tiers), links, compute),
                   rules=Rules(**rules), objective=objective or Objective())
