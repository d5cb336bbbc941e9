"""Language models from config objects: prefill, decode and training."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from planner.capture import capture, capture_named
from planner.errors import CaptureError

TINY = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 64}


@pytest.fixture
def config_file(tmp_path: Path) -> str:
    import json

    file = tmp_path / "config.json"
    file.write_text(json.dumps(TINY))
    return str(file)


def test_prefill_keeps_the_cache_it_writes(config_file: str) -> None:
    graph = capture_named(config_file, mode="prefill", batch=2, seq=8)
    kv = {t.name: t for t in graph.tensors if t.kind == "kv"}
    assert sorted(kv) == ["kv.0.key", "kv.0.value", "kv.1.key", "kv.1.value"]
    assert all((t.size, t.home, t.keep) == (2 * 8 * 16 * 2, (), "device") for t in kv.values())
    assert graph.tensor["logits"].size == 2 * 50 * 2
    assert not any(o.updates for o in graph.ops)


def test_decode_updates_the_cache_in_place(config_file: str) -> None:
    graph = capture_named(config_file, mode="decode", batch=2, seq=8)
    kv = [t for t in graph.tensors if t.kind == "kv"]
    assert len(kv) == 4
    assert all((t.size, t.home, t.keep) == (2 * 8 * 16 * 2, "any", "home") for t in kv)
    writers = [o for o in graph.ops if o.updates]
    assert {n for o in writers for n in o.updates} == {t.name for t in kv}
    # A new token is a sliver of the cache: reading and writing it, and its position.
    assert all(o.bytes == 2 * (2 * 16 * 2) + 8 for o in writers)


def test_training_names_and_fewer_layers(config_file: str) -> None:
    graph = capture_named(config_file, mode="train", batch=1, seq=8, layers=1)
    assert "model.layers.0.mlp.gate_proj" in graph.op
    assert not any("layers.1" in o.name for o in graph.ops)
    assert "model.layers.0.self_attn.attention" in graph.op


def test_config_object() -> None:
    from transformers import GPT2Config

    config = GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=50, n_positions=16)
    assert "transformer.h.0.mlp.c_fc" in capture(config, batch=1, seq=8).op
    assert capture(config, mode="decode", batch=1, seq=8).name == "gpt2-decode"


def test_errors(tmp_path: Path) -> None:
    bad = tmp_path / "config.json"
    bad.write_text("{}")
    with pytest.raises(CaptureError, match="model_type"):
        capture_named(str(bad))
    with pytest.raises(CaptureError, match="needs a causal language model"):
        capture_named("bert-base", mode="prefill", layers=1)
    with pytest.raises(CaptureError, match="mode 'sing' is not known"):
        capture_named("gpt2", mode="sing")
    with pytest.raises(CaptureError, match="cannot be imported"):
        capture_named("no_such_module:factory")
