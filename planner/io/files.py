"""Read and write the four kinds of file; nothing outside `planner.io` parses files."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from planner.errors import InputError
from planner.graph import Graph
from planner.io.canonical import canonical_bytes, pretty_bytes
from planner.io.text import parse_json
from planner.machine import Machine
from planner.problem import Problem

if TYPE_CHECKING:
    from planner.io.plan_json import PlanFile

__all__ = ["load", "load_graph", "load_machine", "load_problem", "read_json", "save_graph", "write_bytes"]

_T = TypeVar("_T")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the JSON data of a file (``.gz`` is unpacked).

    Raises
    ------
    InputError
        The file is missing, empty, not gzip, or not JSON; the message names file and place.
    """
    file = Path(path)
    try:
        raw = file.read_bytes()
        if file.suffix == ".gz":
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", str(path)) from None
    return _naming(path, lambda: parse_json(raw))


def _naming(path: str | os.PathLike[str], read: Callable[[], _T]) -> _T:
    """Let the error of a reader name the file."""
    try:
        return read()
    except InputError as error:
        raise error.in_source(str(path)) from None


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all."""
    file = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=file.parent or ".", prefix=f".{file.name}.")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Read a ``planner-graph/1`` file; `InputError` names file, path and value."""
    return _naming(path, lambda: Graph.from_dict(read_json(path)))


def load_machine(path: str | os.PathLike[str]) -> Machine:
    """Read a ``planner-machine/1`` file or a preset by name."""
    if not str(path).endswith((".json", ".json.gz")):
        from planner.presets import preset

        return preset(str(path))
    return _naming(path, lambda: Machine.from_dict(read_json(path)))


def load_problem(path: str | os.PathLike[str]) -> Problem:
    """Read a ``planner-problem/1`` file; paths in it are relative to it."""
    return _problem(read_json(path), path)


def _problem(data: Any, path: str | os.PathLike[str]) -> Problem:
    from planner.io.problem_json import problem_from_dict

    base = Path(path).parent

    def graph(name: str) -> Graph:
        if name.endswith((".json", ".json.gz")):
            return load_graph(base / name)
        from planner.models import load_model

        return load_model(name)

    def machine(name: str) -> Machine:
        return load_machine(base / name if name.endswith((".json", ".json.gz")) else name)

    return _naming(path, lambda: problem_from_dict(data, graph, machine))


def load(path: str | os.PathLike[str]) -> Problem | Graph | Machine | PlanFile:
    """Read any of the four formats, told apart by the member ``format``.

    Returns
    -------
    Problem, Graph, Machine or PlanFile
        A plan read from a file is a program with a claim that nobody has checked: give it to `planner.check`.

    Raises
    ------
    InputError
        Lists every fault with file, path inside the file and value.
    """
    data = read_json(path)
    kind = data.get("format") if isinstance(data, dict) else None
    if kind == "planner-problem/1":
        return _problem(data, path)
    if kind == "planner-graph/1":
        return _naming(path, lambda: Graph.from_dict(data))
    if kind == "planner-machine/1":
        return _naming(path, lambda: Machine.from_dict(data))
    if kind == "planner-plan/1":
        from planner.io.plan_json import plan_from_dict

        return _naming(path, lambda: plan_from_dict(data))
    raise InputError(f"format {kind!r} is not known; expected planner-problem/1, planner-graph/1, planner-machine/1 or "
                     "planner-plan/1", str(path))


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph; ``.gz`` is packed without a time stamp, so equal graphs give equal files."""
    if str(path).endswith(".gz"):
        write_bytes(path, gzip.compress(canonical_bytes(graph.to_dict()), 9, mtime=0))
    else:
        write_bytes(path, pretty_bytes(graph.to_dict()))
