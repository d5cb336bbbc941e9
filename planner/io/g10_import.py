"""Training iterations in the format of the G10 artifact (MICRO'23): a kernel table and a tensor table.

What the tables say and how it is read:

* Kernels run in the listed order, one after the other; times are exact decimals of microseconds, rounded up to ns.
* The first kernel that outputs a tensor creates it, every later one changes it in place.
* A tensor marked global lives across the iteration: it starts where the planner chooses and is there again at the end.
* A tensor that is read before any kernel outputs it, and is not global, is an input and starts on the host.
* A kernel that changes something in place or draws random numbers (dropout, loading data) is never run again.

In the BERT and ViT traces the global mark also covers tensors as large as activations: parameters and constants that
the tracer broadcast over the batch (16 of 17 GB). ``retag=True`` takes the mark from them: a global tensor is *batch-
sized* if a forward kernel, other than a gather, reads it together with tensors that are not global and it is at least
as large as the largest of those. (At the batch sizes of these traces every true parameter is smaller than the
activation that it meets.) It then is an input of the iteration: on the host at the start, and needed nowhere at the
end. In the convolutional traces no tensor is batch-sized.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from planner.errors import CaptureError, Fault
from planner.graph import Graph, Op, Tensor

__all__ = ["import_g10"]

_KERNELS = ("kernel_id", "op", "time_us", "input_tensor_ids", "output_tensor_ids")
_TENSORS = ("tensor_id", "size_bytes", "is_global_weight")
_RANDOM = ("Dropout_Forward", "LoadData")


@dataclass(frozen=True, slots=True)
class _Kernel:
    name: str
    op: str
    duration: int
    reads: tuple[str, ...]
    outputs: tuple[str, ...]


def import_g10(
    kernels_csv: str | os.PathLike[str], tensors_csv: str | os.PathLike[str], *, name: str | None = None,
    retag: bool = False, weights_home: str = "any",
) -> Graph:
    """Read a G10 trace.

    Parameters
    ----------
    kernels_csv, tensors_csv : path
        Columns kernel_id, op, time_us, input_tensor_ids, output_tensor_ids (ids separated by spaces); and tensor_id,
        size_bytes, is_global_weight (0 or 1).
    name : str, optional
        Of the graph; the kernel file's name up to the first dot by default.
    retag : bool
        Take the global mark from batch-sized tensors. See the module's text.
    weights_home : str
        Where global tensors start: a tier, or ``"any"``.

    Returns
    -------
    Graph
        Tensors are called ``t12``, ops ``k7.Conv2d_Forward``; durations in nanoseconds.

    Raises
    ------
    CaptureError
        A file that cannot be read as such a table; lists every fault with file and line.
    """
    faults: list[Fault] = []
    sizes, marked = _read_tensors(Path(tensors_csv), faults)
    kernels = _read_kernels(Path(kernels_csv), sizes, faults)
    if faults:
        raise CaptureError(faults)
    weights = marked - _batch_sized(kernels, sizes, marked) if retag else marked
    return _graph(name or Path(kernels_csv).name.split(".")[0], kernels, sizes, weights, weights_home)


def _batch_sized(kernels: list[_Kernel], sizes: dict[str, int], marked: set[str]) -> set[str]:
    """Return the global tensors that carry the batch dimension."""
    found: set[str] = set()
    for k in kernels:
        others = [sizes[t] for t in k.reads if t not in marked]
        if others and k.op.endswith("_Forward") and not k.op.startswith("Gather"):
            found |= {t for t in k.reads if t in marked and sizes[t] >= max(others)}
    return found


def _graph(name: str, kernels: list[_Kernel], sizes: dict[str, int], weights: set[str], home: str) -> Graph:
    first_use: dict[str, str] = {}
    for k in kernels:
        # Reads go first: a kernel that reads and outputs a tensor that nobody made before needs its old value.
        for t in k.reads:
            first_use.setdefault(t, "read")
        for t in k.outputs:
            first_use.setdefault(t, k.op)
    read = {t for k in kernels for t in k.reads}
    changed = {t for k in kernels for t in k.outputs}
    tensors = []
    for t, size in sizes.items():
        if t in weights:
            tensors.append(Tensor(f"t{t}", size, home if home == "any" else (home,), "home", "weight"))  # type: ignore[arg-type]
        elif first_use.get(t, "read") == "read":
            # An input that the iteration overwrites is no input in the protected sense.
            tensors.append(Tensor(f"t{t}", size, ("host",), None, "activation" if t in changed else "input"))
        elif t not in read:
            tensors.append(Tensor(f"t{t}", size, (), None, "workspace"))
        else:
            backward = "Backward" in first_use[t] or "Apply" in first_use[t]
            tensors.append(Tensor(f"t{t}", size, (), None, "gradient" if backward else "activation"))
    present = {t.name for t in tensors if t.home}
    ops = []
    for k in kernels:
        writes = [f"t{t}" for t in k.outputs if f"t{t}" not in present]
        updates = [f"t{t}" for t in k.outputs if f"t{t}" in present]
        reads = [f"t{t}" for t in k.reads if f"t{t}" not in updates]
        present.update(writes)
        again = not updates and not k.op.startswith(_RANDOM)
        ops.append(Op(k.name, tuple(reads), tuple(writes), tuple(updates), k.duration, recomputable=again))
    return Graph(name, tuple(tensors), tuple(ops))


def _rows(path: Path, columns: tuple[str, ...], faults: list[Fault]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (place, row) of each line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        faults.append(Fault(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}"))
        return
    reader = csv.DictReader(text.splitlines())
    missing = [c for c in columns if c not in (reader.fieldnames or ())]
    if missing:
        faults.append(Fault(str(path), f"has no column {', '.join(missing)}; a G10 table has {', '.join(columns)}"))
        return
    for row in reader:
        where = f"{path}:{reader.line_num}"
        if None in row or None in row.values():
            faults.append(Fault(where, f"{len(columns)} fields expected"))
        else:
            yield where, row


def _read_tensors(path: Path, faults: list[Fault]) -> tuple[dict[str, int], set[str]]:
    sizes: dict[str, int] = {}
    marked: set[str] = set()
    for where, row in _rows(path, _TENSORS, faults):
        tensor, size, mark = (row[c].strip() for c in _TENSORS)
        if tensor in sizes:
            faults.append(Fault(where, f"tensor {tensor} is listed twice"))
        if not size.isdecimal():
            faults.append(Fault(where, f"size_bytes {size!r}: must be a whole number of bytes"))
            size = "0"
        if mark not in ("0", "1"):
            faults.append(Fault(where, f"is_global_weight {mark!r}: must be 0 or 1"))
        sizes[tensor] = int(size)
        if mark == "1":
            marked.add(tensor)
    return sizes, marked


def _read_kernels(path: Path, sizes: dict[str, int], faults: list[Fault]) -> list[_Kernel]:
    kernels: list[_Kernel] = []
    for where, row in _rows(path, _KERNELS, faults):
        number, op, time = (row[c].strip() for c in _KERNELS[:3])
        reads, outputs = (tuple(dict.fromkeys(row[c].split())) for c in _KERNELS[3:])
        faults += [Fault(where, f"kernel {number} names tensor {t}, which the tensor table does not list")
                   for t in (*reads, *outputs) if sizes and t not in sizes]
        try:
            exact = Fraction(time) * 1000
        except (ValueError, ZeroDivisionError):
            exact = Fraction(-1)
        if exact < 0:
            faults.append(Fault(where, f"time_us {time!r}: must be a number, not negative"))
        kernels.append(_Kernel(f"k{number}.{op}", op, -(-exact.numerator // exact.denominator), reads, outputs))
    return kernels
