"""Bundled graphs of real models, and the formula shapes beside them. Needs neither torch nor transformers."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.graph import Graph

__all__ = ["available", "describe", "load_model", "models_path"]


@cache
def models_path() -> Path:
    """Return the folder of the bundled models: inside an installed package, or beside it in a checkout.

    Raises
    ------
    InputError
        Neither place holds them.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_models", package.parent / "models"):
        if (folder / "index.json").is_file():
            return folder
    raise InputError(f"the bundled models are missing: there is no index.json in {package / '_models'}")


@cache
def _index() -> dict[str, dict[str, Any]]:
    data: dict[str, dict[str, Any]] = json.loads((models_path() / "index.json").read_text(encoding="utf-8"))
    return data


def available() -> list[str]:
    """Return the names that `load_model` knows, sorted."""
    return sorted(_index())


def describe(name: str) -> dict[str, Any]:
    """Return what is recorded of a bundled model: file, sha256, ops, tensors, description, command.

    Raises
    ------
    InputError
        There is no such model.
    """
    entry = _index().get(name)
    if entry is None:
        raise InputError(f"there is no bundled model {name!r}; there are {', '.join(available())}")
    return dict(entry)


@cache
def load_model(name: str) -> Graph:
    """Return a bundled graph.

    Parameters
    ----------
    name : str
        One of `available`, e.g. ``"llama3-8b-train"``.

    Raises
    ------
    InputError
        There is no such model, or its file is not the one that was recorded.
    """
    entry = describe(name)
    file = models_path() / entry["file"]
    try:
        text = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"the bundled file cannot be read: {error}", str(file)) from None
    found = hashlib.sha256(text).hexdigest()
    if found != entry["sha256"]:
        raise InputError(f"the bundled file has hash {found} and {entry['sha256']} is recorded", str(file))
    return Graph.from_dict(json.loads(text))
