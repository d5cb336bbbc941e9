"""Canonical JSON: sorted keys, no spaces, so that equal content has equal bytes and one hash."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["canonical_bytes", "pretty_bytes"]

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_bytes(data: Any) -> bytes:
    """Return the canonical JSON of plain data (dicts, lists, strings, integers, Booleans, None)."""
    return _ENCODER.encode(data)


def pretty_bytes(data: Any) -> bytes:
    """Return canonical JSON with one space of indent and a final newline, for files that people read."""
    return msgspec.json.format(canonical_bytes(data), indent=1) + b"\n"
