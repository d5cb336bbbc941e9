"""A mixed-integer linear model as plain data, so that formulations do not depend on a modelling package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["Linear", "Literal"]

#: A 0-1 variable, or (with False) its complement.
Literal = tuple[int, bool]


@dataclass(eq=False)
class Linear:
    """Variables with bounds, rows Σ a·x ≥ b, and an objective to minimise.

    Attributes
    ----------
    low, high : list of float
        Bounds by variable; all finite, they set the constants of conditional rows.
    integer : list of bool
    rows : list of (terms, right-hand side, conditions)
        ``terms`` maps variable to coefficient; the row holds if all literals of the conditions do.
    objective : dict of int to float
    """

    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, tuple[Literal, ...]]] = field(default_factory=list)
    objective: dict[int, float] = field(default_factory=dict)

    def variable(self, low: float, high: float, name: str, *, integer: bool = False) -> int:
        """Add a variable and return its index."""
        self.low.append(low)
        self.high.append(high)
        self.integer.append(integer)
        self.names.append(name)
        return len(self.low) - 1

    def literal(self, name: str) -> Literal:
        """Add a 0-1 variable."""
        return self.variable(0, 1, name, integer=True), True

    def constant(self, value: bool) -> Literal:
        """Return a literal that is fixed."""
        return self.variable(1, 1, f"constant{len(self.low)}"), value

    def at_least(
        self,
        terms: Iterable[tuple[float, int]],
        right: float,
        when: Sequence[Literal] = (),
        literals: Iterable[tuple[float, Literal]] = (),
    ) -> None:
        """Demand Σ terms + Σ literals ≥ right, if all literals of ``when`` hold; rows that always hold are left out."""
        row: dict[int, float] = {}
        for a, x in terms:
            row[x] = row.get(x, 0) + a
        for a, (x, positive) in literals:
            row[x] = row.get(x, 0) + (a if positive else -a)
            right -= 0 if positive else a
        if right > self._least(row):
            self.rows.append((row, right, tuple(when)))

    def _least(self, row: dict[int, float]) -> float:
        return sum(a * (self.low[x] if a > 0 else self.high[x]) for x, a in row.items())

    def flat_rows(self) -> Iterator[tuple[dict[int, float], float]]:
        """Yield the rows without conditions: each is switched off by the least constant that the bounds allow."""
        for row, right, when in self.rows:
            flat = dict(row)
            short = right - self._least(row)
            for x, positive in when:
                flat[x] = flat.get(x, 0) + (-short if positive else short)
                right -= short if positive else 0
            yield flat, right

    def at_least_literals(self, literals: Iterable[tuple[float, Literal]], right: float) -> None:
        """Demand Σ literals ≥ right."""
        self.at_least((), right, (), literals)

    def equal_literals(self, literals: Sequence[tuple[float, Literal]], right: float) -> None:
        """Demand Σ literals = right."""
        self.at_least((), right, (), literals)
        self.at_least((), -right, (), [(-a, lit) for a, lit in literals])
