"""Names a person would look for: ``h.3.mlp.act``, ``bwd.h.3.mlp.act``, ``grad.h.3.mlp.c_fc.weight``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from planner.capture.scopes import BACKWARD, Label

__all__ = ["Unique", "clean", "kernel_name", "op_names"]


def clean(name: str) -> str:
    """Return the name without characters that the planner reserves."""
    return re.sub(r"[@#\s]", "_", name)


def kernel_name(name: str) -> str:
    """Return a readable kernel name; the many fused attention kernels are all ``attention``."""
    short = name.split("::")[-1].strip("_") or name
    if "attention" in short and short.startswith(("scaled_dot_product", "flash", "efficient")):
        return "attention_backward" if short.endswith("backward") else "attention"
    return short


class Unique:
    """Hands out names; a name already taken gets a number."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._count: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        wanted = name = clean(name)
        while name in self._taken:
            self._count[wanted] += 1
            name = f"{wanted}_{self._count[wanted] + 1}"
        self._taken.add(name)
        return name


def op_names(labels: Sequence[tuple[Label, str]]) -> list[str]:
    """Name kernel calls.

    Parameters
    ----------
    labels : sequence of (Label, str)
        Where each call comes from, and its kernel.

    Returns
    -------
    list of str
        The module's name where the module makes one call in that pass, else module and kernel; unique.
    """
    alone = Counter(label for label, _ in labels)
    unique = Unique()
    names: list[str] = []
    for label, short in labels:
        parts = ["bwd"] if label.phase == BACKWARD else []
        if label.scope:
            parts.append(label.scope)
        if not label.scope or alone[label] > 1:
            parts.append(kernel_name(short))
        names.append(unique(".".join(parts)))
    return names
