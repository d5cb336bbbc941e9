"""Draw docs/plan.png, the picture in the README: ``python docs/plan_png.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import planner
from planner.cli.source import read_problem

MODEL, MACHINE, SHARE = "gpt2-train", "a100-40g-pcie4", "60%"


def main() -> None:
    """Plan the README's example and draw it."""
    problem = read_problem(MODEL, machine=MACHINE, budget=[f"device={SHARE}"])
    plan = planner.solve(problem, time_limit=60, gap=0.02, seed=0)
    print(plan.summary())
    figure = plan.plot()
    figure.set_size_inches(11, 5)
    figure.savefig(Path(__file__).with_name("plan.png"), dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main()
