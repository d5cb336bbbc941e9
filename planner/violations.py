"""What the checker finds: codes, findings, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["CheckReport", "Code", "Violation"]


class Code(StrEnum):
    """What can be wrong with a program or with the claim made for it.

    Each member's text is in ``Code.X.meaning``.
    """

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Code:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = member.__doc__ = meaning
        return member

    WRONG_PROBLEM = "wrong-problem", "the plan was made for another problem"
    WRONG_CLAIM = "wrong-claim", "the plan claims a figure that its program does not give"
    NO_PROGRAM = "no-program", "there is nothing to check"
    UNKNOWN_OP = "unknown-op", "an instruction names an op that the graph does not have"
    UNKNOWN_TENSOR = "unknown-tensor", "an instruction names a tensor that the graph does not have"
    UNKNOWN_TIER = "unknown-tier", "an instruction names a tier that the machine does not have"
    START = "start", "a start tier is missing, unknown, not allowed, or given for a tensor that has none to choose"
    OVER_BUDGET = "over-budget", "a tier holds more than its budget"
    OVER_LIMIT = "over-limit", "the makespan is above the limit that the objective states"
    NO_LINK = "no-link", "a Copy between tiers that no link joins"
    COPY_EXISTS = "copy-exists", "a Copy onto a copy that is there, or a first Run that creates what is there"
    SOURCE_MISSING = "source-missing", "a Copy from a tier that holds no valid copy"
    DROP_MISSING = "drop-missing", "a Drop of a copy that is not there"
    OFFLOAD_NOT_ALLOWED = "offload-not-allowed", "a Copy off the device that the rules forbid and keep does not demand"
    OPERAND_MISSING = "operand-missing", "an operand has no valid copy where the Run uses it"
    OPERAND_TIER = "operand-tier", "an operand used in place on a tier where that is not allowed"
    OP_MISSING = "op-missing", "an op never runs"
    ORDER = "order", "first runs leave the listed order, or an op runs before one it must follow"
    STALE = "stale", "an update while another tier holds a copy"
    RERUN_NOT_ALLOWED = "rerun-not-allowed", "an op runs again and the rules forbid recomputation"
    RERUN_NOT_RECOMPUTABLE = "rerun-not-recomputable", "an op runs again whose second run could differ"
    RERUN_NOTHING_ABSENT = "rerun-nothing-absent", "an op runs again although all that it writes is there"
    RERUN_VERSION = "rerun-version", "a second run would read or create another version than the first did"
    KEEP = "keep", "a tensor is not where it must be at the end"
    PIN = "pin", "a pinned tensor is used elsewhere, or leaves its tier between its first and last use"


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding.

    Attributes
    ----------
    index : int, optional
        Position in the program; None for what no instruction did.
    instruction : list, optional
        Its JSON form.
    code : Code
    message : str
    """

    index: int | None
    instruction: list[Any] | None
    code: Code
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"index": self.index, "instruction": self.instruction, "code": str(self.code), "message": self.message}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Verdict on a program.

    Attributes
    ----------
    valid : bool
    violations : tuple of Violation
        In program order: what is wrong at the start, at each instruction, at the end, with the claim.
    peak_bytes : mapping of str to int
        Largest list-order use of each tier, occupied bytes.
    """

    valid: bool
    violations: tuple[Violation, ...]
    peak_bytes: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"valid": self.valid, "violations": [v.to_dict() for v in self.violations],
                "peak_bytes": dict(self.peak_bytes)}
