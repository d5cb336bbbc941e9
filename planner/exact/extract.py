"""From times back to a program: the list of the execution model's third fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from planner.program import Copy, Drop, Instruction, Program, Run

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["program_of", "tidy"]

_RANK = {Drop: 0, Copy: 1, Run: 2}


def program_of(problem: Problem, timed: Iterable[tuple[int, Instruction]], start: Mapping[str, str]) -> Program:
    """Sort instructions by time (Drops by the time of the drop, the others by start) and return the program.

    At one instant Drops come first, then Copies, then Runs, then by text: the same schedule gives the same list.
    """
    listed = sorted(timed, key=lambda pair: (pair[0], _RANK[type(pair[1])], repr(pair[1])))
    return tidy(problem, Program(tuple(ins for _, ins in listed), dict(sorted(start.items()))))


def tidy(problem: Problem, program: Program) -> Program:
    """Leave out Drops that nothing needs: no budget or later allocation on the tier, no later write of the tensor."""
    device = problem.machine.device.name
    kept: list[Instruction] = []
    filled: set[str] = set()
    touched: set[str] = set()
    for ins in reversed(program.instructions):
        if isinstance(ins, Drop):
            if (ins.tier in filled and problem.capacity[ins.tier] is not None) or ins.tensor in touched:
                kept.append(ins)
            continue
        kept.append(ins)
        if isinstance(ins, Copy):
            filled.add(ins.dst)
            touched.add(ins.tensor)
        else:
            op = problem.lowered.op[ins.op]
            touched.update(op.updates, op.writes)
            if op.writes:
                filled.add(device)
    return Program(tuple(reversed(kept)), program.start)
