"""The captured program computes what the module computes, and changes no storage that the graph does not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.func import functional_call
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from planner.capture.assemble import Captured
from planner.capture.nets import MoE, UNet
from planner.capture.torch_ import trace_inference, trace_training
from tests.capture.nets import Attention, InPlace, Mlp, Normed, Tied

INT = torch.int64


def _square(output: torch.Tensor) -> torch.Tensor:
    return output.square().mean()


CASES: dict[str, tuple[Callable[[], torch.nn.Module], tuple[torch.Tensor, ...], Any, list[torch.Tensor]]] = {
    "mlp": (Mlp, (torch.rand(4, 8),), _square, []),
    "norm": (Normed, (torch.rand(2, 3, 8, 8),), None, []),
    "attention": (Attention, (torch.rand(2, 5, 16),), _square, []),
    "tied": (Tied, (torch.randint(20, (2, 3)),), functional.cross_entropy, [torch.randint(20, (6,))]),
    "unet": (lambda: UNet(base=4, levels=2), (torch.rand(2, 3, 16, 16),), _square, []),
    "moe": (lambda: MoE(1, 16, 2, 32, 4, 30, 8), (torch.randint(30, (2, 8)),), _square, []),
}


def _values(captured: Captured, module: torch.nn.Module, given: list[torch.Tensor]) -> list[torch.Tensor]:
    state = [*(p.detach() for p in module.parameters()), *module.buffers(), *given]
    assert len(state) == len(captured.inputs)
    return [t.clone() for t in state]


@pytest.mark.parametrize("name", CASES)
def test_training_program_gives_the_gradients_of_the_module(name: str) -> None:
    torch.manual_seed(0)
    factory, inputs, loss, targets = CASES[name]
    module = factory()
    captured = trace_training(module, inputs, loss=loss, targets=targets)
    values = _values(captured, module, [*inputs, *targets])
    program: Any = captured.module
    found = program(values)
    parameters = dict(module.named_parameters())
    output = functional_call(module, parameters, inputs)
    expected = output if loss is None else loss(output, *targets)
    gradients = torch.autograd.grad(expected, list(parameters.values()))
    torch.testing.assert_close(found[0], expected)
    for a, b in zip(found[1:], gradients, strict=True):
        torch.testing.assert_close(a, b)


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(storage)


class _Audit(torch.fx.Interpreter):
    """Runs a program and notes which storages that existed before a call were changed by it."""

    def __init__(self, captured: Captured) -> None:
        super().__init__(captured.module)
        self.captured = captured
        self.op_of = {node: captured.graph.op[name] for name, node in captured.nodes.items()}
        self.seen: dict[int, torch.UntypedStorage] = {}
        self.checked = 0

    def run_node(self, n: torch.fx.Node) -> Any:
        before = {k: _bytes(s).clone() for k, s in self.seen.items()}
        result = super().run_node(n)
        changed = [k for k, was in before.items() if not torch.equal(_bytes(self.seen[k]), was)]
        op = self.op_of.get(n)
        allowed = 0 if op is None else len(op.updates) + len(op.writes)
        if "native_batch_norm" in str(n.target):
            allowed = 2  # an op of its own, running_stats
        elif op is not None and not op.updates and not str(n.target).split(".")[1].endswith("_"):
            allowed = 0
        assert len(changed) <= allowed, (n, changed)
        self.checked += len(changed)
        for t in tree_leaves(result):
            if isinstance(t, torch.Tensor):
                self.seen.setdefault(t.untyped_storage()._cdata, t.untyped_storage())
        return result


@pytest.mark.parametrize("name", CASES)
def test_no_storage_changes_unannounced(name: str) -> None:
    torch.manual_seed(0)
    factory, inputs, loss, targets = CASES[name]
    module = factory()
    captured = trace_training(module, inputs, loss=loss, targets=targets)
    _Audit(captured).run(*_values(captured, module, [*inputs, *targets]), enable_io_processing=False)


def test_audit_sees_updates() -> None:
    module, inputs = InPlace(), {"x": torch.rand(4), "cache": torch.rand(3, 4)}
    captured = trace_inference(module, inputs)
    audit = _Audit(captured)
    with torch.no_grad():
        audit.run(*inputs.values(), enable_io_processing=False)
    assert audit.checked == 2
