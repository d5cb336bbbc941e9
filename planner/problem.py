"""What is to be planned: a graph on a machine, under budgets and rules, for an objective."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from planner.errors import Fault, InputError
from planner.graph import Graph
from planner.machine import Machine

if TYPE_CHECKING:
    from planner.lower import Lowered

__all__ = ["Objective", "Problem", "Rules"]


@dataclass(frozen=True)
class Rules:
    """What a plan may do.

    Attributes
    ----------
    offload : bool
        May tensors be copied off the device? Loads of what starts elsewhere and copies that ``keep`` demands are
        always allowed.
    recompute : bool
        May recomputable ops run again?
    reorder : bool
        May ops leave the listed order?
    split : bool
        May tensors move in pieces of ``chunk`` bytes?
    direct : bool
        May ops use operands on a slow tier in place?
    pin : tuple of (pattern, tier)
        Tensors matched by the pattern stay on that tier from first to last use.
    chunk : int
        Bytes of a piece when ``split`` is set.
    """

    offload: bool = True
    recompute: bool = False
    reorder: bool = False
    split: bool = False
    direct: bool = False
    pin: tuple[tuple[str, str], ...] = ()
    chunk: int = 64 * 1024**2


@dataclass(frozen=True)
class Objective:
    """``makespan``, or ``peak`` under a limit on the makespan.

    Attributes
    ----------
    kind : str
        ``"makespan"`` or ``"peak"``.
    max_slowdown : Fraction, optional
        Factor over the ideal time (`planner.bounds.ideal_ns`).
    max_makespan : int, optional
        Nanoseconds.
    """

    kind: str = "makespan"
    max_slowdown: Fraction | None = None
    max_makespan: int | None = None


@dataclass(frozen=True)
class Problem:
    """A validated planning problem.

    Attributes
    ----------
    graph, machine : Graph, Machine
    budgets : mapping of str to int
        Usable bytes per tier, in place of capacity − reserve.
    rules : Rules
    objective : Objective

    Raises
    ------
    InputError
        Lists every fault: a tier, pattern or budget that does not fit graph and machine, an op without a duration, …
    """

    graph: Graph
    machine: Machine
    budgets: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    rules: Rules = field(default_factory=Rules)
    objective: Objective = field(default_factory=Objective)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budgets", MappingProxyType(dict(sorted(self.budgets.items()))))
        faults: list[Fault] = []
        for name, value in self.budgets.items():
            tier = self.machine.tier.get(name)
            if tier is None:
                faults.append(Fault(f"budgets.{name}", f"unknown tier; tiers are {sorted(self.machine.tier)}"))
            elif value <= 0:
                faults.append(Fault(f"budgets.{name}", f"{value}: a budget must be positive"))
            elif tier.usable is not None and value > tier.usable:
                faults.append(Fault(f"budgets.{name}", f"{value} bytes is above the usable capacity of {tier.usable} bytes"))
        if faults:
            raise InputError(faults)
        self.lowered  # noqa: B018  raises every remaining fault now rather than in a solver

    @cached_property
    def lowered(self) -> Lowered:
        """The form that algorithms read: storages only, workspace as tensors, all durations known."""
        from planner.lower import lower

        return lower(self)

    @cached_property
    def capacity(self) -> dict[str, int | None]:
        """Usable bytes per tier in force; None is unbounded."""
        return {t.name: self.budgets.get(t.name, t.usable) for t in self.machine.tiers}

    @cached_property
    def sha256(self) -> str:
        """Hash of the canonical problem: includes resolved, defaults filled, integers, keys sorted."""
        from planner.io.canonical import canonical_bytes

        return hashlib.sha256(canonical_bytes(self.to_dict())).hexdigest()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Things that are legal and probably not meant."""
        return self.lowered.warnings

    def with_budgets(self, budgets: Mapping[str, int]) -> Problem:
        """Return the same problem with these budgets merged over its own."""
        return replace(self, budgets={**self.budgets, **budgets})

    def to_dict(self) -> dict[str, Any]:
        """Return the ``planner-problem/1`` object with graph and machine written out."""
        from planner.io.problem_json import problem_to_dict

        return problem_to_dict(self)

    def __repr__(self) -> str:
        return f"Problem({self.graph!r}, machine={self.machine.name!r}, budgets={dict(self.budgets)})"
