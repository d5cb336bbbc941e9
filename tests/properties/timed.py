"""Random legal programs, random times, and the two facts worked out anew: nothing here uses the package's replay."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from planner.graph import Graph
from planner.machine import Machine
from planner.problem import Problem
from planner.program import Copy, Drop, Program, Run
from tests.oracle.brute import Literal, starts
from tests.oracle.search import optimum

__all__ = ["Held", "longest_path", "memory_over_time", "random_program", "retimed", "within_capacity"]


def random_program(problem: Problem, rng: random.Random, most: int = 60) -> Program | None:
    """Return a random complete program: a walk through legal instructions, else the oracle's.

    The walk runs ops gladly and drops now and then, so that programs differ widely and are rarely good.
    """
    choices = list(starts(problem))
    for _ in range(6):
        rules = Literal(problem, rng.choice(choices))
        state, done = rules.initial(), []
        moves = rules.everything()
        for _ in range(most):
            if state is None or rules.finished(state):
                break
            rng.shuffle(moves)
            weight = {Run: 1.0, Copy: 0.35, Drop: 0.12}
            for ins in moves:
                if rng.random() < weight[type(ins)]:
                    new = rules.step(state, ins)
                    if new is not None:
                        state = new
                        done.append(ins)
                        break
        if state is not None and rules.finished(state):
            return Program(tuple(done), rules.start)
    return optimum(problem, ties=False, time_limit=2).program


def retimed(problem: Problem, rng: random.Random) -> Problem:
    """Return the problem with random durations (0 included), bandwidths and latencies."""
    ops = tuple(
        replace(op, duration=rng.choice([0, rng.randint(0, 40)]),
                placements=tuple(replace(p, duration=rng.randint(0, 40)) for p in op.placements))
        for op in problem.graph.ops
    )
    links = tuple(
        replace(k, bandwidth=rng.choice([10**8, 10**9, 7 * 10**9, 10**12]), latency=rng.choice([0, rng.randint(0, 30)]))
        for k in problem.machine.links
    )
    machine = Machine(problem.machine.name, problem.machine.tiers, links, problem.machine.compute)
    return Problem(Graph(problem.graph.name, problem.graph.tensors, ops), machine, problem.budgets, problem.rules)


def longest_path(problem: Problem, program: Program, mode_ns: dict[int, int]) -> tuple[list[int], list[int]]:
    """Return start and end of every instruction: a longest path over explicit predecessors, quadratic and plain.

    ``mode_ns`` gives the duration of Runs with operands in place elsewhere, by instruction.
    """
    low, machine, device = problem.lowered, problem.machine, problem.machine.device.name
    rows = list(program.instructions)
    made: dict[tuple[str, str], int | None] = {}  # copy → instruction that produced it (None: at the start)
    users: dict[tuple[str, str], list[int]] = {}
    for t in low.tensors:
        for tier in (program.start[t.name],) if t.home == "any" else t.home:
            made[t.name, tier], users[t.name, tier] = None, []
    start, end = [0] * len(rows), [0] * len(rows)
    for i, ins in enumerate(rows):
        before: set[int | None] = set()
        drops = [(j, other.tier) for j, other in enumerate(rows[:i]) if isinstance(other, Drop)]
        cost = 0
        if isinstance(ins, Run):
            op, at = low.op[ins.op], dict(ins.at)
            cost = mode_ns.get(i, op.duration or 0)
            before |= {j for j, o in enumerate(rows[:i]) if isinstance(o, Run) and low.op[o.op].stream == op.stream}
            before |= {j for j, o in enumerate(rows[:i]) if isinstance(o, Run) and o.op in op.after}
            for n in op.reads:
                copy = (n, at.get(n, device))
                before.add(made[copy])
                if n in op.updates:
                    before |= set(users[copy])
                users[copy].append(i)
                if n in op.updates:
                    made[copy] = i
            for n in op.writes:
                copy = (n, at.get(n, device))
                if copy not in made:
                    before |= {j for j, tier in drops if tier == copy[1]}
                    made[copy], users[copy] = i, [i]
        elif isinstance(ins, Copy):
            link = machine.link[ins.src, ins.dst]
            cost = link.latency + -(-low.tensor[ins.tensor].size * 10**9 // link.bandwidth)
            before |= {j for j, o in enumerate(rows[:i])
                       if isinstance(o, Copy) and machine.link[o.src, o.dst].channel == link.channel}
            before |= {j for j, tier in drops if tier == ins.dst} | {made[ins.tensor, ins.src]}
            users[ins.tensor, ins.src].append(i)
            made[ins.tensor, ins.dst], users[ins.tensor, ins.dst] = i, [i]
        else:
            before |= set(users.pop((ins.tensor, ins.tier)))
            made.pop((ins.tensor, ins.tier))
        start[i] = max((end[j] for j in before if j is not None), default=0)
        end[i] = start[i] + cost
    return start, end


@dataclass(frozen=True)
class Held:
    """One copy's room: tier, bytes, from when, until when (None: the end), and the places of both in the list."""

    tier: str
    size: int
    since: int
    until: int | None
    made_by: int
    dropped_by: int


def memory_over_time(problem: Problem, program: Program, start: list[int], end: list[int]) -> list[Held]:
    """Return the rooms in continuous time: from the allocator's start to the Drop's end."""
    device = problem.machine.device.name
    size = {(t.name, k): problem.machine.tier[k].occupied(t.size) for t in problem.lowered.tensors
            for k in problem.machine.tier}
    open_: dict[tuple[str, str], tuple[int, int]] = {}
    for tensor in problem.lowered.tensors:
        for tier in (program.start[tensor.name],) if tensor.home == "any" else tensor.home:
            open_[tensor.name, tier] = (0, -1)
    found: list[Held] = []
    for i, ins in enumerate(program.instructions):
        if isinstance(ins, Run):
            at = dict(ins.at)
            for n in problem.lowered.op[ins.op].writes:
                open_.setdefault((n, at.get(n, device)), (start[i], i))
        elif isinstance(ins, Copy):
            open_[ins.tensor, ins.dst] = (start[i], i)
        else:
            since, maker = open_.pop((ins.tensor, ins.tier))
            found.append(Held(ins.tier, size[ins.tensor, ins.tier], since, end[i], maker, i))
    last = len(program.instructions)
    found += [Held(k, size[t, k], since, None, maker, last) for (t, k), (since, maker) in open_.items()]
    return found


def within_capacity(problem: Problem, rooms: list[Held]) -> bool:
    """Is no tier over its capacity at any instant at which something is allocated?

    At one instant a room that ends there and one that begins there exclude each other only in the order of the list:
    what is dropped at that very instant counts for allocations that are listed before its Drop.
    """
    for tier, cap in problem.capacity.items():
        if cap is None:
            continue
        here = [r for r in rooms if r.tier == tier]
        for new in here:
            alive = [r for r in here if r.since <= new.since and (r.until is None or r.until > new.since)]
            still = [r for r in here if r.until == new.since and r.dropped_by > new.made_by and r.since <= new.since]
            before = [r for r in (*alive, *still) if r.made_by <= new.made_by]
            if max(sum(r.size for r in alive), sum(r.size for r in before)) > cap:
                return False
    return True
