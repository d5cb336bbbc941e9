"""Random layered graphs as in the Moccasin paper (ICML'23, appendix), made anew from its description.

Of N nodes, the first and the last stand alone; the others lie in L layers between them:

    L = ceil(sqrt(N · (1/w − 1))),   sizes of layers uniform in N/L · (1 ± nlv), then corrected to N in total

Neighbouring layers of a and b nodes are joined by int(a·b·ed + (1 − ed)·max(a, b)) edges, spread evenly over the nodes
of the larger, each node to a contiguous window of the smaller around its proportional position. To E such edges come
ceil(E · scd / (1 − scd)) draws of an edge from a node to one at least two layers later; one drawn twice counts once.
Sizes of results are |x| · 1000 rounded to tens, x from a mixture of four normals; durations are uniform in 0…999.

The published files have 236, 944, 2461 and 5875 edges; `INSTANCES` names seeds that give these counts here.
"""

from __future__ import annotations

import itertools
import math
import random

from planner.errors import Fault, InputError
from planner.graph import Graph, Op, Tensor

__all__ = ["INSTANCES", "moccasin_instance", "random_layered"]

#: Number of nodes → (w, seed, edges).
INSTANCES: dict[int, tuple[float, int, int]] = {
    100: (0.27, 12, 236), 250: (0.43, 1081, 944), 500: (0.36, 82, 2461), 1000: (0.31, 305, 5875),
}
#: Weights, means and standard deviations of the mixture.
_MIXTURE = ((0.3, 0.3, 0.3, 0.1), (0.5, 1.0, 3.0, 5.0), (0.5, 1.0, 1.0, 1.0))


def random_layered(
    nodes: int, width: float, seed: int = 0, *, variation: float = 0.75, density: float = 0.2, skips: float = 0.14,
) -> Graph:
    """Draw a graph.

    Parameters
    ----------
    nodes : int
        N, at least 4.
    width : float
        w, between 0 and 1; large for few, wide layers.
    seed : int
        Same seed, same graph.
    variation : float
        nlv, between 0 and 1.
    density : float
        ed, between 0 and 1.
    skips : float
        scd, the share of edges that skip a layer, at least 0 and below 1.

    Returns
    -------
    Graph
        Ops ``n0``, ``n1``, … in layer order, each with one result ``t0``, ``t1``, …; the last result ends on the
        device. Sizes are bytes, durations nanoseconds; every op may be recomputed.

    Raises
    ------
    InputError
        A parameter out of its range.
    """
    faults = [Fault(name, f"{value}: must be {rule}") for name, value, rule, good in (
        ("nodes", nodes, "at least 4", nodes >= 4), ("width", width, "above 0 and below 1", 0 < width < 1),
        ("variation", variation, "from 0 to 1", 0 <= variation <= 1),
        ("density", density, "from 0 to 1", 0 <= density <= 1),
        ("skips", skips, "at least 0 and below 1", 0 <= skips < 1)) if not good]
    if faults:
        raise InputError(faults)
    rng = random.Random(seed)
    layers = _layers(nodes, width, variation, rng)
    edges = {pair for a, b in itertools.pairwise(layers) for pair in _between(a, b, density)}
    edges |= _skipping(layers, math.ceil(len(edges) * skips / (1 - skips)), rng)
    reads: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in sorted(edges):
        reads[b].append(a)
    sizes = [_size(rng) for _ in range(nodes)]
    times = [rng.randint(0, 999) for _ in range(nodes)]
    tensors = tuple(Tensor(f"t{i}", size, (), "device" if i == nodes - 1 else None, "activation")
                    for i, size in enumerate(sizes))
    ops = tuple(Op(f"n{i}", tuple(f"t{a}" for a in reads[i]), (f"t{i}",), duration=times[i]) for i in range(nodes))
    return Graph(f"layered-{nodes}-{seed}", tensors, ops)


def moccasin_instance(nodes: int) -> Graph:
    """Return the instance of 100, 250, 500 or 1000 nodes with the published number of edges.

    Raises
    ------
    InputError
        Another number of nodes.
    """
    if nodes not in INSTANCES:
        raise InputError([Fault("nodes", f"{nodes}: the named instances have {', '.join(map(str, INSTANCES))} nodes")])
    width, seed, _ = INSTANCES[nodes]
    return random_layered(nodes, width, seed)


def _layers(nodes: int, width: float, variation: float, rng: random.Random) -> list[range]:
    count = min(math.ceil(math.sqrt(nodes * (1 / width - 1))), nodes - 2)
    mean = nodes / count
    sizes = [max(1, round(rng.uniform(mean * (1 - variation), mean * (1 + variation)))) for _ in range(count)]
    while sum(sizes) != nodes - 2:
        step = 1 if sum(sizes) < nodes - 2 else -1
        i = rng.randrange(len(sizes))
        sizes[i] = max(1, sizes[i] + step)
    found, first = [], 0
    for size in (1, *sizes, 1):
        found.append(range(first, first + size))
        first += size
    return found


def _between(a: range, b: range, density: float) -> list[tuple[int, int]]:
    """Join two neighbouring layers; every node of both gets an edge."""
    large, small = (a, b) if len(a) >= len(b) else (b, a)
    total = int(len(a) * len(b) * density + (1 - density) * len(large))
    # Rounding down may leave one edge too few to reach every node of the larger layer.
    total = min(max(total, len(large)), len(a) * len(b))
    pairs = []
    for i, node in enumerate(large):
        count = total * (i + 1) // len(large) - total * i // len(large)
        centre = i * len(small) // len(large)
        start = min(max(centre - count // 2, 0), len(small) - count)
        pairs += [(node, small[start + k]) for k in range(count)]
    return pairs if large is a else [(y, x) for x, y in pairs]


def _skipping(layers: list[range], count: int, rng: random.Random) -> set[tuple[int, int]]:
    level = [i for i, layer in enumerate(layers) for _ in layer]
    last = layers[-1][0]
    found: set[tuple[int, int]] = set()
    for _ in range(count):
        a = rng.randrange(layers[-2][0])
        found.add((a, rng.randrange(layers[level[a] + 2][0], last + 1)))
    return found


def _size(rng: random.Random) -> int:
    weights, means, deviations = _MIXTURE
    k = rng.choices(range(len(weights)), weights)[0]
    return round(abs(rng.gauss(means[k], deviations[k])) * 100) * 10
