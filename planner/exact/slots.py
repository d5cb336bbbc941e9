"""How many runs and copies a formulation must offer, and why that many are enough.

A *slot* is an optional instruction of a model: the j-th run of an op, the k-th copy of a tensor over a link. A proof
over a model with too few slots says nothing about the problem, so the counts are bounds on what some optimal program
needs. Take an optimal program with the fewest instructions. A *terminal* use of a tensor is a Run that reads it, or
``keep``.

*Runs.* Each use is served by one copy, which descends by copies from one Run (or from the start). A rerun none of
whose copies serves a terminal can be left out. So the runs of op o after the first are at most the terminals of its
outputs, Σ over readers p and outputs w read by p of R(p), plus the kept ones; with the first run, which may serve none,

    R(o) = 1 + Σ R(p) + kept,        R(o) = 1 if o may not run again.

The 1 can go if all ops share a stream and the next op of the order reads from o: between the first run and a rerun
that serves the first reader no other op runs for the first time, so the first run could be left out in favour of the
second.

*Copies, lower tiers with room for everything.* On such a tier a copy can stay until the tensor is updated, at no cost
in memory or time. So each tensor needs one copy into the tier per version (1 + updates). A copy into the device serves
a terminal there, or is a stop on the way to another tier, at most one per version and further tier.

*Copies, a lower tier that can be full.* Swapping two tensors back and forth may be needed and no count is known from
the graph alone; time gives one. Residencies of a tensor on a tier follow each other, and each serves a copy out (m
units at least), a Run, or ``keep``. Copies in, of d units, happen in a window of W units: after the producer's first
run, before the last first run that the tensor can serve (`planner.exact.precedence`). On a lower tier, n of them need
n·d + (n − 1)·m ≤ W. On the device the same holds for those that serve no Run. Where that is more than the heuristic
count, the model is a restriction and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.exact.precedence import Precedence, precedence
from planner.exact.scaling import Scaled

if TYPE_CHECKING:
    from planner.graph import Tensor
    from planner.problem import Problem

__all__ = ["Slots", "copy_allowed", "impossible", "keep_tiers", "slots", "start_tiers", "supports"]

#: More runs of one op than this are not offered.
_MAX_RUNS = 12


@dataclass(frozen=True)
class Slots:
    """Slot counts and what they restrict.

    Attributes
    ----------
    runs : dict of str to int
        Op to number of runs offered.
    copies : dict of (tensor, src, dst) to int
        Only links over which the tensor may and might go.
    restrictions : tuple of str
        Empty if some optimal program fits into the slots.
    """

    runs: dict[str, int]
    copies: dict[tuple[str, str, str], int]
    restrictions: tuple[str, ...]

    @property
    def total(self) -> int:
        """Number of slots."""
        return sum(self.runs.values()) + sum(self.copies.values())


def supports(problem: Problem) -> str | None:
    """Return why the exact formulations cannot express a problem; None if they can."""
    if problem.rules.reorder:
        return "rule reorder: the exact formulations keep the listed order"
    if problem.rules.direct:
        return "rule direct: the exact formulations know no operands in place on a slow tier"
    if problem.objective.kind != "makespan":
        return f"objective {problem.objective.kind}: the exact formulations minimise the makespan"
    return None


def impossible(problem: Problem) -> str | None:
    """Return why no program exists if that follows from a pin alone."""
    device = problem.machine.device.name
    for name, tier in problem.lowered.pinned.items():
        users = [op.name for op in problem.lowered.ops if name in op.reads or name in op.writes]
        if tier != device and users:
            return f"tensor {name!r} is pinned to {tier!r}, where op {users[0]!r} cannot use it without the rule direct"
    return None


def start_tiers(problem: Problem, tensor: Tensor) -> tuple[str, ...] | None:
    """Return the tiers among which the planner chooses where a tensor starts; None if nothing is to choose."""
    if tensor.home != "any":
        return None
    if not problem.rules.offload:
        return (problem.machine.device.name,)
    return tuple(problem.machine.tier)


def keep_tiers(tensor: Tensor) -> tuple[str, ...] | None:
    """Return the tiers of which one must hold the tensor at the end; () if none need, None: where it started."""
    if tensor.keep is None:
        return ()
    if tensor.keep != "home":
        return (tensor.keep,)
    return None if tensor.home == "any" else tuple(tensor.home)


def copy_allowed(problem: Problem, tensor: Tensor, src: str, dst: str) -> bool:
    """Do the rules let a tensor go over a link? Without ``offload``: off the device only on the way to its ``keep``."""
    machine = problem.machine
    device = machine.device.name
    if problem.rules.offload or src != device:
        return True
    ends = keep_tiers(tensor)
    if not ends or device in ends:  # what may start anywhere starts on the device, and ends there
        return False
    return any(dst == link.dst for end in ends for link in machine.route(device, end) or ())


def slots(problem: Problem, scaled: Scaled, horizon: int | None, *, full: bool) -> Slots:
    """Count the slots for programs with a makespan of at most ``horizon`` units.

    Parameters
    ----------
    problem : Problem
    scaled : Scaled
    horizon : int, optional
        Units of time; None if no makespan is known.
    full : bool
        Offer as many copies as time allows where the graph gives no count, so that nothing is left out.
    """
    restrictions: list[str] = []
    runs = _runs(problem, scaled, horizon, restrictions)
    copies: dict[tuple[str, str, str], int] = {}
    machine, low = problem.machine, problem.lowered
    device = machine.device.name
    others = [t for t in machine.tier if t != device]
    cut = False
    facts = precedence(problem, scaled, runs)
    for t in low.tensors:
        reads = sum(runs[op.name] for op in low.ops if t.name in op.reads)
        kept = int(t.keep is not None)
        if reads + kept == 0:
            continue
        roomy = all(scaled.capacity[k] is None or scaled.size[t.name, k] == 0 for k in others)
        versions = 1 + sum(t.name in op.updates for op in low.ops)
        for link in machine.links:
            if not copy_allowed(problem, t, link.src, link.dst):
                continue
            count = reads + kept + versions * max(0, len(others) - 1) if link.dst == device else versions
            duration = scaled.copy[t.name, link.src, link.dst]
            fits = None
            if horizon is not None and duration:
                fits = _by_time(problem, scaled, facts, t.name, link.dst, duration, horizon)
                if link.dst == device:
                    fits = min(horizon // duration, fits + reads + kept)
            if not roomy:
                count += kept + (0 if link.dst == device else 1)
                if full and fits is not None:
                    count = fits
                cut = cut or fits is None or fits > count
            if fits is not None:
                count = min(count, fits)
            if count:
                copies[t.name, link.src, link.dst] = count
    if cut:
        restrictions.append("a bounded number of copies of a tensor over a link (a lower tier can be full)")
    return Slots(runs, copies, tuple(restrictions))


def _by_time(
    problem: Problem, scaled: Scaled, facts: Precedence, tensor: str, tier: str, duration: int, horizon: int
) -> int:
    """Return how many copies into a tier, each with a copy out before the next, the time allows."""
    needs, made = facts.needs[tensor], facts.producer.get(tensor)
    window = horizon - (0 if made is None else facts.head[made] + scaled.run[made])
    window -= min((facts.tail[p] for p in needs), default=0) if needs else 0
    t = problem.lowered.tensor[tensor]
    out = [scaled.copy[tensor, k.src, k.dst] for k in problem.machine.links
           if k.src == tier and copy_allowed(problem, t, k.src, k.dst)]
    if window < duration:
        return 0
    return (window + min(out)) // (duration + min(out)) if out else 1


def _runs(problem: Problem, scaled: Scaled, horizon: int | None, restrictions: list[str]) -> dict[str, int]:
    low = problem.lowered
    if not problem.rules.recompute:
        return {op.name: 1 for op in low.ops}
    one_stream = len({op.stream for op in low.ops}) == 1
    runs: dict[str, int] = {}
    for i in range(len(low.ops) - 1, -1, -1):
        op = low.ops[i]
        if not op.recomputable or op.updates or not op.writes:
            runs[op.name] = 1
            continue
        uses = sum(low.tensor[w].keep is not None for w in op.writes)
        uses += sum(runs[p.name] for p in low.ops[i + 1:] for w in op.writes if w in p.reads)
        adjacent = one_stream and i + 1 < len(low.ops) and any(w in low.ops[i + 1].reads for w in op.writes)
        count = max(1, uses + (not adjacent)) if uses else 1
        if horizon is not None and scaled.run[op.name]:
            count = min(count, max(1, horizon // scaled.run[op.name]))
        if count > _MAX_RUNS:
            restrictions.append(f"at most {_MAX_RUNS} runs of op {op.name!r}")
            count = _MAX_RUNS
        runs[op.name] = count
    return runs
