"""Trace a function of fake tensors to a flat graph of kernel calls, each stamped with its module."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from planner.capture.scopes import ScopeRecorder
from planner.errors import CaptureError

__all__ = ["Result", "Source", "Traced", "trace"]


@dataclass(frozen=True, slots=True)
class Source:
    """What a graph input is: a tensor's name, kind, home and keep in the planner's graph."""

    name: str
    kind: str
    home: tuple[str, ...] | str
    keep: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a graph output is. ``of`` names the parameter that a gradient belongs to."""

    name: str
    kind: str
    keep: str | None = "device"
    of: str = ""


@dataclass(frozen=True)
class Traced:
    """A flat graph and the meaning of its inputs and outputs, both in order."""

    module: GraphModule
    sources: tuple[Source, ...]
    results: tuple[Result, ...]


def trace(
    function: Callable[[list[torch.Tensor], ScopeRecorder], tuple[Sequence[torch.Tensor], Sequence[Result]]],
    tensors: Sequence[torch.Tensor],
    sources: Sequence[Source],
    mode: FakeTensorMode,
    root: torch.nn.Module,
    prefix: str = "",
) -> Traced:
    """Trace ``function``.

    Parameters
    ----------
    function : callable
        Takes the tensors and the recorder, returns tensors and what they are.
    tensors : sequence of Tensor
        Fake inputs, each described by the entry of ``sources`` at its index.
    mode : FakeTensorMode
        The mode that ``tensors`` belong to.
    root : Module
        Its parts give the names.
    prefix : str
        Left out of the names, e.g. of a wrapper.

    Raises
    ------
    CaptureError
        The program needs the values of tensors, or an operation has no shape rule.
    """
    recorder = ScopeRecorder()
    results: list[Result] = []

    def step(flat: list[torch.Tensor]) -> list[torch.Tensor]:
        with recorder:
            out, meaning = function(flat, recorder)
        results[:] = meaning
        return list(out)

    try:
        with warnings.catch_warnings(), recorder.watching(root, prefix), mode:
            warnings.simplefilter("ignore")
            module: Any = make_fx(step)(list(tensors))
    except CaptureError:
        raise
    except Exception as error:
        raise CaptureError(_reason(error)) from error
    return Traced(module, tuple(sources), tuple(results))


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    text = str(error).strip().splitlines()[0] if str(error).strip() else kind
    if "DataDependent" in kind or "data-dependent" in text.lower():
        return (f"the model's program depends on the values of tensors ({text}); only static programs can be planned: "
                "route, mask or sample with fixed shapes")
    if "Unsupported" in kind:
        return f"an operation has no shape rule on fake tensors ({text}); register a fake kernel for it"
    return f"tracing failed with {kind}: {text}"
