"""Formula transformers against the captured ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.graph import Graph
from planner.models import load_model
from planner.workloads.shape import Shape, load_shape, shapes
from planner.workloads.spec import load_spec
from planner.workloads.transformer import transformer_graph

TINY = Shape("tiny", layers=2, hidden=32, heads=4, kv_heads=2, ffn=64, vocab=50)


def resident_peak(graph: Graph) -> int:
    """Return the peak when all state is on the device and each other tensor lives from first to last use, bytes."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for i, op in enumerate(graph.ops):
        for name in (*op.reads, *op.writes, *op.updates):
            first.setdefault(name, i)
            last[name] = i
    change = [0] * (len(graph.ops) + 1)
    for t in graph.tensors:
        if t.home == "any":
            change[0] += t.size
        elif t.name in first:
            change[first[t.name]] += t.size
            change[last[t.name] + 1] -= 0 if t.keep else t.size
    peak = held = 0
    for op, delta in zip(graph.ops, change, strict=False):
        held += delta
        peak = max(peak, held + op.workspace)
    return peak


@pytest.mark.parametrize(("name", "options"), [
    ("llama3-8b-train", {"batch": 1, "seq": 8192}),
    ("llama3-8b-train-adamw", {"batch": 1, "seq": 4096, "optimizer": "adamw", "master_weights": True}),
    ("llama3-8b-prefill", {"mode": "prefill", "batch": 4, "seq": 8192}),
    ("llama3-8b-decode", {"mode": "decode", "batch": 32, "seq": 8192}),
])
def test_agrees_with_capture(name: str, options: dict[str, Any]) -> None:
    formula, captured = transformer_graph(load_shape("llama3-8b"), **options), load_model(name)
    flops = [sum(o.flops or 0 for o in g.ops) for g in (formula, captured)]
    assert flops[0] == pytest.approx(flops[1], rel=0.01)
    assert resident_peak(formula) == pytest.approx(resident_peak(captured), rel=0.01)
    state = [sum(t.size for t in g.tensors if t.home == "any" and t.kind != "buffer") for g in (formula, captured)]
    assert state[0] == state[1]


@pytest.mark.parametrize(("name", "billions"), [
    ("llama2-7b", 6.738), ("llama2-70b", 68.977), ("llama3-8b", 8.030), ("llama3-70b", 70.554), ("opt-30b", 29.975),
    ("gpt2", 0.1244), ("gpt2-xl", 1.5576), ("gpt3-175b", 174.6), ("qwen2.5-7b", 7.616), ("qwen2.5-72b", 72.706),
])
def test_parameter_counts(name: str, billions: float) -> None:
    assert load_shape(name).parameters / 1e9 == pytest.approx(billions, rel=1e-3)


@pytest.mark.parametrize("name", sorted(shapes()))
@pytest.mark.parametrize("mode", ["train", "prefill", "decode"])
def test_every_bundled_shape_builds(name: str, mode: str) -> None:
    graph = transformer_graph(load_shape(name), mode, batch=1, seq=16)
    assert all(o.flops is not None and o.bytes is not None for o in graph.ops)


def test_every_field_of_a_shape_counts() -> None:
    base = transformer_graph(TINY, batch=2, seq=8).sha256
    changes: dict[str, Any] = {
        "layers": 3, "hidden": 64, "heads": 8, "kv_heads": 4, "ffn": 96, "vocab": 60, "head_dim": 16, "gated": False,
        "norm": "layer", "positions": 8, "bias": True, "qkv_bias": True, "tied": True,
    }
    for key, value in changes.items():
        fields = {name: getattr(TINY, name) for name in TINY.__slots__}
        assert transformer_graph(Shape(**{**fields, key: value}), batch=2, seq=8).sha256 != base, key


def test_options_count() -> None:
    base = transformer_graph(TINY, batch=2, seq=8).sha256
    for options in ({"batch": 3}, {"seq": 9}, {"dtype": "fp32"}, {"optimizer": "sgd"}, {"name": "x"},
                    {"mode": "decode"}):
        assert transformer_graph(TINY, **{"batch": 2, "seq": 8, **options}).sha256 != base, options
    plain = transformer_graph(TINY, optimizer="adamw", seq=8)
    assert transformer_graph(TINY, optimizer="adamw", master_weights=True, seq=8).sha256 != plain.sha256


def test_decode_updates_the_cache() -> None:
    graph = transformer_graph(TINY, "decode", batch=2, seq=8)
    assert [o.updates for o in graph.ops if o.updates] == [
        ("kv.0.key", "kv.0.value"), ("kv.1.key", "kv.1.value")]
    assert graph.tensor["kv.0.key"].size == 2 * 8 * 2 * 8 * 2


def test_tied_gradient_is_one_tensor() -> None:
    fields = {name: getattr(TINY, name) for name in TINY.__slots__}
    graph = transformer_graph(Shape(**{**fields, "tied": True}), seq=8)
    assert "grad.head.weight" not in graph.tensor
    assert graph.op["bwd.embedding"].writes == ("grad.embed",)


@pytest.mark.parametrize(("options", "message"), [
    ({"mode": "sing"}, "train, prefill or decode"), ({"batch": 0}, "at least 1"), ({"dtype": "int3"}, "int3"),
    ({"mode": "decode", "optimizer": "adamw"}, "no effect"), ({"master_weights": True}, "without an optimizer"),
    ({"optimizer": "lion"}, "lion"),
])
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        transformer_graph(TINY, **options)


def test_spec_file(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('format = "planner-workload/1"\nkind = "transformer"\n[model]\nname = "tiny"\nlayers = 2\n'
                    'hidden = 32\nheads = 4\nkv_heads = 2\nffn = 64\nvocab = 50\n'
                    '[run]\nmode = "prefill"\nbatch = 2\nseq = 8\n')
    assert load_spec(file).sha256 == transformer_graph(TINY, "prefill", batch=2, seq=8).sha256
    assert load_spec(file, mode="train", seq=4).sha256 == transformer_graph(TINY, batch=2, seq=4).sha256
    assert load_spec(file, layers=1).sha256 != load_spec(file).sha256


@pytest.mark.parametrize(("text", "message"), [
    ("x = [", "cannot be read as TOML"),
    ('format = "planner-workload/2"\nkind = "transformer"', "must be 'planner-workload/1'"),
    ('format = "planner-workload/1"\nkind = "cnn"', "must be one of transformer"),
    ('format = "planner-workload/1"\nkind = "transformer"\n[model]\nlayers = 2.5', "must be int"),
    ('format = "planner-workload/1"\nkind = "transformer"\n[run]\nbatch = "2"', "must be int"),
    ('format = "planner-workload/1"\nkind = "transformer"\nmodels = 1', "unknown field"),
])
def test_wrong_spec_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        load_spec(file)


def test_unknown_shape_names_the_known() -> None:
    with pytest.raises(InputError, match=r"'llama9'.*llama3-8b"):
        load_shape("llama9")
    with pytest.raises(InputError, match="does not divide"):
        Shape("x", 1, 32, 4, 3, 64, 50)
