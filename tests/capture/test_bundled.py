"""Bundled graphs: present, unchanged, and what their names say. Only the last test needs torch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from planner.errors import InputError
from planner.models import available, describe, load_model, models_path

EXPECTED = {
    "bert-base-train", "gpt2-train", "gpt2-xl-train", "llama3-8b-decode", "llama3-8b-prefill", "llama3-8b-train",
    "llama3-8b-train-adamw", "moe-train", "resnet50-train", "unet-train", "vgg19-train", "vit-b-train",
}


def test_all_are_there() -> None:
    assert set(available()) == EXPECTED
    files = {f.name for f in models_path().glob("*.json.gz")}
    assert files == {describe(n)["file"] for n in EXPECTED}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_record_matches_file(name: str) -> None:
    graph, entry = load_model(name), describe(name)
    assert graph.sha256 == entry["sha256"]
    assert (len(graph.ops), len(graph.tensors)) == (entry["ops"], entry["tensors"])
    assert graph.name == name
    assert (models_path() / entry["file"]).stat().st_size < 100_000
    assert all(o.flops is not None and o.bytes is not None and o.dtype for o in graph.ops)


def test_parameters_of_llama() -> None:
    weights = sum(t.size for t in load_model("llama3-8b-train").tensors if t.kind == "weight")
    assert weights == 2 * 8_030_261_248


def test_training_flops_are_six_per_parameter_and_token() -> None:
    graph = load_model("llama3-8b-train")
    products = 8_030_261_248 - 128_256 * 4096  # the embedding is looked up, not multiplied
    attention = 32 * 14 * 8192 * 8192 * 4096
    expected = 6 * products * 8192 + attention
    assert sum(o.flops or 0 for o in graph.ops) == pytest.approx(expected, rel=0.01)


def test_bert_has_dropout_that_cannot_be_recomputed() -> None:
    assert any(not o.recomputable and not o.updates for o in load_model("bert-base-train").ops)
    assert all(o.recomputable for o in load_model("gpt2-train").ops)


def test_unknown_model_names_the_known() -> None:
    with pytest.raises(InputError, match=r"'gpt5'.*gpt2-train"):
        load_model("gpt5")


def test_loading_imports_no_torch() -> None:
    code = "import sys, planner, planner.capture; planner.load_model('gpt2-train'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["vgg19-train", "unet-train", "gpt2-train", "llama3-8b-decode"])
def test_rebuilding_gives_the_same_graph(name: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    versions = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    if versions != describe(name)["versions"]:
        pytest.skip(f"recorded with {describe(name)['versions']}")
    script = models_path() / "build.py"
    spec = importlib.util.spec_from_file_location("models_build", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.build(name).sha256 == describe(name)["sha256"]
