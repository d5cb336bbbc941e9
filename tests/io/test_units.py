"""Every spelling of a quantity, and every spelling that is refused."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import UnitError
from planner.units import (
    LIMIT,
    format_bytes,
    format_duration,
    parse_bandwidth,
    parse_capacity,
    parse_duration,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(("text", "value"), [
    (0, 0), (17, 17), (LIMIT, LIMIT), ("0", 0), ("1073741824", 2**30), ("1_000", 1000), (" 12 ", 12), ("0B", 0),
    ("1B", 1), ("1kB", 10**3), ("1KB", 10**3), ("1MB", 10**6), ("1GB", 10**9), ("1TB", 10**12), ("1PB", 10**15),
    ("1EB", 10**18), ("1KiB", 2**10), ("1MiB", 2**20), ("1GiB", 2**30), ("1TiB", 2**40), ("1PiB", 2**50),
    ("1EiB", 2**60), ("24GiB", 24 * 2**30), ("24 GB", 24 * 10**9), ("1.5 GB", 15 * 10**8), ("0.5KiB", 512), (".5kB", 500),
    ("1e3 MB", 10**9), ("1E-3GB", 10**6), ("+4kB", 4000), ("1.5B", 2), ("1e-40 GB", 1), ("0.1GiB", 107374183),
])
def test_sizes_round_up(text: object, value: int) -> None:
    assert parse_size(text) == value


@pytest.mark.parametrize(("text", "value"), [
    ("1.5B", 1), ("0.1GiB", 107374182), ("0.9B", 0), ("24GiB", 24 * 2**30), (5, 5),
])
def test_capacities_round_down(text: object, value: int) -> None:
    assert parse_capacity(text) == value


@pytest.mark.parametrize(("text", "value"), [
    (5, 5), ("5", 5), ("5ns", 5), ("250us", 250_000), ("250µs", 250_000), ("250μs", 250_000), ("1.2s", 12 * 10**8),
    ("3 ms", 3 * 10**6), ("2min", 120 * 10**9), ("0.3ns", 1), ("1e-3 us", 1), ("0s", 0),
])
def test_durations_round_up(text: object, value: int) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize(("text", "value"), [
    (7, 7), ("25GB/s", 25 * 10**9), ("64GiB/s", 64 * 2**30), ("3.35TB/s", 335 * 10**10), ("1.9 B/s", 1), ("12 kB/s", 12000),
    ("25e9 B/s", 25 * 10**9),
])
def test_bandwidths_round_down(text: object, value: int) -> None:
    assert parse_bandwidth(text) == value


@pytest.mark.parametrize(("text", "value"), [
    (9, 9), ("989TFLOP/s", 989 * 10**12), ("1.5 TFLOPS", 15 * 10**11), ("3FLOP/s", 3), ("1kFLOP/s", 1000),
])
def test_speeds(text: object, value: int) -> None:
    assert parse_rate(text) == value


SIZES = (parse_size, parse_capacity)
REFUSED = ["", " ", "GB", "1Gb", "1Gib", "1gb", "1gB", "1G", "1Gi", "1K", "1 bit", "8 bits", "1Mbps", "1.5", "1e3", "-1", "-1GB",
           "1 GB GB", "1,5 GB", "0x10", "nan", "NaN", "inf", "Infinity", "1e99 GB", "1e41B", "9" * 100, "1" + "0" * 5000 + "B",
           "1GB/s", "1kiB", "1 giB", "1__0", "٣GB", "1\u00a0GB", "110%", "1.GB.", "abc", "4EiB4"]


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("parse", SIZES)
def test_text_that_is_no_size(text: str, parse: object) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, "tiers[0].capacity")  # type: ignore[operator]
    assert str(caught.value).startswith("tiers[0].capacity: ")
    assert repr(text)[:15] in str(caught.value)


@pytest.mark.parametrize(
    "value", [1.0, 1.5, True, False, None, [], {}, b"1GB", -1, LIMIT + 1, 2**80, float("nan"), float("inf")]
)
@pytest.mark.parametrize("parse", [parse_size, parse_capacity, parse_duration, parse_bandwidth, parse_rate])
def test_values_that_are_no_quantity(value: object, parse: object) -> None:
    with pytest.raises(UnitError):
        parse(value)  # type: ignore[operator]


@pytest.mark.parametrize(("parse", "text", "words"), [
    (parse_size, "1Gb", "bits"), (parse_size, "1G", "1G.*ambiguous.*GB or GiB"), (parse_size, -1, "negative"),
    (parse_size, 1.5, "not a float"), (parse_size, 2**70, r"2\^62"), (parse_bandwidth, "25Gb/s", "bits"),
    (parse_bandwidth, "25Gbps", "bits"), (parse_bandwidth, "0B/s", "at least 1"), (parse_bandwidth, 0, "at least 1"),
    (parse_bandwidth, "0.5B/s", "at least 1"), (parse_rate, 0, "at least 1"), (parse_bandwidth, "25GB", "unknown|not known"),
    (parse_duration, "7.6", "needs a unit"), (parse_duration, "3 h", "not known"), (parse_duration, "1 Ms", "not known"),
])
def test_refusals_say_why(parse: object, text: object, words: str) -> None:
    with pytest.raises(UnitError, match=words):
        parse(text)  # type: ignore[operator]


@given(st.integers(0, LIMIT), st.sampled_from(["", "B"]))
def test_whole_bytes_are_exact(value: int, unit: str) -> None:
    assert parse_size(f"{value}{unit}") == parse_capacity(f"{value}{unit}") == value


@given(st.fractions(0, 10**6), st.sampled_from(["kB", "KiB", "MB", "GiB"]))
def test_sizes_up_capacities_down(number: object, unit: str) -> None:
    text = f"{float(number):.6f}{unit}"  # type: ignore[arg-type]
    size, capacity = parse_size(text), parse_capacity(text)
    assert 0 <= size - capacity <= 1


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_size, parse_capacity, parse_duration, parse_bandwidth, parse_rate):
        with contextlib.suppress(UnitError):
            assert 0 <= parse(text) <= LIMIT


def test_readable_forms() -> None:
    assert [format_bytes(v) for v in (0, 1023, 1024, 50435000000, 2**60, 2**62)] == [
        "0 B", "1023 B", "1.00 KiB", "46.97 GiB", "1024.00 PiB", "4096.00 PiB"]
    assert [format_duration(v) for v in (0, 999, 1000, 12_345_000, 1_500_000_000)] == [
        "0 ns", "999 ns", "1.000 us", "12.345 ms", "1.500 s"]
    assert re.fullmatch(r"-\d\.\d\d KiB", format_bytes(-2048))
