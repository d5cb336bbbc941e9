"""The values of an ONNX model: shapes, element types, which are constants, parameters or views of others."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.errors import CaptureError, Fault, MissingDependencyError
from planner.io.onnx_ops import RULES, VIEWS

__all__ = ["Model", "Node", "read_model"]

#: ONNX element type → (name, bytes). Packed four-bit types are not among them.
_TYPES = {1: ("fp32", 4), 2: ("uint8", 1), 3: ("int8", 1), 4: ("uint16", 2), 5: ("int16", 2), 6: ("int32", 4),
          7: ("int64", 8), 9: ("bool", 1), 10: ("fp16", 2), 11: ("fp64", 8), 12: ("uint32", 4), 13: ("uint64", 8),
          16: ("bf16", 2), 17: ("fp8", 1), 19: ("fp8", 1)}
FLOATS = {"fp32": 4, "fp16": 2, "bf16": 2, "fp64": 8, "fp8": 1}


@dataclass(frozen=True)
class Node:
    """One operator that runs.

    Attributes
    ----------
    name, op : str
    inputs, outputs : tuple of str
        Tensors on the device; settings such as shapes and axes are left out.
    attributes : dict
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


@dataclass
class Model:
    """A model as the import needs it.

    Attributes
    ----------
    name : str
    nodes : list of Node
        In a topological order, views and folded constants left out.
    shape, dtype : dict
        Of each value.
    root : dict of str to str
        View → the value whose storage it is.
    parameters, constants, inputs, outputs : list of str
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    shape: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dtype: dict[str, str] = field(default_factory=dict)
    root: dict[str, str] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def elements(self, value: str) -> int:
        """Return the number of elements of a value."""
        return math.prod(self.shape[value])

    def storage(self, value: str) -> str:
        """Return the value whose storage this one is."""
        return self.root.get(value, value)


def read_model(path: str | os.PathLike[str], training: bool) -> Model:
    """Read a model and infer its shapes; weights are not loaded.

    Parameters
    ----------
    path : path
    training : bool
        Dropout draws a mask; otherwise it is a view.

    Returns
    -------
    Model

    Raises
    ------
    CaptureError
        Not an ONNX file, an operator without a price, a shape that cannot be inferred, a symbolic dimension other than
        the first of an input.
    MissingDependencyError
        onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError("ONNX files need onnx: pip install 'offload-planner[onnx]'") from None
    try:
        proto = onnx.load(os.fspath(path), load_external_data=False)
        given = {i.name for i in proto.graph.initializer}
        _fix_batch(proto.graph, given, str(path))
        proto = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except CaptureError:
        raise
    except OSError as error:
        raise CaptureError(f"cannot be read: {error.strerror}", str(path)) from None
    except Exception as error:  # noqa: BLE001  protobuf, checker and inference each raise their own
        raise CaptureError(f"not an ONNX model that can be read: {error}", str(path)) from None
    if not proto.graph.node:
        raise CaptureError("not an ONNX model: it has no nodes", str(path))
    try:
        return _Reader(proto.graph, Path(path).stem, training).read()
    except CaptureError as error:
        raise CaptureError(error.faults, str(path)) from None


def _fix_batch(graph: Any, given: set[str], path: str) -> None:
    """Set symbolic first dimensions of inputs to 1; the import scales by the batch afterwards."""
    faults = []
    for value in graph.input:
        if value.name in given:
            continue
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value > 0:
                continue
            if i:
                faults.append(Fault(f"input {value.name}", f"dimension {i} ({dim.dim_param or 'unknown'}) has no size; "
                                    "fix it in the file (only the first, the batch, may be open)"))
            dim.dim_value = 1
    if faults:
        raise CaptureError(faults, path)


