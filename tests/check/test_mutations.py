"""The checker against a literal reading of the model that was written by others: the brute force of the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from planner.check import check
from planner.problem import Problem
from planner.program import Drop, Instruction, Program, Run
from tests.oracle.brute import Literal, play, starts
from tests.oracle.search import optimum
from tests.strategies import random_problem

WALKS, PLANS = 40, 25
FAMILIES = {
    "any": {}, "updates": {"updates": True, "reorder": True}, "recompute": {"recompute": True, "updates": True},
    "direct": {"direct": True}, "held": {"offload": False, "any_home": True}, "pins": {"pins": True, "direct": True},
    "tiers": {"tiers": 3, "granule": True, "workspace": True},
    "streams": {"streams": 2, "after": True, "updates": True},
}


def draw(family: str, number: int) -> tuple[Problem, random.Random]:
    """Return the same problem, and a generator, for the same name and number."""
    rng = random.Random(f"{family}/{number}")
    problem = random_problem(rng, ops=rng.randint(2, 4), **FAMILIES[family])  # type: ignore[arg-type]
    if problem.rules.pin:
        pin = tuple((name, rng.choice(problem.machine.tiers).name) for name, _ in problem.rules.pin)
        problem = replace(problem, rules=replace(problem.rules, pin=pin))
    return problem, rng


def ahead(problem: Problem, rules: Literal, done: tuple[Instruction, ...], ins: Instruction) -> bool:
    """Does a Run overtake an op that the graph lists before it?"""
    if not isinstance(ins, Run) or problem.rules.reorder:
        return False
    before = rules.previous[ins.op]
    return before is not None and all(row.op != before for row in done if isinstance(row, Run))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_next_instruction_gets_the_same_verdict(family: str) -> None:
    """Walk along legal programs; at each step the checker accepts exactly the instructions that the rules accept."""
    legal = illegal = 0
    for number in range(WALKS):
        problem, rng = draw(family, number)
        start = rng.choice(list(starts(problem)))
        rules = Literal(problem, start)
        state = rules.initial()
        if state is None:
            assert next(v.index for v in check(problem, Program((), start)).violations) is None
            continue
        everything = rules.everything()
        done: tuple[Instruction, ...] = ()
        for _ in range(25):
            tried = rng.sample(everything, min(len(everything), 12))
            # runs get on; without a preference the walk would copy and drop to and fro
            tried.sort(key=lambda ins: 0 if isinstance(ins, Run) else 2 if isinstance(ins, Drop) else 1)
            after = state
            for ins in tried:
                if ahead(problem, rules, done, ins):
                    continue  # the checker blames the op that comes late, not the one that comes early
                next_state = rules.step(state, ins)
                found = [v for v in check(problem, Program((*done, ins), start)).violations if v.index is not None]
                assert bool(found) == (next_state is None), (problem.to_dict(), [*done, ins], found)
                assert all(v.index == len(done) for v in found if v.code != "pin"), found
                legal, illegal = legal + (not found), illegal + bool(found)
                if next_state is not None and after is state:
                    after, chosen = next_state, ins
            if after is state:
                break
            state, done = after, (*done, chosen)
    assert legal > 100
    assert illegal > 100


def mutants(rows: tuple[Instruction, ...], rng: random.Random) -> Iterator[tuple[Instruction, ...]]:
    """Yield programs with one instruction dropped, doubled, or swapped with another."""
    for i in range(len(rows)):
        yield rows[:i] + rows[i + 1:]
        j = rng.randrange(len(rows) + 1)
        yield (*rows[:j], rows[i], *rows[j:])
        k = rng.randrange(len(rows))
        swapped = list(rows)
        swapped[i], swapped[k] = swapped[k], swapped[i]
        yield tuple(swapped)


@pytest.mark.parametrize("family", FAMILIES)
def test_mutants_of_optimal_programs_get_the_same_verdict(family: str) -> None:
    broken = sound = 0
    for number in range(PLANS):
        problem, rng = draw(family, number)
        program = optimum(problem, time_limit=1).program
        if program is None:
            continue
        assert check(problem, program).valid
        for rows in mutants(program.instructions, rng):
            mutant = Program(rows, program.start)
            report = check(problem, mutant)
            assert report.valid == (play(problem, mutant) is not None), (problem.to_dict(), rows, report.violations)
            broken, sound = broken + (not report.valid), sound + report.valid
    assert broken > 20
    assert sound
