"""One small program for each violation code, broken in exactly that way."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from planner.check import Code, check
from planner.io.plan_json import PlanFile
from planner.problem import Objective, Problem
from planner.program import Program
from planner.replay import replay
from tests.toys import GB, toy

#: Two loads, two ops, an output: 18 ns, 7 bytes on the device.
LINE = toy("a=1@D w=4@H v=4@H", "f(5): a,w -> b(1)", "g(5): b,v -> c(1)", D=10, out="c@D")
GOOD = [["copy", "w", "host", "device"], ["run", "f"], ["drop", "w", "device"], ["copy", "v", "host", "device"],
        ["run", "g"], ["drop", "v", "device"]]
#: b is written twice over: recomputation is allowed.
AGAIN = toy("a=1@DH", "f(2): a -> b(4)", "g(2): b -> c(1)", "h(2): b,c -> d(1)", D=9, out="d@D", recompute=True)
TWICE = [["run", "f"], ["run", "g"], ["drop", "b", "device"], ["run", "f"], ["run", "h"]]
#: w is changed in place.
STEP = toy("x=1@D w=4@DH", "f(2): x,w -> y(1)", "s(1): y -> ~w", "g(2): x,w -> z(1)", D=9, out="z@D", recompute=True)
STEPS = [["run", "f"], ["drop", "w", "host"], ["run", "s"], ["run", "g"]]
#: Operands in place on the host.
SLOW = toy("a=1@D w=4@H", "f(5): a,w -> b(1)", D=6, out="b@D", direct=1, memory=4)


def found(problem: Problem, rows: list[Any], start: dict[str, str] | None = None) -> list[tuple[int | None, str]]:
    """Return (index, code) of every violation."""
    report = check(problem, Program.from_list(rows, start))
    for v in report.violations:
        if v.index is not None:
            assert v.instruction == rows[v.index]
            assert f"instruction {v.index} " in v.message
    assert report.valid == (not report.violations)
    return [(v.index, str(v.code)) for v in report.violations]


@pytest.mark.parametrize(("problem", "rows"), [(LINE, GOOD), (AGAIN, TWICE), (STEP, STEPS)])
def test_the_programs_are_valid_as_they_are(problem: Problem, rows: list[Any]) -> None:
    assert found(problem, rows) == []


def test_unknown_op() -> None:
    assert found(LINE, [*GOOD, ["run", "nosuch"]]) == [(6, Code.UNKNOWN_OP)]


@pytest.mark.parametrize("row", [["copy", "nosuch", "host", "device"], ["drop", "nosuch", "device"]])
def test_unknown_tensor(row: list[str]) -> None:
    assert found(LINE, [*GOOD, row]) == [(6, Code.UNKNOWN_TENSOR)]


@pytest.mark.parametrize("row", [["copy", "w", "host", "tape"], ["copy", "w", "tape", "host"], ["drop", "w", "tape"]])
def test_unknown_tier(row: list[str]) -> None:
    assert found(LINE, [*GOOD, row]) == [(6, Code.UNKNOWN_TIER)]


def test_unknown_tier_of_an_operand() -> None:
    problem = toy("a=1@D", "f(1): a -> b(1)", D=4, direct=1)
    assert found(problem, [["run", "f", {"a": "tape"}]])[0] == (0, Code.UNKNOWN_TIER)


FREE = toy("w=4@* x=1@D", "f(1): w,x -> y(1)", D=6, out="y@D w@home")


@pytest.mark.parametrize("start", [{}, {"w": "tape"}])
def test_start_missing_or_unknown(start: dict[str, str]) -> None:
    assert found(FREE, [["run", "f"]], start) == [(None, Code.START)]


@pytest.mark.parametrize("extra", [{"x": "device"}, {"nosuch": "device"}])
def test_start_for_what_has_none_to_choose(extra: dict[str, str]) -> None:
    assert found(FREE, [["run", "f"]], {"w": "device", **extra}) == [(None, Code.START)]


def test_start_away_needs_offload() -> None:
    rows = [["copy", "w", "host", "device"], ["run", "f"]]
    assert found(FREE, rows, {"w": "host"}) == []
    held = replace(FREE, rules=replace(FREE.rules, offload=False))
    assert found(held, rows, {"w": "host"}) == [(None, Code.START)]
    assert found(held, [["run", "f"]], {"w": "device"}) == []


def test_over_budget_once_a_tier_at_the_first_instruction() -> None:
    tight = LINE.with_budgets({"device": 5})
    report = check(tight, Program.from_list([GOOD[0], GOOD[3], GOOD[1], ["drop", "w", "device"], GOOD[4]]))
    assert [(v.index, v.code) for v in report.violations] == [(1, Code.OVER_BUDGET)]
    assert "5 bytes" in report.violations[0].message
    assert "reaches 10 bytes (5 too many) at instruction 2" in report.violations[0].message
    assert report.peak_bytes == {"device": 10, "host": 8}


def test_over_budget_at_the_start() -> None:
    assert found(LINE.with_budgets({"device": 8}), GOOD) == []
    packed = toy("a=4@D b=4@D", "f(1): a -> c(0)", D=7)
    assert found(packed, [["run", "f"]]) == [(None, Code.OVER_BUDGET)]


def test_over_budget_counts_granules() -> None:
    # 1 + 4 + 1 bytes fit into 8; in granules of 4 they occupy 4 + 4 + 4
    rough = toy("a=1@D w=4@H", "f(5): a,w -> b(1)", D=8, out="b@D", granule=4)
    assert found(rough, [["copy", "w", "host", "device"], ["run", "f"]]) == [(1, Code.OVER_BUDGET)]
    fine = toy("a=1@D w=4@H z=0@H", "f(5): a,w,z -> b(1)", D=12, out="b@D", granule=4)
    rows = [["copy", "w", "host", "device"], ["copy", "z", "host", "device"], ["run", "f"]]
    report = check(fine, Program.from_list(rows))
    assert report.valid
    assert report.peak_bytes["device"] == 12


def test_over_budget_on_both_tiers() -> None:
    problem = toy("x=0@D", "f(1): x -> a(4),b(4)", "g(1): a,b -> c(0)", D=7, H=3)
    rows = [["run", "f"], ["copy", "a", "device", "host"], ["run", "g"]]
    assert found(problem, rows) == [(0, Code.OVER_BUDGET), (1, Code.OVER_BUDGET)]


def test_workspace_counts_until_it_is_dropped() -> None:
    problem = toy("x=1@D w=4@H", "f(1) ws=4: x -> y(1)", "g(1): y,w -> z(1)", D=7, out="z@D")
    load, drop = ["copy", "w", "host", "device"], ["drop", "f@workspace", "device"]
    assert found(problem, [["run", "f"], drop, load, ["run", "g"]]) == []
    assert found(problem, [["run", "f"], load, drop, ["run", "g"]]) == [(1, Code.OVER_BUDGET)]


def test_no_link() -> None:
    # an output that starts on the host of a machine that can only load
    oneway = toy("a=1@D", "f(1): a -> b(1)", D=4, d2h=0)
    assert found(oneway, [["run", "f"], ["copy", "b", "device", "host"]]) == [(1, Code.NO_LINK)]
    assert found(LINE, [*GOOD, ["copy", "c", "device", "device"]]) == [(6, Code.NO_LINK), (6, Code.COPY_EXISTS)]


def test_copy_exists() -> None:
    assert found(LINE, [GOOD[0], *GOOD]) == [(1, Code.COPY_EXISTS)]


def test_source_missing() -> None:
    assert found(LINE, [["drop", "w", "host"], *GOOD]) == [(1, Code.SOURCE_MISSING)]


def test_source_missing_before_its_producer() -> None:
    rows = [["copy", "b", "device", "host"], *GOOD]
    assert found(LINE, rows) == [(0, Code.SOURCE_MISSING)]


def test_drop_missing() -> None:
    assert found(LINE, [*GOOD, ["drop", "w", "device"]]) == [(6, Code.DROP_MISSING)]


def test_offload_not_allowed() -> None:
    held = replace(LINE, rules=replace(LINE.rules, offload=False))
    rows = [*GOOD[:2], ["copy", "b", "device", "host"], *GOOD[2:]]
    assert found(LINE, rows) == []
    assert found(held, GOOD) == []  # loads and drops of clean copies stay legal
    assert found(held, rows) == [(2, Code.OFFLOAD_NOT_ALLOWED)]


def test_offload_that_keep_demands() -> None:
    problem = toy("a=1@D w=2@H", "f(1): a -> ~w", D=4, out="a@H w@home", offload=False)
    rows = [["copy", "w", "host", "device"], ["drop", "w", "host"], ["run", "f"], ["copy", "w", "device", "host"],
            ["copy", "a", "device", "host"]]
    assert found(problem, rows) == []


def test_offload_that_keep_demands_beyond_the_next_tier() -> None:
    problem = toy("a=1@D", "f(1): a -> b(1)", D=4, N=9, n2h=1, h2n=1, out="b@N", offload=False)
    rows = [["run", "f"], ["copy", "b", "device", "host"], ["copy", "b", "host", "nvme"]]
    assert found(problem, rows) == []
    assert found(problem, [*rows, ["copy", "a", "device", "host"]]) == [(3, Code.OFFLOAD_NOT_ALLOWED)]


def test_operand_missing() -> None:
    assert found(LINE, GOOD[1:2] + GOOD[3:]) == [(0, Code.OPERAND_MISSING)]


def test_operand_tier_without_the_rule() -> None:
    assert found(SLOW, [["run", "f", {"w": "host"}]]) == [(0, Code.OPERAND_TIER)]


def test_operand_tier_of_a_tier_without_direct_access() -> None:
    rules = replace(SLOW.rules, direct=True)
    assert found(replace(SLOW, rules=rules), [["run", "f", {"w": "host"}]]) == []
    closed = toy("a=1@D w=4@H", "f(5): a,w -> b(1)", D=6, out="b@D")
    closed = replace(closed, rules=rules)
    assert found(closed, [["run", "f", {"w": "host"}]]) == [(0, Code.OPERAND_TIER)]
    placed = toy("a=1@D w=4@H", "f(5): a,w -> b(1)", D=6, out="b@D", placements={"f": [({"w": "H"}, 9)]})
    placed = replace(placed, rules=rules)
    assert found(placed, [["run", "f", {"w": "host"}]]) == []
    assert found(placed, [["run", "f", {"w": "host", "b": "host"}]])[0] == (0, Code.OPERAND_TIER)


def test_operand_tier_of_what_is_no_operand() -> None:
    assert found(LINE, [*GOOD[:4], ["run", "g", {"a": "device"}], GOOD[5]]) == [(4, Code.OPERAND_TIER)]


def test_op_missing() -> None:
    assert found(LINE, GOOD[:3]) == [(None, Code.OP_MISSING), (None, Code.KEEP)]
    idle = toy("a=1@D", "f(1): a -> b(1)", D=4)
    assert found(idle, []) == [(None, Code.OP_MISSING)]


def test_order_listed() -> None:
    problem = toy("a=1@D", "f(1): a -> b(1)", "g(1): a -> c(1)", D=4)
    rows = [["run", "g"], ["run", "f"]]
    assert found(problem, rows) == [(1, Code.ORDER)]
    assert found(replace(problem, rules=replace(problem.rules, reorder=True)), rows) == []
    streams = toy("a=1@D", "f(1): a -> b(1)", "g(1) on net: a -> c(1)", D=4)
    assert found(streams, rows) == []


def test_order_after() -> None:
    problem = toy("a=1@D", "f(1): a -> b(1)", "g(1) after f: a -> c(1)", D=4, reorder=True)
    assert found(problem, [["run", "g"], ["run", "f"]]) == [(0, Code.ORDER)]


def test_order_of_in_place_changes() -> None:
    problem = toy("x=1@D w=4@D", "f(2): x,w -> y(1)", "s(1): x -> ~w", D=9, reorder=True)
    assert found(problem, [["run", "s"], ["run", "f"]]) == [(1, Code.ORDER)]
    assert found(problem, [["run", "f"], ["run", "s"]]) == []


def test_reruns_may_stand_anywhere() -> None:
    rows = [["run", "f"], ["run", "g"], ["drop", "c", "device"], ["drop", "b", "device"], ["run", "f"], ["run", "g"],
            ["run", "h"]]
    assert found(AGAIN, rows) == []


def test_stale() -> None:
    assert found(STEP, [STEPS[0], *STEPS[2:]]) == [(1, Code.STALE)]


def test_rerun_not_allowed() -> None:
    once = replace(AGAIN, rules=replace(AGAIN.rules, recompute=False))
    assert found(once, TWICE) == [(3, Code.RERUN_NOT_ALLOWED)]


def test_rerun_not_recomputable() -> None:
    random = toy("a=1@DH", "f(2!): a -> b(4)", "g(2): b -> c(1)", "h(2): b,c -> d(1)", D=9, out="d@D", recompute=True)
    assert found(random, TWICE) == [(3, Code.RERUN_NOT_RECOMPUTABLE)]


def test_rerun_of_an_update() -> None:
    problem = toy("x=1@D w=4@D", "s(1): x -> ~w,y(1)", "g(1): y -> z(1)", D=9, recompute=True)
    rows = [["run", "s"], ["run", "g"], ["drop", "y", "device"], ["run", "s"]]
    codes = found(problem, rows)
    assert codes[0] == (3, Code.RERUN_NOT_RECOMPUTABLE)
    assert {index for index, _ in codes} == {3}


def test_rerun_nothing_absent() -> None:
    assert found(AGAIN, [*TWICE[:2], *TWICE[3:]]) == [(2, Code.RERUN_NOTHING_ABSENT)]


def test_rerun_leaves_what_is_there() -> None:
    problem = toy("a=1@D", "f(2): a -> b(4),c(4)", "g(2): b,c -> d(1)", D=10, recompute=True)
    report = check(problem, Program.from_list([["run", "f"], ["drop", "b", "device"], ["run", "f"], ["run", "g"]]))
    assert report.valid
    assert report.peak_bytes["device"] == 10


def test_rerun_version_of_an_operand() -> None:
    rows = [*STEPS[:3], ["drop", "y", "device"], ["run", "f"], STEPS[3]]
    assert found(STEP, rows) == [(4, Code.RERUN_VERSION)]


def test_rerun_version_of_an_output() -> None:
    problem = toy("x=1@D", "f(1): x -> w(4)", "s(1): x -> ~w", "g(1): w -> y(1)", D=9, recompute=True)
    rows = [["run", "f"], ["run", "s"], ["drop", "w", "device"], ["run", "f"], ["run", "g"]]
    assert found(problem, rows) == [(3, Code.RERUN_VERSION)]


def test_keep() -> None:
    assert found(LINE, [*GOOD, ["drop", "c", "device"]]) == [(None, Code.KEEP)]


def test_keep_home_is_one_of_the_homes() -> None:
    problem = toy("w=4@DH", "f(1): w -> y(1)", D=6, out="w@home")
    rows: list[Any] = [["run", "f"]]
    assert found(problem, [*rows, ["drop", "w", "device"]]) == []
    assert found(problem, [*rows, ["drop", "w", "host"]]) == []
    assert found(problem, [*rows, ["drop", "w", "host"], ["drop", "w", "device"]]) == [(None, Code.KEEP)]


def test_keep_home_of_a_chosen_start() -> None:
    rows = [["copy", "w", "host", "device"], ["run", "f"]]
    assert found(FREE, [*rows, ["drop", "w", "host"]], {"w": "host"}) == [(None, Code.KEEP)]
    assert found(FREE, [*rows, ["drop", "w", "device"]], {"w": "host"}) == []


PINNED = toy("a=1@D w=4@H", "f(1): a,w -> b(1)", "g(1): b -> c(1)", "h(1): c,w -> d(1)", D=9, direct=1,
             pin=(("w", "device"),))
LOAD, AWAY = ["copy", "w", "host", "device"], ["drop", "w", "device"]


def test_pin_holds_from_first_to_last_use() -> None:
    runs = [["run", "f"], ["run", "g"], ["run", "h"]]
    assert found(PINNED, [LOAD, AWAY, LOAD, *runs, AWAY]) == []
    assert found(PINNED, [LOAD, runs[0], AWAY, runs[1], LOAD, runs[2]]) == [(2, Code.PIN)]


def test_pin_forbids_use_elsewhere() -> None:
    problem = replace(PINNED, rules=replace(PINNED.rules, direct=True))
    rows = [LOAD, ["run", "f", {"w": "host"}], ["run", "g"], ["run", "h"]]
    assert found(problem, rows) == [(1, Code.PIN)]


def plan(problem: Problem = LINE, rows: list[Any] | None = GOOD, **claim: Any) -> PlanFile:
    """Return a plan file with a true claim, changed by ``claim``."""
    program = None if rows is None else Program.from_list(rows)
    true: dict[str, Any] = {}
    if program is not None:
        t = replay(problem, program)
        true = {"status": "feasible", "makespan_ns": t.makespan_ns, "peak_bytes": dict(t.peak_bytes),
                "moved_bytes": dict(t.moved_bytes), "recomputed_ns": t.recomputed_ns, "stall_ns": t.stall_ns,
                "lower_bound_ns": t.makespan_ns - 2, "gap": 2 / (t.makespan_ns - 2)}
    return PlanFile(problem.sha256, program, {**true, **claim}, {})


def codes(problem: Problem, file: PlanFile) -> list[Code]:
    """Return the codes found."""
    return [v.code for v in check(problem, file).violations]


def test_wrong_problem() -> None:
    assert codes(LINE, plan()) == []
    assert codes(LINE.with_budgets({"device": 9}), plan()) == [Code.WRONG_PROBLEM]


def test_no_program() -> None:
    assert codes(LINE, plan(rows=None)) == [Code.NO_PROGRAM]


@pytest.mark.parametrize("claim", [
    {"makespan_ns": 17}, {"peak_bytes": {"device": 5, "host": 8}}, {"moved_bytes": {"host>device": 7}},
    {"recomputed_ns": 1}, {"stall_ns": 3}, {"lower_bound_ns": 10**6}, {"status": "optimal"}, {"gap": 0.0},
    {"moved_bytes": 8}, {"peak_bytes": [1]}, {"makespan_ns": "18"}, {"lower_bound_ns": "low"}, {"lower_bound_ns": -1},
    {"lower_bound_ns": None, "gap": 0.5}, {"status": 7}, {"status": "infeasible"}, {"gap": "small"}, {"recomputed_ns": False},
])
def test_wrong_claim(claim: dict[str, Any]) -> None:
    found = codes(LINE, plan(**claim))
    assert found
    assert set(found) == {Code.WRONG_CLAIM}


def test_a_claim_may_leave_things_out() -> None:
    file = plan()
    assert codes(LINE, replace(file, claim={})) == []
    true = {"peak_bytes": {"device": 7, "host": 8}, "moved_bytes": {"host>device": 8}}
    assert codes(LINE, replace(file, claim=true)) == []


def test_over_limit() -> None:
    program = Program.from_list(GOOD)
    for limit, expected in ((18, []), (17, [(None, Code.OVER_LIMIT)])):
        problem = replace(LINE, objective=Objective("peak", max_makespan=limit))
        assert found(problem, GOOD) == expected
        assert replay(problem, program).makespan_ns == 18
    relative = replace(LINE, objective=Objective("peak", max_slowdown=Fraction(18, 10)))
    assert found(relative, GOOD) == []
    assert found(replace(relative, objective=Objective("peak", max_slowdown=Fraction(179, 100))), GOOD) == [
        (None, Code.OVER_LIMIT)]


def test_claims_of_the_objective_peak() -> None:
    problem = replace(LINE, objective=Objective("peak", max_makespan=18))
    true = plan(problem, status="optimal", lower_bound_ns=None, lower_bound_bytes=7, gap=0.0)
    assert codes(problem, true) == []
    for wrong in ({"lower_bound_bytes": 6}, {"lower_bound_bytes": 8, "status": "feasible"}, {"gap": 0.1}):
        assert Code.WRONG_CLAIM in codes(problem, replace(true, claim={**true.claim, **wrong}))


def test_every_code_has_a_test() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    missing = [c.name for c in Code if f"Code.{c.name}" not in source.split("def test_every_code")[0]]
    assert missing == []


def test_the_checker_goes_on_after_a_violation() -> None:
    rows = [["run", "f"], ["run", "nosuch"], *GOOD[3:], ["drop", "w", "device"], ["copy", "c", "device", "tape"]]
    assert found(LINE, rows) == [(0, Code.OPERAND_MISSING), (1, Code.UNKNOWN_OP), (5, Code.DROP_MISSING),
                                 (6, Code.UNKNOWN_TIER)]


def test_bandwidth_of_the_toys() -> None:
    assert LINE.machine.links[0].bandwidth == GB


def test_every_code_says_what_it_means() -> None:
    assert len({c.meaning for c in Code}) == len(Code)
    assert all(c.__doc__ == c.meaning and Code(str(c)) is c for c in Code)
