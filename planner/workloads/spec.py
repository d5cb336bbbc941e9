"""Formula files: a TOML file that names a kind of workload and its numbers.

::

    format = "planner-workload/1"
    kind = "transformer"

    [model]              # the shape, see `planner.workloads.shape.Shape`
    layers = 32
    …

    [run]                # optional: arguments of `planner.workloads.transformer.transformer_graph`
    mode = "train"
    batch = 1
    seq = 4096
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from planner.errors import Fault, InputError
from planner.graph import Graph
from planner.workloads.shape import shape_from_dict
from planner.workloads.transformer import transformer_graph

__all__ = ["FORMAT", "KINDS", "load_spec"]

FORMAT = "planner-workload/1"
KINDS = ("transformer",)
_RUN: dict[str, type] = {"mode": str, "batch": int, "seq": int, "optimizer": str, "dtype": str, "master_weights": bool,
                         "name": str}


def load_spec(path: str | Path, **options: Any) -> Graph:
    """Build the graph that a formula file describes.

    Parameters
    ----------
    path : str or Path
        TOML file.
    **options
        Replace entries of its table ``[run]``: mode, batch, seq, optimizer, dtype, master_weights, name; ``layers``
        replaces the number of layers.

    Raises
    ------
    InputError
        The file cannot be read, or a field or option is wrong.
    """
    source = str(path)
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read as TOML: {error}", source) from None
    faults = [Fault(key, "unknown field; known are format, kind, model, run")
              for key in data if key not in ("format", "kind", "model", "run")]
    if data.get("format") != FORMAT:
        faults.append(Fault("format", f"{data.get('format')!r}: must be {FORMAT!r}"))
    if data.get("kind") not in KINDS:
        faults.append(Fault("kind", f"{data.get('kind')!r}: must be one of {', '.join(KINDS)}"))
    model, run = data.get("model", {}), data.get("run", {})
    if not isinstance(model, dict) or not isinstance(run, dict):
        faults.append(Fault("model, run", "must be tables"))
        raise InputError(faults, source)
    if options.get("layers") is not None:
        model = {**model, "layers": options["layers"]}
    run = {**run, **{k: v for k, v in options.items() if v is not None and k != "layers"}}
    for key, value in run.items():
        if key not in _RUN:
            faults.append(Fault(f"run.{key}", f"unknown field; known are {', '.join(_RUN)}"))
        elif type(value) is not _RUN[key]:
            faults.append(Fault(f"run.{key}", f"{value!r}: must be {_RUN[key].__name__}"))
    if faults:
        raise InputError(faults, source)
    shape = shape_from_dict(model, source)
    try:
        return transformer_graph(shape, **run)
    except InputError as error:
        raise error.within("run").in_source(source) from None
