"""Tiers of memory, the links between them, and the speed of compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from planner.errors import Fault, InputError
from planner.units import format_bytes

__all__ = ["Compute", "Link", "Machine", "Tier", "copy_ns"]


@dataclass(frozen=True, slots=True)
class Tier:
    """One memory.

    Attributes
    ----------
    name : str
    capacity : int, optional
        Bytes; None is unbounded.
    reserve : int
        Bytes of the capacity that may not be used.
    granule : int
        A copy occupies its size rounded up to a multiple of this many bytes.
    direct : bool
        May ops use operands here in place (if the rules allow it)?
    direct_bandwidth : int, optional
        Bytes per second at which they do.
    """

    name: str
    capacity: int | None = None
    reserve: int = 0
    granule: int = 1
    direct: bool = False
    direct_bandwidth: int | None = None

    @property
    def usable(self) -> int | None:
        """Capacity less reserve, bytes; None if unbounded."""
        return None if self.capacity is None else self.capacity - self.reserve

    def occupied(self, size: int) -> int:
        """Return the bytes that a copy of ``size`` bytes takes here."""
        return -(-size // self.granule) * self.granule


@dataclass(frozen=True, slots=True)
class Link:
    """A directed way for copies; links that name one channel serve one copy at a time between them."""

    src: str
    dst: str
    bandwidth: int
    latency: int = 0
    channel: str = ""

    def __post_init__(self) -> None:
        if not self.channel:
            object.__setattr__(self, "channel", f"{self.src}>{self.dst}")


def copy_ns(size: int, bandwidth: int, latency: int) -> int:
    """Return latency + ceil(size · 10^9 / bandwidth), nanoseconds."""
    return latency + -(-size * 1_000_000_000 // bandwidth)


@dataclass(frozen=True)
class Compute:
    """Speed of the ops' tier, for roofline durations.

    Attributes
    ----------
    flops : mapping of str to int
        Operations per second for each dtype.
    memory_bandwidth : int, optional
        Bytes per second.
    efficiency : Fraction
        Share of the peak speed that kernels reach.
    launch : int
        Nanoseconds added to each op.
    """

    flops: Mapping[str, int] = field(default_factory=dict)
    memory_bandwidth: int | None = None
    efficiency: Fraction = Fraction(1)
    launch: int = 0


@dataclass(frozen=True)
class Machine:
    """Tiers (ops compute on the first), links and compute speed.

    Raises
    ------
    InputError
        Duplicate or unknown names, a link to itself, parallel links, a usable capacity that is not positive.
    """

    name: str
    tiers: tuple[Tier, ...]
    links: tuple[Link, ...] = ()
    compute: Compute | None = None
    notes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        faults = _machine_faults(self)
        if faults:
            raise InputError(faults)

    @property
    def device(self) -> Tier:
        """The tier where ops compute."""
        return self.tiers[0]

    @cached_property
    def tier(self) -> dict[str, Tier]:
        """Tiers by name."""
        return {t.name: t for t in self.tiers}

    @cached_property
    def link(self) -> dict[tuple[str, str], Link]:
        """Links by (src, dst)."""
        return {(k.src, k.dst): k for k in self.links}

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """Channel names in order of first mention."""
        return tuple(dict.fromkeys(k.channel for k in self.links))

    def route(self, src: str, dst: str) -> tuple[Link, ...] | None:
        """Return the path of links that moves one byte fastest from src to dst; None if there is none."""
        return self._routes.get((src, dst))

    @cached_property
    def _routes(self) -> dict[tuple[str, str], tuple[Link, ...]]:
        best: dict[tuple[str, str], tuple[Fraction, int, tuple[Link, ...]]] = {}
        for t in self.tiers:
            best[t.name, t.name] = (Fraction(0), 0, ())
            for _ in self.tiers:
                for k in self.links:
                    base = best.get((t.name, k.src))
                    if base is None:
                        continue
                    found = (base[0] + Fraction(1, k.bandwidth), len(base[2]) + 1, (*base[2], k))
                    held = best.get((t.name, k.dst))
                    if held is None or found[:2] < held[:2]:
                        best[t.name, k.dst] = found
        return {pair: path for pair, (_, _, path) in best.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the ``planner-machine/1`` object."""
        from planner.io.machine_json import machine_to_dict

        return machine_to_dict(self)

    @classmethod
    def from_dict(cls, data: object) -> Machine:
        """Read a ``planner-machine/1`` object; `InputError` lists every fault."""
        from planner.io.machine_json import machine_from_dict

        return machine_from_dict(data)


def _machine_faults(machine: Machine) -> list[Fault]:
    faults: list[Fault] = []
    if not machine.tiers:
        return [Fault("tiers", "a machine needs at least one tier, the device first")]
    names: set[str] = set()
    for i, t in enumerate(machine.tiers):
        where = f"tiers[{i}]"
        if t.name in names:
            faults.append(Fault(f"{where}.name", f"duplicate tier name {t.name!r}"))
        if not t.name or t.name in ("any", "home") or ">" in t.name:
            faults.append(Fault(f"{where}.name", f"{t.name!r} cannot name a tier ('any' and 'home' mean something else)"))
        names.add(t.name)
        if t.granule < 1:
            faults.append(Fault(f"{where}.granule", f"{t.granule}: a granule is at least 1 byte"))
        if t.usable is not None and t.usable <= 0:
            faults.append(Fault(f"{where}.capacity", f"usable {t.name} capacity is {t.usable} bytes "
                                f"({format_bytes(t.usable)}: capacity {t.capacity} − reserve {t.reserve}); it must be "
                                "positive"))
        if t.direct_bandwidth is not None and not t.direct:
            faults.append(Fault(f"{where}.direct_bandwidth", "has no effect without \"direct\": true"))
    seen: set[tuple[str, str]] = set()
    for i, k in enumerate(machine.links):
        where = f"links[{i}]"
        faults += [Fault(f"{where}.{end}", f"unknown tier {name!r}; tiers are {sorted(names)}")
                   for end, name in (("src", k.src), ("dst", k.dst)) if name not in names]
        if k.src == k.dst:
            faults.append(Fault(where, f"a link from {k.src!r} to itself"))
        if (k.src, k.dst) in seen:
            faults.append(Fault(where, f"a second link from {k.src!r} to {k.dst!r}; state their joint bandwidth in one"))
        seen.add((k.src, k.dst))
    return faults
