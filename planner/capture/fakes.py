"""Modules and inputs as fake tensors: shapes, strides and shared storages without any bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from planner.errors import CaptureError

__all__ = ["DTYPES", "build_module", "dtype_of", "fake_inputs", "fake_state", "new_fake_mode", "short_dtype"]

#: Names used in graph and machine files.
DTYPES: dict[torch.dtype, str] = {
    torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "fp8", torch.float8_e5m2: "fp8", torch.complex64: "fp32", torch.complex128: "fp64",
}


def short_dtype(dtype: torch.dtype) -> str:
    """Return the file name of a torch dtype, e.g. ``bf16``."""
    return DTYPES.get(dtype) or str(dtype).removeprefix("torch.")


def dtype_of(name: str | torch.dtype | None) -> torch.dtype | None:
    """Return the torch dtype of a name such as ``bf16`` or ``bfloat16``; None stays None."""
    if name is None or isinstance(name, torch.dtype):
        return name
    for dtype, short in DTYPES.items():
        if name in (short, str(dtype).removeprefix("torch.")) and dtype.is_floating_point:
            return dtype
    known = sorted({*DTYPES.values()})
    raise CaptureError(f"dtype {name!r} is not known; use one of {', '.join(known)}")


def new_fake_mode() -> FakeTensorMode:
    """Return a fake mode that also takes the few real constants that models keep outside parameters and buffers."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def build_module(module: torch.nn.Module | Callable[[], torch.nn.Module], mode: FakeTensorMode) -> torch.nn.Module:
    """Return the module; a factory is called on fake tensors so that no weight memory is ever allocated."""
    if isinstance(module, torch.nn.Module):
        return module
    if not callable(module):
        raise CaptureError(f"{type(module).__name__} is neither a torch module nor a function that builds one")
    try:
        with mode:
            built = module()
    except CaptureError:
        raise
    except Exception as first:  # noqa: BLE001  a factory may raise anything
        try:
            with torch.device("meta"):
                built = module()
        except Exception:  # noqa: BLE001
            raise CaptureError(f"the module cannot be built without memory for its weights: {first}") from first
    if not isinstance(built, torch.nn.Module):
        raise CaptureError(f"the factory returned {type(built).__name__}, not a torch module")
    return built


class _Storages:
    """Fake copies that share storage exactly where the originals do."""

    def __init__(self, mode: FakeTensorMode, device: str) -> None:
        self._mode, self._device = mode, device
        self._base: dict[tuple[int, torch.dtype], torch.Tensor] = {}
        self._same: dict[int, torch.Tensor] = {}

    def copy(self, tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
        if id(tensor) in self._same:
            return self._same[id(tensor)]
        target = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
        storage = tensor.untyped_storage()
        with self._mode:
            key = (storage._cdata, target)
            if key not in self._base:
                count = storage.nbytes() // tensor.element_size()
                self._base[key] = torch.empty(count, dtype=target, device=self._device)
            fake = self._base[key].as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        self._same[id(tensor)] = fake
        return fake


def fake_state(
    module: torch.nn.Module, mode: FakeTensorMode, dtype: torch.dtype | None, device: str
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], list[str]]:
    """Return fake parameters and buffers by name, and the names of the trainable parameters.

    A tied parameter appears under its first name only; `torch.func.functional_call` ties the others to it. Buffers
    keep their dtype (statistics and position tables stay fp32 in a bf16 model).
    """
    storages = _Storages(mode, device)
    params = {name: storages.copy(p, dtype)
              for name, p in module.named_parameters()}
    trainable = [name for name, p in module.named_parameters() if p.requires_grad and p.is_floating_point()]
    buffers = {name: storages.copy(b, None) for name, b in module.named_buffers()}
    return params, buffers, trainable


def fake_inputs(
    inputs: object, mode: FakeTensorMode, dtype: torch.dtype | None, device: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments with every tensor made fake; floating inputs get the model's dtype."""
    storages = _Storages(mode, device)
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(inputs, Mapping):
        kwargs = dict(inputs)
    elif isinstance(inputs, (tuple, list)):
        args = tuple(inputs)
    else:
        args = (inputs,)
    convert = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: storages.copy(t, dtype), (args, kwargs))
    return convert[0], convert[1]
