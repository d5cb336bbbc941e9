"""A page that stands alone: the summary, the timeline and the memory of each tier as inline SVG; nothing is loaded."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from planner.plotting.data import FigureData, Lane, TierCurve, timeline_figure_data
from planner.plotting.palette import color_of
from planner.report import summary_html
from planner.units import format_bytes, format_duration

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["to_html"]

_WIDTH, _LEFT, _LANE, _MEMORY = 1000, 130, 30, 110
#: Bars beyond this many in a lane go without a tooltip and neighbours of one colour are joined, to keep the page small.
_TITLED = 4000
_STYLE = ("body{font:14px system-ui,sans-serif;margin:2em;max-width:1150px}th{padding-right:1em;font-weight:600;"
          "vertical-align:top}svg{width:100%;height:auto}text{font-size:12px;fill:#222}")


def to_html(plan: Plan) -> bytes:
    """Return a self-contained page.

    Parameters
    ----------
    plan : Plan
        With a program.

    Returns
    -------
    bytes
        UTF-8 HTML; names are escaped; there are no scripts and no links.

    Raises
    ------
    ValueError
        The plan has no program.
    """
    data = timeline_figure_data(plan)
    title = html.escape(data.title)
    page = (f"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>"
            f"<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n{summary_html(plan)}\n"
            f"<h2>Timeline</h2>\n{_svg(data)}\n</body></html>\n")
    return page.encode()


def _svg(data: FigureData) -> str:
    tiers = [c for c in data.tiers if c.peak]
    height = _LANE * len(data.lanes) + (_MEMORY + 20) * len(tiers) + 60
    parts = [f'<svg viewBox="0 0 {_LEFT + _WIDTH + 10} {height}" role="img" aria-label="timeline">']
    y = 5
    for lane in data.lanes:
        parts.append(_lane(lane, y, data.makespan))
        y += _LANE
    parts.append(_legend(data, y + 14))
    y += 30
    for curve in tiers:
        parts.append(_memory(curve, y, data.makespan))
        y += _MEMORY + 20
    parts.append(f'<text x="{_LEFT}" y="{y + 6}">0</text><text x="{_LEFT + _WIDTH}" y="{y + 6}" text-anchor="end">'
                 f"{format_duration(data.makespan)}</text></svg>")
    return "\n".join(parts)


def _x(time: int, makespan: int) -> float:
    return _LEFT + _WIDTH * time / max(makespan, 1)


def _lane(lane: Lane, y: int, makespan: int) -> str:
    name = f"copies {lane.name}" if lane.copies else lane.name
    parts = [f'<text x="{_LEFT - 8}" y="{y + 19}" text-anchor="end">{html.escape(name)}</text>']
    bars = list(zip(lane.start.tolist(), lane.end.tolist(), lane.group, lane.label, strict=True))
    if len(bars) > _TITLED:
        bars = _joined(bars, max(makespan // (4 * _WIDTH), 1))
    for start, end, group, label in bars:
        left = _x(start, makespan)
        width = max(_x(end, makespan) - left, 0.05)
        tip = f"{label}: {format_duration(start)} to {format_duration(end)}" if label else f"{group}, several"
        parts.append(f'<rect x="{left:.2f}" y="{y}" width="{width:.2f}" height="{_LANE - 6}" fill="{color_of(group)}">'
                     f"<title>{html.escape(tip)}</title></rect>")
    return "".join(parts)


def _joined(bars: list[tuple[int, int, str, str]], near: int) -> list[tuple[int, int, str, str]]:
    """Join bars of one colour with less than ``near`` ns between them; joined bars lose their label."""
    out: list[tuple[int, int, str, str]] = []
    for start, end, group, label in bars:
        if out and out[-1][2] == group and start - out[-1][1] < near:
            out[-1] = (out[-1][0], end, group, "")
        else:
            out.append((start, end, group, label))
    return out


def _legend(data: FigureData, y: int) -> str:
    groups = dict.fromkeys((g, lane.copies) for lane in data.lanes for g in dict.fromkeys(lane.group))
    parts, x = [], _LEFT
    for group, copied in groups:
        text = f"{group} copied" if copied else group
        parts.append(f'<rect x="{x}" y="{y - 10}" width="10" height="10" fill="{color_of(group)}"/>'
                     f'<text x="{x + 14}" y="{y}">{html.escape(text)}</text>')
        x += 36 + 7 * len(text)
    return "".join(parts)


def _memory(curve: TierCurve, y: int, makespan: int) -> str:
    bottom = y + _MEMORY
    shown = curve.budget if curve.budget is not None and curve.budget <= 3 * curve.peak else curve.peak
    top = 1.25 * max(shown, curve.peak)

    def up(value: float) -> float:
        return bottom - _MEMORY * value / top

    points, level = [f"M{_LEFT},{bottom}"], None
    for time, used in zip(curve.time.tolist(), curve.used.tolist(), strict=True):
        x, height = f"{_x(time, makespan):.2f}", f"{up(used):.2f}"
        points.append(f"H{x}V{height}" if height != level else f"H{x}")
        level = height
    color = color_of(f"tier {curve.tier}")
    limit = "unbounded" if curve.budget is None else f"budget {format_bytes(curve.budget)}"
    parts = [f'<text x="{_LEFT - 8}" y="{y + 40}" text-anchor="end">{html.escape(curve.tier)}</text>',
             f'<path d="{"".join(points)}V{bottom}Z" fill="{color}" fill-opacity="0.35" stroke="{color}"/>',
             f'<text x="{_LEFT + 5}" y="{y + 10}">peak {format_bytes(curve.peak)}, {limit}</text>']
    if curve.budget is not None and shown == curve.budget:
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{up(shown):.2f}" y2="{up(shown):.2f}" '
                     'stroke="#b22222" stroke-dasharray="6 3"/>')
    return "".join(parts)
