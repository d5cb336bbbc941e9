"""``planner replay``: time a plan again, on its own machine or on a slower one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planner.cli.check import JSON, PLAN, legal_program, show_violations
from planner.cli.output import ExitCode, emit_json, show
from planner.problem import Problem

__all__ = ["replay"]


def replay(
    problem: Problem,
    plan: PLAN,
    bandwidth_scale: Annotated[
        float, typer.Option("--bandwidth-scale", help="Factor on every link's bandwidth.")
    ] = 1.0,
    duration_scale: Annotated[float, typer.Option("--duration-scale", help="Factor on every op's duration.")] = 1.0,
    added_latency: Annotated[
        str, typer.Option("--added-latency", metavar="TIME", help="Added to every copy, e.g. 10us.")
    ] = "0ns",
    as_json: JSON = False,
) -> int:
    """Time a plan again on other bandwidths, durations and latencies."""
    from planner.cli.values import read_factor
    from planner.replay import replay as time_program
    from planner.units import parse_duration

    read_factor("--bandwidth-scale", bandwidth_scale)
    read_factor("--duration-scale", duration_scale)
    latency = parse_duration(added_latency, "--added-latency")
    file, _, report = legal_program(problem, plan)
    if not report.valid:
        # The times of an illegal program mean nothing.
        if as_json:
            emit_json(report.to_dict())
        show_violations(report)
        return ExitCode.INVALID_PLAN
    timeline = time_program(
        problem, file, bandwidth_scale=bandwidth_scale, duration_scale=duration_scale, added_latency=latency
    )
    claimed = file.claim.get("makespan_ns")
    metrics: dict[str, Any] = {
        "makespan_ns": timeline.makespan_ns,
        "peak_bytes": timeline.peak_bytes,
        "moved_bytes": timeline.moved_bytes,
        "recomputed_ns": timeline.recomputed_ns,
        "stall_ns": timeline.stall_ns,
        "scale": timeline.scale,
        "claimed_makespan_ns": claimed,
    }
    if as_json:
        emit_json(metrics)
    else:
        show(_text(metrics))
    return ExitCode.DONE


def _text(metrics: dict[str, Any]) -> str:
    from planner.units import format_bytes, format_duration

    changed = ", ".join(f"{name} {value}" for name, value in metrics["scale"].items()) or "nothing changed"
    lines = [f"replayed ({changed})", f"  makespan    {format_duration(metrics['makespan_ns'])}"]
    if metrics["claimed_makespan_ns"]:
        lines[-1] += f"  ({metrics['makespan_ns'] / metrics['claimed_makespan_ns']:.3f} × the claim)"
    lines.append(f"  stall       {format_duration(metrics['stall_ns'])}")
    lines.append(f"  recomputed  {format_duration(metrics['recomputed_ns'])}")
    for name in ("peak_bytes", "moved_bytes"):
        label = "peak" if name == "peak_bytes" else "moved"
        lines += [f"  {label:<11} {key}: {format_bytes(value)}" for key, value in metrics[name].items()]
    return "\n".join(lines)
