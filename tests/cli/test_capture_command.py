"""``planner capture`` from sources that need no framework, and a bundled model as PROBLEM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.io import load_graph
from tests.cli.conftest import Result
from tests.duplex import GPU

Cli = Callable[..., Result]


@pytest.mark.parametrize("name", ["g.json", "g.json.gz"])
def test_formula(cli: Cli, files: Path, name: str) -> None:
    result = cli("capture", "gpt2.toml", "--layers", "2", "--batch", "3", "--seq", "64", "-o", name)
    assert result.code == 0, result.err
    graph = load_graph(files / name)
    assert f"{len(graph.ops)} ops" in result.out
    wider = cli("capture", "gpt2.toml", "--layers", "3", "--batch", "3", "--seq", "64", "-o", "more.json")
    assert wider.code == 0
    assert len(load_graph(files / "more.json").ops) > len(graph.ops)


def test_optimizer_none_is_no_optimizer(cli: Cli, files: Path) -> None:
    for option in ([], ["--optimizer", "none"]):
        assert cli("capture", "gpt2.toml", "--layers", "1", *option, "-o", f"g{len(option)}.json").code == 0
    assert (files / "g0.json").read_bytes() == (files / "g2.json").read_bytes()
    result = cli("capture", "gpt2.toml", "--master-weights", "-o", "m.json")
    assert (result.code, "no effect without --optimizer" in result.err) == (2, True)


def test_equal_captures_are_equal_files(cli: Cli, files: Path) -> None:
    for name in ("a.json.gz", "b.json.gz"):
        cli("capture", "gpt2.toml", "--layers", "1", "-o", name)
    assert (files / "a.json.gz").read_bytes() == (files / "b.json.gz").read_bytes()


def test_bundled_model_by_name(cli: Cli, files: Path) -> None:
    (files / "gpu.json").write_text(json.dumps(GPU))
    found = cli("info", "gpt2-train", "--machine", "gpu.json", "--json")
    assert found.code == 0, found.err
    peak = found.json["resident_peak_bytes"]["device"]
    half = cli("info", "gpt2-train", "--machine", "gpu.json", "--budget", "device=50%", "--json")
    assert half.json["budget_bytes"]["device"] == peak // 2


def test_g10_trace(cli: Cli, files: Path) -> None:
    (files / "k.csv").write_text(
        "kernel_id,op,time_us,input_tensor_ids,output_tensor_ids\n0,Conv2d_Forward,1.5,0 1,2\n1,ReLU_Forward,2,2,3\n"
    )
    (files / "t.csv").write_text("tensor_id,size_bytes,is_global_weight\n0,8,1\n1,4,0\n2,16,0\n3,16,0\n")
    result = cli("capture", "k.csv", "t.csv", "--name", "trace", "-o", "trace.json")
    assert result.code == 0, result.err
    graph = load_graph(files / "trace.json")
    assert (graph.name, len(graph.ops)) == ("trace", 2)
    assert cli("capture", "t.csv", "k.csv", "-o", "no.json").code == 2
    assert not (files / "no.json").exists()
    refused = cli("capture", "gpt2.toml", "--retag", "-o", "no.json")
    assert (refused.code, "--retag: has no effect" in refused.err) == (2, True)
