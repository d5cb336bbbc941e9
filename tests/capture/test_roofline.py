"""Roofline durations."""

from __future__ import annotations

from fractions import Fraction

import pytest

from planner.cost import roofline_ns
from planner.errors import InputError
from planner.machine import Compute

MACHINE = Compute({"bf16": 1000 * 10**9, "fp32": 100 * 10**9}, 10 * 10**9, Fraction(7, 10), 3000)


@pytest.mark.parametrize(("flops", "nbytes", "dtype", "expected"), [
    (700_000, 0, "bf16", 1000 + 3000),      # 700 GFLOP/s reached
    (700_001, 0, "bf16", 1001 + 3000),      # rounded up
    (700_000, 20_000, "bf16", 2000 + 3000), # memory is slower
    (70_000, 1, "fp32", 1000 + 3000),
    (0, 10, "anything", 1 + 3000),          # no arithmetic, no dtype needed
    (None, 11, None, 2 + 3000),
    (0, 0, None, 3000),
])
def test_values(flops: int | None, nbytes: int | None, dtype: str | None, expected: int) -> None:
    assert roofline_ns(flops, nbytes, dtype, MACHINE) == expected


def test_exact_where_floats_are_not() -> None:
    assert roofline_ns(3 * 10**17 + 1, None, "x", Compute({"x": 10**9})) == 3 * 10**17 + 1


def test_one_speed_needs_no_dtype() -> None:
    assert roofline_ns(5, None, None, Compute({"bf16": 10**9})) == 5


def test_unknown_dtype_names_what_is_known() -> None:
    with pytest.raises(InputError, match=r"'fp8'.*bf16, fp32"):
        roofline_ns(1, 1, "fp8", MACHINE)


def test_nothing_known_is_an_error() -> None:
    with pytest.raises(InputError, match="neither"):
        roofline_ns(None, None, "bf16", MACHINE)
    with pytest.raises(InputError, match="no memory_bandwidth"):
        roofline_ns(None, 5, "bf16", Compute({"bf16": 1}))
    with pytest.raises(InputError, match="negative"):
        roofline_ns(-1, 5, "bf16", MACHINE)
