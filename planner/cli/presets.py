"""``planner presets``: the machines and models that come with the package."""

from __future__ import annotations

from planner.cli.check import JSON
from planner.cli.output import ExitCode, emit_json, show, table

__all__ = ["presets"]


def presets(as_json: JSON = False) -> int:
    """List machine presets with their sources, and bundled models."""
    from planner.models import available
    from planner.presets import presets as machines
    from planner.units import format_bytes

    found = list(machines())
    models = sorted(available())
    if as_json:
        emit_json(
            {
                "machines": [
                    {"name": p.name, "source": p.source, "confidence": p.confidence, "machine": p.machine.to_dict()}
                    for p in found
                ],
                "models": models,
            }
        )
        return ExitCode.DONE
    rows = []
    for p in found:
        tiers = ", ".join(
            f"{t.name} {'unbounded' if t.capacity is None else format_bytes(t.capacity)}" for t in p.machine.tiers
        )
        links = ", ".join(f"{k.src}>{k.dst} {k.bandwidth / 1e9:g} GB/s" for k in p.machine.links)
        rows.append((p.name, tiers, links, p.confidence, p.source))
    columns = ("machine", "tiers", "links", "confidence", "source")
    show(
        table("machines (--machine NAME)", columns, rows, left=columns),
        table("bundled models (PROBLEM)", ("model",), [(name,) for name in models], left=("model",)),
    )
    return ExitCode.DONE
