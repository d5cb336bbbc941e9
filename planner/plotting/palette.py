"""Colours of bars and curves: fixed for the usual kinds, so that pictures can be compared."""

from __future__ import annotations

import zlib

__all__ = ["color_of"]

_FIXED = {
    "op": "#4c72b0", "op again": "#8172b3", "weight": "#dd8452", "activation": "#55a868", "gradient": "#c44e52",
    "optimizer state": "#937860", "kv": "#da8bc3", "input": "#8c8c8c", "output": "#64b5cd", "tensor": "#dd8452",
    "tier device": "#4c72b0", "tier host": "#4f8f92", "tier nvme": "#937860",
}
_OTHERS = ("#ccb974", "#64b5cd", "#a1c9f4", "#8de5a1", "#ff9f9b", "#d0bbff", "#debb9b", "#fab0e4")


def color_of(group: str) -> str:
    """Return the colour of a kind of bar or a tier's curve, ``"#rrggbb"``; the same in every run."""
    return _FIXED.get(group) or _OTHERS[zlib.crc32(group.encode()) % len(_OTHERS)]
