"""Capture of torch modules: one training step, or one inference pass.

The module runs once on fake tensors, so nothing is computed and no weight is ever allocated. What comes out is a graph
on storages: parameters and states start where the planner likes, inputs on the host.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch.func import functional_call
from torch.utils._pytree import tree_flatten, tree_unflatten

from planner.capture.assemble import Captured, assemble
from planner.capture.fakes import build_module, dtype_of, fake_inputs, fake_state, new_fake_mode, short_dtype
from planner.capture.optimizer import optimizer_spec
from planner.capture.pricing import PriceRule, tensors_in
from planner.capture.scopes import ScopeRecorder
from planner.capture.storages import condense
from planner.capture.trace import Result, Source, trace
from planner.errors import CaptureError
from planner.graph import Graph

__all__ = ["capture_inference", "capture_training", "trace_inference", "trace_training", "with_durations"]

Module: TypeAlias = torch.nn.Module | Callable[[], torch.nn.Module]
Loss: TypeAlias = Callable[..., torch.Tensor]


def capture_training(
    module: Module, inputs: object, *, loss: Loss | None = None, targets: Sequence[torch.Tensor] = (),
    optimizer: str | None = None, master_weights: bool = False, name: str | None = None,
    dtype: str | torch.dtype | None = None, device: str = "cpu", price: Mapping[str, PriceRule] | None = None,
    measure: bool = False,
) -> Graph:
    """Capture one training step: forward, loss, backward, and the optimizer if one is named.

    Parameters
    ----------
    module : Module or callable
        A torch module, or a function that builds one (called on fake tensors: no memory for weights).
    inputs : tensor, tuple or dict
        Arguments of the module; only shapes and dtypes count, so ``torch.empty(..., device="meta")`` will do.
    loss : callable, optional
        ``loss(output, *targets)`` → scalar tensor. None: the output itself, its ``loss`` attribute or its entry "loss".
    targets : sequence of Tensor
        Further inputs that only the loss sees.
    optimizer : {None, "adamw", "sgd"}
        One fused step per parameter after the backward pass, its states in fp32. None keeps the gradients on the
        device.
    master_weights : bool
        With an optimizer: also an fp32 copy of each parameter of a narrower dtype.
    name : str, optional
        Of the graph; the class of the module if left out.
    dtype : str or torch.dtype, optional
        Dtype of parameters and floating-point inputs, e.g. ``"bf16"``; None leaves them as they are.
    device : str
        Device that the fake tensors claim; kernels are chosen by it.
    price : mapping of str to callable, optional
        Price rules for operations the package does not know, see `planner.capture.register_price`.
    measure : bool
        Run each kernel on this machine and state measured durations.

    Returns
    -------
    Graph

    Raises
    ------
    CaptureError
        The program is not static, or an operation has no price.
    """
    captured = trace_training(
        module, inputs, loss=loss, targets=targets, optimizer=optimizer, master_weights=master_weights, name=name,
        dtype=dtype, device=device, price=price)
    return with_durations(captured, measure)


def trace_training(
    module: Module, inputs: object, *, loss: Loss | None = None, targets: Sequence[torch.Tensor] = (),
    optimizer: str | None = None, master_weights: bool = False, name: str | None = None,
    dtype: str | torch.dtype | None = None, device: str = "cpu", price: Mapping[str, PriceRule] | None = None,
) -> Captured:
    """Capture as `capture_training` does and keep the torch program, so that it can be measured or executed."""
    spec = optimizer_spec(optimizer, master_weights) if optimizer is not None else None
    if master_weights and spec is None:
        raise CaptureError("master_weights has no effect without an optimizer")
    mode, wanted = new_fake_mode(), dtype_of(dtype)
    model = build_module(module, mode)
    model.train()
    params, buffers, trainable = fake_state(model, mode, wanted, device)
    if not trainable:
        raise CaptureError("no parameter requires a gradient, so there is nothing to train")
    args, kwargs = fake_inputs(inputs, mode, wanted, device)
    goals, _ = fake_inputs(tuple(targets), mode, wanted, device)
    flat, structure = tree_flatten((args, kwargs, goals))
    where = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
    p, b = len(params), len(buffers)

    def function(tensors: list[torch.Tensor], scopes: ScopeRecorder) -> tuple[list[torch.Tensor], list[Result]]:
        state = dict(zip((*params, *buffers), tensors, strict=False))
        leaves = {n: state[n].detach().requires_grad_() for n in trainable}
        a, k, t = _refill(flat, structure, where, tensors[p + b:])
        output = functional_call(model, {**state, **leaves}, a, k)
        with scopes.scope("loss"):
            value = _loss_value(output, loss, t)
        with scopes.backward():
            found = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
        gradients = [(n, g) for n, g in zip(trainable, found, strict=True) if g is not None]
        return ([value, *(g for _, g in gradients)],
                [Result("loss", "output"), *(Result(f"grad.{n}", "gradient", of=n) for n, _ in gradients)])

    tensors = [*params.values(), *buffers.values(), *(flat[i] for i in where)]
    sources = [*_state_sources(params, buffers), *_input_sources(model, args, kwargs, goals)]
    traced = trace(function, tensors, sources, mode, model)
    condensed = condense(traced.module, _default_dtype(params), price)
    elements = {n: int(t.numel()) for n, t in params.items()}
    return assemble(name or type(model).__name__, traced, condensed, spec, elements)


def capture_inference(
    module: Module, inputs: object, *, name: str | None = None, dtype: str | torch.dtype | None = None,
    device: str = "cpu", price: Mapping[str, PriceRule] | None = None, measure: bool = False,
) -> Graph:
    """Capture one forward pass without gradients.

    Every tensor in the module's output is kept on the device. Inputs that the module changes in place (a KV cache)
    become state that starts where the planner likes. Parameters as in `capture_training`.

    Raises
    ------
    CaptureError
        The program is not static, or an operation has no price.
    """
    return with_durations(trace_inference(module, inputs, name=name, dtype=dtype, device=device, price=price), measure)


def trace_inference(
    module: Module, inputs: object, *, name: str | None = None, dtype: str | torch.dtype | None = None,
    device: str = "cpu", price: Mapping[str, PriceRule] | None = None, state: Mapping[str, Source] | None = None,
    describe: Callable[[Any], list[tuple[torch.Tensor, Result]]] | None = None, prefix: str = "",
) -> Captured:
    """Capture as `capture_inference` does and keep the torch program.

    Parameters
    ----------
    state : mapping of str to Source, optional
        What certain inputs are, by input name, where they are not plain inputs.
    describe : callable, optional
        Turns the module's output into tensors and what they are.
    prefix : str
        Left out of the names of parameters and ops.
    """
    mode, wanted = new_fake_mode(), dtype_of(dtype)
    model = build_module(module, mode)
    model.eval()
    params, buffers, _ = fake_state(model, mode, wanted, device)
    args, kwargs = fake_inputs(inputs, mode, wanted, device)
    flat, structure = tree_flatten((args, kwargs, ()))
    where = [i for i, leaf in enumerate(flat) if isinstance(leaf, torch.Tensor)]
    p, b = len(params), len(buffers)

    def function(tensors: list[torch.Tensor], _scopes: ScopeRecorder) -> tuple[list[torch.Tensor], list[Result]]:
        a, k, _ = _refill(flat, structure, where, tensors[p + b:])
        with torch.no_grad():
            output = functional_call(model, dict(zip((*params, *buffers), tensors, strict=False)), a, k)
        pairs = (describe or _plain_outputs)(output)
        return [t for t, _ in pairs], [r for _, r in pairs]

    tensors = [*params.values(), *buffers.values(), *(flat[i] for i in where)]
    inputs_are = [(state or {}).get(s.name, s) for s in _input_sources(model, args, kwargs, ())]
    state_is = [replace(s, name=s.name.removeprefix(prefix)) for s in _state_sources(params, buffers)]
    traced = trace(function, tensors, [*state_is, *inputs_are], mode, model, prefix)
    condensed = condense(traced.module, _default_dtype(params), price)
    return assemble(name or type(model).__name__, traced, condensed, None, {})


def with_durations(captured: Captured, measure: bool) -> Graph:
    """Return the graph, with measured durations if they are asked for."""
    if not measure:
        return captured.graph
    from planner.cost.measure import measure_durations

    durations = measure_durations(captured)
    ops = tuple(replace(op, duration=durations[op.name]) for op in captured.graph.ops)
    return Graph(captured.graph.name, captured.graph.tensors, ops)


def _refill(flat: list[Any], structure: Any, where: list[int], tensors: list[torch.Tensor]) -> Any:
    leaves = list(flat)
    for i, tensor in zip(where, tensors, strict=True):
        leaves[i] = tensor
    return tree_unflatten(leaves, structure)


def _loss_value(output: Any, loss: Loss | None, targets: tuple[Any, ...]) -> torch.Tensor:
    if loss is not None:
        value = loss(output, *targets)
    elif isinstance(output, torch.Tensor):
        value = output
    elif isinstance(output, Mapping) and output.get("loss") is not None:
        value = output["loss"]
    else:
        value = getattr(output, "loss", None)
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        got = f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise CaptureError(f"training needs a scalar loss and got {got}; pass loss=function(output, *targets)")
    return value.reshape(())


def _plain_outputs(output: Any) -> list[tuple[torch.Tensor, Result]]:
    found = tensors_in(output)
    if not found:
        raise CaptureError("the module returns no tensor")
    return [(t, Result("output" if i == 0 else f"output.{i}", "output")) for i, t in enumerate(found)]


def _state_sources(params: Mapping[str, Any], buffers: Mapping[str, Any]) -> list[Source]:
    return [*(Source(n, "weight", "any", "home") for n in params),
            *(Source(n, "buffer", "any", "home") for n in buffers)]


def _input_sources(
    model: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], targets: Sequence[Any]
) -> list[Source]:
    parameters = [q.name for q in inspect.signature(model.forward).parameters.values()
                  if q.kind in (q.POSITIONAL_ONLY, q.POSITIONAL_OR_KEYWORD)]
    named = [*zip((*parameters, *(f"input.{i}" for i in range(len(parameters), len(args)))), args, strict=False),
             *((k, kwargs[k]) for k in kwargs)]
    named += [("target" if len(targets) == 1 else f"target.{i}", t) for i, t in enumerate(targets)]
    sources: list[Source] = []
    for label, value in named:
        leaves = tensors_in(tree_flatten(value)[0])
        sources += [Source(label if len(leaves) == 1 else f"{label}.{i}", "input", ("host",))
                    for i in range(len(leaves))]
    return sources


def _default_dtype(params: Mapping[str, torch.Tensor]) -> str:
    return next((short_dtype(t.dtype) for t in params.values() if t.is_floating_point()), "fp32")
