"""Shape of a dense transformer decoder, and the file that states it."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from planner.errors import Fault, InputError

__all__ = ["Shape", "load_shape", "shape_from_dict", "shapes"]


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder-only transformer.

    Attributes
    ----------
    name : str
    layers, hidden, heads, kv_heads, ffn, vocab : int
        ``kv_heads`` below ``heads`` is grouped-query attention.
    head_dim : int
        hidden / heads if 0.
    gated : bool
        SwiGLU with three matrices rather than two with one activation.
    norm : {"rms", "layer"}
    positions : int
        Rows of a learned position table; 0 for rotary positions.
    bias : bool
        Do all linear layers have biases?
    qkv_bias : bool
        Has the query-key-value product one, even if the others do not?
    tied : bool
        Is the head the embedding's storage?
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    head_dim: int = 0
    gated: bool = True
    norm: str = "rms"
    positions: int = 0
    bias: bool = False
    qkv_bias: bool = False
    tied: bool = False

    def __post_init__(self) -> None:
        faults = [Fault(key, f"{getattr(self, key)}: must be at least 1")
                  for key in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab") if getattr(self, key) < 1]
        if not faults and self.heads % self.kv_heads:
            faults.append(Fault("kv_heads", f"{self.kv_heads} does not divide the {self.heads} heads"))
        if not faults and not self.head_dim and self.hidden % self.heads:
            faults.append(Fault("heads", f"{self.heads} heads do not divide hidden {self.hidden}; give head_dim"))
        if self.norm not in ("rms", "layer"):
            faults.append(Fault("norm", f"{self.norm!r}: must be 'rms' or 'layer'"))
        if faults:
            raise InputError(faults)

    @property
    def width(self) -> int:
        """Elements of one head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def query(self) -> int:
        """Elements of all query heads of a token."""
        return self.heads * self.width

    @property
    def kv(self) -> int:
        """Elements of all key heads of a token."""
        return self.kv_heads * self.width

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        from planner.workloads.transformer import parameter_elements

        return sum(parameter_elements(self).values())


def shape_from_dict(data: object, source: str | None = None) -> Shape:
    """Read a shape; `InputError` lists every fault."""
    if not isinstance(data, dict):
        raise InputError("a shape is a table", source)
    faults: list[Fault] = []
    known: dict[str, Any] = {f.name: f for f in fields(Shape)}
    for key in data:
        if key not in known:
            faults.append(Fault(key, f"unknown field; known are {', '.join(known)}"))
    for key, f in known.items():
        if key not in data:
            if f.default is MISSING:
                faults.append(Fault(key, "is missing"))
            continue
        wanted = {"str": str, "int": int, "bool": bool}[f.type]
        if type(data[key]) is not wanted:
            faults.append(Fault(key, f"{data[key]!r}: must be {f.type}"))
    if faults:
        raise InputError(faults, source)
    try:
        return Shape(**data)
    except InputError as error:
        raise InputError(error.faults, source) from None


def load_shape(name: str | Path) -> Shape:
    """Return the shape in a file's table ``[model]``, or a bundled one by name (``llama3-8b``, ``opt-30b``, …).

    Raises
    ------
    InputError
        There is no such file or name, or a field is wrong.
    """
    file = Path(name)
    if file.suffix != ".toml":
        bundled = shapes()
        if str(name) not in bundled:
            raise InputError(f"there is no transformer shape {str(name)!r}; there are {', '.join(bundled)}")
        file = bundled[str(name)]
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read as TOML: {error}", str(file)) from None
    return shape_from_dict(data.get("model"), str(file))


def shapes() -> dict[str, Path]:
    """Return the bundled shape files by name, sorted."""
    from planner.models import models_path

    return {file.stem: file for file in sorted(models_path().glob("*.toml"))}
