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


def test_names_are_those_of_training(config_file: str) -> None:
    served, trained = capture_named(config_file, mode="decode", seq=8), capture_named(config_file, seq=8)
    weights = [{t.name for t in g.tensors if t.kind == "weight"} for g in (served, trained)]
    assert weights[0] == weights[1]
    assert "model.layers.0.mlp.gate_proj" in served.op


def test_multi_query_cache_has_one_head() -> None:
    from transformers import FalconConfig

    config = FalconConfig(num_hidden_layers=1, hidden_size=64, num_attention_heads=4, vocab_size=50)
    graph = capture(config, mode="decode", batch=2, seq=8)
    assert graph.tensor["kv.0.key"].size == 2 * 1 * 8 * 16 * 2


def test_grouped_experts_use_each_token_once_per_choice() -> None:
    from transformers import MixtralConfig

    config = MixtralConfig(num_hidden_layers=1, hidden_size=64, intermediate_size=128, num_attention_heads=4,
                           num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, vocab_size=50)
    graph = capture(config, mode="inference", batch=2, seq=8)
    grouped = [o.flops for o in graph.ops if o.name.rpartition(".")[2].startswith("grouped_mm")]
    assert sum(f or 0 for f in grouped) == 2 * (2 * 8 * 2) * 64 * (2 * 128 + 128)


def test_state_space_models_keep_no_plain_cache() -> None:
    from transformers import MambaConfig

    with pytest.raises(CaptureError, match="keeps no plain KV cache"):
        capture(MambaConfig(num_hidden_layers=1, hidden_size=32), mode="prefill", batch=1, seq=4)


def test_errors(tmp_path: Path) -> None:
    bad = tmp_path / "config.json"
    bad.write_text("{}")
    with pytest.raises(CaptureError, match="model_type"):
        capture_named(str(bad))
    with pytest.raises(CaptureError, match="needs a causal language model"):
        capture_named("bert-base", mode="prefill", layers=1)
    with pytest.raises(CaptureError, match="mode 'sing' is not known"):
        capture_named("gpt2", mode="sing")
    with pytest.raises(CaptureError, match="seq does not apply"):
        capture_named("vit-b", seq=5)
    with pytest.raises(CaptureError, match="cannot be imported"):
        capture_named("no_such_module:factory")
