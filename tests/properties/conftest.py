"""How many examples: PLANNER_TEST_COUNT multiplies the default run."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

COUNT = int(os.environ.get("PLANNER_TEST_COUNT", "1"))

# a failing seed is printed and is enough to repeat the example; the default run draws the same examples every time
settings.register_profile(
    "planner", deadline=None, derandomize=COUNT == 1, database=None, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("planner")
