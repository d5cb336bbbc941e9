"""The table that `planner.compare` returns, in the forms that Jupyter, rich, pandas and JSON want."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

__all__ = ["Comparison", "Row"]

_COLUMNS = ("method", "status", "makespan", "gap", "device peak", "moved", "seconds", "valid")


@dataclass(frozen=True, slots=True)
class Row:
    """What one method reached. Attributes have the names of the JSON keys.

    Attributes
    ----------
    method, status : str
    makespan_ns : int, optional
        Nanoseconds; None without a plan.
    gap : float, optional
        Against the best bound of all rows, a fraction.
    peak_bytes, moved_bytes : mapping of str to int
        Bytes per tier, and per link.
    seconds : float
        Wall-clock time.
    valid : bool
        Is there a plan, and did it pass the checker?
    message : str
    """

    method: str
    status: str
    makespan_ns: int | None
    gap: float | None
    peak_bytes: Mapping[str, int]
    moved_bytes: Mapping[str, int]
    seconds: float
    valid: bool
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data under the keys of the contract."""
        return {
            "method": self.method,
            "status": self.status,
            "makespan_ns": self.makespan_ns,
            "gap": self.gap,
            "peak_bytes": dict(self.peak_bytes),
            "moved_bytes": dict(self.moved_bytes),
            "seconds": round(self.seconds, 3),
            "valid": self.valid,
            "message": self.message,
        }


@dataclass(frozen=True)
class Comparison:
    """Rows of `compare`, shown as a table by Jupyter and by rich.

    Attributes
    ----------
    rows : tuple of Row
    lower_bound_ns : int, optional
        Best certified bound of all methods, ns.
    bound_method : str
        The method that proved it.
    problem : str
        Hash of the problem.
    device : str
        Name of the tier where ops compute.
    """

    rows: tuple[Row, ...]
    lower_bound_ns: int | None
    bound_method: str
    problem: str
    device: str

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, method: str) -> Row:
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(method)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``planner compare --json`` prints."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "lower_bound_ns": self.lower_bound_ns,
            "bound_method": self.bound_method,
            "problem": self.problem,
        }

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row a method; ``peak_bytes`` and ``moved_bytes`` become a column for each tier and link."""
        import pandas as pd

        records = []
        for row in self.rows:
            record: dict[str, Any] = {k: v for k, v in row.to_dict().items() if k not in ("peak_bytes", "moved_bytes")}
            record |= {f"peak_bytes.{tier}": size for tier, size in row.peak_bytes.items()}
            record |= {f"moved_bytes.{link}": size for link, size in row.moved_bytes.items()}
            records.append(record)
        return pd.DataFrame.from_records(records)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the texts of the table, one tuple a row."""
        from planner.units import format_bytes, format_duration

        out: list[tuple[str, ...]] = []
        for row in self.rows:
            there = row.makespan_ns is not None
            valid = "yes" if row.valid else "INVALID" if there or row.status == "invalid" else "–"
            out.append(
                (
                    row.method,
                    row.status,
                    format_duration(row.makespan_ns) if row.makespan_ns is not None else "–",
                    "–" if row.gap is None else f"{100 * row.gap:.2f} %",
                    format_bytes(row.peak_bytes[self.device]) if self.device in row.peak_bytes else "–",
                    format_bytes(sum(row.moved_bytes.values())) if there else "–",
                    f"{row.seconds:.2f}",
                    valid,
                )
            )
        return out

    def footer(self) -> str:
        """Return the bound that the gaps are against, and each method's remark."""
        from planner.units import format_duration

        bound = (
            "no bound was proved"
            if self.lower_bound_ns is None
            else (f"gaps are against {format_duration(self.lower_bound_ns)}, proved by {self.bound_method}")
        )
        remarks = [f"{row.method}: {row.message}" for row in self.rows if row.message and not row.valid]
        return "\n".join([bound, *remarks])

    def to_rich(self) -> Table:
        """Return a rich table."""
        from rich import box
        from rich.table import Table

        table = Table(*_COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
        for column in table.columns[2:7]:
            column.justify = "right"
        for cells in self.cells():
            table.add_row(*cells)
        return table

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        body = "".join(_html_row(cells) for cells in self.cells())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(self.footer())}</p>"

    def __repr__(self) -> str:
        return f"Comparison({len(self.rows)} methods, lower_bound_ns={self.lower_bound_ns})"


def _html_row(cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
