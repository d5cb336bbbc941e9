"""Optimizer steps, one op per parameter storage, as fused optimizers run them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import CaptureError
from planner.graph import Op, Tensor

__all__ = ["OPTIMIZERS", "OptimizerSpec", "optimizer_ops", "optimizer_spec"]


@dataclass(frozen=True, slots=True)
class OptimizerSpec:
    """State and arithmetic of an optimizer.

    Attributes
    ----------
    name : str
    states : tuple of str
        One fp32 tensor per parameter for each.
    flops : int
        Operations per parameter element.
    master : bool
        Keep an fp32 copy of parameters of a narrower dtype.
    """

    name: str
    states: tuple[str, ...]
    flops: int
    master: bool = False


#: AdamW: decay 1, two moments 3 + 4, root and bias 4, step 3.
OPTIMIZERS = {
    "adamw": OptimizerSpec("adamw", ("exp_avg", "exp_avg_sq"), 15),
    "sgd": OptimizerSpec("sgd", (), 2),
}


def optimizer_spec(name: str, master_weights: bool = False) -> OptimizerSpec:
    """Return the optimizer of a name.

    Raises
    ------
    CaptureError
        The name is not known.
    """
    spec = OPTIMIZERS.get(name)
    if spec is None:
        raise CaptureError(f"optimizer {name!r} is not known; use one of {', '.join(sorted(OPTIMIZERS))}, or None")
    return OptimizerSpec(spec.name, spec.states, spec.flops, master_weights)


def optimizer_ops(
    spec: OptimizerSpec, parameters: list[tuple[Tensor, int, list[Tensor]]]
) -> tuple[list[Tensor], list[Op]]:
    """Return state tensors and one step per parameter.

    Parameters
    ----------
    spec : OptimizerSpec
    parameters : list of (Tensor, int, list of Tensor)
        Parameter storage, its number of elements, and its gradient storages.

    Returns
    -------
    (list of Tensor, list of Op)
        States start where the planner likes and must be back there at the end.
    """
    tensors: list[Tensor] = []
    ops: list[Op] = []
    for parameter, count, gradients in parameters:
        width = parameter.size // max(count, 1)
        names = spec.states + (("master",) if spec.master and width < 4 else ())
        states = [Tensor(f"{spec.name}.{part}.{parameter.name}", 4 * count, "any", "home", "optimizer state")
                  for part in names]
        changed = [parameter, *states]
        tensors += states
        ops.append(Op(
            f"{spec.name}.{parameter.name}", reads=tuple(dict.fromkeys(g.name for g in gradients)),
            updates=tuple(t.name for t in changed), recomputable=False, flops=spec.flops * count,
            bytes=sum(g.size for g in gradients) + 2 * sum(t.size for t in changed), dtype="fp32",
        ))
    return tensors, ops
