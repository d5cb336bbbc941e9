"""Main job: every bundled model under 80, 60 and 40 % of the way from its least budget to its resident peak.

    python benchmarks/main_job.py [--seconds 10] [--machine h100-pcie5] [MODEL …]

Prints one row a (model, budget): ops, budget, makespan, certified lower bound, gap, time of the first checked plan, time in all,
and the largest memory of the process so far. Every plan has passed the checker; a plan that it rejects, or none at all,
makes the exit code 1. Fraction f means least + f · (resident peak − least), the least budget of `planner info`.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import planner
from planner.info import resident_peak
from planner.least_budget import lower_bound, unbounded
from planner.models import available


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--machine", default="h100-pcie5")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--fractions", default="0.8,0.6,0.4")
    args = parser.parse_args()
    machine, failed = planner.preset(args.machine), 0
    print(f"machine {args.machine}, limit {args.seconds:g} s, gap asked {100 * args.gap:g} %, planner {planner.__version__}")
    print("| model | ops | budget | of range | plan | bound | gap | first plan | seconds | memory |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in args.models or available():
        problem = planner.Problem(planner.load_model(name), machine)
        free = unbounded(problem, "device", None)
        peak, least = resident_peak(free)["device"], lower_bound(free, "device")[0]
        for fraction in map(float, args.fractions.split(",")):
            budget = int(least + fraction * (peak - least))
            first: list[float] = []
            begin = time.perf_counter()

            def note(_: object, first: list[float] = first, begin: float = begin) -> None:
                first.append(time.perf_counter() - begin)

            plan = planner.solve(unbounded(problem, "device", budget), time_limit=args.seconds, gap=args.gap, on_plan=note)
            spent = time.perf_counter() - begin
            if plan.program is None or not planner.check(plan.problem, plan).valid:
                failed += 1
                print(f"| {name} | {len(problem.lowered.ops)} | {budget / 2**30:.2f} GiB | {fraction:.0%} | {plan.status}: "
                      f"{plan.message} |")
                continue
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"| {name} | {len(problem.lowered.ops)} | {budget / 2**30:.2f} GiB | {fraction:.0%} | "
                  f"{plan.makespan_ns / 1e6:.2f} ms | {plan.lower_bound_ns / 1e6:.2f} ms | {100 * plan.gap:.2f} %"
                  f"{' (optimal)' if plan.status == 'optimal' else ''} | {first[0]:.1f} s | {spent:.1f} s | {memory:.2f} GiB |",
                  flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
