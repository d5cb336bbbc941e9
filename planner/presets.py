"""Machines that come with the package: one accelerator, its host, and for some an NVMe drive.

The figures are compiled from public sources; each preset names its source and how far it can be trusted, and the
machine's ``notes`` say which values are assumptions. Tiers are called ``"device"``, ``"host"`` and ``"nvme"``. To
change a figure, save ``preset(name).to_dict()`` and edit it, or use `dataclasses.replace`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import msgspec

from planner.errors import InputError
from planner.machine import Machine

__all__ = ["Preset", "preset", "presets"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A machine with where its figures come from.

    Attributes
    ----------
    name : str
    machine : Machine
    source : str
    confidence : str
        high, medium or low, for each part where they differ.
    notes : mapping of str to str
        What is measured, assumed or missing, by part; also in ``machine.notes``.
    """

    name: str
    machine: Machine
    source: str
    confidence: str
    notes: MappingProxyType[str, str]


def preset(name: str) -> Machine:
    """Return a machine by name.

    Parameters
    ----------
    name : str
        ``"h100-pcie5"``, ``"a100-40g-pcie4-nvme"``, …; ``planner presets`` lists all.

    Returns
    -------
    Machine

    Raises
    ------
    InputError
        There is no such preset; the message names those that are spelled alike.
    """
    known = _load()
    if name in known:
        return known[name].machine
    close = difflib.get_close_matches(name.lower(), known, n=5, cutoff=0.5)
    close += [k for k in known if k.startswith(name.lower().split("-")[0]) and k not in close]
    hint = f"did you mean {', '.join(close)}?" if close else f"there are: {', '.join(known)}"
    raise InputError(f"no machine preset is called {name!r}; {hint} ('planner presets' lists all)")


def presets() -> list[Preset]:
    """Return every preset, those with an NVMe drive last."""
    return list(_load().values())


@cache
def _load() -> dict[str, Preset]:
    data = msgspec.json.decode((files("planner") / "presets_data.json").read_bytes())
    common = data["common"]
    rows = {row["name"]: row for row in data["machines"]}
    found = {name: _build(name, row, None, common) for name, row in rows.items()}
    for extra in data["with_nvme"]:
        found[extra["name"]] = _build(extra["name"], rows[extra["base"]], extra["nvme"], common)
    return found


def _build(name: str, row: dict[str, Any], nvme: dict[str, Any] | None, common: dict[str, Any]) -> Preset:
    link = row["link"]
    notes = {**common["notes"], **row["notes"], "device": row["device"], "link_kind": link["kind"],
             "source": row["source"], "confidence": row["confidence"]}
    tiers = [
        {"name": "device", "capacity": row["capacity"], "reserve": common["reserve"], "granule": common["granule"]},
        {"name": "host", "capacity": row["host_capacity"]},
    ]
    links = [_link("host", "device", link["h2d"], link["latency"], "h2d"),
             _link("device", "host", link["d2h"], link["latency"], "d2h")]
    if nvme is not None:
        tiers.append({"name": "nvme", "capacity": nvme["capacity"]})
        # One drive serves reads and writes with one set of queues: they compete for it.
        links += [_link("nvme", "host", nvme["read"], nvme["latency"], "nvme"),
                  _link("host", "nvme", nvme["write"], nvme["latency"], "nvme")]
        notes["nvme"] = nvme["note"] + "; reads and writes share one channel; capacity and latency are assumptions"
    machine = Machine.from_dict({
        "format": "planner-machine/1", "name": name, "tiers": tiers, "links": links, "notes": notes,
        "compute": {"flops": row["flops"], "memory_bandwidth": row["memory_bandwidth"],
                    "efficiency": common["efficiency"], "launch": common["launch"]},
    })
    return Preset(name, machine, row["source"], row["confidence"], MappingProxyType(notes))


def _link(src: str, dst: str, bandwidth: str, latency: str, channel: str) -> dict[str, str]:
    return {"src": src, "dst": dst, "bandwidth": bandwidth, "latency": latency, "channel": channel}
