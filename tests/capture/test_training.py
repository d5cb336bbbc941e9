"""Training steps: names, randomness, optimizers, determinism, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from planner.capture import capture, capture_inference, capture_named, capture_training
from planner.errors import CaptureError
from planner.graph import Graph
from tests.capture.nets import Attention, Drop, Mlp, batch


def mlp(**options: object) -> Graph:
    return capture_training(lambda: Mlp(), batch(4, 8), loss=lambda y: y.square().mean(), **options)


def test_names_follow_modules_forward_and_backward() -> None:
    names = [o.name for o in mlp().ops]
    assert names[:3] == ["fc1", "act", "fc2"]
    assert {"bwd.act", "bwd.fc1.mm", "bwd.fc2.mm", "bwd.fc2.mm_2"} <= set(names)
    assert not any("@" in n or "#" in n for n in names)


def test_nested_module_names() -> None:
    net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), Mlp())
    names = [o.name for o in capture_inference(net, batch(2, 8)).ops]
    assert names == ["0.0", "0.1", "1.fc1", "1.act", "1.fc2"]


def test_kinds_homes_and_keeps() -> None:
    graph = mlp()
    kinds = {t.name: (t.kind, t.home, t.keep) for t in graph.tensors}
    assert kinds["x"] == ("input", ("host",), None)
    assert kinds["fc1.weight"] == ("weight", "any", "home")
    assert kinds["fc1"] == ("activation", (), None)
    assert kinds["bwd.act"] == ("gradient", (), None)
    assert kinds["loss"] == ("output", (), "device")
    assert kinds["grad.fc1.weight"] == ("gradient", (), "device")


def test_adamw_updates_parameters_and_states() -> None:
    graph = mlp(optimizer="adamw")
    step = graph.op["adamw.fc1.weight"]
    assert step.updates == ("fc1.weight", "adamw.exp_avg.fc1.weight", "adamw.exp_avg_sq.fc1.weight")
    assert step.reads == ("grad.fc1.weight",)
    assert not step.recomputable
    assert graph.tensor["adamw.exp_avg.fc1.weight"].home == "any"
    assert graph.tensor["grad.fc1.weight"].keep is None
    assert step.bytes == 128 * 4 * (1 + 2 * 3)


def test_master_weights_only_where_parameters_are_narrower() -> None:
    assert "adamw.master.fc1.weight" in mlp(optimizer="adamw", dtype="bf16", master_weights=True).tensor
    assert "adamw.master.fc1.weight" not in mlp(optimizer="adamw", dtype="fp32", master_weights=True).tensor
    with pytest.raises(CaptureError, match="without an optimizer"):
        mlp(master_weights=True)


def test_sgd_has_no_state() -> None:
    graph = mlp(optimizer="sgd")
    assert graph.op["sgd.fc1.bias"].updates == ("fc1.bias",)
    assert not [t for t in graph.tensors if t.kind == "optimizer state"]


def test_frozen_parameters_get_no_gradient() -> None:
    net = Mlp()
    net.fc1.requires_grad_(False)
    graph = capture_training(net, batch(4, 8), loss=lambda y: y.sum(), optimizer="adamw")
    assert [o.name for o in graph.ops if o.name.startswith("adamw.")] == ["adamw.fc2.weight", "adamw.fc2.bias"]


def test_dtype() -> None:
    graph = mlp(dtype="bf16")
    assert graph.tensor["fc1.weight"].size == 2 * 128
    assert graph.op["fc1"].dtype == "bf16"
    with pytest.raises(CaptureError, match="bf15"):
        mlp(dtype="bf15")


def test_dropout_is_not_recomputable() -> None:
    ops = {o.name: o for o in capture_training(Drop(0.5), batch(4, 8)).ops}
    random = [n for n, o in ops.items() if n.startswith("drop") and not o.recomputable]
    assert random
    assert ops["fc"].recomputable


def test_dropout_of_probability_zero_is_recomputable() -> None:
    assert all(o.recomputable for o in capture_training(Drop(0.0), batch(4, 8)).ops)


def test_attention_without_dropout_is_recomputable() -> None:
    graph = capture_inference(Attention(), batch(2, 5, 16))
    assert graph.op["attention"].recomputable


def test_same_hash_twice() -> None:
    assert mlp(optimizer="adamw").sha256 == mlp(optimizer="adamw").sha256


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(CaptureError, match="optimizer 'lion' is not known"):
        mlp(optimizer="lion")
    with pytest.raises(CaptureError, match="scalar loss"):
        capture_training(lambda: Mlp(), batch(4, 8))
    with pytest.raises(CaptureError, match="needs inputs"):
        capture(Mlp())
    with pytest.raises(CaptureError, match="'gpt9' is not a model"):
        capture_named("gpt9")
    with pytest.raises(CaptureError, match="no effect in mode"):
        capture_named("gpt2", mode="prefill", optimizer="adamw")


def test_data_dependent_program_is_refused() -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(CaptureError, match="depends on the values"):
        capture_inference(Branch(), batch(4))


def test_capture_takes_modules_and_names() -> None:
    assert capture(Mlp(), batch(2, 8), mode="inference").name == "Mlp"
    assert capture("moe", batch=1, seq=16, layers=1).name == "moe-train"


def test_factory_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_nets.py").write_text(
        "import torch\n"
        "def plain(): return torch.nn.Linear(4, 2), torch.empty(3, 4)\n"
        "def trained(): return (*plain(), lambda y, t: (y - t).square().sum(), [torch.empty(3, 2)])\n"
        "def wrong(): return 5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert capture_named("my_nets:plain", mode="inference", dtype=None).tensor["weight"].size == 32
    assert "adamw.weight" in capture_named("my_nets:trained", optimizer="adamw").op
    with pytest.raises(CaptureError, match="must return"):
        capture_named("my_nets:wrong")
    with pytest.raises(CaptureError, match="batch, layers and seq do not apply"):
        capture_named("my_nets:trained", batch=4)
    with pytest.raises(CaptureError, match="needs a transformers config"):
        capture_named("my_nets:trained", mode="decode")
