"""Heuristics by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.program import Program

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["Heuristic", "available"]


@dataclass(frozen=True, slots=True)
class Heuristic:
    """A policy that turns a problem into a program.

    Attributes
    ----------
    name : str
    summary : str
        One line for tables.
    run : callable
        Problem → Program, or None where the policy finds none.
    """

    name: str
    summary: str
    run: Callable[[Problem], Program | None]


def available() -> dict[str, Heuristic]:
    """Return all heuristics by name, in the order of tables."""
    return {h.name: h for h in (
        Heuristic("keep", "nothing leaves the device that need not", _keep),
        Heuristic("demand", "Belady demand paging: load at the op, evict the farthest next use", _demand),
        Heuristic("greedy", "over-budget time per copy time, list-scheduled copies", _greedy),
        Heuristic("search", "greedy refined by local search (2,000 steps)", _search),
    )}


def _keep(problem: Problem) -> Program | None:
    from planner.heuristics.list_schedule import schedule_program, supports
    from planner.lifetimes import gaps_of

    return None if supports(problem) else schedule_program(problem, gaps_of(problem).forced.copy())


def _demand(problem: Problem) -> Program | None:
    from planner.heuristics.demand import demand_program

    return demand_program(problem)


def _greedy(problem: Problem) -> Program | None:
    from planner.heuristics.greedy import best_greedy
    from planner.heuristics.list_schedule import schedule_program, supports

    if supports(problem):
        return None
    vacated = best_greedy(problem)
    return None if vacated is None else schedule_program(problem, vacated)


def _search(problem: Problem) -> Program | None:
    from planner.heuristics.greedy import best_greedy
    from planner.heuristics.list_schedule import schedule_input, schedule_program, supports
    from planner.heuristics.local_search import improve

    if supports(problem):
        return None
    vacated = best_greedy(problem)
    if vacated is None:
        return None
    _, _, best = improve(schedule_input(problem), vacated, seconds=None, steps=2000, seed=0)
    return schedule_program(problem, best)
