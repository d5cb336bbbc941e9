"""``planner presets``: the machines and models that come with the package."""

from __future__ import annotations

from planner.cli.check import JSON
from planner.cli.output import ExitCode, emit_json, show, table

__all__ = ["presets"]


def presets(as_json: JSON = False) -> int:
    """List machine presets with their sources, and bundled models."""
    from planner.models import available, describe
    from planner.presets import presets as machines
    from planner.units import format_bytes

    found = list(machines())
    models = [{"name": name, **describe(name)} for name in available()]
    if as_json:
        rows = [
            {"name": p.name, "source": p.source, "confidence": p.confidence, "machine": p.machine.to_dict()}
            for p in found
        ]
        emit_json({"machines": rows, "models": models})
        return ExitCode.DONE
    lines = []
    for p in found:
        sizes = ["unbounded" if t.capacity is None else format_bytes(t.capacity) for t in p.machine.tiers]
        tiers = ", ".join(f"{t.name} {size}" for t, size in zip(p.machine.tiers, sizes, strict=True))
        links = ", ".join(f"{k.src}>{k.dst} {k.bandwidth / 1e9:g} GB/s" for k in p.machine.links)
        lines.append((p.name, tiers, links, p.confidence, p.source))
    columns = ("machine", "tiers", "links", "confidence", "source")
    fields = ("name", "ops", "tensors", "description")
    show(
        table("machines (--machine NAME)", columns, lines, left=columns),
        table(
            "bundled models (PROBLEM)",
            fields,
            [[m.get(f) for f in fields] for m in models],
            left=("name", "description"),
        ),
    )
    return ExitCode.DONE
