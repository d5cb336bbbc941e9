"""Random layered graphs: the published counts, and what the description promises."""

from __future__ import annotations

import math

import pytest

from planner.errors import InputError
from planner.workloads.random_layered import INSTANCES, moccasin_instance, random_layered


@pytest.mark.parametrize(("nodes", "edges"), [(100, 236), (250, 944), (500, 2461), (1000, 5875)])
def test_named_instances_have_the_published_edges(nodes: int, edges: int) -> None:
    graph = moccasin_instance(nodes)
    assert len(graph.ops) == nodes
    assert sum(len(op.reads) for op in graph.ops) == edges == INSTANCES[nodes][2]


@pytest.mark.parametrize("seed", range(20))
def test_single_source_and_sink_and_ranges(seed: int) -> None:
    graph = random_layered(60, 0.35, seed)
    used = {name for op in graph.ops for name in op.reads}
    assert [op.name for op in graph.ops if not op.reads] == ["n0"]
    assert [t.name for t in graph.tensors if t.name not in used] == ["t59"]
    assert graph.tensor["t59"].keep == "device"
    assert all(t.size % 10 == 0 for t in graph.tensors)
    assert all(0 <= (op.duration or 0) <= 999 for op in graph.ops)


def test_seed_decides() -> None:
    assert random_layered(50, 0.3, 4) == random_layered(50, 0.3, 4)
    assert random_layered(50, 0.3, 4).ops != random_layered(50, 0.3, 5).ops


def test_every_parameter_changes_the_graph() -> None:
    def edges(**options: float) -> int:
        return sum(len(op.reads) for op in random_layered(200, 0.4, 1, **options).ops)

    assert edges(density=0.4) > edges()
    assert edges(skips=0.0) < edges()
    assert random_layered(200, 0.4, 1, variation=0.0).ops != random_layered(200, 0.4, 1).ops
    # Without skips and with layers of one size the number of edges follows from the formula.
    layers = math.ceil(math.sqrt(200 * (1 / 0.4 - 1)))
    mean = 200 / layers
    expected = (layers - 1) * (0.2 * mean**2 + 0.8 * mean) + 2 * mean
    assert edges(skips=0.0, variation=0.0) == pytest.approx(expected, rel=0.1)


def test_parameters_out_of_range_are_named() -> None:
    with pytest.raises(InputError, match="3 faults") as error:
        random_layered(3, 1.5, skips=1.0)
    assert [f.where for f in error.value.faults] == ["nodes", "width", "skips"]
    with pytest.raises(InputError, match="100, 250, 500, 1000"):
        moccasin_instance(300)
