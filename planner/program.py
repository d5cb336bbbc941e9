"""The three instructions, and the program that lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from planner.errors import Fault, InputError

__all__ = ["Copy", "Drop", "Instruction", "Program", "Run"]


@dataclass(frozen=True, slots=True)
class Run:
    """Run an op; operands are on the device unless ``at`` (sorted pairs tensor, tier) says otherwise."""

    op: str
    at: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """Allocate the tensor on dst, then move its bytes over the link's channel."""

    tensor: str
    src: str
    dst: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Release the copy of a tensor on a tier."""

    tensor: str
    tier: str


Instruction = Run | Copy | Drop


@dataclass(frozen=True)
class Program:
    """An ordered list of instructions, and the start tier of each tensor whose home is ``"any"``.

    Attributes
    ----------
    instructions : tuple of Run, Copy or Drop
    start : mapping of str to str
        Tensor name to tier.
    """

    instructions: tuple[Instruction, ...]
    start: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.instructions)

    def to_list(self) -> list[list[Any]]:
        """Return the JSON form of the instructions."""
        rows: list[list[Any]] = []
        for ins in self.instructions:
            if isinstance(ins, Run):
                rows.append(["run", ins.op, dict(ins.at)] if ins.at else ["run", ins.op])
            elif isinstance(ins, Copy):
                rows.append(["copy", ins.tensor, ins.src, ins.dst])
            else:
                rows.append(["drop", ins.tensor, ins.tier])
        return rows

    @classmethod
    def from_list(cls, rows: object, start: Mapping[str, str] | None = None) -> Program:
        """Read the JSON form; `InputError` lists every malformed instruction."""
        if not isinstance(rows, (list, tuple)):
            raise InputError([Fault("program", f"{type(rows).__name__}: must be a list of instructions")])
        found: list[Instruction] = []
        faults: list[Fault] = []
        for i, row in enumerate(rows):
            try:
                found.append(_instruction(row))
            except ValueError as error:
                faults.append(Fault(f"program[{i}]", str(error)))
        if faults:
            raise InputError(faults)
        return cls(tuple(found), MappingProxyType(dict(start or {})))


def _instruction(row: object) -> Instruction:
    shapes = '["run", op], ["run", op, {tensor: tier}], ["copy", tensor, src, dst] or ["drop", tensor, tier]'
    if isinstance(row, (list, tuple)) and row and all(isinstance(x, str) for x in row[:2]):
        match row:
            case ["run", op]:
                return Run(op)
            case ["run", op, dict() as at] if all(isinstance(x, str) for pair in at.items() for x in pair):
                return Run(op, tuple(sorted(at.items())))
            case ["copy", tensor, str() as src, str() as dst]:
                return Copy(tensor, src, dst)
            case ["drop", tensor, str() as tier]:
                return Drop(tensor, tier)
    raise ValueError(f"{row!r} is not an instruction; write {shapes}")
