"""Re-time a program: one linear pass that computes the longest path of the execution model.

For instruction i of the list, with times of copies (tensor, tier) kept as *produced* and *used until*:

* Run starts at the latest of: end of the stream's previous Run; produced of every operand's copy; end of the latest
  earlier Run of each op in ``after``; for an update, *used until* of that copy; and, if it creates a copy on a tier, the
  end of the latest earlier Drop there.
* Copy starts at the latest of: end of the channel's previous Copy; produced of its source; the latest earlier Drop on dst.
* Drop ends when the copy is no longer used.

The replay trusts the program: legality is the checker's business, and the two share no code.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints, ProblemArrays, compiled, problem_arrays
from planner.machine import copy_ns
from planner.program import Copy, Program, Run

if TYPE_CHECKING:
    from planner.io.plan_json import PlanFile
    from planner.plan import Plan
    from planner.problem import Problem

__all__ = ["Encoded", "Timeline", "direct_duration", "encode", "replay"]

RUN, COPY, DROP = 0, 1, 2
#: Below this many instructions the kernel runs as plain Python: importing the compiler would take longer.
_SMALL = 1500


@dataclass(frozen=True)
class Timeline:
    """Times and totals of a program.

    Attributes
    ----------
    start, end : (n,) int64
        Nanoseconds, one entry an instruction; a Drop has start = end.
    makespan_ns : int
    peak_bytes : dict of str to int
        Largest list-order use of each tier, occupied bytes.
    moved_bytes : dict of str to int
        Raw bytes over each link, ``"host>device"``.
    recomputed_ns : int
        Time of second and later runs.
    stall_ns : int
        Makespan less the time in which the compute stream runs.
    scale : dict
        What was changed against the problem.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    makespan_ns: int
    peak_bytes: dict[str, int]
    moved_bytes: dict[str, int]
    recomputed_ns: int
    stall_ns: int
    scale: dict[str, object]


@dataclass(frozen=True)
class Encoded:
    """A program as arrays; see `encode`.

    Attributes
    ----------
    code : (n, 4) int64
        kind, op or tensor, src or tier or row of ``placed``, dst.
    placed : list of dict
        Operand tiers of Runs that use a slow tier in place, ``tensor index → tier index``.
    placed_duration : (len(placed),) int64
    start_tier : (n_tensors,) int64
        Tier where each tensor with a chosen start begins; −1 else.
    """

    code: Ints
    placed: list[dict[int, int]]
    placed_duration: Ints
    start_tier: Ints


