"""Do the exact solvers agree with exhaustive search on random small problems?

Prints per combination of rules: problems, agreements, those the solver left open within its limit, and seconds. Run
from the repository: ``python benchmarks/oracle_agreement.py --count 2000``. Exit code 1 if anything disagrees.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planner.check import check
from planner.exact.result import ExactResult
from planner.exact.segments_cpsat import solve_cpsat
from planner.exact.segments_milp import solve_milp
from planner.exact.slots import supports
from planner.plan import Status
from planner.problem import Problem
from planner.replay import replay
from planner.solve import solve
from tests.oracle.search import OracleResult, optimum
from tests.strategies import random_problem


@dataclass
class Row:
    """Counts of one solver on one combination of rules."""

    problems: int = 0
    agreed: int = 0
    left_open: int = 0
    seconds: float = 0.0


def combination(problem: Problem) -> str:
    """Name the rules of a problem."""
    rules, channels = problem.rules, problem.machine.channels
    parts = [
        "offload" if rules.offload else "stay", *(["recompute"] if rules.recompute else []),
        "half" if len(channels) < len(problem.machine.links) else "duplex", f"{len(problem.machine.tiers)} tiers",
    ]
    return ", ".join(parts)


def verdict(problem: Problem, result: ExactResult, truth: OracleResult, ties: bool) -> str:
    """Return ``agreed``, ``open`` (no claim against the truth, none complete) or what is wrong."""
    if result.program is not None:
        report = check(problem, result.program)
        if not report.valid:
            return f"program rejected: {report.violations[0].message}"
        makespan = replay(problem, result.program).makespan_ns
        if truth.status == "infeasible":
            return f"program of {makespan} for an infeasible problem"
        if truth.makespan_ns is not None and makespan < truth.makespan_ns:
            return f"program of {makespan} below the optimum {truth.makespan_ns}"
        if result.status is Status.OPTIMAL and makespan != truth.makespan_ns:
            return f"claims {makespan} optimal, the optimum is {truth.makespan_ns}"
        if ties and result.ties_proved and truth.moved_bytes_total is not None:
            line = replay(problem, result.program)
            got = (sum(line.moved_bytes.values()), line.peak_bytes[problem.machine.device.name])
            if got != (truth.moved_bytes_total, truth.peak_bytes):
                return f"claims ties {got}, they are {(truth.moved_bytes_total, truth.peak_bytes)}"
    bound = result.lower_bound_ns
    if bound is not None and truth.makespan_ns is not None and bound > truth.makespan_ns:
        return f"bound {bound} above the optimum {truth.makespan_ns}"
    if result.status is Status.INFEASIBLE:
        return "agreed" if truth.status == "infeasible" else f"infeasible, the optimum is {truth.makespan_ns}"
    return "agreed" if result.status is Status.OPTIMAL else "open"


def auto(problem: Problem, time_limit: float) -> ExactResult:
    """Solve by the default method, asked for a proof."""
    plan = solve(problem, "optimal", time_limit=time_limit)
    return ExactResult(plan.status, plan.program, plan.lower_bound_ns, plan.message, "", plan.ties_proved)


SOLVERS: dict[str, Callable[[Problem, float], ExactResult]] = {
    "cpsat": lambda p, s: solve_cpsat(p, time_limit=s),
    "milp": lambda p, s: solve_milp(p, time_limit=s, workers=1),
    "auto": auto,
}


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", type=int, nargs=2, default=(1, 4), metavar=("LEAST", "MOST"))
    parser.add_argument("--solvers", nargs="+", choices=sorted(SOLVERS), default=["cpsat", "milp"])
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for one solve")
    parser.add_argument("--ties", action="store_true", help="compare bytes moved and peak, too")
    args = parser.parse_args()
    table: dict[tuple[str, str], Row] = defaultdict(Row)
    wrong = skipped = 0
    for seed in range(args.seed, args.seed + args.count):
        rng = random.Random(seed)
        ops = rng.randint(*args.ops)
        problem = random_problem(rng, ops=ops, tiers=rng.choice((2, 2, 3)), reorder=False, direct=False)
        truth = optimum(problem, time_limit=args.time_limit, ties=args.ties)
        if truth.status == "unknown" or supports(problem) is not None:
            skipped += 1
            continue
        for name in args.solvers:
            row = table[combination(problem), name]
            began = time.monotonic()
            said = verdict(problem, SOLVERS[name](problem, args.time_limit), truth, args.ties)
            row.seconds += time.monotonic() - began
            row.problems += 1
            row.agreed += said == "agreed"
            row.left_open += said == "open"
            if said not in ("agreed", "open"):
                wrong += 1
                print(f"seed {seed}, {name}: {said}", flush=True)
            elif said == "open":
                print(f"seed {seed}, {name}: left open", flush=True)
    print(f"{'rules':40} {'solver':6} {'problems':>8} {'agreed':>7} {'open':>5} {'seconds':>8}")
    for (rules, name), row in sorted(table.items()):
        print(f"{rules:40} {name:6} {row.problems:8} {row.agreed:7} {row.left_open:5} {row.seconds:8.1f}")
    for name in args.solvers:
        rows = [row for (_, n), row in table.items() if n == name]
        print(f"{'all':40} {name:6} {sum(r.problems for r in rows):8} {sum(r.agreed for r in rows):7} "
              f"{sum(r.left_open for r in rows):5} {sum(r.seconds for r in rows):8.1f}")
    print(f"{wrong} disagreements; {skipped} problems that the search did not finish")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
