"""Several methods on one problem, each checked, against the best certified bound of all.

A method's own bound is often weak or missing; the gap in a row is (makespan − bound) / bound with the largest bound
that any method proved for the whole problem. A plan that the checker rejects is shown as invalid rather than left out.
"""

from __future__ import annotations

import html
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.errors import Fault, InputError, InvalidPlanError, SolverError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from rich.table import Table

    from planner.plan import Plan
    from planner.problem import Problem
    from planner.progress import ProgressEvent

__all__ = ["Comparison", "Row", "compare"]

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


def compare(
    problem: Problem,
    methods: Sequence[str] | None = None,
    time_limit: float = 60,
    *,
    gap: float = 0.0,
    seed: int = 0,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Comparison:
    """Run several methods on one problem.

    Parameters
    ----------
    problem : Problem
    methods : sequence of str, optional
        Names known to `planner.solve`; by default every heuristic, then ``"auto"``.
    time_limit : float
        Seconds for each method.
    gap : float
        Certified gap at which an exact method may stop.
    seed : int
    progress : callable, optional
        Called with each `ProgressEvent`.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        A method is unknown or named twice.
    """
    from planner.heuristics.registry import available
    from planner.solve import METHODS

    names = [*available(), "auto"] if methods is None else list(methods)
    _check_names(names, [*METHODS, *available()])
    found = [_run(problem, name, time_limit, gap, seed, progress) for name in names]
    bounds = [
        (plan.lower_bound_ns, name)
        for name, plan, *_ in found
        if plan is not None and plan.lower_bound_ns is not None and _covers(plan, problem)
    ]
    bound, by = max(bounds, key=lambda pair: pair[0], default=(None, ""))
    rows = tuple(_row(name, plan, seconds, message, bound) for name, plan, seconds, message in found)
    return Comparison(rows, bound, by, problem.sha256, problem.machine.device.name)


def _check_names(names: list[str], known: list[str]) -> None:
    faults = [
        Fault("methods", f"unknown method {name!r}; known are {', '.join(known)}")
        for name in names
        if name not in known
    ]
    faults += [Fault("methods", f"{name!r} is named twice") for name in dict.fromkeys(names) if names.count(name) > 1]
    if not names:
        faults.append(Fault("methods", "none is named"))
    if faults:
        raise InputError(faults)


def _run(
    problem: Problem,
    method: str,
    time_limit: float,
    gap: float,
    seed: int,
    progress: Callable[[ProgressEvent], None] | None,
) -> tuple[str, Plan | None, float, str]:
    from planner.solve import solve

    began = time.perf_counter()
    try:
        plan = solve(problem, method=method, time_limit=time_limit, gap=gap, seed=seed, progress=progress)
    except InvalidPlanError as error:
        return method, None, time.perf_counter() - began, f"invalid: {error}"
    except SolverError as error:
        return method, None, time.perf_counter() - began, str(error)
    return method, plan, time.perf_counter() - began, plan.message


def _row(method: str, plan: Plan | None, seconds: float, message: str, bound: int | None) -> Row:
    from planner.check import check
    from planner.plan import Status, gap_of

    if plan is None:
        return Row(
            method,
            "invalid" if message.startswith("invalid") else str(Status.UNKNOWN),
            None,
            None,
            {},
            {},
            seconds,
            False,
            message,
        )
    if plan.program is None:
        return Row(method, str(plan.status), None, None, {}, {}, seconds, False, message)
    report = check(plan.problem, plan.program)
    if not report.valid:
        return Row(
            method,
            str(plan.status),
            plan.makespan_ns,
            None,
            plan.peak_bytes,
            plan.moved_bytes,
            seconds,
            False,
            f"invalid: {report.violations[0].message}",
        )
    # A makespan that meets the bound of another method is proved by it.
    met = plan.problem.objective.kind == "makespan" and plan.makespan_ns == bound
    return Row(
        method,
        str(Status.OPTIMAL if met else plan.status),
        plan.makespan_ns,
        gap_of(plan.makespan_ns, bound),
        plan.peak_bytes,
        plan.moved_bytes,
        seconds,
        True,
        message,
    )


def _covers(plan: Plan, problem: Problem) -> bool:
    """Does the plan's bound hold for every plan that the problem allows?"""
    scope, rules = plan.scope, problem.rules
    return (
        (scope.order == "free" or not rules.reorder)
        and (scope.recompute or not rules.recompute)
        and (scope.split or not rules.split)
        and set(scope.tiers) >= set(problem.machine.tier)
    )