def direct_duration(problem: Problem, op_name: str, at: tuple[tuple[str, str], ...], base: int | None = None) -> int:
    """Return the duration of an op with operands used in place on other tiers, ns.

    A ``placements`` entry for exactly these operands wins; else the op's duration plus, for each operand,
    bytes · (1 / direct bandwidth − 1 / memory bandwidth), rounded up once.
    """
    op = problem.lowered.op[op_name]
    for placement in op.placements:
        if placement.at == at:
            return placement.duration
    total = Fraction((op.duration or 0) if base is None else base)
    memory = problem.machine.compute.memory_bandwidth if problem.machine.compute else None
    for name, tier in at:
        size, slow = problem.lowered.tensor[name].size, problem.machine.tier[tier].direct_bandwidth
        if slow:
            total += Fraction(size * 10**9, slow) - (Fraction(size * 10**9, memory) if memory else 0)
    return max(0, -((-total.numerator) // total.denominator))


def encode(problem: Problem, program: Program) -> Encoded:
    """Turn a program into arrays.

    Raises
    ------
    KeyError
        An instruction names an op, tensor or tier that the problem does not have.
    """
    a = problem_arrays(problem)
    ops, tensors, tiers = a.op_index, a.tensor_index, a.tier_index
    device = problem.machine.device.name
    placed: list[dict[int, int]] = []
    durations: list[int] = []
    flat: list[int] = []
    add = flat.extend
    for ins in program.instructions:
        kind = type(ins)
        if kind is Copy:
            add((COPY, tensors[ins.tensor], tiers[ins.src], tiers[ins.dst]))  # type: ignore[union-attr]
        elif kind is Run:
            row = -1
            at = tuple((n, k) for n, k in ins.at if k != device)  # type: ignore[union-attr]
            if at:
                row = len(placed)
                placed.append({tensors[n]: tiers[k] for n, k in at})
                durations.append(direct_duration(problem, ins.op, at))  # type: ignore[union-attr]
            add((RUN, ops[ins.op], row, 0))  # type: ignore[union-attr]
        else:
            add((DROP, tensors[ins.tensor], tiers[ins.tier], 0))  # type: ignore[union-attr]
    start = np.full(a.n_tensors, -1, np.int64)
    for name, tier in program.start.items():
        start[tensors[name]] = tiers[tier]
    return Encoded(np.array(flat, np.int64).reshape(-1, 4), placed, np.array(durations, np.int64), start)


def replay(
    problem: Problem,
    program: Program | Plan | PlanFile | Encoded,
    *,
    bandwidth_scale: float | Fraction = 1,
    duration_scale: float | Fraction = 1,
    added_latency: int = 0,
    durations: NDArray[np.int64] | None = None,
) -> Timeline:
    """Time a program, on the problem's own times or on others.

    Parameters
    ----------
    problem : Problem
    program : Program, Plan, PlanFile or Encoded
        ``encode`` once when the same program is replayed many times.
    bandwidth_scale : float or Fraction
        Factor on every link's bandwidth (rounded down to whole bytes per second).
    duration_scale : float or Fraction
        Factor on every op's duration (rounded up to ns).
    added_latency : int
        Nanoseconds added to every copy.
    durations : (n_ops,) int64, optional
        Op durations in place of the problem's, ns.

    Returns
    -------
    Timeline

    Raises
    ------
    ValueError
        There is no program, or a scale is not positive.
    """
    if not isinstance(program, (Program, Encoded)):
        if program.program is None:
            raise ValueError("there is no program to replay")
        program = program.program
    if bandwidth_scale <= 0 or duration_scale <= 0 or added_latency < 0:
        raise ValueError("scales must be above 0 and an added latency not negative")
    enc = encode(problem, program) if isinstance(program, Program) else program
    a = problem_arrays(problem)
    op_time = a.duration if durations is None else np.asarray(durations, np.int64)
    if op_time.shape != (a.n_ops,):
        raise ValueError(f"durations has shape {op_time.shape}, expected ({a.n_ops},)")
    placed_time = enc.placed_duration
    if duration_scale != 1:
        factor = Fraction(duration_scale).limit_denominator(10**9)
        op_time = np.array([-(-int(d) * factor.numerator // factor.denominator) for d in op_time], np.int64)
        placed_time = np.array([-(-int(d) * factor.numerator // factor.denominator) for d in placed_time], np.int64)
    copy_time = a.copy_time if bandwidth_scale == 1 else _scaled_copies(problem, a, bandwidth_scale)
    if added_latency:
        copy_time = copy_time + added_latency
    kernel = _pass if len(enc.code) < _SMALL else compiled(_pass)
    start, end, peak, moved, recomputed, busy = kernel(  # type: ignore[no-untyped-call]
        enc.code, enc.start_tier, a.home, op_time, placed_time, _placed_tiers(a, enc), a.stream,
        a.reads.start, a.reads.item, a.writes.start, a.writes.item, a.updates.start, a.updates.item,
        a.after.start, a.after.item, a.occupied, a.size, a.link, a.channel, copy_time, a.n_streams, a.n_channels,
    )
    makespan = int(end.max()) if len(end) else 0
    tiers, links = problem.machine.tiers, problem.machine.links
    scale: dict[str, object] = {}
    for name, value, plain in (("bandwidth", bandwidth_scale, 1), ("duration", duration_scale, 1),
                               ("added_latency_ns", added_latency, 0)):
        if value != plain:
            scale[name] = float(value)
    if durations is not None:
        scale["durations"] = "given"
    return Timeline(
        start, end, makespan, {t.name: int(peak[i]) for i, t in enumerate(tiers)},
        {f"{k.src}>{k.dst}": int(moved[i]) for i, k in enumerate(links)}, int(recomputed), makespan - int(busy), scale,
    )


def _scaled_copies(problem: Problem, a: ProblemArrays, scale: float | Fraction) -> Ints:
    factor = Fraction(scale).limit_denominator(10**9)
    widths = [max(1, k.bandwidth * factor.numerator // factor.denominator) for k in problem.machine.links]
    rows = {s: [copy_ns(s, w, k.latency) for w, k in zip(widths, problem.machine.links, strict=True)]
            for s in set(a.size.tolist())}
    return np.array([rows[s] for s in a.size.tolist()], np.int64).reshape(len(a.size), a.n_links)


def _placed_tiers(a: ProblemArrays, enc: Encoded) -> Ints:
    """Return (len(placed), n_tensors) operand tiers; a single empty row when nothing is placed."""
    if not enc.placed:
        return np.zeros((0, 0), np.int64)
    table = np.zeros((len(enc.placed), a.n_tensors), np.int64)
    for i, row in enumerate(enc.placed):
        for tensor, tier in row.items():
            table[i, tensor] = tier
    return table


def _pass(code, start_tier, home, op_time, placed_time, placed, stream,  # type: ignore[no-untyped-def]
          rd, reads, wr, writes, up, updates, af, after, occupied, size, link, channel, copy_time, n_streams, n_channels):
    n, (n_tensors, n_tiers), n_ops = len(code), home.shape, len(op_time)
    start, end = np.zeros(n, np.int64), np.zeros(n, np.int64)
    produced = np.full((n_tensors, n_tiers), -1, np.int64)  # -1: no copy
    used = np.zeros((n_tensors, n_tiers), np.int64)
    room, peak, freed = np.zeros(n_tiers, np.int64), np.zeros(n_tiers, np.int64), np.zeros(n_tiers, np.int64)
    stream_free, channel_free = np.zeros(n_streams, np.int64), np.zeros(n_channels + 1, np.int64)
    op_end, moved = np.full(n_ops, -1, np.int64), np.zeros(len(channel) + 1, np.int64)
    recomputed, busy = 0, 0
    for t in range(n_tensors):
        for k in range(n_tiers):
            if home[t, k] or start_tier[t] == k:
                produced[t, k] = 0
                room[k] += occupied[t, k]
    for k in range(n_tiers):
        peak[k] = room[k]
    for i in range(n):
        kind, x, src, dst = code[i, 0], code[i, 1], code[i, 2], code[i, 3]
        if kind == 0:
            s = stream_free[stream[x]]
            for j in range(rd[x], rd[x + 1]):
                t = reads[j]
                k = placed[src, t] if src >= 0 else 0
                s = max(s, produced[t, k])
            for j in range(up[x], up[x + 1]):
                t = updates[j]
                k = placed[src, t] if src >= 0 else 0
                s = max(s, used[t, k])
            for j in range(af[x], af[x + 1]):
                s = max(s, op_end[after[j]])
            for j in range(wr[x], wr[x + 1]):
                t = writes[j]
                k = placed[src, t] if src >= 0 else 0
                if produced[t, k] < 0:
                    s = max(s, freed[k])
            d = placed_time[src] if src >= 0 else op_time[x]
            e = s + d
            stream_free[stream[x]] = e
            if stream[x] == 0:
                busy += d
            if op_end[x] >= 0:
                recomputed += d
            op_end[x] = max(op_end[x], e)
            for j in range(rd[x], rd[x + 1]):
                t = reads[j]
                k = placed[src, t] if src >= 0 else 0
                used[t, k] = max(used[t, k], e)
            for j in range(up[x], up[x + 1]):
                t = updates[j]
                k = placed[src, t] if src >= 0 else 0
                produced[t, k] = e
            for j in range(wr[x], wr[x + 1]):
                t = writes[j]
                k = placed[src, t] if src >= 0 else 0
                if produced[t, k] < 0:
                    produced[t, k] = e
                    used[t, k] = e
                    room[k] += occupied[t, k]
                    peak[k] = max(peak[k], room[k])
        elif kind == 1:
            way = link[src, dst]
            c = channel[way]
            s = max(channel_free[c], produced[x, src], freed[dst])
            e = s + copy_time[x, way]
            channel_free[c] = e
            used[x, src] = max(used[x, src], e)
            produced[x, dst] = e
            used[x, dst] = e
            moved[way] += size[x]
            room[dst] += occupied[x, dst]
            peak[dst] = max(peak[dst], room[dst])
        else:
            s = used[x, src]
            e = s
            freed[src] = max(freed[src], e)
            produced[x, src] = -1
            room[src] -= occupied[x, src]
            used[x, src] = 0
        start[i] = s
        end[i] = e
    return start, end, peak, moved, recomputed, busy
