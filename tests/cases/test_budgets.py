"""Chapter 1: a budget that cannot do is diagnosed with the least that would, and what sets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planner
from planner.cli import main
from tests.cases.verified import stream_weights
from tests.toys import toy

GIB = 2**30


def test_1_least_budget_and_witness() -> None:
    """Case 1: below 8 op2 cannot run; 8 is the least."""
    plan = planner.solve(stream_weights(7), gap=0)
    assert plan.status == "infeasible"
    assert (plan.minimum_budget_bytes["device"].value, plan.minimum_budget_bytes["device"].proved) == (8, True)
    assert plan.witness is not None
    assert plan.witness.op == "op2"
    assert dict(plan.witness.tensors) == {"a1": 1, "w2": 6, "a2": 1}
    assert plan.witness.bytes == 8
    assert "short by 1" in plan.message


def test_2_one_op_is_too_big_whatever_moves() -> None:
    """Case 2: 20.00 + 36.60 + 14.67 GiB for one op; no offload can help."""
    p, y, space = 20 * GIB, 1467 * GIB // 100, 366 * GIB // 10
    cap = 1064 * GIB // 100
    problem = toy(f"P={p}@H", f"op1(1) ws={space}: P->y({y})", D=cap, out="y@D", pin=(("P", "device"),))
    found = planner.info(problem)
    assert found.status == "infeasible"
    assert found.minimum_budget_bytes["device"].value == p + y + space
    assert found.witness is not None
    assert found.witness.op == "op1"
    assert {name for name, _ in found.witness.tensors} == {"P", "y", "op1@workspace"}
    assert str(p + y + space - cap) in found.message


def test_2_residents_alone_overflow() -> None:
    """The same with P on the device from the start: residents over a capacity are infeasible, too."""
    plan = planner.solve(toy("P=20@D", "op1(1) ws=36: P->y(15)", D=11, out="y@D"))
    assert plan.status == "infeasible"
    assert plan.minimum_budget_bytes["device"].value == 71


@pytest.mark.parametrize(("tokens", "short"), [(4096, 226_492_416), (3665, 524_288), (3664, None)])
def test_4_largest_request_that_fits(tokens: int, short: int | None) -> None:
    """Case 4: room for 3,664 tokens of 524,288 bytes."""
    found = planner.info(toy("x=0@D", f"op1(1): x->kv({tokens * 524_288})", D=1_920_991_232, out="kv@D"))
    assert found.status == ("infeasible" if short else "feasible")
    need = found.minimum_budget_bytes["device"]
    assert need.value == tokens * 524_288
    if short:
        assert f"short by {short}" in found.message


def test_6_largest_layer_is_bigger_than_the_device() -> None:
    """Case 6, no host execution: op B needs its weight of 1.0 on the device."""
    layers = [f"s{i}=150@H" for i in range(4)]
    ops = [f"op{i}(1): s{i}->a{i}(0)" for i in range(4)]
    found = planner.info(toy(" ".join([*layers, "B=1000@H"]), *ops, "opB(1): B->y(0)", D=800))
    assert found.status == "infeasible"
    assert found.witness is not None
    assert found.witness.op == "opB"
    assert found.minimum_budget_bytes["device"].value == 1000


@pytest.mark.parametrize(("buffer", "need"), [(12, None), (60, 300)])
def test_7_host_binds_although_nvme_has_room(buffer: int, need: int | None) -> None:
    """Case 7, three tiers: optimizer state on nvme, other host data 60, four bounce buffers."""
    parts = " ".join(f"buffer{i}={buffer}@H" for i in range(4))
    problem = toy(f"opt=346@N other=60@H {parts}", D=24, H=256, N=2000, n2h=3, h2n=2, out="opt@home other@home "
                  + " ".join(f"buffer{i}@home" for i in range(4)))
    found = planner.info(problem)
    assert found.status == ("infeasible" if need else "feasible")
    assert found.minimum_budget_bytes["host"].value == 60 + 4 * buffer
    if need:
        assert "host" in found.message


def test_7_two_tiers() -> None:
    found = planner.info(toy("opt=346@H", D=24, H=256))
    assert found.status == "infeasible"
    assert "short by 90" in found.message
    assert found.witness is not None
    assert (found.witness.tier, found.witness.op) == ("host", None)


def test_8_infeasible_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Case 8: exit code 3 and one line; a result object, no exception; bad input is another code."""
    file = tmp_path / "case1.json"
    file.write_text(json.dumps(stream_weights(7).to_dict()))
    assert main(["plan", str(file), "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "infeasible"
    assert answer["minimum_budget_bytes"]["device"]["value"] == 8
    assert answer["witness"]["op"] == "op2"
    assert main(["info", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "infeasible"
    file.write_text("{")
    assert main(["plan", str(file), "--json"]) == 2
