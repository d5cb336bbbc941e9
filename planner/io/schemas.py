"""JSON schemas (draft 2020-12) of the four file formats, made from `planner.io.forms`.

``python -m planner.io.schemas`` writes them to ``planner/schemas``; a test compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from planner.io.forms import GraphFile, MachineFile, PlanFileForm, ProblemFile

__all__ = ["FORMATS", "export_schemas", "schema", "schema_bytes"]

FORMATS: dict[str, type[msgspec.Struct]] = {
    "planner-graph/1": GraphFile, "planner-machine/1": MachineFile, "planner-problem/1": ProblemFile,
    "planner-plan/1": PlanFileForm,
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a format.

    Parameters
    ----------
    name : str
        A key of `FORMATS`.
    """
    (root,), parts = msgspec.json.schema_components((FORMATS[name],), ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:{name.replace('/', ':')}",
            "title": name, **root, "$defs": parts}


def schema_bytes(name: str) -> bytes:
    """Return the text of a format's schema, the same on every run."""
    return msgspec.json.format(msgspec.json.encode(schema(name), order="sorted"), indent=1) + b"\n"


def export_schemas(folder: str | Path) -> list[Path]:
    """Write ``planner-graph-1.json`` and its siblings to a folder and return their paths."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name in FORMATS:
        written.append(target / f"{name.replace('/', '-')}.json")
        written[-1].write_bytes(schema_bytes(name))
    return written


if __name__ == "__main__":
    for path in export_schemas(Path(__file__).resolve().parent.parent / "schemas"):
        print(path.name)
