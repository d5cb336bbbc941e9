"""Operations and bytes of captured ops."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from planner.capture import capture_inference, capture_training, register_price
from planner.capture.flops import attention_backward_flops, attention_flops, looks_heavy
from planner.errors import CaptureError
from tests.capture.nets import Attention, Mlp, Normed, batch


@pytest.mark.parametrize(("net", "shape"), [(Mlp, (4, 8)), (Normed, (2, 3, 8, 8))])
def test_products_and_convolutions_agree_with_torch(net: type[torch.nn.Module], shape: tuple[int, ...]) -> None:
    module = net()
    with FlopCounterMode(display=False) as counter:
        module(torch.rand(shape)).sum().backward()
    graph = capture_training(module, batch(*shape), loss=lambda y: y.sum())
    heavy = [o for o in graph.ops if looks_heavy(o.name) or o.name in ("conv", "fc1", "fc2", "bwd.conv")]
    assert sum(o.flops or 0 for o in heavy) == counter.get_total_flops()


def test_attention_formulas_are_those_of_torch_and_take_grouped_heads() -> None:
    q, k, v = torch.empty(2, 4, 5, 8), torch.empty(2, 4, 7, 8), torch.empty(2, 4, 7, 6)
    assert attention_flops(q, k, v) == sdpa_flop_count(q.shape, k.shape, v.shape)
    assert attention_backward_flops(q, k, v) == sdpa_backward_flop_count(
        torch.Size((2, 4, 5, 6)), q.shape, k.shape, v.shape)
    assert attention_flops(q, k[:, :2], v[:, :2]) == attention_flops(q, k, v)


def test_fused_attention_is_priced() -> None:
    graph = capture_training(Attention(), batch(2, 5, 16), loss=lambda y: y.sum())
    assert graph.op["attention"].flops == 2 * 2 * 4 * 5 * 5 * (4 + 4)
    assert graph.op["bwd.attention_backward"].flops == 2 * 2 * 4 * 5 * 5 * (3 * 4 + 2 * 4)


def test_every_op_is_priced() -> None:
    for op in capture_training(Normed(), batch(2, 3, 8, 8), optimizer="adamw").ops:
        assert op.flops is not None, op
        assert op.bytes is not None, op
        assert op.dtype == "fp32", op
        assert op.duration is None


def test_embedding_reads_rows_not_the_table() -> None:
    table = torch.nn.Embedding(10_000, 8)
    graph = capture_inference(table, batch(3, dtype=torch.int64))
    assert graph.ops[0].bytes == 2 * 3 * 8 * 4 + 3 * 8


def test_expanded_operand_is_read_once() -> None:
    class Scale(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * y.expand(100, 8)

    (op,) = capture_inference(Scale(), (batch(100, 8), batch(8))).ops
    assert op.bytes == 4 * (800 + 8 + 800)


def _library(name: str) -> torch.library.Library:
    library = torch.library.Library("planner_test", "FRAGMENT")
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, lambda x: x.clone(), "CPU")
    library.impl(name, lambda x: torch.empty_like(x), "Meta")
    return library


class _Calls(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(torch.ops.planner_test, self.name)(x)


def test_unknown_op_is_refused_until_priced() -> None:
    library = _library("mystery")
    with pytest.raises(CaptureError, match=r"planner_test::mystery has no price rule.*register_price"):
        capture_inference(_Calls("mystery"), batch(4))
    graph = capture_inference(_Calls("mystery"), batch(4), price={"planner_test::mystery": lambda _a, _k, _r: (7, 9)})
    assert (graph.ops[0].flops, graph.ops[0].bytes) == (7, 9)
    register_price("planner_test::mystery", lambda _args, _kwargs, out: (int(out.numel()), 5))
    assert (capture_inference(_Calls("mystery"), batch(4)).ops[0].flops) == 4
    del library


def test_unknown_op_that_looks_expensive_says_so() -> None:
    library = _library("fused_attention_v9")
    with pytest.raises(CaptureError, match="looks like a product, convolution or attention"):
        capture_inference(_Calls("fused_attention_v9"), batch(4))
    del library


def test_price_needs_a_qualified_name() -> None:
    with pytest.raises(CaptureError, match="mylib::fused"):
        register_price("fused", lambda _a, _k, _r: (0, 0))
