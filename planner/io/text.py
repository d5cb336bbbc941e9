"""JSON text to data, strictly: one value a key, no NaN, no lone surrogates, and a place for every complaint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from planner.errors import Fault, InputError

__all__ = ["parse_json"]


def parse_json(raw: bytes) -> Any:
    """Return the data of a JSON text (UTF-8, a byte-order mark is skipped).

    Raises
    ------
    InputError
        The text is empty or not JSON (with line and column), nested too deep, or names a member of an object twice.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: byte {error.start} is {raw[error.start]:#04x}") from None
    if not text.strip():
        raise InputError("the file is empty")
    twice: list[tuple[dict[str, Any], str]] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend((found, name) for name in found if names.count(name) > 1)
        return found

    try:
        data = json.loads(text, object_pairs_hook=build, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise InputError("not JSON that this version reads: nested too deep") from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from None
    if twice:
        places = {id(value): path for value, path in _objects(data)}
        raise InputError([Fault(f"{places.get(id(owner), '')}.{name}".lstrip("."), f"{name!r} is given twice")
                          for owner, name in twice])
    if "\\u" in text:
        _refuse_surrogates(data)
    return data


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _objects(data: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every object with its path."""
    todo = [(data, "")]
    while todo:
        value, path = todo.pop()
        if isinstance(value, dict):
            yield value, path
            todo += [(v, f"{path}.{k}" if path else k) for k, v in value.items()]
        elif isinstance(value, list):
            todo += [(v, f"{path}[{i}]") for i, v in enumerate(value)]


def _refuse_surrogates(data: Any) -> None:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("not JSON: an escape \\uD800 to \\uDFFF stands for no character on its own") from None
