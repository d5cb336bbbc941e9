"""Machine presets: names, figures and what is said about them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.machine import Machine
from planner.presets import preset, presets

NAMES = ["h100-pcie5", "a100-80g-pcie4", "a100-40g-pcie4", "h200-pcie5", "gh200", "rtx4090-pcie4", "ascend-910c",
         "mi300x-pcie5", "b200-pcie5", "t4-pcie3", "h100-pcie", "ascend-910b", "h100-pcie5-nvme",
         "a100-40g-pcie4-nvme", "rtx4090-pcie4-nvme"]
ROOT = Path(__file__).parents[2]
ALL = [p.name for p in presets()]


@pytest.mark.parametrize("name", NAMES)
def test_every_promised_name_is_there(name: str) -> None:
    assert preset(name).name == name


@pytest.mark.parametrize("name", ALL)
def test_tiers_links_and_round_trip(name: str) -> None:
    machine = preset(name)
    assert machine.device.name == "device"
    assert {"device", "host"} <= set(machine.tier)
    assert machine.device.granule == 512
    assert machine.device.reserve == 2**30
    assert machine.link["host", "device"].channel != machine.link["device", "host"].channel
    assert Machine.from_dict(machine.to_dict()) == machine


def test_figures_of_h100() -> None:
    machine = preset("h100-pcie5")
    assert machine.device.usable == 80 * 10**9 - 2**30
    assert machine.link["host", "device"].bandwidth == 50 * 10**9
    assert machine.link["host", "device"].latency == 2300
    assert machine.compute is not None
    assert machine.compute.flops["bf16"] == 989 * 10**12
    assert machine.compute.flops["fp32"] == 67 * 10**12
    assert machine.compute.memory_bandwidth == 3350 * 10**9


def test_nvme_is_reached_through_the_host_only() -> None:
    machine = preset("h100-pcie5-nvme")
    assert {pair for pair in machine.link if "nvme" in pair} == {("host", "nvme"), ("nvme", "host")}
    assert machine.link["host", "nvme"].channel == machine.link["nvme", "host"].channel


@pytest.mark.parametrize("name", ALL)
def test_assumptions_are_noted(name: str) -> None:
    notes = dict(preset(name).notes)
    for part in ("reserve", "efficiency", "launch", "host_capacity", "source", "confidence"):
        assert notes[part], part
    for p in presets():
        assert p.source
        assert p.confidence.split()[0] in ("high", "medium", "low")


def test_both_ways_total_is_noted() -> None:
    assert "83.4" in dict(preset("h100-pcie5").notes)["both_ways"]


def test_unknown_name_lists_close_ones() -> None:
    with pytest.raises(InputError, match=r"h100-pcei5.*h100-pcie5"):
        preset("h100-pcei5")
    with pytest.raises(InputError, match="a100-40g-pcie4"):
        preset("a100-pcie4")
    with pytest.raises(InputError, match="there are: h100-pcie5"):
        preset("zzz")


def test_every_dtype_of_the_bundled_models_is_priced_everywhere() -> None:
    used = set()
    for file in sorted((ROOT / "models").glob("*.json.gz")):
        used |= {op.get("dtype") for op in json.loads(gzip.decompress(file.read_bytes()))["ops"] if op.get("flops")}
    assert used, "the bundled models state dtypes"
    for p in presets():
        assert p.machine.compute is not None
        assert used <= set(p.machine.compute.flops), p.name


def test_data_sheet_of_the_project_where_present() -> None:
    import csv

    sheet = ROOT.parent / "shared" / "data" / "presets" / "hardware.csv"
    if not sheet.exists():
        pytest.skip("no ../shared/data")
    rows = {row["id"]: row for row in csv.DictReader(sheet.read_text().splitlines())}
    pairs = {"h100-pcie5": "h100_80g_sxm", "h100-pcie": "h100_80g_pcie", "a100-40g-pcie4": "a100_40g_sxm",
             "a100-80g-pcie4": "a100_80g_sxm", "h200-pcie5": "h200_141g_sxm", "b200-pcie5": "b200_180g_sxm",
             "gh200": "gh200_96g", "mi300x-pcie5": "mi300x_192g", "ascend-910b": "ascend_910b_64g",
             "gb200": "gb200_per_gpu", "ascend-910c": "ascend_910c_die", "rtx4090-pcie4": "rtx_4090_24g",
             "t4-pcie3": "t4_16g_flexgen",
             "ascend-910c-package": "ascend_910c_pkg"}
    for name, key in pairs.items():
        machine, row = preset(name), rows[key]
        assert machine.compute is not None
        assert machine.compute.flops["bf16"] == round(float(row["bf16_dense_tflops"]) * 1000) * 10**9, name
        assert machine.compute.memory_bandwidth == int(row["mem_gbps"]) * 10**9, name
        assert machine.device.capacity == int(row["mem_gb"]) * 10**9, name
        link = machine.link["host", "device"]
        assert link.bandwidth == round(float(row["host_link_gbps_h2d_effective"]) * 10) * 10**8, name
        assert link.latency == round(float(row["copy_setup_us"]) * 1000), name
