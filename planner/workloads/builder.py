"""The ops of a formula transformer, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping

from planner.graph import Op, Tensor
from planner.workloads.shape import Shape

__all__ = ["Builder"]

_FP32 = 4


class Builder:
    """Collects tensors and ops in program order.

    Parameters
    ----------
    shape : Shape
    mode : str
    batch, seq : int
    dtype : str
    width : int
        Bytes of an element.
    parameters : mapping of str to int
        Elements of each parameter storage.
    """

    def __init__(
        self, shape: Shape, mode: str, batch: int, seq: int, dtype: str, width: int, parameters: Mapping[str, int]
    ) -> None:
        self.shape, self.mode, self.batch, self.seq = shape, mode, batch, seq
        self.dtype, self.width, self.parameters = dtype, width, parameters
        self.tokens = batch * (1 if mode == "decode" else seq)
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        for name, count in parameters.items():
            self.tensors[name] = Tensor(name, count * width, "any", "home", "weight")

    def _new(self, name: str, elements: int, width: int = 0, kind: str = "activation", keep: str | None = None) -> str:
        self.tensors[name] = Tensor(name, elements * (width or self.width), (), keep, kind)
        return name

    def _op(
        self, name: str, reads: list[str], writes: list[str], flops: int, *, updates: tuple[str, ...] = (),
        workspace: int = 0, dtype: str = "", nbytes: int | None = None,
    ) -> None:
        touched = sum(self.tensors[n].size for n in (*reads, *writes))
        self.ops.append(Op(
            name, tuple(dict.fromkeys(reads)), tuple(writes), updates, workspace=workspace, recomputable=not updates,
            flops=flops, bytes=touched if nbytes is None else nbytes, dtype=dtype or self.dtype))

    # ---- forward ----

    def forward(self) -> None:
        """Embedding, layers, final norm, head, and in training the loss."""
        s, t = self.shape, self.tokens
        self.tensors["tokens"] = Tensor("tokens", 8 * t, ("host",), None, "input")
        tables = ["embed", *(["positions"] if s.positions else [])]
        moved = 2 * len(tables) * t * s.hidden * self.width + 8 * t
        self._op("embedding", [*tables, "tokens"], [self._new("embedding", t * s.hidden)], t * s.hidden, nbytes=moved)
        x = "embedding"
        for i in range(s.layers):
            x = self._layer(f"layers.{i}", x)
        if self.mode != "train":
            # Only the last token of each sequence is turned into logits.
            self._op("norm", [x, "norm.weight"], [self._new("norm", self.batch * s.hidden)], 5 * self.batch * s.hidden,
                     nbytes=2 * self.batch * s.hidden * self.width)
            self._product("head", "norm", self._head(), self.batch, s.hidden, s.vocab, kind="output", keep="device")
            return
        self._norm("norm", x)
        self._product("head", "norm", self._head(), t, s.hidden, s.vocab)
        self.tensors["labels"] = Tensor("labels", 8 * t, ("host",), None, "input")
        logits = t * s.vocab
        copy = 0 if self.width == _FP32 else logits * _FP32  # the fp32 copy that the loss works on
        self._new("logprobs", logits, _FP32)
        self._new("loss", 1, _FP32, "output", "device")
        self._op("loss", ["head", "labels"], ["logprobs", "loss"], 6 * logits, workspace=copy, dtype="fp32",
                 nbytes=self.tensors["head"].size + 2 * copy + 2 * logits * _FP32)

    def _head(self) -> str:
        return "embed" if self.shape.tied else "head.weight"

    def _norm(self, name: str, x: str) -> None:
        count = self.tokens * self.shape.hidden
        writes = [self._new(name, count)]
        if self.mode == "train":
            extra = count * (_FP32 + self.width if self.shape.norm == "rms" and self.width < _FP32 else
                             self.width if self.shape.norm == "rms" else 0)
            statistics = self.tokens * _FP32 * (1 if self.shape.norm == "rms" else 2)
            writes.append(self._new(f"{name}.saved", extra + statistics, 1))
        self._op(name, [x, f"{name}.weight"], writes, 8 * count, dtype="fp32")

    def _product(
        self, name: str, x: str, weight: str, rows: int, inner: int, outer: int, kind: str = "activation",
        keep: str | None = None,
    ) -> None:
        self._op(name, [x, weight], [self._new(name, rows * outer, kind=kind, keep=keep)], 2 * rows * inner * outer)

    def _layer(self, p: str, x: str) -> str:
        s, t = self.shape, self.tokens
        self._norm(f"{p}.norm1", x)
        self._product(f"{p}.qkv", f"{p}.norm1", f"{p}.qkv.weight", t, s.hidden, s.query + 2 * s.kv)
        query, past = self._positions(p)
        span = self.seq
        writes = [self._new(f"{p}.attention", t * s.query)]
        if self.mode == "train":
            writes.append(self._new(f"{p}.attention.logsumexp", t * s.heads, _FP32))
        self._op(f"{p}.attention", [query, *past], writes, 4 * t * span * s.query)
        self._product(f"{p}.proj", f"{p}.attention", f"{p}.proj.weight", t, s.query, s.hidden)
        self._add(f"{p}.add1", x, f"{p}.proj")
        self._norm(f"{p}.norm2", f"{p}.add1")
        up = s.ffn * (2 if s.gated else 1)
        self._product(f"{p}.up", f"{p}.norm2", f"{p}.up.weight", t, s.hidden, up)
        writes = [self._new(f"{p}.act", t * s.ffn)]
        if s.gated and self.mode == "train":
            writes.append(self._new(f"{p}.act.gate", t * s.ffn))
        self._op(f"{p}.act", [f"{p}.up"], writes, (5 if s.gated else 4) * t * s.ffn)
        self._product(f"{p}.down", f"{p}.act", f"{p}.down.weight", t, s.ffn, s.hidden)
        self._add(f"{p}.add2", f"{p}.add1", f"{p}.down")
        return f"{p}.add2"

    def _positions(self, p: str) -> tuple[str, list[str]]:
        """Rotate and split what the product made into query, key and value; returns query and cache names."""
        s, t = self.shape, self.tokens
        query, key, value = f"{p}.query", f"kv.{p[7:]}.key", f"kv.{p[7:]}.value"
        kept: dict[str, str | None] = {"kind": "kv", "keep": "device"} if self.mode == "prefill" else {}
        flops = 0 if s.positions else 4 * t * (s.query + s.kv)
        self._new(query, t * s.query)
        if self.mode != "decode":
            if self.mode == "train":
                key, value = f"{p}.key", f"{p}.value"
            for part in (key, value):
                self._new(part, t * s.kv, kind=kept.get("kind") or "activation", keep=kept.get("keep"))
            self._op(f"{p}.rope", [f"{p}.qkv"], [query, key, value], flops)
            return query, [key, value]
        for part in (key, value):
            self.tensors[part] = Tensor(part, self.batch * self.seq * s.kv * self.width, "any", "home", "kv")
        moved = 2 * self.tensors[f"{p}.qkv"].size
        self._op(f"{p}.rope", [f"{p}.qkv"], [query], flops, updates=(key, value), nbytes=moved)
        return query, [key, value]

    def _add(self, name: str, a: str, b: str) -> None:
        count = self.tokens * self.shape.hidden
        self._op(name, [a, b], [self._new(name, count)], count)

    # ---- backward ----

    def backward(self, keep: str | None) -> None:
        """Gradients in reverse order; ``keep`` is where parameter gradients must be at the end."""
        s, t = self.shape, self.tokens
        for name, count in self.parameters.items():
            self.tensors[f"grad.{name}"] = Tensor(f"grad.{name}", count * self.width, (), keep, "gradient")
        logits = t * s.vocab
        work = logits * (2 * _FP32 - (0 if self.width == _FP32 else self.width))
        self._gradient("loss", ["logprobs", "labels"], logits, 5 * logits, workspace=work if self.width < _FP32 else
                       logits * _FP32, dtype="fp32", nbytes=5 * logits * _FP32 + logits * self.width)
        head = "grad.head.weight" if not s.tied else self._new("bwd.head.weight", s.vocab * s.hidden, kind="gradient")
        self._linear("head", "bwd.loss", "norm", self._head(), head, t, s.hidden, s.vocab)
        last = f"layers.{s.layers - 1}.add2"
        self._norm_back("norm", "bwd.head", last, None)
        grad = "bwd.norm"
        for i in reversed(range(s.layers)):
            grad = self._layer_back(f"layers.{i}", grad, f"layers.{i - 1}.add2" if i else "embedding")
        tables = ["grad.embed", *(["grad.positions"] if s.positions else [])]
        reads = [grad, "tokens", *(["bwd.head.weight"] if s.tied else [])]
        self._op("bwd.embedding", reads, tables, t * s.hidden * len(tables))

    def _gradient(self, name: str, reads: list[str], elements: int, flops: int, *, extra: tuple[str, ...] = (),
                  workspace: int = 0, dtype: str = "", nbytes: int | None = None) -> None:
        written = self._new(f"bwd.{name}", elements, kind="gradient")
        self._op(f"bwd.{name}", reads, [written, *extra], flops, workspace=workspace, dtype=dtype, nbytes=nbytes)

    def _linear(self, name: str, grad: str, x: str, weight: str, into: str, rows: int, inner: int, outer: int) -> None:
        """Two products: the weight's gradient, then the input's."""
        self._op(f"bwd.{name}.weight", [grad, x], [into], 2 * rows * inner * outer)
        self._gradient(name, [grad, weight], rows * inner, 2 * rows * inner * outer)

    def _norm_back(self, name: str, grad: str, x: str, residual: str | None) -> None:
        count = self.tokens * self.shape.hidden
        source = [f"{name}.saved"] + ([x] if self.shape.norm == "layer" or self.width == _FP32 else [])
        reads = [grad, *source, f"{name}.weight", *([residual] if residual else [])]
        # Eager backward of RMSNorm holds about three fp32 temporaries.
        work = 2 * count * _FP32 if self.shape.norm == "rms" else 0
        self._gradient(name, reads, count, 14 * count, extra=(f"grad.{name}.weight",), workspace=work, dtype="fp32")

    def _layer_back(self, p: str, grad: str, x: str) -> str:
        s, t = self.shape, self.tokens
        self._linear(f"{p}.down", grad, f"{p}.act", f"{p}.down.weight", f"grad.{p}.down.weight", t, s.ffn, s.hidden)
        up = s.ffn * (2 if s.gated else 1)
        saved = [f"{p}.up", *([f"{p}.act.gate"] if s.gated else [])]
        self._gradient(f"{p}.act", [f"bwd.{p}.down", *saved], t * up, 8 * t * s.ffn)
        self._linear(f"{p}.up", f"bwd.{p}.act", f"{p}.norm2", f"{p}.up.weight", f"grad.{p}.up.weight", t, s.hidden, up)
        self._norm_back(f"{p}.norm2", f"bwd.{p}.up", f"{p}.add1", grad)
        grad = f"bwd.{p}.norm2"
        self._linear(f"{p}.proj", grad, f"{p}.attention", f"{p}.proj.weight", f"grad.{p}.proj.weight", t, s.query,
                     s.hidden)
        parts = [self._new(f"bwd.{p}.{n}", t * c, kind="gradient") for n, c in
                 (("query", s.query), ("key", s.kv), ("value", s.kv))]
        held = [f"{p}.query", f"{p}.key", f"{p}.value", f"{p}.attention", f"{p}.attention.logsumexp"]
        self._op(f"bwd.{p}.attention", [f"bwd.{p}.proj", *held], parts, 10 * t * self.seq * s.query)
        rows = s.query + 2 * s.kv
        self._gradient(f"{p}.rope", parts, t * rows, 0 if s.positions else 4 * t * (s.query + s.kv))
        self._linear(f"{p}.qkv", f"bwd.{p}.rope", f"{p}.norm1", f"{p}.qkv.weight", f"grad.{p}.qkv.weight", t, s.hidden,
                     rows)
        self._norm_back(f"{p}.norm1", f"bwd.{p}.qkv", x, grad)
        return f"bwd.{p}.norm1"
