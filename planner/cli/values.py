"""Option values with units or structure, read with a message that names option and value."""

from __future__ import annotations

import math
from collections.abc import Iterable

from planner.errors import Fault, InputError
from planner.units import parse_capacity, parse_duration

__all__ = ["Budget", "pairs", "read_budgets", "read_factor", "read_gap", "read_time_limit"]

#: Bytes, or a share (percent) of the resident peak.
Budget = int | float


def pairs(option: str, values: Iterable[str], example: str) -> dict[str, str]:
    """Read repeated ``NAME=VALUE`` options; the last ``=`` separates, so names may hold one.

    Raises
    ------
    InputError
        No ``=``, an empty side, or a name given twice.
    """
    out: dict[str, str] = {}
    faults: list[Fault] = []
    for text in values:
        name, equals, value = text.rpartition("=")
        if not (equals and name.strip() and value.strip()):
            faults.append(Fault(option, f"{text!r}: write {example}"))
        elif name.strip() in out:
            faults.append(Fault(option, f"{text!r}: {name.strip()!r} is given twice"))
        else:
            out[name.strip()] = value.strip()
    if faults:
        raise InputError(faults)
    return out


def read_budgets(values: Iterable[str]) -> dict[str, Budget]:
    """Read ``TIER=SIZE`` and ``TIER=PERCENT%``; a percentage comes back as a float in (0, 100]."""
    out: dict[str, Budget] = {}
    for tier, text in pairs("--budget", values, "TIER=SIZE (device=6GiB) or TIER=PERCENT% (device=60%)").items():
        if not text.endswith("%"):
            out[tier] = parse_capacity(text if not text.isdecimal() else int(text), f"--budget {tier}")
            continue
        try:
            share = float(text[:-1])
        except ValueError:
            share = math.nan
        if not 0 < share <= 100:
            raise InputError(
                [
                    Fault(
                        f"--budget {tier}",
                        f"{text!r}: a share of the resident peak is above 0 % and at most 100 % (more could not bind)",
                    )
                ]
            )
        out[tier] = share
    return out


def read_time_limit(text: str) -> float:
    """Read a wall-clock limit: ``"60s"``, ``"2min"``, ``"500ms"``, or a plain number of seconds; returns seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = parse_duration(text, "--time-limit") / 1e9
    if not (seconds > 0 and math.isfinite(seconds)):
        raise InputError([Fault("--time-limit", f"{text!r}: must be above 0, e.g. 60s or 2min")])
    return seconds


def read_gap(value: float) -> float:
    """Check the certified gap at which to stop, a fraction of the bound."""
    if not (value >= 0 and math.isfinite(value)):
        raise InputError([Fault("--gap", f"{value}: a fraction of the bound, at least 0 (0 asks for a proof)")])
    return value


def read_factor(option: str, value: float) -> float:
    """Check a factor above 0."""
    if not (value > 0 and math.isfinite(value)):
        raise InputError([Fault(option, f"{value}: a factor must be above 0")])
    return value
