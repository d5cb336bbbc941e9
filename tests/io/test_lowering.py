"""What algorithms read: storages for names, workspace as tensors, pieces, pins, durations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from planner.check import check
from planner.errors import InputError
from planner.graph import Graph, Op, Placement, Tensor
from planner.graph_rules import stable_topological_order
from planner.lower import MOST_PIECES
from planner.machine import Compute, Link, Machine, Tier
from planner.problem import Problem, Rules
from planner.program import Program
from tests.toys import GB, toy

BOX = Machine("box", (Tier("device", 1000), Tier("host")), (Link("host", "device", GB), Link("device", "host", GB)))


def make(tensors: list[Tensor], ops: list[Op], machine: Machine = BOX, **rules: Any) -> Problem:
    """Return a problem."""
    return Problem(Graph("g", tuple(tensors), tuple(ops)), machine, rules=Rules(**rules))


def fault(tensors: list[Tensor], ops: list[Op], machine: Machine = BOX, **rules: Any) -> str:
    """Return the message with which a problem is refused."""
    with pytest.raises(InputError) as caught:
        make(tensors, ops, machine, **rules)
    return str(caught.value)


X = Tensor("x", 10, ("device",))


# aliases


def test_three_storages_without_alias_are_three() -> None:
    problem = make([X, Tensor("y", 5, ("device",)), Tensor("z", 6, ("device",))], [Op("f", ("x", "y", "z"), duration=1)])
    assert check(problem, Program.from_list([["run", "f"]])).peak_bytes["device"] == 21


def test_home_and_keep_of_the_names_are_merged() -> None:
    t = make([Tensor("r", 8, ("host",), kind=""), Tensor("v", 4, ("device",), "home", "weight", "r")],
             [Op("f", ("v",), duration=1)]).lowered.tensor["r"]
    assert (t.size, t.home, t.keep, t.kind) == (8, ("host", "device"), "home", "weight")


def test_names_become_the_storage_and_count_once() -> None:
    problem = make([X, Tensor("v", 3, alias_of="x"), Tensor("w", 2, alias_of="x")], [Op("f", ("x", "v", "w"), duration=1)])
    assert problem.lowered.ops[0].reads == ("x",)


def test_a_write_to_a_name_of_what_is_there_is_an_update() -> None:
    problem = make([X, Tensor("y", 10, alias_of="x")], [Op("f", ("x",), ("y",), duration=1), Op("g", ("y",), duration=1)])
    first, second = problem.lowered.ops
    assert (first.reads, first.writes, first.updates, first.recomputable) == (("x",), (), ("x",), False)
    assert (second.reads, second.recomputable) == (("x",), True)


def test_the_first_write_to_any_name_creates_the_storage() -> None:
    problem = make([X, Tensor("t", 16), Tensor("u", 16, alias_of="t", keep="device")],
                   [Op("f", ("x",), ("u",), duration=1), Op("g", ("t",), duration=1)])
    assert (problem.lowered.ops[0].writes, problem.lowered.ops[0].updates) == (("t",), ())
    assert problem.lowered.tensor["t"].keep == "device"


@pytest.mark.parametrize(("tensors", "ops", "words"), [
    ([X, Tensor("y", 10, alias_of="x"), Tensor("z", 10)],
     [Op("f", ("x",), ("y",), duration=1), Op("g", ("x", "y"), ("z",), duration=1)], "op 'g' reads 'x' after 'f' overwrote it"),
    ([Tensor("t", 4), Tensor("v", 4, alias_of="t")], [Op("f", ("v",), duration=1)], "'v' of storage 't', which has no home"),
    ([X, Tensor("t", 4), Tensor("v", 4, alias_of="t")], [Op("f", ("v",), duration=1), Op("g", ("x",), ("t",), duration=1)],
     "op 'f' reads 'v' of storage 't'"),
    ([Tensor("t", 4, "any"), Tensor("v", 4, ("host",), alias_of="t")], [], "conflicts with 'any'"),
    ([Tensor("t", 4, ("host",), "host"), Tensor("v", 4, keep="device", alias_of="t")], [],
     "'device' of 'v' conflicts with 'host' of its storage 't'"),
    ([X, Tensor("t", 4), Tensor("v", 4, keep="home", alias_of="t")], [Op("f", ("x",), ("t",), duration=1)], "needs a home"),
    ([Tensor("t", 4), Tensor("v", 4, keep="host", alias_of="t")], [], "is kept but no op writes it"),
    ([Tensor("i", 4, ("device",), kind="input"), Tensor("v", 4, alias_of="i")], [Op("f", ("i",), ("v",), duration=1)],
     "'v' overwrites the protected input 'i'"),
    ([Tensor("i", 4, ("device",), kind="input"), Tensor("v", 4, alias_of="i")], [Op("f", (), updates=("v",), duration=1)],
     "'v' overwrites the protected input 'i'"),
    ([Tensor("i", 4, ("device",), kind="input")], [Op("f", (), updates=("i",), duration=1)], "protected input"),
])
def test_aliases_that_mean_nothing(tensors: list[Tensor], ops: list[Op], words: str) -> None:
    assert words in fault(tensors, ops)


def test_an_output_may_be_the_last_name_of_a_storage() -> None:
    problem = make([X, Tensor("y", 10, kind="output", keep="device", alias_of="x")], [Op("f", ("x",), ("y",), duration=1)])
    assert problem.lowered.ops[0].updates == ("x",)


# workspace and placements


def test_workspace_is_a_tensor_that_the_op_writes() -> None:
    problem = toy("a=1@D", "f(1) ws=7: a -> b(1)", D=9)
    assert problem.lowered.ops[0].writes == ("b", "f@workspace")
    assert problem.lowered.tensor["f@workspace"].size == 7
    assert problem.lowered.ops[0].workspace == 0


def test_placements_speak_of_storages_off_the_device() -> None:
    op = Op("f", ("v", "x"), duration=1, placements=(Placement((("v", "host"), ("x", "device")), 9),))
    problem = make([X, Tensor("w", 4, ("host",)), Tensor("v", 4, alias_of="w")], [op], direct=True)
    assert problem.lowered.ops[0].placements == (Placement((("w", "host"),), 9),)
    assert check(problem, Program.from_list([["run", "f", {"w": "host"}]])).valid
    both = Op("f", ("v", "w"), duration=1, placements=(Placement((("v", "host"), ("w", "nvme")), 9),))
    assert "two tiers" in fault([Tensor("w", 4, ("host",)), Tensor("v", 4, alias_of="w")], [both])


# split


def test_pieces() -> None:
    problem = toy("w=10@H x=4@D", "f(1) ws=9: w,x -> y(6)", "g(1): w -> ~y", D=40, split=True, chunk=4, out="y@H",
                  placements={"f": [({"w": "host"}, 3)]}, pin=(("w", "device"),))
    low = problem.lowered
    assert [(t.name, t.size) for t in low.tensors] == [
        ("w#0", 4), ("w#1", 4), ("w#2", 2), ("x", 4), ("y#0", 4), ("y#1", 2), ("f@workspace", 9)]
    assert low.ops[0].reads == ("w#0", "w#1", "w#2", "x")
    assert low.ops[0].writes == ("y#0", "y#1", "f@workspace")
    assert low.ops[1].updates == ("y#0", "y#1")
    assert low.ops[0].placements[0].at == (("w#0", "host"), ("w#1", "host"), ("w#2", "host"))
    assert low.pinned == {"w#0": "device", "w#1": "device", "w#2": "device"}
    assert [low.tensor[n].keep for n in ("y#0", "y#1")] == ["host", "host"]
    assert sum(t.size for t in toy("w=10@H", "f(1): w -> y(6)", D=40, split=True).lowered.tensors) == 16


def test_too_many_pieces_are_refused() -> None:
    assert f"more than {MOST_PIECES}" in fault([Tensor("w", 2**40, ("device",))], [], split=True, chunk=1)


# pins


def test_pins_match_names_and_aliases() -> None:
    tensors = [Tensor("w.1", 1, ("device",)), Tensor("w.2", 1, ("device",)), Tensor("W", 1, ("device",)),
               Tensor("tied", 1, alias_of="W")]
    assert make(tensors, [], pin=(("w.*", "device"),)).lowered.pinned == {"w.1": "device", "w.2": "device"}
    assert make(tensors, [], pin=(("t*", "host"),)).lowered.pinned == {"W": "host"}
    assert make(tensors, [], pin=(("w.[2]", "host"), ("*.2", "host"))).lowered.pinned == {"w.2": "host"}
    assert "matches no tensor" in fault(tensors, [], pin=(("v*", "device"),))
    assert "pins 'W' to 'host', another pattern to 'device'" in fault(tensors, [], pin=(("W", "device"), ("tied", "host")))
    spaced = [X, Tensor("y", 1)], [Op("f", ("x",), ("y",), duration=1, workspace=4)]
    assert make(*spaced, pin=(("*", "device"),)).lowered.pinned == {"x": "device", "y": "device"}


# ways


def test_ways_that_the_rules_open() -> None:
    cut = Machine("cut", (Tier("device", 99), Tier("host", direct=True, direct_bandwidth=GB)), ())
    tensors, ops = [Tensor("w", 4, ("host",))], [Op("f", ("w",), duration=1)]
    assert "no link leads" in fault(tensors, ops, cut)
    assert check(make(tensors, ops, cut, direct=True), Program.from_list([["run", "f", {"w": "host"}]])).valid
    line = Machine("line", (Tier("device", 99), Tier("host"), Tier("nvme")), (Link("host", "nvme", GB),))
    assert make([Tensor("w", 4, ("host",), "nvme")], [], line).lowered.tensor["w"].keep == "nvme"
    assert "no link leads from 'device' to its keep tier" in fault([Tensor("w", 4, ("device",), "nvme")], [], line)


# durations


SPEED = Compute({"bf16": 10**12, "fp32": 10**11}, 10**12, Fraction(1, 2), 3)


@pytest.mark.parametrize(("op", "duration"), [
    (Op("f", flops=1000, dtype="bf16"), 2 + 3), (Op("f", flops=1001, dtype="bf16"), 3 + 3),
    (Op("f", flops=1000, dtype="fp32"), 20 + 3),
    (Op("f", bytes=5000), 5 + 3), (Op("f", flops=1000, bytes=5001, dtype="bf16"), 6 + 3), (Op("f", flops=0, bytes=0), 3),
    (Op("f", flops=10**6, duration=7), 7), (Op("f", duration=0), 0),
])
def test_roofline(op: Op, duration: int) -> None:
    machine = Machine("fast", BOX.tiers, BOX.links, SPEED)
    assert make([], [op], machine).lowered.ops[0].duration == duration


@pytest.mark.parametrize(("op", "compute", "words"), [
    (Op("f"), SPEED, "the time of op 'f' is unknown"), (Op("f", flops=1, dtype="bf16"), None, "states no compute speed"),
    (Op("f", flops=1, dtype="fp8"), SPEED, "'fp8'"), (Op("f", flops=1), SPEED, "None"),
    (Op("f", bytes=1), Compute({"bf16": 1}), "memory_bandwidth"),
])
def test_unknown_times_are_never_zero(op: Op, compute: Compute | None, words: str) -> None:
    assert words in fault([], [op], Machine("m", BOX.tiers, BOX.links, compute))


# warnings and order


def test_warnings() -> None:
    problem = toy("a=1@D dead=9@H", "f(1): a -> b(1)", "g(1): a -> q(1)", D=9, H=9, out="b@D")
    assert any("dead" in w for w in problem.warnings)
    assert [w for w in problem.warnings if "'g'" in w]
    assert not [w for w in problem.warnings if "'f'" in w]


def test_the_stable_sort_repairs_an_order() -> None:
    ops = [Op("c", ("y",)), Op("a", (), ("x",)), Op("b", ("x",), ("y",)), Op("d", after=("c",)), Op("e")]
    assert [o.name for o in stable_topological_order(ops)] == ["a", "b", "c", "d", "e"]
    with pytest.raises(InputError, match="p > q > p"):
        stable_topological_order([Op("p", ("u",), ("v",)), Op("q", ("v",), ("u",))])
