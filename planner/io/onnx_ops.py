"""What each ONNX operator costs, and what its backward needs; the table that an import is priced by.

Operations count a multiply-add as two. Convolutions and products are exact; others are a fixed number for each element
of the result (or, for reductions and pooling, of what is read).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["RULES", "VIEWS", "OpRule"]

Shape = tuple[int, ...]
#: ``cost(shapes of inputs, shapes of outputs, attributes)`` → operations.
Cost = Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, Any]], int]

#: Operators that give their first input another shape and touch no data.
VIEWS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True, slots=True)
class OpRule:
    """How an operator is priced and differentiated.

    Attributes
    ----------
    cost : callable
        Operations of the forward.
    saves : str
        What the backward reads besides the gradients of the outputs: ``"inputs"``, ``"outputs"``, ``"both"`` or ``""``.
    operands : int, optional
        That many leading inputs are differentiated; the rest are settings or statistics. None: all.
    data : int, optional
        That many leading inputs are tensors on the device at all; the rest are shapes, axes, scales. None: all.
    """

    cost: Cost
    saves: str = ""
    operands: int | None = None
    data: int | None = None


def _conv(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    # A weight is (channels out, channels in / group, kernel…): all but its first axis go into one result.
    macs = math.prod(outputs[0]) * math.prod(inputs[1][1:])
    return 2 * macs + (math.prod(outputs[0]) if len(inputs) > 2 else 0)


def _conv_transpose(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    # The weight is (channels in, channels out / group, kernel…): an input element spreads over all but its first axis.
    return 2 * math.prod(inputs[0]) * math.prod(inputs[1][1:]) + (math.prod(outputs[0]) if len(inputs) > 2 else 0)


def _gemm(inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]) -> int:
    inner = inputs[0][0 if attributes.get("transA") else -1]
    return 2 * math.prod(outputs[0]) * inner + (math.prod(outputs[0]) if len(inputs) > 2 else 0)


def _matmul(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    return 2 * math.prod(outputs[0]) * inputs[0][-1]


def _pool(_: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]) -> int:
    window: Sequence[int] = attributes.get("kernel_shape", (1,))
    return math.prod(outputs[0]) * math.prod(window)


def _lrn(_: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]) -> int:
    return math.prod(outputs[0]) * (2 * int(attributes.get("size", 1)) + 4)


def _many(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    return math.prod(outputs[0]) * max(len(inputs) - 1, 1)


def _each(count: int) -> Cost:
    return lambda _inputs, outputs, _attributes: count * math.prod(outputs[0])


def _reduce(inputs: Sequence[Shape], _outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    return math.prod(inputs[0])


RULES: dict[str, OpRule] = {
    "Conv": OpRule(_conv, "inputs"),
    "ConvTranspose": OpRule(_conv_transpose, "inputs"),
    "Gemm": OpRule(_gemm, "inputs"),
    "MatMul": OpRule(_matmul, "inputs"),
    "MaxPool": OpRule(_pool, "both"),
    "AveragePool": OpRule(_pool),
    "GlobalAveragePool": OpRule(_reduce),
    "GlobalMaxPool": OpRule(_reduce, "both"),
    "BatchNormalization": OpRule(_each(8), "inputs", operands=3),
    "InstanceNormalization": OpRule(_each(8), "inputs"),
    "LayerNormalization": OpRule(_each(8), "inputs"),
    "LRN": OpRule(_lrn, "both"),
    # A mask, not the input, is what the backward of dropout reads; the import adds it.
    "Dropout": OpRule(_each(2), "", operands=1, data=1),
    "Softmax": OpRule(_each(5), "outputs"),
    "LogSoftmax": OpRule(_each(5), "outputs"),
    "Clip": OpRule(_each(2), "inputs", operands=1, data=1),
    **{name: OpRule(_each(n), "outputs") for name, n in (("Relu", 1), ("Sigmoid", 4), ("Tanh", 6), ("Sqrt", 1),
                                                         ("Exp", 4), ("Reciprocal", 1))},
    **{name: OpRule(_each(n), "inputs") for name, n in (
        ("LeakyRelu", 2), ("PRelu", 2), ("Elu", 5), ("Selu", 5), ("HardSigmoid", 3), ("HardSwish", 4), ("Softplus", 6),
        ("Gelu", 10), ("Erf", 8), ("Log", 4), ("Abs", 1), ("Pow", 8), ("Mul", 1), ("Div", 1), ("Max", 1), ("Min", 1))},
    **{name: OpRule(_each(1)) for name in ("Add", "Sub", "Neg", "Cast", "Where")},
    "Sum": OpRule(_many),
    **{name: OpRule(_reduce, saves, operands=1, data=1) for name, saves in (
        ("ReduceMean", ""), ("ReduceSum", ""), ("ReduceMax", "both"), ("ReduceMin", "both"))},
    **{name: OpRule(_each(0), operands=1, data=1) for name in ("Slice", "Split", "Pad", "Expand", "Tile", "Resize",
                                                               "Upsample", "DepthToSpace", "SpaceToDepth")},
    "Transpose": OpRule(_each(0)),
    "Concat": OpRule(_each(0)),
    "Gather": OpRule(_each(0), "inputs", operands=1),
}
