"""``planner capture``: turn a model, a trace or a formula into a graph file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.output import ExitCode, note, show
from planner.errors import Fault, InputError

if TYPE_CHECKING:
    from planner.graph import Graph

__all__ = ["capture"]


def capture(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE…",
            help="A model name (gpt2, llama3-8b, …), a transformers config.json, module:factory, model.onnx, "
            "formula.toml (bundled: llama3-70b.toml), or the two files of a G10 trace (kernels.csv tensors.csv).",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="GRAPH", help="Graph file; .json.gz is packed.")],
    mode: Annotated[
        str | None,
        typer.Option("--mode", metavar="train|inference|prefill|decode", help="What to capture. [default: train]"),
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Sequences or images in a batch.")] = None,
    seq: Annotated[int | None, typer.Option("--seq", min=1, help="Tokens in a sequence.")] = None,
    optimizer: Annotated[
        str | None, typer.Option("--optimizer", metavar="adamw|sgd|none", help="Optimizer step to include.")
    ] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="Element type of weights and activations.")] = None,
    layers: Annotated[
        int | None, typer.Option("--layers", min=1, help="Layers, in place of the configuration's.")
    ] = None,
    master_weights: Annotated[
        bool, typer.Option("--master-weights", help="With --optimizer: also fp32 copies of the parameters.")
    ] = False,
    retag: Annotated[bool, typer.Option("--retag", help="G10: batch-sized tensors do not count as weights.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="Name of the graph.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time the ops on this machine's CPU instead of by roofline.")
    ] = False,
) -> int:
    """Turn a model, a trace or a formula into a graph file; nothing is downloaded."""
    from planner.io import save_graph

    options = {
        "mode": mode,
        "batch": batch,
        "seq": seq,
        "optimizer": optimizer,
        "dtype": dtype,
        "layers": layers,
        "master_weights": master_weights or None,
        "retag": retag or None,
        "name": name,
        "measure": measure or None,
    }
    given = {name: value for name, value in options.items() if value not in (None, "none")}
    if master_weights and "optimizer" not in given:
        raise InputError([Fault("--master-weights", "has no effect without --optimizer")])
    if not str(output).endswith((".json", ".json.gz")):
        raise InputError([Fault("--output", f"{str(output)!r}: a graph file ends in .json or .json.gz")])
    graph = _read(source, given)
    save_graph(graph, output)
    note(f"graph written to {output}")
    show(_text(graph))
    return ExitCode.DONE


def _read(source: list[str], given: dict[str, Any]) -> Graph:
    suffixes = [Path(name).suffix for name in source]
    if suffixes == [".csv", ".csv"]:
        _refuse(given, "a G10 trace", ("name", "retag"))
        from planner.io.g10_import import import_g10

        return import_g10(*source, **given)
    if len(source) != 1:
        raise InputError(
            [Fault("SOURCE", f"{' '.join(source)!r}: give one source, or the two .csv files of a G10 trace")]
        )
    if suffixes == [".onnx"]:
        _refuse(given, "an ONNX file", ("batch", "name"))
        from planner.io.onnx_import import import_onnx

        return import_onnx(source[0], **given)
    if suffixes == [".toml"]:
        _refuse(given, "a formula", ("mode", "batch", "seq", "optimizer", "dtype", "layers", "master_weights", "name"))
        from planner.workloads.shape import shapes
        from planner.workloads.spec import load_spec

        file = Path(source[0])
        return load_spec(file if file.exists() else shapes().get(file.stem, file), **given)
    if "retag" in given:
        raise InputError([Fault("--retag", "has no effect except on a G10 trace; leave it out")])
    from planner.capture import capture_named

    if ":" in source[0]:
        # ``planner`` as a script does not look for modules in the current folder; ``python -m planner`` does.
        sys.path.insert(0, str(Path.cwd()))
    return capture_named(source[0], **given)


def _refuse(given: dict[str, Any], what: str, known: tuple[str, ...]) -> None:
    """An option that this kind of source cannot honour must not look as if it worked."""
    faults = [
        Fault(f"--{name.replace('_', '-')}", f"has no effect on {what}; leave it out")
        for name in given
        if name not in known
    ]
    if faults:
        raise InputError(faults)


def _text(graph: Graph) -> str:
    from planner.units import format_bytes

    kinds: dict[str, int] = {}
    for tensor in graph.tensors:
        if tensor.alias_of is None:
            kinds[tensor.kind or "(none)"] = kinds.get(tensor.kind or "(none)", 0) + tensor.size
    sizes = ", ".join(f"{kind} {format_bytes(size)}" for kind, size in sorted(kinds.items(), key=lambda kv: -kv[1]))
    return f"{graph.name}: {len(graph.ops)} ops, {len(graph.tensors)} tensors ({sizes})"