class _Reader:
    def __init__(self, graph: Any, name: str, training: bool) -> None:
        self.graph, self.training = graph, training
        self.model = Model(name)
        #: Values known without data: shapes, axes, integer tables. They travel with the launch, not as tensors.
        self.folded: set[str] = set()

    def read(self) -> Model:
        m = self.model
        for value in (*self.graph.value_info, *self.graph.input, *self.graph.output):
            self._declare(value.name, value.type.tensor_type)
        for i in self.graph.initializer:
            m.shape[i.name], m.dtype[i.name] = tuple(i.dims), _TYPES.get(i.data_type, ("other", 0))[0]
            self._given(i.name)
        m.inputs = [v.name for v in self.graph.input if v.name not in m.parameters and v.name not in self.folded]
        names: dict[str, int] = {}
        for i, node in enumerate(self.graph.node):
            self._node(node, _label(node, i), names)
        m.outputs = [v.name for v in self.graph.output]
        return m

    def _given(self, name: str) -> None:
        if self.model.dtype[name] in FLOATS:
            self.model.parameters.append(name)
        else:
            self.folded.add(name)

    def _declare(self, name: str, kind: Any) -> None:
        dims = kind.shape.dim
        if kind.elem_type in _TYPES and all(d.HasField("dim_value") for d in dims) and kind.HasField("shape"):
            self.model.shape[name] = tuple(d.dim_value for d in dims)
            self.model.dtype[name] = _TYPES[kind.elem_type][0]

    def _node(self, node: Any, name: str, names: dict[str, int]) -> None:
        import onnx

        m, op = self.model, f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        inputs = [v for v in node.input if v]
        outputs = [v for v in node.output if v]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if self._folds(op, inputs, outputs, name):
            return
        if op not in RULES and op not in VIEWS:
            raise CaptureError([Fault(f"node {name}", f"operator {op!r} has no price; the import knows "
                                      f"{len(RULES) + len(VIEWS)} operators (planner.io.onnx_ops.RULES)")])
        if op in VIEWS or (op == "Dropout" and not self.training):
            m.root[outputs[0]] = m.storage(inputs[0])
            self._known(outputs[0], op, name)
            return
        if op == "Dropout":
            self._mask(outputs, inputs[0], names)
        inputs = [v for v in inputs[: RULES[op].data] if v not in self.folded]
        for value in (*inputs, *outputs):
            self._known(value, op, name)
        m.nodes.append(Node(_unique(name, names), op, tuple(inputs), tuple(outputs), attributes))

    def _folds(self, op: str, inputs: list[str], outputs: list[str], name: str) -> bool:
        """Take note of values that need no op at run time; True if the node is one that makes them."""
        m = self.model
        if op == "Constant":
            self._known(outputs[0], op, name)
            if m.dtype[outputs[0]] in FLOATS and m.elements(outputs[0]) > 1:
                m.constants.append(outputs[0])
            else:
                self.folded.add(outputs[0])
            return True
        if op == "ConstantOfShape" and all(v in self.folded for v in inputs):
            # Models without weights have initialisers of this form in place of the data.
            self._known(outputs[0], op, name)
            self._given(outputs[0])
            return True
        if op in ("Shape", "Size") or (inputs and all(v in self.folded for v in inputs)):
            self.folded.update(outputs)
            return True
        return False

    def _mask(self, outputs: list[str], source: str, names: dict[str, int]) -> None:
        """Give dropout a mask of a byte an element, named or not."""
        if len(outputs) == 1:
            outputs.append(_unique(f"{outputs[0]}.mask", names))
        self.model.shape[outputs[1]], self.model.dtype[outputs[1]] = self.model.shape[source], "bool"

    def _known(self, value: str, op: str, name: str) -> None:
        if value not in self.model.shape:
            raise CaptureError([Fault(f"node {name}", f"the shape of {value!r} at {op} cannot be inferred")])


def _label(node: Any, index: int) -> str:
    """Return the node's name with its operator: files often number their nodes or leave them without a name."""
    name = node.name or (node.output[0] if node.output else str(index))
    return name if node.op_type.lower() in name.lower() else f"{node.op_type}.{name}"


def _unique(name: str, names: dict[str, int]) -> str:
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else _unique(f"{name}.{names[name]}", names)
