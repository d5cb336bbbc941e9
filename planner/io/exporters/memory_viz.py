"""A PyTorch memory snapshot of the device tier, for pytorch.org/memory_viz.

The page reads a pickle of a dictionary with ``segments`` and ``device_traces``. Every copy on the device becomes an
``alloc`` event and, where it is dropped, ``free_requested`` and ``free_completed`` events. The file holds plain dicts,
lists, strings and integers only, so that loading it runs no code.

Plans say when a copy exists, not at which address. Addresses here are made up so that no two copies that are alive at
once overlap: first fit in one segment as large as that needs.
"""

from __future__ import annotations

import bisect
import pickle
from typing import TYPE_CHECKING, Any

from planner.memory_events import memory_events
from planner.program import Copy, Run

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["to_memory_viz"]

_BASE = 0x7F00_0000_0000


def to_memory_viz(plan: Plan) -> bytes:
    """Return the device's allocations as a PyTorch memory snapshot.

    Parameters
    ----------
    plan : Plan
        With a program.

    Returns
    -------
    bytes
        Pickle (protocol 4). Times are microseconds of the plan, rounded down; a frame names the instruction and the
        tensor.

    Raises
    ------
    ValueError
        The plan has no program.
    """
    device = plan.problem.machine.device.name
    trace: list[dict[str, Any]] = []
    live: dict[str, tuple[int, int, list[dict[str, Any]]]] = {}
    heap = _Heap()
    for event in memory_events(plan):
        if event.tier != device:
            continue
        time = event.time // 1000
        if event.change > 0:
            address = _BASE + heap.take(event.change)
            frames = _frames(plan, event.index, event.tensor)
            live[event.tensor] = (address, event.change, frames)
            trace.append(_entry("alloc", address, event.change, frames, time))
        else:
            address, size, _ = live.pop(event.tensor)
            heap.give(address - _BASE)
            frames = _frames(plan, event.index, event.tensor)
            trace += [_entry(action, address, size, frames, time) for action in ("free_requested", "free_completed")]
    total = heap.top
    segment_alloc = _entry("segment_alloc", _BASE, total, [_frame("capacity in use", device)], 0)
    snapshot = {
        "segments": [_segment(total, live)] if total else [],
        "device_traces": [[segment_alloc, *trace] if total else []],
        "allocator_settings": {}, "external_annotations": [],
    }
    return pickle.dumps(snapshot, protocol=4)


class _Heap:
    """First fit: offsets for blocks so that those alive together do not overlap."""

    def __init__(self) -> None:
        self.top = 0
        self._blocks: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """Return the lowest offset with ``size`` bytes free."""
        at = 0
        for start, length in self._blocks:
            if start - at >= size:
                break
            at = start + length
        bisect.insort(self._blocks, (at, size))
        self.top = max(self.top, at + size)
        return at

    def give(self, at: int) -> None:
        """Free the block at an offset."""
        del self._blocks[bisect.bisect_left(self._blocks, (at, 0))]


def _entry(action: str, address: int, size: int, frames: list[dict[str, Any]], time: int) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames}


def _frames(plan: Plan, index: int, tensor: str) -> list[dict[str, Any]]:
    """Return a made-up stack: the tensor with its kind, and the instruction that creates or drops it."""
    kind = plan.problem.lowered.tensor[tensor].kind or "tensor"
    if index < 0:
        return [_frame(tensor, kind), _frame("start", "program", 0)]
    assert plan.program is not None
    ins = plan.program.instructions[index]
    if isinstance(ins, Run):
        text = f"run {ins.op}"
    elif isinstance(ins, Copy):
        text = f"copy {ins.tensor} {ins.src}>{ins.dst}"
    else:
        text = f"drop {ins.tensor}"
    return [_frame(tensor, kind), _frame(text, "program", index)]


def _frame(name: str, filename: str, line: int = 0) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


def _segment(total: int, live: dict[str, tuple[int, int, list[dict[str, Any]]]]) -> dict[str, Any]:
    """Return the one segment, with the blocks alive at the end and the holes between them."""
    blocks: list[dict[str, Any]] = []
    at = _BASE
    for address, size, frames in sorted(live.values(), key=lambda b: b[0]):
        if address > at:
            blocks.append(_block(at, address - at, "inactive", []))
        blocks.append(_block(address, size, "active_allocated", frames))
        at = address + size
    if at < _BASE + total:
        blocks.append(_block(at, _BASE + total - at, "inactive", []))
    used = sum(size for _, size, _ in live.values())
    return {"device": 0, "address": _BASE, "total_size": total, "allocated_size": used, "active_size": used,
            "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
            "is_expandable": False, "frames": [], "blocks": blocks}


def _block(address: int, size: int, state: str, frames: list[dict[str, Any]]) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": frames}
