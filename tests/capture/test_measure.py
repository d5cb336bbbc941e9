"""Measured op times."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from planner.capture import capture_inference, capture_training
from planner.capture.torch_ import trace_training
from planner.cost.measure import measure_durations
from planner.errors import CaptureError
from tests.capture.nets import Attention, Drop, InPlace, Mlp, Normed, Tied, batch


def test_every_op_of_a_training_step_has_a_time() -> None:
    graph = capture_training(lambda: Mlp(), batch(4, 8), loss=lambda y: y.sum(), optimizer="adamw", measure=True)
    assert all(o.duration is not None and o.duration > 0 for o in graph.ops)
    plain = capture_training(lambda: Mlp(), batch(4, 8), loss=lambda y: y.sum(), optimizer="adamw")
    assert [o.name for o in plain.ops] == [o.name for o in graph.ops]


@pytest.mark.parametrize("net", [Normed, Drop])
def test_random_and_stateful_calls(net: type[torch.nn.Module]) -> None:
    shape = (2, 3, 8, 8) if net is Normed else (4, 8)
    graph = capture_training(net(), batch(*shape), optimizer="sgd", measure=True)
    assert all(o.duration for o in graph.ops)


def test_integers_in_place_and_attention() -> None:
    target = [batch(6, dtype=torch.int64)]
    tied = capture_training(Tied, batch(2, 3, dtype=torch.int64), loss=functional.cross_entropy, targets=target,
                            measure=True)
    inplace = capture_inference(InPlace(), {"x": batch(4), "cache": batch(3, 4)}, measure=True)
    attention = capture_inference(Attention(), batch(2, 5, 16), measure=True)
    assert all(o.duration for g in (tied, inplace, attention) for o in g.ops)


def test_longer_work_takes_longer() -> None:
    # On shared cores a second thread may wait whole time slices for its turn.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def total(rows: int) -> int:
        graph = capture_inference(lambda: Mlp(512), batch(rows, 512), measure=True)
        return sum(o.duration or 0 for o in graph.ops)

    try:
        assert total(8192) > total(8)
    finally:
        torch.set_num_threads(threads)


def test_repeats_are_checked() -> None:
    captured = trace_training(lambda: Mlp(), batch(4, 8), loss=lambda y: y.sum())
    with pytest.raises(CaptureError, match="repeats 0"):
        measure_durations(captured, repeats=0)
