"""ONNX models as graphs: the forward as the file has it, and a backward made up from it.

Sizes come from shape inference, operations from `planner.io.onnx_ops`. Views share the storage of what they view. The
backward runs the nodes in reverse: the backward of a node reads the gradients of its outputs and what the forward saved
(its inputs, its outputs, or nothing), takes twice its operations, and writes the gradients of its inputs; a second
contribution to one gradient is added in place. No gradient of the model's inputs is computed.
"""

from __future__ import annotations

import os
from dataclasses import replace

from planner.errors import CaptureError, Fault
from planner.graph import Graph, Op, Tensor
from planner.io.onnx_ops import RULES
from planner.io.onnx_values import FLOATS, Model, Node, read_model

__all__ = ["import_onnx"]

_WIDTH = FLOATS | {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
                   "uint64": 8}
#: optimizer → (operations an element, states an element)
_OPTIMIZERS = {"sgd": (2, 0), "adamw": (12, 2)}


def import_onnx(
    path: str | os.PathLike[str], *, backward: bool = True, batch: int | None = None, optimizer: str | None = None,
    dtype: str | None = None,
) -> Graph:
    """Read an ONNX model.

    Parameters
    ----------
    path : path
        The model; external weights need not be there.
    backward : bool
        Add a synthetic loss and backward (see the module's text); else inference, where dropout does nothing.
    batch : int, optional
        Scale everything that is computed from an input to this batch, the first dimension of the inputs. The file's
        own by default, 1 where it leaves the batch open.
    optimizer : {"sgd", "adamw"}, optional
        Add a step for each parameter; without it gradients must end on the device.
    dtype : {"fp32", "fp16", "bf16", "fp64", "fp8"}, optional
        Store and compute floating-point values in this type in place of the file's.

    Returns
    -------
    Graph
        Initialisers start where the planner chooses and are there again at the end, inputs start on the host, results
        end on the device. Ops have ``flops``, ``bytes`` and ``dtype``, no durations.

    Raises
    ------
    CaptureError
        See `planner.io.onnx_values.read_model`; or an option that does not apply.
    MissingDependencyError
        onnx is not installed.
    """
    faults = []
    if optimizer is not None and optimizer not in _OPTIMIZERS:
        faults.append(Fault("optimizer", f"{optimizer!r}: must be one of {', '.join(_OPTIMIZERS)}"))
    if optimizer is not None and not backward:
        faults.append(Fault("optimizer", "has no effect without a backward"))
    if dtype is not None and dtype not in FLOATS:
        faults.append(Fault("dtype", f"{dtype!r}: must be one of {', '.join(FLOATS)}"))
    if batch is not None and batch < 1:
        faults.append(Fault("batch", f"{batch}: must be at least 1"))
    if faults:
        raise CaptureError(faults, str(path))
    model = read_model(path, backward)
    build = _Build(model, batch, dtype)
    build.forward(backward)
    if backward:
        build.backward(kept=optimizer is None)
    if optimizer is not None:
        build.step(*_OPTIMIZERS[optimizer])
    return Graph(model.name, tuple(build.tensors.values()), tuple(build.ops))


