"""Read the members of a JSON object and collect every fault on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from planner.errors import Fault, InputError

__all__ = ["Fields", "as_names"]

_MISSING: Any = object()


class Fields:
    """One JSON object being read.

    Parameters
    ----------
    data : object
        Should be an object; anything else is a fault.
    where : str
        Path of the object.
    allowed : iterable of str
        Known members; any other is a fault.
    faults : list of Fault
        Findings are appended here.
    """

    def __init__(self, data: object, where: str, allowed: Iterable[str], faults: list[Fault]) -> None:
        self.where, self.faults = where, faults
        self.data: Mapping[str, Any] = data if isinstance(data, dict) else {}
        self.is_object = isinstance(data, dict)
        if not self.is_object:
            faults.append(Fault(where, f"{_short(data)}: must be an object"))
        known = tuple(allowed)
        for key in (k for k in self.data if k not in known):
            faults.append(Fault(self.path(key), f"unknown field {key!r}; known are {', '.join(known)}"))

    def path(self, key: str) -> str:
        """Return the path of a member."""
        return f"{self.where}.{key}" if self.where else key

    def fault(self, key: str, problem: str) -> None:
        """Note a fault at a member."""
        self.faults.append(Fault(self.path(key), problem))

    def missing(self, key: str) -> None:
        """Note a member that must be there; of what is no object that has been said already."""
        if self.is_object:
            self.fault(key, "is missing")

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = _MISSING) -> Any:
        """Return a member of a plain JSON type, or the default; a wrong type is a fault."""
        value = self.data.get(key, _MISSING)
        if value is _MISSING:
            if default is _MISSING:
                self.missing(key)
                return None
            return default
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
            return value
        self.fault(key, f"{_short(value)}: must be {' or '.join(_NAMES.get(k, k.__name__) for k in kinds)}")
        return None if default is _MISSING else default

    def quantity(self, key: str, parse: Callable[[object, str], int], default: Any = _MISSING) -> Any:
        """Return a quantity read by one of `planner.units`, or the default."""
        value = self.data.get(key, _MISSING)
        if value is _MISSING or (value is None and default is None):
            if default is _MISSING:
                self.missing(key)
                return 0
            return default
        if type(value) is int and 0 < value < 2**62:
            return value
        try:
            return parse(value, self.path(key))
        except InputError as error:
            self.faults += error.faults
            return 0

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of distinct names; duplicates are merged."""
        value = self.data.get(key, _MISSING)
        if value is _MISSING:
            return ()
        return as_names(value, self.path(key), self.faults)

    def format(self, expected: str) -> None:
        """Require the member ``format``."""
        value = self.data.get("format", _MISSING)
        if value is _MISSING:
            if self.is_object:
                self.fault("format", f"is missing; write {expected!r}")
        elif value != expected:
            self.fault("format", f"{_short(value)}: this version reads {expected!r}")


_NAMES = {str: "a string", int: "an integer", bool: "true or false", list: "a list", dict: "an object",
          type(None): "null", float: "a number"}


def as_names(value: object, where: str, faults: list[Fault]) -> tuple[str, ...]:
    """Return a list of distinct names; anything else is a fault."""
    if not isinstance(value, (list, tuple)):
        faults.append(Fault(where, f"{_short(value)}: must be a list of names"))
        return ()
    bad = [v for v in value if not isinstance(v, str)]
    if bad:
        faults.append(Fault(where, f"{_short(bad[0])}: must be a name"))
        return ()
    return tuple(value) if len(value) < 2 else tuple(dict.fromkeys(value))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
