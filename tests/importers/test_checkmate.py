"""Graphs in Checkmate's shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import CaptureError
from planner.io.checkmate_import import import_checkmate

DATA = Path(__file__).parents[3] / "shared" / "data" / "checkmate"
#: Nodes and edges, as the folder's README states them.
NETWORKS = {"VGG16": (45, 87), "VGG19": (51, 99), "unet_mini": (49, 101), "vgg_unet": (71, 148), "fcn_8_vgg": (73, 149),
            "segnet": (77, 151), "MobileNet": (181, 359), "MobileNetV2": (311, 649), "resnet50_unet": (329, 703),
            "ResNet50": (353, 751), "DenseNet121": (857, 1885)}
TINY: dict[str, Any] = {
    "model": "tiny", "n": 3, "loss": 1, "edges": [[0, 1], [1, 2], [0, 2]], "names": {"0": "conv", "1": "Loss"},
    "cost_flops": {"0": 7, "1": 0, "2": 14}, "mem_bytes": {"0": 100, "1": 4, "2": 100},
}


def _file(folder: Path, **changes: Any) -> Path:
    (folder / "tiny.json").write_text(json.dumps({**TINY, **changes}))
    return folder / "tiny.json"


def test_nodes_become_ops_with_one_result(tmp_path: Path) -> None:
    graph = import_checkmate(_file(tmp_path))
    assert [(op.name, op.duration, op.recomputable) for op in graph.ops] == [
        ("conv", 7, True), ("Loss", 0, True), ("b2", 14, True)]
    assert graph.ops[2].reads == ("t.conv", "t.Loss")
    assert [(t.size, t.kind) for t in graph.tensors] == [(100, "activation"), (4, "activation"), (100, "gradient")]


def test_with_a_dtype_the_machine_prices(tmp_path: Path) -> None:
    op = import_checkmate(_file(tmp_path), dtype="fp32").ops[2]
    assert (op.duration, op.flops, op.dtype) == (None, 14, "fp32")


@pytest.mark.parametrize(("changes", "message"), [
    ({"edges": [[1, 0]]}, r"edges\[0\].*from < to"), ({"n": 0}, "positive"),
    ({"mem_bytes": {"0": 1, "1": 1}}, r"mem_bytes\.2"),
    ({"cost_flops": {"0": -1, "1": 0, "2": 0}}, r"cost_flops\.0"),
])
def test_faults_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        import_checkmate(_file(tmp_path, **changes))


@pytest.mark.parametrize("name", NETWORKS)
def test_published_networks(name: str) -> None:
    if not DATA.exists():
        pytest.skip("no ../shared/data")
    graph = import_checkmate(DATA / f"{name}.json")
    assert (len(graph.ops), sum(len(op.reads) for op in graph.ops)) == NETWORKS[name]
