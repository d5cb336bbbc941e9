"""Measured op times: run a captured program call by call on this machine.

Tensors are random, are created when needed and freed after their last use, and every call runs a few times, of which
the median counts. Calls are timed alone, so fusion and overlap between them do not show. On a machine shared with
others ``torch.set_num_threads(1)`` gives steadier times.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Node

from planner.capture.assemble import Captured
from planner.capture.pricing import tensors_in
from planner.errors import CaptureError
from planner.graph import Op

__all__ = ["measure_durations"]


def measure_durations(captured: Captured, *, repeats: int = 5, warmup: int = 1, seed: int = 0) -> dict[str, int]:
    """Time every op of a captured program.

    Parameters
    ----------
    captured : Captured
        From `planner.capture.torch_.trace_training` or ``trace_inference``.
    repeats : int
        Timed runs of each call.
    warmup : int
        Runs before them.
    seed : int
        Of the random contents.

    Returns
    -------
    dict of str to int
        Nanoseconds, at least 1, for every op of the graph.

    Raises
    ------
    CaptureError
        A call fails on random contents; the message names it.
    """
    if repeats < 1 or warmup < 0:
        raise CaptureError(f"repeats {repeats} must be at least 1 and warmup {warmup} at least 0")
    clock = _Clock(repeats, warmup)
    torch.manual_seed(seed)
    names = {node: name for name, node in captured.nodes.items()}
    last = _last_uses(captured)
    found: dict[str, int] = {}
    held: dict[Node, Any] = {}
    with torch.no_grad():
        for node in captured.module.graph.nodes:
            if node.op == "output":
                break
            held[node] = _run(node, held, captured, clock if node in names else None)
            if node in names:
                found[names[node]] = clock.median
            for past in last.get(node, ()):
                held.pop(past, None)
        held.clear()
        for op in captured.graph.ops:
            if op.name not in found:
                found[op.name] = _untraced(op, captured, clock)
    return {op.name: found[op.name] for op in captured.graph.ops}


class _Clock:
    """Runs a call several times and keeps the median, nanoseconds."""

    def __init__(self, repeats: int, warmup: int) -> None:
        self.repeats, self.warmup, self.median = repeats, warmup, 0

    def time(self, call: Callable[[], Any]) -> Any:
        result: Any = None
        spent: list[int] = []
        for i in range(self.warmup + self.repeats):
            del result  # two results at once would double the memory needed
            result = None
            _wait()
            start = time.perf_counter_ns()
            result = call()
            _wait()
            if i >= self.warmup:
                spent.append(time.perf_counter_ns() - start)
        self.median = max(1, int(statistics.median(spent)))
        return result


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _last_uses(captured: Captured) -> dict[Node, list[Node]]:
    seen: set[Node] = set()
    last: dict[Node, list[Node]] = {}
    for node in reversed(captured.module.graph.nodes):
        for used in (*node.all_input_nodes, node):
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last


def _run(node: Node, held: Mapping[Node, Any], captured: Captured, clock: _Clock | None) -> Any:
    if node.op == "placeholder":
        return _random(node.meta["val"])
    if node.op == "get_attr":
        value: Any = captured.module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return _random(value) if isinstance(value, torch.Tensor) else value
    target: Any = node.target
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), held.__getitem__)
    try:
        return target(*args, **kwargs) if clock is None else clock.time(lambda: target(*args, **kwargs))
    except (RuntimeError, IndexError, NotImplementedError, ValueError) as error:
        name = next((n for n, known in captured.nodes.items() if known is node), node.name)
        raise CaptureError(f"op {name!r} ({target}) cannot be timed on random contents: {error}") from error


def _random(fake: torch.Tensor) -> torch.Tensor:
    """Return contents for a placeholder: small random floats; zeros for integers, which are valid as any index."""
    size, stride, offset = fake.size(), fake.stride(), fake.storage_offset()
    count = int(fake.untyped_storage().nbytes()) // int(fake.element_size())
    if fake.is_floating_point():
        base = torch.rand(count, device=fake.device).mul_(0.02).to(fake.dtype)
    else:
        base = torch.zeros(count, dtype=fake.dtype, device=fake.device)
    return base.as_strided(size, stride, offset)


def _untraced(op: Op, captured: Captured, clock: _Clock) -> int:
    """Time optimizer steps and running statistics, which the trace does not hold, by equivalent calls."""
    size = captured.graph.tensor
    device = next((t.device for n in captured.module.graph.nodes if n.op == "placeholder"
                   for t in tensors_in(n.meta["val"])), torch.device("cpu"))

    def floats(name: str) -> torch.Tensor:
        return torch.rand(max(1, size[name].size // 4), device=device)

    if op.name.startswith("adamw."):
        param, gradient = floats(op.updates[1]), floats(op.updates[1])
        moments = [floats(op.updates[1]), floats(op.updates[2])]
        step = torch.ones((), device=device)
        clock.time(lambda: torch._fused_adamw_(
            [param], [gradient], [moments[0]], [moments[1]], [], [step], amsgrad=False, lr=1e-3, beta1=0.9, beta2=0.999,
            weight_decay=0.01, eps=1e-8, maximize=False))
    else:
        changed = [floats(n) for n in op.updates]
        clock.time(lambda: [t.lerp_(t, 0.1) for t in changed])
    return clock.median
