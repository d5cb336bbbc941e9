"""Is what a plan claims what its program gives?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.problem import Problem
    from planner.replay import Timeline

__all__ = ["claim_faults"]


def claim_faults(
    problem: Problem, timeline: Timeline, peak: Mapping[str, int], claim: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a line for each figure that is wrong. What a claim leaves out (or has as null) is not wrong.

    Parameters
    ----------
    problem : Problem
    timeline : Timeline
        Replay of the program.
    peak : mapping of str to int
        The checker's own count, bytes by tier.
    claim : mapping
        As in a plan file; nothing in it is trusted to have the right type.
    """
    facts: list[tuple[str, object]] = [
        ("makespan_ns", timeline.makespan_ns), ("peak_bytes", dict(peak)), ("moved_bytes", timeline.moved_bytes),
        ("recomputed_ns", timeline.recomputed_ns), ("stall_ns", timeline.stall_ns),
    ]
    for name, true in facts:
        claimed = claim.get(name)
        if claimed is not None and _plain(claimed) != _plain(true):
            yield f"the plan claims {name} {claimed!r}, its program gives {true!r}"
    status = claim.get("status")
    if status is not None and status not in ("optimal", "feasible"):
        yield f"the plan claims status {status!r} and has a legal program"
    for name in ("lower_bound_ns", "lower_bound_bytes"):
        bound = claim.get(name)
        if bound is not None and (type(bound) is not int or bound < 0):
            yield f"the plan claims {name} {bound!r}, which is no bound"
            return
    yield from _bound_faults(problem, timeline, peak, claim)


def _bound_faults(
    problem: Problem, timeline: Timeline, peak: Mapping[str, int], claim: Mapping[str, Any]
) -> Iterator[str]:
    time = claim.get("lower_bound_ns")
    if time is not None and time > timeline.makespan_ns:
        yield f"the plan claims a lower bound of {time} ns, and its program takes {timeline.makespan_ns} ns"
    if problem.objective.kind == "peak":
        value, bound = peak[problem.machine.device.name], claim.get("lower_bound_bytes")
        if bound is not None and bound > value:
            yield f"the plan claims a lower bound of {bound} bytes, and its program needs {value} bytes"
    else:
        value, bound = timeline.makespan_ns, time
    if claim.get("status") == "optimal" and bound != value:
        yield f"the plan claims to be optimal with {value} and a lower bound of {bound}"
    if claim.get("gap") is not None and bound is None:
        yield f"the plan claims a gap of {claim['gap']!r} and no lower bound"
    if "gap" in claim and bound is not None:
        gap, true = claim["gap"], 0.0 if value == bound else math.inf if bound == 0 else (value - bound) / bound
        # JSON has no infinity: it is written as null
        same = gap is None if math.isinf(true) and not isinstance(gap, float) else (
            type(gap) in (int, float) and math.isclose(gap, true, rel_tol=1e-9))
        if not same:
            yield f"the plan claims a gap of {gap!r}; {value} over a lower bound of {bound} is {true}"


def _plain(value: object) -> object:
    """Return a value that compares equal only to the same figures: zeros of a table do not count, true is not 1."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v != 0 or type(v) is not int}
    return (type(value), value)
