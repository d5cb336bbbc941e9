"""HiGHS keeps one pool of threads a process: a run with another number of threads must not silence the fluid bound."""

from __future__ import annotations

import highspy
import numpy as np

import planner
from planner.bounds.fluid import Fluid


def test_bound_after_a_run_with_more_threads() -> None:
    problem = planner.Problem(planner.load_model("unet-train"), planner.preset("h100-pcie5"), {"device": 6 * 2**30})
    before = Fluid(problem).solve(20.0)
    highspy.Highs.resetGlobalScheduler(True)
    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    other.setOptionValue("threads", 2)
    other.addVars(1, np.zeros(1), np.ones(1))
    other.run()
    assert Fluid(problem).solve(20.0) == before
    assert before > planner.info(problem).ideal_ns
