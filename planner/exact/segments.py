"""Slots and segments: the variables of the segment formulation (`planner.exact.segments_model`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ortools.sat.python import cp_model

from planner.exact.scaling import Scaled
from planner.exact.slots import Slots, start_tiers

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["CopySlot", "RunSlot", "Segment", "SegmentModel", "create_copies", "create_runs", "create_start"]


@dataclass(eq=False)
class RunSlot:
    """The j-th run of an op."""

    op: str
    index: int
    present: Any
    start: Any
    length: int
    interval: Any
    creates: dict[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> Any:
        """End, an affine expression."""
        return self.start + self.length


@dataclass(eq=False)
class Segment:
    """One residency of a tensor on a tier; ``creator`` is None for what is there at the start."""

    tensor: str
    tier: str
    creator: RunSlot | CopySlot | None
    present: Any
    start: Any
    ready: Any
    drop: Any
    interval: Any
    served: list[Any] = field(default_factory=list)


@dataclass(eq=False)
class CopySlot:
    """The k-th copy of a tensor over a link."""

    tensor: str
    src: str
    dst: str
    index: int
    present: Any
    start: Any
    length: int
    interval: Any
    segment: Segment | None = None

    @property
    def end(self) -> Any:
        """End, an affine expression."""
        return self.start + self.length


@dataclass(eq=False)
class SegmentModel:
    """A built model and the handles to read a program from a solution."""

    problem: Problem
    scaled: Scaled
    slots: Slots
    model: cp_model.CpModel
    stretch: int
    horizon: int
    runs: dict[str, list[RunSlot]] = field(default_factory=dict)
    copies: dict[tuple[str, str, str], list[CopySlot]] = field(default_factory=dict)
    segments: dict[tuple[str, str], list[Segment]] = field(default_factory=dict)
    serves: list[tuple[Segment, Any, Any]] = field(default_factory=list)
    relaxed: bool = False
    makespan: Any = None
    device_capacity: Any = None

    @property
    def end(self) -> int:
        """An instant after every instruction, stretched units."""
        return self.stretch * self.horizon + self.stretch

    def all_copies(self) -> list[CopySlot]:
        """Return all copy slots."""
        return [c for group in self.copies.values() for c in group]

    def all_slots(self) -> list[RunSlot | CopySlot]:
        """Return all run and copy slots."""
        return [*(r for group in self.runs.values() for r in group), *self.all_copies()]

    def all_segments(self) -> list[Segment]:
        """Return all segments."""
        return [s for group in self.segments.values() for s in group]


def _length(m: SegmentModel, units: int) -> int:
    return m.stretch * units if units else 1


def _segment(m: SegmentModel, tensor: str, tier: str, creator: RunSlot | CopySlot | None, present: Any) -> Segment:
    name = f"{tensor}@{tier}/{len(m.segments.get((tensor, tier), []))}"
    start = -1 if creator is None else creator.start
    ready = 0 if creator is None else creator.end
    drop = m.model.new_int_var(0, m.end, f"drop {name}")
    size = m.model.new_int_var(1, m.end + 1, f"stay {name}")
    interval = m.model.new_optional_interval_var(start, size, drop, present, f"segment {name}")
    if creator is not None:
        m.model.add(drop >= ready).only_enforce_if(present)
    s = Segment(tensor, tier, creator, present, start, ready, drop, interval)
    m.segments.setdefault((tensor, tier), []).append(s)
    return s


def create_runs(m: SegmentModel) -> None:
    """Create the run slots and a segment for each output of each."""
    device = m.problem.machine.device.name
    for op in m.problem.lowered.ops:
        length = _length(m, m.scaled.run[op.name])
        group: list[RunSlot] = []
        for j in range(m.slots.runs[op.name]):
            present = m.model.new_bool_var(f"run {op.name}/{j}")
            start = m.model.new_int_var(0, m.end, f"start {op.name}/{j}")
            interval = m.model.new_optional_fixed_size_interval_var(start, length, present, f"{op.name}/{j}")
            r = RunSlot(op.name, j, present, start, length, interval)
            if j == 0:
                m.model.add(present == 1)
            else:
                m.model.add_implication(present, group[-1].present)
                m.model.add(start >= group[-1].end).only_enforce_if(present)
            for w in op.writes:
                creates = present
                if j and len(op.writes) > 1:
                    creates = m.model.new_bool_var(f"{op.name}/{j} creates {w}")
                    m.model.add_implication(creates, present)
                r.creates[w] = creates
                _segment(m, w, device, r, creates)
            group.append(r)
        m.runs[op.name] = group


def create_copies(m: SegmentModel) -> None:
    """Create the copy slots, each with the segment it makes; equal slots are used in order."""
    for (tensor, src, dst), count in m.slots.copies.items():
        length = _length(m, m.scaled.copy[tensor, src, dst])
        group: list[CopySlot] = []
        for k in range(count):
            name = f"{tensor} {src}>{dst}/{k}"
            present = m.model.new_bool_var(f"copy {name}")
            start = m.model.new_int_var(0, m.end, f"start {name}")
            interval = m.model.new_optional_fixed_size_interval_var(start, length, present, name)
            c = CopySlot(tensor, src, dst, k, present, start, length, interval)
            c.segment = _segment(m, tensor, dst, c, present)
            if group:
                m.model.add_implication(present, group[-1].present)
                m.model.add(start >= group[-1].end).only_enforce_if(present)
            group.append(c)
        m.copies[tensor, src, dst] = group


def create_start(m: SegmentModel) -> None:
    """Create the segments that are there at the start; they begin one instant before time 0, so they always count."""
    for t in m.problem.lowered.tensors:
        options = start_tiers(m.problem, t)
        if options is None:
            for tier in t.home:
                _segment(m, t.name, tier, None, m.model.new_constant(1))
            continue
        chosen = [m.model.new_bool_var(f"{t.name} starts on {tier}") for tier in options]
        m.model.add_exactly_one(chosen)
        for tier, literal in zip(options, chosen, strict=True):
            _segment(m, t.name, tier, None, literal)
