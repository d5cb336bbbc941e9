"""A plan in words, as HTML and as a table."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from planner.program import Copy, Drop, Run
from planner.units import format_bytes, format_duration

if TYPE_CHECKING:
    import pandas as pd

    from planner.plan import BudgetNeed, Plan, Witness

__all__ = ["moved_by_kind", "plan_dataframe", "summary_html", "summary_rows", "summary_text"]

#: Tensors of a witness that are named in a summary.
_NAMED = 6


def summary_text(plan: Plan) -> str:
    """Return a few lines: status, times, memory, traffic, scope, and what makes the run repeatable."""
    rows = list(summary_rows(plan))
    width = max(len(label) for label, _ in rows)
    return "\n".join([_title(plan), *(f"  {label:<{width}}  {text}" for label, text in rows)])


def summary_html(plan: Plan) -> str:
    """Return the same as a small HTML table, for notebooks."""
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(label)}</th><td style='text-align:left'>"
        f"{html.escape(text)}</td></tr>"
        for label, text in summary_rows(plan)
    )
    return f"<div><strong>{html.escape(_title(plan))}</strong><table>{body}</table></div>"


def summary_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield (label, text) pairs of a summary. Bytes of every tier are shown, so that "nothing moved" can be seen."""
    if plan.makespan_ns is not None:
        yield "makespan", _times(plan)
        yield "bound", _bound(plan)
        yield "stall", f"{format_duration(plan.stall_ns)} of the compute stream"
        yield "recomputed", format_duration(plan.recomputed_ns)
    elif plan.lower_bound_ns is not None:
        yield "bound", format_duration(plan.lower_bound_ns)
    for tier, capacity in plan.problem.capacity.items():
        limit = "unbounded" if capacity is None else f"budget {format_bytes(capacity)}"
        if plan.program is None:
            yield f"{tier}", limit
        else:
            yield f"{tier} peak", f"{format_bytes(plan.peak_bytes.get(tier, 0))} of {limit}"
    if plan.program is not None:
        kinds = moved_by_kind(plan)
        for link in (f"{k.src}>{k.dst}" for k in plan.problem.machine.links):
            parts = ", ".join(f"{kind or '(none)'} {format_bytes(size)}" for kind, size in kinds.get(link, {}).items())
            yield f"moved {link}", format_bytes(plan.moved_bytes.get(link, 0)) + (f" ({parts})" if parts else "")
    for tier, need in plan.minimum_budget_bytes.items():
        yield f"least {tier}", _need(need)
    if plan.witness is not None:
        yield "set by", _witness(plan.witness)
    yield "scope", _scope(plan)
    if plan.message:
        yield "message", plan.message
    yield "repeat with", _footer(plan)


def moved_by_kind(plan: Plan) -> dict[str, dict[str, int]]:
    """Return raw bytes moved for each link (``"host>device"``) and kind of tensor, largest first."""
    if plan.program is None:
        return {}
    tensor = plan.problem.lowered.tensor
    total: dict[str, dict[str, int]] = {}
    for ins in plan.program.instructions:
        if isinstance(ins, Copy):
            kinds = total.setdefault(f"{ins.src}>{ins.dst}", {})
            kind = tensor[ins.tensor].kind
            kinds[kind] = kinds.get(kind, 0) + tensor[ins.tensor].size
    return {link: dict(sorted(kinds.items(), key=lambda kv: (-kv[1], kv[0]))) for link, kinds in total.items()}


def plan_dataframe(plan: Plan) -> pd.DataFrame:
    """Return one row an instruction, in list order.

    Columns: ``kind`` (run, copy, drop), ``name`` (op or tensor), ``src``, ``dst``, ``start_ns``, ``end_ns``, ``bytes``
    (moved by a copy, released by a drop), ``lane`` (stream of a run, channel of a copy).
    """
    import pandas as pd

    columns = ["kind", "name", "src", "dst", "start_ns", "end_ns", "bytes", "lane"]
    if plan.program is None:
        return pd.DataFrame(columns=columns)
    low, machine, line = plan.problem.lowered, plan.problem.machine, plan.timeline
    rows: list[tuple[Any, ...]] = []
    for ins, start, end in zip(plan.program.instructions, line.start.tolist(), line.end.tolist(), strict=True):
        if isinstance(ins, Run):
            rows.append(("run", ins.op, None, None, start, end, 0, low.op[ins.op].stream))
        elif isinstance(ins, Copy):
            rows.append(
                (
                    "copy",
                    ins.tensor,
                    ins.src,
                    ins.dst,
                    start,
                    end,
                    low.tensor[ins.tensor].size,
                    machine.link[ins.src, ins.dst].channel,
                )
            )
        elif isinstance(ins, Drop):
            rows.append(
                (
                    "drop",
                    ins.tensor,
                    ins.tier,
                    None,
                    start,
                    end,
                    machine.tier[ins.tier].occupied(low.tensor[ins.tensor].size),
                    None,
                )
            )
    return pd.DataFrame.from_records(rows, columns=columns)


def _title(plan: Plan) -> str:
    method = plan.method or plan.provenance.get("method", "no method")
    return f"{plan.problem.graph.name} on {plan.problem.machine.name}: {plan.status} ({method})"


def _percent(part: float | None) -> str:
    return "none" if part is None else f"{100 * part:.3f} %"


def _times(plan: Plan) -> str:
    assert plan.makespan_ns is not None
    text = format_duration(plan.makespan_ns)
    if plan.ideal_ns:
        text += f" ({plan.makespan_ns / plan.ideal_ns:.3f} × ideal {format_duration(plan.ideal_ns)})"
    return text


def _bound(plan: Plan) -> str:
    if plan.lower_bound_ns is None:
        return "none"
    return f"{format_duration(plan.lower_bound_ns)}, gap {_percent(plan.gap)}"


def _need(need: BudgetNeed) -> str:
    if need.proved and need.value is not None:
        return f"{format_bytes(need.value)} ({need.value} bytes, proved)"
    known = "no plan known" if need.value is None else f"{format_bytes(need.value)} is enough"
    return f"{known}, at least {format_bytes(need.lower_bound)} is needed"


def _witness(witness: Witness) -> str:
    named = ", ".join(f"{name} {format_bytes(size)}" for name, size in witness.tensors[:_NAMED])
    rest = len(witness.tensors) - _NAMED
    more = f" and {rest} more" if rest > 0 else ""
    what = f"op {witness.op!r}" if witness.op is not None else "what starts or must end there"
    return f"{what} on {witness.tier}: {format_bytes(witness.bytes)} = {named}" + more


def _scope(plan: Plan) -> str:
    scope = plan.scope
    return (
        f"{scope.order} order, {'with' if scope.recompute else 'no'} recompute, "
        f"{'tensors in pieces' if scope.split else 'whole tensors'}, tiers {', '.join(scope.tiers)}"
    )


def _footer(plan: Plan) -> str:
    facts = ", ".join(f"{key} {_flat(value)}" for key, value in sorted(plan.provenance.items()))
    return f"problem {plan.problem.sha256[:16]}" + (f", {facts}" if facts else "")


def _flat(value: object) -> str:
    return " ".join(f"{k} {v}" for k, v in sorted(value.items())) if isinstance(value, dict) else str(value)
