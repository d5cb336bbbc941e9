"""Provably good plans for moving tensors between memory tiers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# These modules share their name with the function in them. Importing them here binds the functions for good: a later
# import of the module finds it loaded and leaves the attribute alone. Each imports its heavy parts only when called.
from planner.check import check
from planner.compare import compare
from planner.info import info
from planner.replay import replay
from planner.solve import solve

#: Public name → module that defines it; imported on first use so that ``import planner`` stays quick.
_WHERE = {
    "Compute": "planner.machine",
    "Copy": "planner.program",
    "Drop": "planner.program",
    "Graph": "planner.graph",
    "InputError": "planner.errors",
    "InvalidPlanError": "planner.errors",
    "Link": "planner.machine",
    "Machine": "planner.machine",
    "Objective": "planner.problem",
    "Op": "planner.graph",
    "Placement": "planner.graph",
    "Plan": "planner.plan",
    "PlannerError": "planner.errors",
    "Problem": "planner.problem",
    "Program": "planner.program",
    "Rules": "planner.problem",
    "Run": "planner.program",
    "SolverError": "planner.errors",
    "Status": "planner.plan",
    "Tensor": "planner.graph",
    "Tier": "planner.machine",
    "Timeline": "planner.replay",
    "load": "planner.io",
    "load_model": "planner.models",
    "preset": "planner.presets",
}

# Written out, so that type checkers see what the package exports; a test compares it with the table.
__all__ = [
    "Compute", "Copy", "Drop", "Graph", "InputError", "InvalidPlanError", "Link", "Machine", "Objective", "Op",
    "Placement", "Plan", "PlannerError", "Problem", "Program", "Rules", "Run", "SolverError", "Status", "Tensor",
    "Tier", "Timeline", "__version__", "check", "compare", "info", "load", "load_model", "preset", "replay", "solve",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'planner' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    from planner.errors import InputError, InvalidPlanError, PlannerError, SolverError
    from planner.graph import Graph, Op, Placement, Tensor
    from planner.io import load
    from planner.machine import Compute, Link, Machine, Tier
    from planner.models import load_model
    from planner.plan import Plan, Status
    from planner.presets import preset
    from planner.problem import Objective, Problem, Rules
    from planner.program import Copy, Drop, Program, Run
    from planner.replay import Timeline
