"""``planner-machine/1``: a machine to and from plain JSON data."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from planner.errors import Fault, InputError
from planner.io.fields import Fields
from planner.io.forms import ComputeForm, LinkForm, MachineFile, TierForm, members
from planner.machine import Compute, Link, Machine, Tier
from planner.units import parse_bandwidth, parse_capacity, parse_duration, parse_rate, parse_size

__all__ = ["FORMAT", "as_fraction", "machine_from_dict", "machine_to_dict"]

FORMAT = "planner-machine/1"


def as_fraction(value: object, where: str, faults: list[Fault]) -> Fraction:
    """Read a plain positive number exactly as it is written (0.7 is 7/10); anything else is a fault."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        faults.append(Fault(where, f"{value!r}: must be a number"))
        return Fraction(1)
    try:
        # text with an exponent could stand for a number with a billion digits
        if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,40}(\.[0-9]{1,40}|/[0-9]{1,40})?", value):
            raise ValueError(value)
        number = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        faults.append(Fault(where, f"{value!r}: must be a number without a unit"))
        return Fraction(1)
    if number <= 0:
        faults.append(Fault(where, f"{value!r}: must be above 0"))
        return Fraction(1)
    return number


def fraction_out(value: Fraction) -> int | str:
    """Return an exact JSON form: an integer, or ``"7/10"``."""
    return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def machine_to_dict(machine: Machine) -> dict[str, Any]:
    """Return the machine as plain data."""
    tiers: list[dict[str, Any]] = []
    for t in machine.tiers:
        row: dict[str, Any] = {"name": t.name, "capacity": t.capacity}
        if t.reserve:
            row["reserve"] = t.reserve
        if t.granule != 1:
            row["granule"] = t.granule
        if t.direct:
            row["direct"] = True
        if t.direct_bandwidth is not None:
            row["direct_bandwidth"] = t.direct_bandwidth
        tiers.append(row)
    out: dict[str, Any] = {
        "format": FORMAT, "name": machine.name, "tiers": tiers,
        "links": [{"src": k.src, "dst": k.dst, "bandwidth": k.bandwidth, "latency": k.latency, "channel": k.channel}
                  for k in machine.links],
    }
    c = machine.compute
    if c is not None:
        out["compute"] = {"flops": dict(c.flops), "efficiency": fraction_out(c.efficiency), "launch": c.launch}
        if c.memory_bandwidth is not None:
            out["compute"]["memory_bandwidth"] = c.memory_bandwidth
    if machine.notes:
        out["notes"] = dict(machine.notes)
    return out


def machine_from_dict(data: object) -> Machine:
    """Read a machine.

    Raises
    ------
    InputError
        Lists every fault with its path.
    """
    faults: list[Fault] = []
    top = Fields(data, "", members(MachineFile), faults)
    top.format(FORMAT)
    tiers = tuple(_tier(row, f"tiers[{i}]", faults) for i, row in enumerate(top.get("tiers", list) or ()))
    links = tuple(_link(row, f"links[{i}]", faults) for i, row in enumerate(top.get("links", list, [])))
    compute = _compute(top.data["compute"], faults) if top.data.get("compute") is not None else None
    notes = top.get("notes", dict, {})
    name = top.get("name", str, "machine")
    if faults:
        raise InputError(faults)
    return Machine(name, tiers, links, compute, tuple(sorted((str(k), str(v)) for k, v in notes.items())))


def _tier(row: object, where: str, faults: list[Fault]) -> Tier:
    f = Fields(row, where, members(TierForm), faults)
    return Tier(
        f.get("name", str) or "", f.quantity("capacity", parse_capacity, None), f.quantity("reserve", parse_size, 0),
        f.quantity("granule", parse_size, 1), f.get("direct", bool, False),
        f.quantity("direct_bandwidth", parse_bandwidth, None),
    )


def _link(row: object, where: str, faults: list[Fault]) -> Link:
    f = Fields(row, where, members(LinkForm), faults)
    return Link(
        f.get("src", str) or "", f.get("dst", str) or "", f.quantity("bandwidth", parse_bandwidth) or 1,
        f.quantity("latency", parse_duration, 0), f.get("channel", str, ""),
    )


def _compute(row: object, faults: list[Fault]) -> Compute:
    f = Fields(row, "compute", members(ComputeForm), faults)
    speeds: dict[str, int] = {}
    for dtype, value in (f.get("flops", dict, {}) or {}).items():
        try:
            speeds[dtype] = parse_rate(value, f"compute.flops.{dtype}")
        except InputError as error:
            faults += error.faults
    efficiency = as_fraction(f.data.get("efficiency", 1), "compute.efficiency", faults)
    if efficiency > 1:
        faults.append(Fault("compute.efficiency", f"{efficiency}: a share of the peak speed, at most 1"))
    return Compute(speeds, f.quantity("memory_bandwidth", parse_bandwidth, None), efficiency,
                   f.quantity("launch", parse_duration, 0))