class _Build:
    def __init__(self, model: Model, batch: int | None, dtype: str | None) -> None:
        self.model, self.dtype = model, dtype
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.taken: set[str] = set()
        self.flops: dict[str, int] = {}
        self.name: dict[str, str] = {}
        self.needs: set[str] = set(model.parameters)
        self.gradient: dict[str, str] = {}
        firsts = {model.shape[v][0] for v in model.inputs if model.shape[v]}
        if batch is not None and len(firsts) != 1:
            raise CaptureError([Fault("batch", f"the first dimensions of the inputs differ: {sorted(firsts)}")])
        self.own = max(firsts, default=1)
        self.batch = self.own if batch is None else batch
        #: What is computed from an input, and so scales with the batch.
        self.scaled: set[str] = set(model.inputs)

    def _size(self, value: str) -> int:
        kind = self.model.dtype[value]
        width = _WIDTH[self.dtype if self.dtype and kind in FLOATS else kind]
        return self._scale(value, self.model.elements(value)) * width

    def _scale(self, value: str, count: int) -> int:
        return -(-count * self.batch // self.own) if value in self.scaled else count

    def _add(self, value: str, name: str | None = None, **facts: object) -> str:
        """Add the tensor of a value once; return its name."""
        key = self.model.storage(value)
        if key not in self.name:
            clean = (name or key).replace("@", "_").replace("#", "_")
            while clean in self.tensors:
                clean += "_"
            self.name[key] = clean
            self.tensors[clean] = Tensor(clean, self._size(key), **facts)  # type: ignore[arg-type]
        return self.name[key]

    def forward(self, training: bool) -> None:
        m = self.model
        used = {m.storage(v) for n in m.nodes for v in n.inputs}
        for v in m.inputs:
            self._add(v, home=("host",), kind="input")
        for v in m.parameters:
            if v in used:
                self._add(v, home="any", keep="home", kind="weight")
        for v in m.constants:
            if v in used:
                self._add(v, home=("host",), kind="constant")
        for n in m.nodes:
            sources = {m.storage(v) for v in n.inputs}
            if sources & self.scaled:
                self.scaled.update(n.outputs)
            if sources & self.needs:
                self.needs.update(n.outputs)
            reads = tuple(dict.fromkeys(self._add(v) for v in n.inputs))
            writes = tuple(self._add(v, kind="activation") for v in n.outputs)
            shapes = [m.shape[v] for v in n.inputs], [m.shape[v] for v in n.outputs]
            self.flops[n.name] = self._scale(n.outputs[0], RULES[n.op].cost(*shapes, n.attributes))
            again = n.op != "Dropout"
            self._op(n.name, reads, writes, (), self.flops[n.name], self._kind(n), recomputable=again)
        if not training:
            for v in m.outputs:
                name = self._add(v)
                if not self.tensors[name].home:
                    self.tensors[name] = replace(self.tensors[name], kind="output", keep="device")

    def backward(self, *, kept: bool) -> None:
        m = self.model
        ends = [v for v in dict.fromkeys(m.storage(v) for v in m.outputs) if v in self.needs]
        if not ends:
            raise CaptureError("no output depends on a parameter: nothing to train (backward=False imports it)")
        reads = tuple(self._add(v) for v in ends)
        loss = self._fresh("loss", 4, kind="output", keep="device")
        writes = [self._gradient(v) for v in ends]
        flops = sum(2 * self._scale(v, m.elements(v)) for v in ends)
        self._op("loss", reads, (loss, *writes), (), flops, self.dtype or m.dtype[ends[0]])
        for n in reversed(m.nodes):
            arrived = [self.gradient[m.storage(v)] for v in n.outputs if m.storage(v) in self.gradient]
            wanted = list(dict.fromkeys(
                m.storage(v) for v in n.inputs[: RULES[n.op].operands] if m.storage(v) in self.needs))
            if not arrived or not wanted:
                continue
            saved = self._saved(n)
            updates = tuple(self.gradient[v] for v in wanted if v in self.gradient)
            new = tuple(self._gradient(v) for v in wanted if v not in self.gradient)
            reads = tuple(dict.fromkeys(x for x in (*arrived, *saved) if x not in updates))
            self._op(f"bwd.{n.name}", reads, new, updates, 2 * self.flops[n.name], self._kind(n),
                     recomputable=not updates)
        for v in m.parameters:
            if kept and v in self.gradient:
                name = self.gradient[v]
                self.tensors[name] = replace(self.tensors[name], keep="device")

    def step(self, each: int, states: int) -> None:
        """Add one op for each parameter that has a gradient."""
        for v in self.model.parameters:
            if v in self.gradient:
                weight = self.name[v]
                size = self.tensors[weight].size
                moments = tuple(self._fresh(f"{weight}.state{i}", size, home="any", keep="home", kind="optimizer state")
                                for i in range(states))
                self._op(f"step.{weight}", (self.gradient[v],), (), (weight, *moments), each * self.model.elements(v),
                         self.dtype or self.model.dtype[v], recomputable=False)

    def _saved(self, n: Node) -> list[str]:
        saves = RULES[n.op].saves
        values = list(n.inputs) if saves in ("inputs", "both") else []
        values += n.outputs if saves in ("outputs", "both") else ()
        if n.op == "Dropout":
            values.append(n.outputs[1])
        return [self._add(v) for v in values]

    def _gradient(self, value: str) -> str:
        self.gradient[value] = self._fresh(f"grad.{self.name[value]}", self._size(value), kind="gradient")
        return self.gradient[value]

    def _fresh(self, name: str, size: int, **facts: object) -> str:
        while name in self.tensors:
            name += "_"
        self.tensors[name] = Tensor(name, size, **facts)  # type: ignore[arg-type]
        return name

    def _kind(self, n: Node) -> str:
        """Return the dtype whose speed counts: that of the first floating-point operand."""
        kinds = [self.model.dtype[v] for v in (*n.inputs, *n.outputs)]
        return next((self.dtype or k for k in kinds if k in FLOATS), kinds[0])

    def _op(self, name: str, reads: tuple[str, ...], writes: tuple[str, ...], updates: tuple[str, ...], flops: int,
            dtype: str, *, recomputable: bool = True) -> None:
        clean = name.replace("@", "_").replace("#", "_")
        while clean in self.taken:
            clean += "_"
        self.taken.add(clean)
        touched = sum(self.tensors[t].size for t in (*reads, *writes)) + 2 * sum(self.tensors[t].size for t in updates)
        self.ops.append(Op(clean, reads, writes, updates, recomputable=recomputable, flops=flops, bytes=touched,
                           dtype=dtype))
