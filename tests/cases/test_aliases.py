"""Chapter 2: shared storage, views and in-place ops."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.errors import InputError
from planner.graph import Graph
from planner.io.problem_json import problem_from_dict
from planner.problem import Problem, Rules
from planner.program import Drop, Program, Run
from tests.toys import toy


def graph(tensors: list[dict[str, Any]], ops: list[dict[str, Any]]) -> dict[str, Any]:
    return {"format": "planner-graph/1", "name": "g", "tensors": tensors, "ops": ops}


def problem(tensors: list[dict[str, Any]], ops: list[dict[str, Any]], cap: int, **rules: Any) -> Problem:
    machine = toy("x=0@D", D=cap).machine
    return Problem(Graph.from_dict(graph(tensors, ops)), machine, rules=Rules(**rules))


@pytest.mark.parametrize("storage", [None, 0])
def test_12_null_storage_ids_never_make_aliases(storage: int | None) -> None:
    """Case 12: there is no storage id in the format; a file that has one is refused, never read as one storage."""
    rows = [{"name": n, "size": s, "home": ["device"], "storage": storage} for n, s in (("a", 4), ("b", 5), ("c", 6))]
    with pytest.raises(InputError, match="storage"):
        Graph.from_dict(graph(rows, []))


def test_13_tied_parameters_count_once() -> None:
    """Case 13: ten bytes in a module, three names elsewhere for three of them: 10, not 13 or 30."""
    own = [{"name": f"p{i}", "size": 1, "home": ["device"], "kind": "weight"} for i in range(10)]
    tied = [{"name": f"q{i}", "size": 1, "alias_of": f"p{i}"} for i in range(3)]
    found = problem([*own, *tied], [{"name": "op", "reads": ["q0", "p0", "q1", "p9"], "duration": 1}], 10)
    assert sum(t.size for t in found.lowered.tensors) == 10
    assert planner.info(found).bytes_by_kind == {"weight": 10}
    assert planner.solve(found, gap=0).makespan_ns == 1


def test_14_offloading_a_view_moves_its_storage_once() -> None:
    """Case 14: B=100 and a view V; both are one tensor of 100 bytes, out once and back once."""
    found = problem(
        [{"name": "x", "size": 0, "home": ["device"]}, {"name": "B", "size": 100},
         {"name": "V", "size": 0, "alias_of": "B"}, {"name": "m", "size": 0}, {"name": "y", "size": 0}],
        [{"name": "op1", "reads": ["x"], "writes": ["B"], "duration": 1},
         {"name": "op2", "reads": ["x"], "writes": ["m"], "workspace": 60, "duration": 1},
         {"name": "op9", "reads": ["V", "m"], "writes": ["y"], "duration": 1}], 120)
    plan = planner.solve(found, gap=0)
    assert plan.status == "optimal"
    assert plan.moved_bytes == {"device>host": 100, "host>device": 100}
    assert plan.makespan_ns == 1 + 100 + 1 + 100 + 1


def test_14_a_storage_is_free_only_when_no_view_needs_it() -> None:
    found = problem(
        [{"name": "B", "size": 100, "home": ["device"]}, {"name": "V", "size": 0, "alias_of": "B"},
         {"name": "y", "size": 1}, {"name": "z", "size": 1}],
        [{"name": "op1", "reads": ["B"], "writes": ["y"], "duration": 1},
         {"name": "op2", "reads": ["V", "y"], "writes": ["z"], "duration": 1}], 200)
    assert planner.check(found, Program((Run("op1"), Run("op2")))).valid
    report = planner.check(found, Program((Run("op1"), Drop("B", "device"), Run("op2"))))
    assert [v.code for v in report.violations] == ["operand-missing"]


def test_15_in_place_chain_takes_one_buffer() -> None:
    """Case 15a: x, y and z share 10 bytes."""
    found = problem(
        [{"name": "x", "size": 10, "home": ["device"]}, {"name": "y", "size": 10, "alias_of": "x"},
         {"name": "z", "size": 10, "alias_of": "x"}],
        [{"name": "op1", "reads": ["x"], "writes": ["y"], "duration": 1},
         {"name": "op2", "reads": ["y"], "writes": ["z"], "duration": 1}], 10)
    plan = planner.solve(found, gap=0)
    assert (plan.status, plan.makespan_ns, plan.peak_bytes["device"]) == ("optimal", 2, 10)


def test_15_reading_what_was_overwritten_is_refused() -> None:
    """Case 15b: op2 reads x after op1 overwrote it; the message names op1 or y, op2 and x."""
    with pytest.raises(InputError, match=r"op2.*'x'.*op1"):
        problem(
            [{"name": "x", "size": 10, "home": ["device"]}, {"name": "y", "size": 10, "alias_of": "x"},
             {"name": "z", "size": 10}],
            [{"name": "op1", "reads": ["x"], "writes": ["y"], "duration": 1},
             {"name": "op2", "reads": ["x", "y"], "writes": ["z"], "duration": 1}], 30)


def test_15_if_possible_is_refused_by_name() -> None:
    data = toy("x=10@D", "op1(1): x->y(10)", D=30).to_dict()
    data["rules"]["inplace"] = "if_possible"
    with pytest.raises(InputError, match="inplace"):
        problem_from_dict(data)


def test_18_an_alias_that_is_an_output_keeps_its_storage() -> None:
    """Case 18: u, alias of t, must end on the device; so t's 16 bytes live to the end."""
    found = problem(
        [{"name": "x", "size": 0, "home": ["device"]}, {"name": "t", "size": 16},
         {"name": "u", "size": 16, "alias_of": "t", "keep": "device"}, {"name": "v", "size": 4}],
        [{"name": "op1", "reads": ["x"], "writes": ["t"], "duration": 1},
         {"name": "op2", "reads": ["t"], "writes": ["v"], "duration": 1}], 20)
    plan = planner.solve(found, gap=0)
    assert (plan.status, plan.peak_bytes["device"]) == ("optimal", 20)
    report = planner.check(found, Program((Run("op1"), Run("op2"), Drop("t", "device"))))
    assert [v.code for v in report.violations] == ["keep"]


def test_19_offloading_activations_moves_no_weight() -> None:
    """Case 19: the 6 bytes of the activation go out and back, the weight of 40 stays where it is."""
    found = toy("x=0@D w=40@DH", "op1(1): x,w->a(6)", "op2(30) ws=6: x->b(0)", "op3(1): a,b,w->y(0)", D=46,
                kinds={"w": "weight", "a": "activation"}, pin=(("w", "device"),))
    plan = planner.solve(found, gap=0)
    assert plan.status == "optimal"
    assert {k: v for k, v in plan.moved_bytes.items() if v} == {"device>host": 6, "host>device": 6}
    assert planner.info(found).bytes_by_kind["weight"] == 40
