"""Chapter 5: huge sizes, units, rounding, budgets kept to the byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

import planner
from planner.errors import InputError
from planner.graph import Graph
from planner.io.problem_json import problem_from_dict
from planner.machine import Machine
from planner.problem import Problem
from planner.units import parse_bandwidth, parse_capacity, parse_size
from tests.cases.verified import joint, stream_weights, tied
from tests.toys import toy


def scaled(problem: Problem, factor: int) -> Problem:
    """Return the problem with all sizes, capacities and bandwidths multiplied."""
    tensors = tuple(replace(t, size=t.size * factor) for t in problem.graph.tensors)
    ops = tuple(replace(op, workspace=op.workspace * factor) for op in problem.graph.ops)
    tiers = tuple(
        replace(t, capacity=None if t.capacity is None else t.capacity * factor) for t in problem.machine.tiers
    )
    links = tuple(replace(k, bandwidth=k.bandwidth * factor) for k in problem.machine.links)
    return Problem(Graph("scaled", tensors, ops), Machine("scaled", tiers, links), rules=problem.rules)


@pytest.mark.parametrize("factor", [2**30, 10**9 + 7])
@pytest.mark.parametrize("problem", [stream_weights(7), stream_weights(12), tied(12), joint(12, recompute=True),
                                     joint(13, recompute=True)],
                         ids=["case1-7", "case1-12", "case10-12", "case71-12", "case71-13"])
def test_28_bytes_or_gibibytes(problem: Problem, factor: int) -> None:
    """Case 28: the same status, value, proof and bytes moved (times the factor) at any scale."""
    small = planner.solve(problem, gap=0, time_limit=20)
    large = planner.solve(scaled(problem, factor), gap=0, time_limit=20)
    assert large.status == small.status
    assert (large.makespan_ns, large.lower_bound_ns) == (small.makespan_ns, small.lower_bound_ns)
    assert sum(large.moved_bytes.values()) == factor * sum(small.moved_bytes.values())


@pytest.mark.parametrize("size", [10, 2**20, 2**30, 2**40])
def test_29_one_byte_too_many(size: int) -> None:
    """Case 29: three tensors of s do not fit 3s − 1, whatever s."""
    def three(cap: int) -> Problem:
        return toy(f"x=0@D a={size}@H b={size}@H c={size}@H", "op(1): x,a,b,c->y(0)", D=cap, h2d=1000)

    assert planner.info(three(3 * size - 1)).status == "infeasible"
    plan = planner.solve(three(3 * size - 1), gap=0)
    assert (plan.status, plan.minimum_budget_bytes["device"].value) == ("infeasible", 3 * size)
    plan = planner.solve(three(3 * size), gap=0)
    assert (plan.status, plan.peak_bytes["device"]) == ("optimal", 3 * size)


@pytest.mark.parametrize(("capacity", "reserve"), [("80GiB", "81GiB"), (0, 0), ("8GiB", "8GiB")])
def test_31_no_usable_capacity_is_an_error(capacity: object, reserve: object) -> None:
    tiers = [{"name": "device", "capacity": capacity, "reserve": reserve}]
    with pytest.raises(InputError, match="usable device capacity is"):
        Machine.from_dict({"format": "planner-machine/1", "name": "m", "tiers": tiers, "links": []})


def test_31_a_reserve_in_percent_is_an_error() -> None:
    tiers = [{"name": "device", "capacity": "80GiB", "reserve": "110%"}]
    with pytest.raises(InputError, match="110%"):
        Machine.from_dict({"format": "planner-machine/1", "name": "m", "tiers": tiers, "links": []})


@pytest.mark.parametrize("size", [9223372036854775807 * 2, 4194304**3])
def test_32_products_that_wrap_elsewhere(size: int) -> None:
    """Case 32: exact, then refused as larger than anything; never small, never negative."""
    with pytest.raises(InputError, match=r"2\^62"):
        parse_size(size)


def test_33_bits_or_bytes() -> None:
    assert parse_capacity("1GB") == 10**9
    assert parse_capacity("1GiB") == 2**30
    assert parse_capacity(1073741824) == 2**30
    assert parse_capacity("1e3 MB") == 10**9
    assert parse_capacity("1.5 kB") == 1500
    assert (parse_size("0.5 B"), parse_capacity("1.5 B")) == (1, 1)


@pytest.mark.parametrize("text", ["1Gb", "1Gib", "1G", "1gb", 1.5, "-1GB", "1.5", "nan", "", "GB"])
def test_33_what_can_be_misread_is_refused(text: object) -> None:
    with pytest.raises(InputError):
        parse_capacity(text)


@pytest.mark.parametrize(("text", "fits"), [("24GB", False), ("24GiB", True)])
def test_34_decimal_or_binary(text: str, fits: bool) -> None:
    cap = parse_capacity(text)
    found = planner.info(toy("w=24500000000@D", "op(1): w->y(0)", D=cap, out="w@D"))
    assert found.status == ("feasible" if fits else "infeasible")
    if fits:
        assert cap - found.minimum_budget_bytes["device"].value == 1_269_803_776  # type: ignore[operator]
    else:
        assert "short by 500000000 " in found.message


def test_35_a_factor_is_not_a_time() -> None:
    data = stream_weights(13).to_dict() | {"objective": "peak"}
    with pytest.raises(InputError, match="max_makespan"):
        problem_from_dict(data | {"max_makespan": 7.6})
    with pytest.raises(InputError, match="max_slowdown"):
        problem_from_dict(data | {"max_slowdown": "7.6ms"})
    assert problem_from_dict(data | {"max_makespan": "7.6ms"}).objective.max_makespan == 7_600_000
    assert problem_from_dict(data | {"max_slowdown": "7.6"}).objective.max_slowdown is not None


def test_36_bandwidth_that_no_machine_has() -> None:
    """Case 36: accepted, with a warning."""
    problem = toy("w=4@H", "op(1): w->y(0)", D=4, h2d=12_500)
    assert any("bandwidth" in w for w in problem.warnings)
    assert not toy("w=4@H", "op(1): w->y(0)", D=4, h2d=51).warnings[1:]
    assert parse_bandwidth("12500 GB/s") == 12_500 * 10**9


def test_38_no_method_breaks_its_budget() -> None:
    """Case 38: three activations of 1, room for one beside the operands: every valid row is within the budget."""
    problem = toy("x=0@D", "f1(1): x->s1(1)", "f2(1): s1->s2(1)", "f3(1): s2->s3(1)", "b3(1): s3->g3(0)",
                  "b2(1): s2,g3->g2(0)", "b1(1): s1,g2->g1(0)", D=2)
    rows = planner.compare(problem, time_limit=3).to_dict()["rows"]
    assert rows
    best = planner.solve(problem, gap=0)
    for data in rows:
        if data["makespan_ns"] is not None and data["valid"]:
            assert data["peak_bytes"]["device"] <= 2
            assert data["makespan_ns"] >= best.makespan_ns
