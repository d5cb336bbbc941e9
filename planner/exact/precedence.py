"""What the graph alone says about the order of first runs, and about how late a copy or rerun can still serve.

*Ancestors.* First run a precedes first run b in every program if they share a stream and a is listed first, if b reads
what a writes, names a in ``after``, or one of them updates what the other uses; and so on transitively.

*Needs.* Each rerun and each copy of a program with nothing superfluous serves, in the end, a first run or ``keep``.
``needs[tensor]`` are the first runs that a copy of the tensor can end up serving: the readers, and where a reader may
run again, what its outputs can serve. With ``keep`` anywhere on the way nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.exact.scaling import Scaled

if TYPE_CHECKING:
    from planner.problem import Problem

__all__ = ["Precedence", "precedence"]


@dataclass(frozen=True)
class Precedence:
    """Order facts.

    Attributes
    ----------
    ancestors : dict of str to frozenset of str
        Ops whose first run precedes that of the op.
    head, tail : dict of str to int
        Units from time 0 to the earliest start of the first run, and from the latest start to the end of everything.
    needs : dict of str to (frozenset of str or None)
        By tensor; None if ``keep`` may be served.
    producer : dict of str to str
        Tensor to the op that writes it.
    """

    ancestors: dict[str, frozenset[str]]
    head: dict[str, int]
    tail: dict[str, int]
    needs: dict[str, frozenset[str] | None]
    producer: dict[str, str]

    def ends_before(self, tensor: str, op: str) -> bool:
        """Can copies of the tensor only serve the first run of the op or earlier ones?"""
        needs = self.needs[tensor]
        return needs is not None and all(p == op or p in self.ancestors[op] for p in needs)

    def begins_after(self, tensor: str, op: str) -> bool:
        """Does the tensor exist only after the first run of the op?"""
        made = self.producer.get(tensor)
        return made is not None and (made == op or op in self.ancestors[made])


def precedence(problem: Problem, scaled: Scaled, runs: dict[str, int]) -> Precedence:
    """Derive the order facts; ``runs`` are the runs offered of each op."""
    ops = problem.lowered.ops
    producer = {w: op.name for op in ops for w in op.writes}
    before: dict[str, set[str]] = {}
    for j, b in enumerate(ops):
        direct = set(b.after)
        for a in ops[:j]:
            shared = set(a.writes) & set(b.reads) or set(a.updates) & set(b.reads) or set(a.reads) & set(b.updates)
            if a.stream == b.stream or shared:
                direct.add(a.name)
        before[b.name] = direct.union(*(before[a] for a in direct))
    head: dict[str, int] = {}
    for op in ops:
        head[op.name] = max((head[a] + scaled.run[a] for a in before[op.name]), default=0)
    tail: dict[str, int] = {}
    for op in reversed(ops):
        later = [tail[b.name] for b in ops if op.name in before[b.name]]
        tail[op.name] = scaled.run[op.name] + max(later, default=0)
    needs: dict[str, frozenset[str] | None] = {}
    again: dict[str, frozenset[str] | None] = {}
    for op in reversed(ops):
        for w in op.writes:
            needs[w] = _needs(problem, w, runs, again)
        again[op.name] = _union([needs[w] for w in op.writes])
        if runs[op.name] > 1:
            needs.update(dict.fromkeys(op.writes, again[op.name]))
    for t in problem.lowered.tensors:
        if t.name not in needs:
            needs[t.name] = _needs(problem, t.name, runs, again)
    return Precedence({k: frozenset(v) for k, v in before.items()}, head, tail, needs, producer)


def _needs(
    problem: Problem, tensor: str, runs: dict[str, int], again: dict[str, frozenset[str] | None]
) -> frozenset[str] | None:
    if problem.lowered.tensor[tensor].keep is not None:
        return None
    parts: list[frozenset[str] | None] = []
    for op in problem.lowered.ops:
        if tensor in op.reads:
            parts.append(frozenset([op.name]))
            if runs[op.name] > 1:
                parts.append(again[op.name])
    return _union(parts)


def _union(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found: set[str] = set()
    for part in parts:
        if part is None:
            return None
        found |= part
    return frozenset(found)
