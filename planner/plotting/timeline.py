"""Draw a plan with matplotlib: lanes of ops and copies, below them the bytes of each tier against its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import MissingDependencyError
from planner.plotting.data import FigureData, Lane, TierCurve, timeline_figure_data
from planner.plotting.palette import color_of
from planner.units import format_bytes, format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from planner.plan import Plan

__all__ = ["plot_plan", "timeline_figure_data"]

_HEIGHT = 0.78
#: Up to this many bars in a lane each gets a white edge; more of them would drown in it.
_EDGED = 150
#: A budget of more than this many times the use would flatten the curve: it is stated instead of drawn.
_OFF_SCALE = 3


def plot_plan(plan: Plan, ax: Axes | None = None) -> Figure | Axes:
    """Draw a plan.

    Parameters
    ----------
    plan : Plan
        With a program.
    ax : matplotlib Axes, optional
        Draw only the lanes, into these axes; without it a figure with lanes and memory is made.

    Returns
    -------
    matplotlib Figure, or the Axes given

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    ValueError
        The plan has no program.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError("plots need matplotlib: pip install 'offload-planner[viz]'") from None
    data = timeline_figure_data(plan)
    if ax is not None:
        _draw_lanes(ax, data)
        ax.set_xlabel(f"time [{_time_unit(data.makespan)[1]}]")
        return ax
    tiers = [c for c in data.tiers if c.peak]
    heights = [0.5 * len(data.lanes) + 0.3, *[1.5] * len(tiers)]
    figure, axes = plt.subplots(len(heights), 1, sharex=True, squeeze=False, figsize=(10, sum(heights) + 1.2),
                                height_ratios=heights, layout="constrained")
    column = axes[:, 0]
    _draw_lanes(column[0], data)
    for axis, curve in zip(column[1:], tiers, strict=True):
        _draw_memory(axis, curve, data.makespan)
    column[-1].set_xlabel(f"time [{_time_unit(data.makespan)[1]}]")
    figure.align_ylabels(column)
    return figure


def _draw_lanes(ax: Axes, data: FigureData) -> None:
    from matplotlib.patches import Patch

    scale = _time_unit(data.makespan)[0]
    groups: dict[str, bool] = {}
    for row, lane in enumerate(data.lanes):
        for group in dict.fromkeys(lane.group):
            groups.setdefault(group, lane.copies)
            _draw_bars(ax, lane, group, row, scale)
    ax.set_yticks(range(len(data.lanes)), [f"copies {k.name}" if k.copies else k.name for k in data.lanes])
    ax.set_ylim(len(data.lanes) - 0.45, -0.55)
    ax.set_xlim(0, max(data.makespan, 1) / scale)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title(f"{data.title}: {format_duration(data.makespan)}", loc="left", fontsize="medium", pad=20)
    if groups:
        handles = [Patch(color=color_of(g), label=g if not copied else f"{g} copied") for g, copied in groups.items()]
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(-0.005, 1.0), ncols=len(handles), frameon=False,
                  fontsize="small", borderaxespad=0.1, handlelength=1.0, columnspacing=1.2)


def _draw_bars(ax: Axes, lane: Lane, group: str, row: int, scale: int) -> None:
    from matplotlib.collections import PolyCollection

    mask = np.fromiter((g == group for g in lane.group), bool, len(lane.group))
    left, right = lane.start[mask] / scale, lane.end[mask] / scale
    low, high = np.full(len(left), row - _HEIGHT / 2), np.full(len(left), row + _HEIGHT / 2)
    corners: Any = np.stack([np.stack([left, low], -1), np.stack([left, high], -1),
                        np.stack([right, high], -1), np.stack([right, low], -1)], 1)
    color = color_of(group)
    few = len(lane.group) <= _EDGED
    ax.add_collection(PolyCollection(corners, facecolors=color, edgecolors="white" if few else color,
                                     linewidths=0.6 if few else 0.2, rasterized=not few))


def _draw_memory(ax: Axes, curve: TierCurve, makespan: int) -> None:
    scale = _time_unit(makespan)[0]
    peak = curve.peak
    size, unit = _byte_unit(peak)
    color = color_of(f"tier {curve.tier}")
    time, used = curve.time / scale, curve.used / size
    ax.fill_between(time, used, step="post", color=color, alpha=0.35, linewidth=0)
    ax.step(time, used, where="post", color=color, linewidth=0.8)
    top = peak
    if curve.budget is None:
        text = f"peak {format_bytes(peak)}, unbounded"
    elif curve.budget <= _OFF_SCALE * peak:
        top = max(peak, curve.budget)
        ax.axhline(curve.budget / size, color="#b22222", linestyle=(0, (5, 2)), linewidth=1.1)
        text = f"peak {format_bytes(peak)} of budget {format_bytes(curve.budget)} (dashed)"
    else:
        text = f"peak {format_bytes(peak)} of budget {format_bytes(curve.budget)} (off scale)"
    ax.set_ylim(0, 1.32 * top / size)
    ax.text(0.005, 0.96, text, transform=ax.transAxes, va="top", fontsize="small")
    ax.set_ylabel(f"{curve.tier}\n[{unit}]")
    ax.spines[["top", "right"]].set_visible(False)


def _time_unit(makespan: int) -> tuple[int, str]:
    for factor, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if makespan >= 2 * factor:
            return factor, unit
    return 1, "ns"


def _byte_unit(size: int) -> tuple[int, str]:
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return 1024**power, unit
    return 1, "bytes"
