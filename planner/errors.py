"""Exceptions of the planner.

::

    PlannerError                 exit code 1
    ├── InputError               exit code 2   something the caller gave cannot be used
    │   ├── UnitError                          a quantity without a usable unit
    │   ├── CaptureError                       a model that cannot be turned into a graph
    │   └── MissingDependencyError             an optional package is needed and absent
    ├── InvalidPlanError         exit code 5   a program that the checker rejects
    └── SolverError              exit code 1   a solver failed or contradicted a checked plan

*Infeasible* and *out of time* are answers, not exceptions: they come back as a ``Plan`` with its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "CaptureError",
    "Fault",
    "InputError",
    "InvalidPlanError",
    "MissingDependencyError",
    "PlannerError",
    "SolverError",
    "UnitError",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an input.

    Attributes
    ----------
    where : str
        Path inside the input, e.g. ``tensors[3].size``.
    problem : str
        What is wrong, with the offending value, and what would do.
    """

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}" if self.where else self.problem


class PlannerError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 1


class InputError(PlannerError):
    """An input cannot be used; lists every fault found, not just the first.

    Parameters
    ----------
    faults : str or iterable of Fault
        What is wrong.
    source : str, optional
        File (or other origin) that the faults are in.
    """

    exit_code = 2

    def __init__(self, faults: str | Iterable[Fault], source: str | None = None) -> None:
        self.faults: tuple[Fault, ...] = (Fault("", faults),) if isinstance(faults, str) else tuple(faults)
        self.source = source
        super().__init__(self.__str__())

    def __str__(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        if len(self.faults) == 1:
            return f"{prefix}{self.faults[0]}"
        lines = "".join(f"\n  {fault}" for fault in self.faults)
        return f"{prefix}{len(self.faults)} faults{lines}"

    def within(self, prefix: str) -> InputError:
        """Return the same error with ``prefix`` put before every path."""
        moved = [
            Fault(f"{prefix}.{f.where}" if f.where and not f.where.startswith("[") else f"{prefix}{f.where}", f.problem)
            for f in self.faults
        ]
        return type(self)(moved, self.source)

    def in_source(self, source: str) -> InputError:
        """Return the same error naming the file it comes from."""
        return self if self.source else type(self)(self.faults, source)


class UnitError(InputError):
    """A quantity that cannot be read: no unit, bits, negative, not a number."""


class CaptureError(InputError):
    """A model or file that cannot be turned into a graph."""


class MissingDependencyError(InputError):
    """An optional package is needed; the message says which extra brings it."""


class InvalidPlanError(PlannerError):
    """A program breaks the rules of the execution model.

    Parameters
    ----------
    message : str
        Summary.
    violations : sequence
        The checker's findings.
    """

    exit_code = 5

    def __init__(self, message: str, violations: Sequence[object] = ()) -> None:
        self.violations = tuple(violations)
        super().__init__(message)


class SolverError(PlannerError):
    """A solver crashed, lied or contradicted a plan that the checker accepted."""
