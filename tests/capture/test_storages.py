"""Tensors of a captured graph are storages."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from planner.capture import capture_inference, capture_training
from tests.capture.nets import Buffered, InPlace, Mlp, Normed, Tied, Views, batch

INT = torch.int64


def test_views_are_no_tensors() -> None:
    graph = capture_inference(Views(), batch(4, 6))
    # t().reshape copies (the transpose is not contiguous); every other step is a view.
    assert [o.name for o in graph.ops] == ["mul", "clone", "add"]
    assert {t.name: t.size for t in graph.tensors} == {"x": 96, "mul": 96, "clone": 96, "output": 48}


def test_sizes_are_those_of_storages() -> None:
    graph = capture_inference(lambda: Mlp(), batch(3, 8))
    assert graph.tensor["fc1.weight"].size == 8 * 16 * 4
    assert graph.tensor["fc1"].size == 3 * 16 * 4


def test_tied_weights_are_one_storage_with_one_gradient() -> None:
    graph = capture_training(Tied, batch(2, 3, dtype=INT), loss=functional.cross_entropy, targets=[batch(6, dtype=INT)])
    weights = [t for t in graph.tensors if t.kind == "weight"]
    assert [(t.name, t.size, t.home, t.keep) for t in weights] == [("embed.weight", 640, "any", "home")]
    assert [t.name for t in graph.tensors if t.keep == "device" and t.kind == "gradient"] == ["grad.embed.weight"]


def test_parameters_that_are_views_of_one_storage() -> None:
    class Shared(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            flat = torch.zeros(32)
            self.a, self.b = torch.nn.Parameter(flat[:16]), torch.nn.Parameter(flat[16:])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * self.a * self.b).sum()

    graph = capture_training(Shared(), batch(16), optimizer="adamw")
    assert [(t.name, t.size) for t in graph.tensors if t.kind == "weight"] == [("a", 128)]
    (step,) = [o for o in graph.ops if o.name.startswith("adamw.")]
    assert step.updates == ("a", "adamw.exp_avg.a", "adamw.exp_avg_sq.a")
    assert set(step.reads) == {"grad.a", "grad.b"}
    assert graph.tensor["adamw.exp_avg.a"].size == 128


def test_mutation_is_an_update() -> None:
    graph = capture_inference(InPlace(), {"x": batch(4), "cache": batch(3, 4)})
    cache = graph.tensor["cache"]
    assert (cache.kind, cache.home, cache.keep) == ("state", "any", "home")
    assert graph.tensor["x"].home == ("host",)
    by_update = {o.updates: o for o in graph.ops if o.updates}
    assert set(by_update) == {("cache",), ("add",)}
    assert not any(o.recomputable for o in by_update.values())
    assert by_update["cache",].reads == ("x",)
    # One row is written, read from x: not the whole storage.
    assert by_update["cache",].bytes == 2 * 4 * 4


def test_uninitialised_buffer_is_written_by_what_fills_it_first() -> None:
    graph = capture_inference(Buffered(), batch(5))
    (buffer,) = [t for t in graph.tensors if t.name != "x"]
    assert (buffer.size, buffer.keep) == (40, "device")
    expected = [(("x",), (buffer.name,), ()), (("x",), (), (buffer.name,))]
    assert [(o.reads, o.writes, o.updates) for o in graph.ops] == expected


def test_multi_output_and_running_statistics() -> None:
    graph = capture_training(Normed(), batch(2, 3, 8, 8))
    norm = graph.op["bn.native_batch_norm"]
    assert len(norm.writes) == 3
    assert norm.recomputable
    assert "bn.running_mean" not in norm.reads
    statistics = graph.op["bn.running_stats"]
    assert set(statistics.updates) == {"bn.running_mean", "bn.running_var"}
    assert statistics.reads == norm.writes[1:]
    assert all("running" not in n for o in graph.ops if o.name.startswith("bwd.") for n in o.reads)


def test_dead_calls_are_left_out() -> None:
    class Dead(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            _ = x.exp()
            return x + 1

    assert [o.name for o in capture_inference(Dead(), batch(4)).ops] == ["add"]


def test_no_weight_memory_is_allocated() -> None:
    def huge() -> torch.nn.Module:
        return torch.nn.Linear(1 << 20, 1 << 20, bias=False)  # 4 TiB

    graph = capture_inference(huge, batch(1, 1 << 20), dtype="bf16")
    assert graph.tensor["weight"].size == 2 << 40
