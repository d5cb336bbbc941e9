"""Bounds, heuristics, least budgets against the optimum of seeded random problems; and faults found once that way."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import pytest

from planner.problem import Problem, Rules
from tests.oracle.agreement import disagreements
from tests.strategies import random_problem
from tests.toys import toy

#: Multiplies the number of random problems: ``ORACLE_COUNT=20`` for a long run.
COUNT = int(os.environ.get("ORACLE_COUNT", "1"))

#: The features for which fluid bound and list schedule are made.
PLAIN = {"tiers": 2, "recompute": False, "reorder": False, "direct": False, "streams": 1, "after": False}
FAMILIES: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "no-offload": {**PLAIN, "offload": False},
    "updates": {**PLAIN, "updates": True, "any_home": True},
    "host-capacity": {**PLAIN, "host_capacity": True, "half": True},
    "granule-workspace": {**PLAIN, "granule": True, "workspace": True, "zeros": True},
    "pins": {**PLAIN, "pins": True},
    "three-tiers": {"tiers": 3},
    "recompute": {"recompute": True, "streams": 1},
    "anything": {},
}


def instance(family: str, number: int) -> Problem:
    """Return one problem of a family; the same for ever."""
    features = dict(FAMILIES[family])
    rng = random.Random(f"{family} {number}")
    tiers = features.pop("tiers", 0) or rng.choice([2, 2, 3])
    return random_problem(rng, ops=rng.randint(1, 4), tiers=tiers, **features)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_disagrees_with_the_optimum(family: str) -> None:
    found: list[str] = []
    decided = 0
    for number in range(18 * COUNT):
        lines = disagreements(instance(family, number), time_limit=3, seed=number)
        decided += lines is not None
        found += [f"{family} {number}: {line}" for line in lines or ()]
    assert not found, "\n".join(found)
    assert decided >= 15 * COUNT


FAULTS = {
    # without offload a copy that keep demands may come back: t0b need not stay beside op2
    "kept-on-host-may-return": toy(
        "w0=1@H", "op0(6): w0->t0a(5),t0b(3)", "op1(5): t0a->t1a(4)", "op2(2): t1a,t0a,w0->t2a(4)",
        "op3(1): t1a,t0b,t2a->t3a(4)", D=15, h2d=2, d2h=2, half=True, out="t0b@H t3a@H", offload=False),
    "updated-kept-on-host-may-return": toy(
        "w0=3@H w1=1@DH w2=1@H", "op0(5): w1,w2->t0a(5),t0b(3),~w2", "op1(4): w0->t1a(3),t1b(5)", "op2(1): w2,t1a->~w2",
        "op3(0): w2->t3a(3),t3b(2),~w2", D=11, H=9, d2h=3, out="w2@home", offload=False),
    # a pin holds from first to last use, not before and not after
    "pinned-but-never-used": toy(
        "w0=3@DH w1=6@* w2=6@*", "op0(2): w2,w1->t0a(4),t0b(3)", "op1(3): w2,t0a->t1a(1)",
        "op2(2): t0b,t0a,t1a->t2a(4)", D=21, half=True, out="w0@home w2@home", pin=(("w0", "device"),)),
    # what the planner starts on the device and must end elsewhere has to be copied there
    "any-kept-on-host": toy("w0=3@*", "op0(2): w0->t0a(2),t0b(6)", "op1(2): w0,t0b->t1a(3)", D=17, H=5, half=True,
                            out="w0@H"),
    # demand paging: homes fill the backing tier, so w0 has to start on the device
    "homes-fill-the-host": toy("w0=5@* w1=5@DH w2=2@H", "op0(5): w2->t0a(5),~w2", "op1(2): t0a,w1->t1a(1)", D=16, H=7,
                               out="w0@home"),
    # the order of ops on two streams is not fixed: op1 may run before op0
    "two-streams": toy("w0=5@H w2=2@H", "op0(1) on a: w2->t0a(6)", "op1(3) on b: w0->t1a(6)", D=11, out="t0a@D",
                       offload=False),
    # the list schedule knows two tiers: a third that holds a copy would be stale after the update
    "updated-with-a-third-home": toy("w0=2@DN", "op0(1): w0->y(1),~w0", D=5, n2h=1, h2n=1),
    # an operand used in place may be faster than in device memory
    "faster-in-place": replace(toy("w0=8@H", "op0(10): w0->t0(1)", D=20, memory=2, direct=8), rules=Rules(direct=True)),
}


@pytest.mark.parametrize("problem", FAULTS.values(), ids=FAULTS)
def test_faults_found_once(problem: Problem) -> None:
    assert disagreements(problem) == []
