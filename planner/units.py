"""Quantities with units, read into exact integers.

Sizes are bytes, durations nanoseconds, bandwidths bytes per second, compute speeds operations per second.
Integers pass through. Strings carry a unit: ``"24GiB"``, ``"250us"``, ``"25GB/s"``, ``"989TFLOP/s"``; scientific
notation with a unit is accepted. A value that comes to a fraction is rounded the safe way: sizes and durations up,
capacities, bandwidths and speeds down. Bits, bare ``"G"``, lower-case ``b``, negative values, NaN, floats and
unit-less strings other than integers are refused by name.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

from planner.errors import Fault, UnitError

__all__ = [
    "LIMIT",
    "format_bytes",
    "format_duration",
    "parse_bandwidth",
    "parse_capacity",
    "parse_duration",
    "parse_rate",
    "parse_size",
]

#: Largest magnitude a quantity may have; solvers and arrays use 64-bit integers.
LIMIT = 2**62

_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BINARY = {f"{p}i": 1024**i for i, p in enumerate(["K", "M", "G", "T", "P", "E"], start=1)}
_BYTES = {f"{p}B": f for p, f in {**_DECIMAL, **_BINARY}.items()}
_SECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*", re.ASCII)
#: Digits of the longest number that is read: anything longer is no quantity.
_DIGITS = 60

_Rounding = Literal["up", "down"]


def _fail(where: str, value: object, why: str) -> UnitError:
    return UnitError([Fault(where, f"{value!r}: {why}")])


def _whole(value: Fraction, rounding: _Rounding) -> int:
    return -((-value.numerator) // value.denominator) if rounding == "up" else value.numerator // value.denominator


def _parse(value: object, units: dict[str, int], what: str, example: str, rounding: _Rounding, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        if isinstance(value, float):
            raise _fail(where, value, f"a {what} is an integer or a string with a unit such as {example!r}, not a float")
        raise _fail(where, value, f"not a {what}; write an integer or a string such as {example!r}")
    if isinstance(value, int):
        number = Fraction(value)
    else:
        number = _parse_text(value, units, what, example, where)
    if number < 0:
        raise _fail(where, value, f"a {what} cannot be negative")
    whole = _whole(number, rounding)
    if whole > LIMIT:
        raise _fail(where, value, f"larger than 2^62, more than any {what} this model can hold")
    return whole


def _parse_text(text: str, units: dict[str, int], what: str, example: str, where: str) -> Fraction:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _fail(where, text, f"not a {what}; write something like {example!r}")
    digits, unit = match.group(1).replace("_", ""), match.group(2)
    if len(digits) > _DIGITS:
        raise _fail(where, f"{digits[:20]}…", f"{len(digits)} digits are out of range")
    exponent = re.search(r"[eE]([+-]?\d+)$", digits)
    if exponent is not None and abs(int(exponent.group(1))) > 40:
        raise _fail(where, text, "exponent out of range")
    number = Fraction(digits)
    if unit is None:
        if re.fullmatch(r"[+-]?\d+", digits):
            return number
        raise _fail(where, text, f"a {what} that is not an integer needs a unit, e.g. {example!r}")
    if unit in units:
        return number * units[unit]
    head = unit.split("/")[0]
    if re.fullmatch(r"[kKMGTPE]?i?(b|bit|bits|bps)", head):
        raise _fail(where, text, f"{unit!r} are bits (or a lower-case b); write bytes, e.g. {example!r}")
    if re.fullmatch(r"[kKMGTPE]i?", head):
        raise _fail(where, text, f"bare {unit!r} is ambiguous; write {unit}B or {unit[0]}iB" if "/" not in unit else
                    f"unit {unit!r} is not known; write something like {example!r}")
    raise _fail(where, text, f"unit {unit!r} is not known for a {what}; write something like {example!r}")


def parse_size(value: object, where: str = "") -> int:
    """Read a size in bytes; fractions round up.

    Parameters
    ----------
    value : int or str
        Bytes, or text such as ``"1.5 GiB"``.
    where : str
        Path named in the error.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    UnitError
        Not a size.
    """
    return _parse(value, _BYTES, "size", "24GiB", "up", where)


def parse_capacity(value: object, where: str = "") -> int:
    """Read a capacity in bytes; fractions round down. See `parse_size`."""
    return _parse(value, _BYTES, "capacity", "24GiB", "down", where)


def parse_duration(value: object, where: str = "") -> int:
    """Read a duration in nanoseconds; fractions round up. See `parse_size`."""
    return _parse(value, _SECONDS, "duration", "250us", "up", where)


def parse_bandwidth(value: object, where: str = "") -> int:
    """Read a bandwidth in bytes per second; fractions round down, zero is refused. See `parse_size`."""
    units = {f"{unit}/s": factor for unit, factor in _BYTES.items()}
    number = _parse(value, units, "bandwidth", "25GB/s", "down", where)
    if number == 0:
        raise _fail(where, value, "a bandwidth must be at least 1 byte per second")
    return number


def parse_rate(value: object, where: str = "") -> int:
    """Read a compute speed in operations per second; fractions round down, zero is refused. See `parse_size`."""
    units = {f"{p}FLOP/s": f for p, f in _DECIMAL.items()} | {f"{p}FLOPS": f for p, f in _DECIMAL.items()}
    number = _parse(value, units, "compute speed", "989TFLOP/s", "down", where)
    if number == 0:
        raise _fail(where, value, "a compute speed must be at least 1 operation per second")
    return number


def format_bytes(value: int) -> str:
    """Return bytes in IEC units with two decimals, exact below 1 KiB: ``"46.97 GiB"``."""
    if abs(value) < 1024:
        return f"{value} B"
    number = float(value)
    units = ["PiB", "TiB", "GiB", "MiB", "KiB"]
    while abs(number := number / 1024) >= 1024 and len(units) > 1:
        units.pop()
    return f"{number:.2f} {units[-1]}"


def format_duration(value: int) -> str:
    """Return nanoseconds in a readable unit: ``"12.345 ms"``."""
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(value) >= factor:
            return f"{value / factor:.3f} {unit}"
    return f"{value} ns"
