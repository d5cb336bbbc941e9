"""Chapters 8 to 10: experts, KV caches, host memory; and what is asked for there and not modelled."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.errors import InputError
from planner.graph import Graph, Op, Placement, Tensor
from planner.io.problem_json import problem_from_dict
from planner.machine import Link, Machine, Tier
from planner.plan import Plan
from planner.problem import Problem, Rules
from tests.cases.verified import stream_weights
from tests.oracle.search import least_capacity, optimum
from tests.toys import toy


def assert_honest(plan: Plan, makespan: int) -> None:
    """Fail on a wrong claim: `optimal` at another value, a plan below the optimum, or a bound above it."""
    assert plan.status in ("optimal", "feasible", "unknown")
    assert plan.status != "optimal" or plan.makespan_ns == makespan
    assert plan.makespan_ns is None or plan.makespan_ns >= makespan
    assert plan.lower_bound_ns is None or plan.lower_bound_ns <= makespan


def test_53_tensors_beat_layers() -> None:
    """Case 53 by operands in place: attention 10 saves 8, experts 40 save 12, room 60: four attentions, 32 saved."""
    tensors, ops = [], []
    for i in range(4):
        for name, size, saved in ((f"attention{i}", 10, 8), (f"experts{i}", 40, 12)):
            tensors.append(Tensor(name, size, "any"))
            ops.append(Op(f"run_{name}", (name,), duration=0, placements=(Placement(((name, "host"),), saved),)))
    machine = Machine("m", (Tier("device", 60), Tier("host")))
    problem = Problem(Graph("g", tuple(tensors), tuple(ops)), machine, rules=Rules(direct=True))
    assert_honest(planner.solve(problem, gap=0, time_limit=5), 48)


@pytest.mark.parametrize(("inclusive", "status"), [(False, "feasible"), (True, "infeasible")])
def test_56_one_copy_or_two(inclusive: bool, status: str) -> None:
    """Case 56: 256 experts of 660 (MB); device 73,000, host 123,000: exclusive placement fits, master copies do not."""
    experts = [
        Tensor(f"e{i}", 660, (("device", "host") if inclusive else ("device",)) if i < 110 else ("host",))
        for i in range(256)
    ]
    machine = Machine("m", (Tier("device", 73_000), Tier("host", 123_000)), (Link("host", "device", 10**9),))
    found = planner.info(Problem(Graph("g", tuple(experts), ()), machine))
    assert found.status == status
    assert found.minimum_budget_bytes["host"].value == (256 if inclusive else 146) * 660
    if inclusive:
        assert "short by 45960" in found.message


@pytest.mark.parametrize(("batch", "makespan"), [(1, 120_000), (3, 360_000), (4, 460_953), (8, 540_953)])
def test_58_compute_where_the_data_is(batch: int, makespan: int) -> None:
    """Case 58 as a profiled placement: in place on the host up to batch 3, streamed from batch 4 on."""
    on_host = Placement((("w", "host"),), 120_000 * batch)
    op = Op("expert", ("w",), ("y",), duration=20_000 * batch, placements=(on_host,))
    machine = Machine("m", (Tier("device", 10**7), Tier("host")), (Link("host", "device", 15_750_000_000),))
    graph = Graph("g", (Tensor("w", 6_000_000, ("host",)), Tensor("y", 0)), (op,))
    problem = Problem(graph, machine, rules=Rules(direct=True))
    assert optimum(problem).makespan_ns == makespan
    assert_honest(planner.solve(problem, gap=0, time_limit=5), makespan)
    assert planner.solve(Problem(graph, machine), gap=0).makespan_ns == 20_000 * batch + 380_953


@pytest.mark.parametrize(("weight", "kv", "makespan"), [(5, 3, 3), (1, 30, 1)])
def test_59_no_fixed_rule_is_right(weight: int, kv: int, makespan: int) -> None:
    """Case 59 in small: two weights of 4 and a KV tensor of 4, room for 8: what leaves depends on the costs."""
    tensors = (Tensor("w0", 4, "any"), Tensor("w1", 4, "any"), Tensor("kv", 4, "any"))
    ops = tuple(Op(f"op_{n}", (n,), duration=0, placements=(Placement(((n, "host"),), cost),))
                for n, cost in (("w0", weight), ("w1", weight), ("kv", kv)))
    machine = Machine("m", (Tier("device", 8), Tier("host")))
    problem = Problem(Graph("g", tensors, ops), machine, rules=Rules(direct=True))
    assert optimum(problem).makespan_ns == makespan
    assert_honest(planner.solve(problem, gap=0, time_limit=5), makespan)


@pytest.mark.parametrize(("steps", "least"), [(1, 12), (2, 14), (3, 16)])
def test_61_the_last_step_sets_the_budget(steps: int, least: int) -> None:
    ops = [f"s{i}(4): W,{','.join(f'k{j}' for j in range(i))}->k{i}(2)" for i in range(1, steps + 1)]
    found = planner.info(toy("W=6@DH k0=4@D", *ops, D=least - 1))
    assert found.status == "infeasible"
    assert (found.minimum_budget_bytes["device"].value, found.minimum_budget_bytes["device"].proved) == (least, True)
    assert found.witness is not None
    assert found.witness.op == f"s{steps}"


def test_62_clean_copies_are_dropped_not_written_back() -> None:
    """Case 62: R has a host copy, so nothing but its reload moves."""
    problem = toy("x=0@D R=10@DH", "op1(1): x->A(10)", "op2(20) ws=10: x->B(0)", "op3(1): A,R,B->y(0)", D=20)
    plan = planner.solve(problem, gap=0)
    assert plan.makespan_ns == 32
    assert {k: v for k, v in plan.moved_bytes.items() if v} == {"host>device": 10}


def test_70_the_host_binds() -> None:
    """Case 70: the diagnosis names the host and 20, not only the device."""
    problem = toy("x=0@D", "op1(1): x->a(10),b(10)", "op2(9) ws=15: x->m(0)", "op3(1): a,b,m->y(0)", D=20, H=19)
    found = planner.info(problem)
    assert found.status == "infeasible"
    assert found.witness is not None
    assert found.witness.tier == "host"
    assert found.minimum_budget_bytes["host"].value == 20 == least_capacity(problem, "host")
    assert "host" in found.message
    assert "20 bytes" in found.message


def _with(part: str, key: str, value: Any) -> dict[str, Any]:
    data = stream_weights(12).to_dict()
    place = {"tier": data["machine"]["tiers"][1], "link": data["machine"]["links"][0], "rules": data["rules"],
             "machine": data["machine"], "op": data["graph"]["ops"][0], "problem": data,
             "tensor": data["graph"]["tensors"][0]}[part]
    place[key] = value
    return data


@pytest.mark.parametrize(("case", "part", "key", "value"), [
    (6, "rules", "host_execution", True), (6, "op", "host_duration", 4), (39, "link", "contended_bandwidth", "12GB/s"),
    (52, "op", "probability", "1/2"), (63, "tier", "rounding", "pow2"), (63, "rules", "pow2", True),
    (64, "tier", "pin_max", 8), (64, "link", "pageable_bandwidth", "12GB/s"), (66, "tier", "staging", 100_000_000),
    (67, "machine", "ranks", 4), (67, "problem", "ranks", 4), (68, "machine", "pool", ["device", "host"]),
    (81, "op", "overlap", "0.0"), (36, "problem", "prune-dead", True), (83, "rules", "min_offload", 10**9),
    (83, "rules", "depth", 0), (83, "problem", "ratio", 101), (82, "tier", "capasity", 4), (12, "tensor", "storage", 0),
], ids=lambda v: str(v))
def test_what_is_not_modelled_is_refused_by_name(case: int, part: str, key: str, value: Any) -> None:  # noqa: ARG001
    """Host execution, routing, pinned pools, ranks, unified pools, overlap factors: an error, never a wrong answer."""
    problem_from_dict(stream_weights(12).to_dict())
    with pytest.raises(InputError, match=key):
        problem_from_dict(_with(part, key, value))
