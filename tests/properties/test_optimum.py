"""What must hold between optima: more of anything never hurts, names and units do not matter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.problem import Problem
from tests.oracle.search import OracleResult, optimum
from tests.properties.conftest import COUNT
from tests.properties.variants import (
    more_bandwidth,
    more_memory,
    permitted,
    renamed,
    scaled_sizes,
    scaled_times,
    split_channels,
)
from tests.strategies import problems

few = problems(ops=(1, 4), direct=False)


def best(problem: Problem, ties: bool = False) -> OracleResult:
    return optimum(problem, ties=ties, time_limit=1)


def assert_no_worse(problem: Problem, relaxed: Problem) -> None:
    tight, loose = best(problem), best(relaxed)
    if "unknown" in (tight.status, loose.status) or tight.makespan_ns is None:
        return
    assert loose.makespan_ns is not None
    assert loose.makespan_ns <= tight.makespan_ns


@settings(max_examples=150 * COUNT)
@given(few, st.sampled_from(["device", "host"]), st.integers(1, 12))
def test_more_memory_never_hurts(problem: Problem, tier: str, extra: int) -> None:
    grain = problem.machine.tier[tier].granule
    assert_no_worse(problem, more_memory(problem, tier, extra * grain))


@settings(max_examples=150 * COUNT)
@given(few, st.integers(2, 5))
def test_more_bandwidth_never_hurts(problem: Problem, factor: int) -> None:
    assert_no_worse(problem, more_bandwidth(problem, factor))
    assert_no_worse(problem, split_channels(problem))


@settings(max_examples=150 * COUNT)
@given(problems(ops=(1, 4), direct=False, any_home=False), st.sampled_from(["offload", "recompute", "reorder"]))
def test_permissions_never_hurt(problem: Problem, rule: str) -> None:
    assert_no_worse(permitted(problem, **{rule: False}), permitted(problem, **{rule: True}))


@settings(max_examples=100 * COUNT)
@given(problems(ops=(1, 3), recompute=False, direct=True))
def test_operands_in_place_never_hurt(problem: Problem) -> None:
    assert_no_worse(permitted(problem, direct=False), permitted(problem, direct=True))


@settings(max_examples=100 * COUNT)
@given(few)
def test_names_do_not_matter(problem: Problem) -> None:
    mine, theirs = best(problem, ties=True), best(renamed(problem), ties=True)
    if "unknown" not in (mine.status, theirs.status):
        assert (mine.status, mine.makespan_ns, mine.moved_bytes_total, mine.peak_bytes) == (
            theirs.status, theirs.makespan_ns, theirs.moved_bytes_total, theirs.peak_bytes)


@settings(max_examples=100 * COUNT)
@given(problems(ops=(1, 4)), st.sampled_from([2, 3, 2**30]))
def test_the_unit_of_size_does_not_matter(problem: Problem, factor: int) -> None:
    mine, theirs = best(problem), best(scaled_sizes(problem, factor))
    if "unknown" not in (mine.status, theirs.status):
        assert (mine.status, mine.makespan_ns) == (theirs.status, theirs.makespan_ns)


@settings(max_examples=150 * COUNT)
@given(few, st.sampled_from([2, 10]))
def test_the_unit_of_time_does_not_matter(problem: Problem, factor: int) -> None:
    other = scaled_times(problem, factor)
    if other is None:
        return
    mine, theirs = best(problem), best(other)
    if "unknown" not in (mine.status, theirs.status) and mine.makespan_ns is not None:
        assert theirs.makespan_ns == factor * mine.makespan_ns
