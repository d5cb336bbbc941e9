"""The exported schemas: the committed files are what the types give, and they fit files and objects."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

import planner
from planner.graph import Op, Placement, Tensor
from planner.io.schemas import FORMATS, export_schemas, schema
from planner.machine import Compute, Link, Tier
from planner.models import models_path
from planner.presets import presets
from planner.problem import Rules
from tests.io.test_malformed import GRAPH, GRAPH_FAULTS, put
from tests.io.test_round_trips import PROBLEMS, full, solved
from tests.toys import toy

COMMITTED = Path(planner.__file__).parent / "schemas"


def fits(name: str, data: Any) -> None:
    """Raise if data read from JSON text does not fit the schema."""
    kind = jsonschema.validators.validator_for(schema(name))
    kind(schema(name)).validate(json.loads(json.dumps(data)))


def test_committed_files_are_up_to_date(tmp_path: Path) -> None:
    """If this fails: python -m planner.io.schemas."""
    made = {p.name: p.read_bytes() for p in export_schemas(tmp_path)}
    assert made == {p.name: p.read_bytes() for p in COMMITTED.glob("*.json")}
    assert len(made) == 4


@pytest.mark.parametrize("name", FORMATS)
def test_they_are_schemas_of_draft_2020_12(name: str) -> None:
    found = schema(name)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(found)
    assert jsonschema.validators.validator_for(found) is jsonschema.Draft202012Validator


@pytest.mark.parametrize(("name", "part", "kind"), [
    ("planner-graph/1", "TensorForm", Tensor), ("planner-graph/1", "OpForm", Op),
    ("planner-graph/1", "PlacementForm", Placement),
    ("planner-machine/1", "TierForm", Tier), ("planner-machine/1", "LinkForm", Link),
    ("planner-machine/1", "ComputeForm", Compute),
    ("planner-problem/1", "RulesForm", Rules),
])
def test_every_field_of_the_objects_is_there(name: str, part: str, kind: Any) -> None:
    assert set(schema(name)["$defs"][part]["properties"]) == {f.name for f in fields(kind)}


def test_every_key_of_a_claim_is_there() -> None:
    claims = [planner.solve(toy("a=1@D w=4@H", "f(5): a,w -> b(1)", D=cap, out="b@D"), gap=0).claim() for cap in (5, 6)]
    known = schema("planner-plan/1")["$defs"]["Claim"]["properties"]
    assert claims[0].keys() | claims[1].keys() | {"lower_bound_bytes"} == known.keys()


def test_problems_fit() -> None:
    fits("planner-problem/1", full())
    for problem in PROBLEMS:
        fits("planner-problem/1", problem.to_dict())
        fits("planner-graph/1", problem.graph.to_dict())
    fits("planner-problem/1", {"format": "planner-problem/1", "graph": "g.json.gz", "machine": "h100-pcie5"})


def test_plans_fit(tmp_path: Path) -> None:
    for plan in (solved(), planner.solve(toy("a=1@D w=4@H", "f(5): a,w -> b(1)", D=5))):
        plan.save(tmp_path / "plan.json")
        fits("planner-plan/1", json.loads((tmp_path / "plan.json").read_bytes()))
    fits("planner-plan/1", {"format": "planner-plan/1", "problem": "0" * 64, "program": [["run", "f", {"w": "host"}]]})


@pytest.mark.parametrize("row", [["run"], ["jump", "f"], ["copy", "w", "host"], ["drop", "w", 3], ["run", "f", {"w": 3}], 7, []])
def test_malformed_instructions_do_not_fit(row: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        fits("planner-plan/1", {"format": "planner-plan/1", "problem": "0" * 64, "program": [row]})


@pytest.mark.parametrize("file", sorted(models_path().glob("*.json.gz")), ids=lambda p: p.name)
def test_bundled_graphs_fit(file: Path) -> None:
    fits("planner-graph/1", json.loads(gzip.decompress(file.read_bytes())))


def test_presets_fit() -> None:
    for found in presets():
        fits("planner-machine/1", found.machine.to_dict())


#: What only the reader can say: names, orders, and how large the whole is.
_BEYOND = ("duplicate", "unknown tensor", "unknown op", "producers", "needs a home", "no op writes", "alias of itself",
           "larger than its storage", "both written", "cycle", "cannot be created", "not an operand", "reserved", "''")


@pytest.mark.parametrize(("path", "value", "words"), [(p, v, w) for p, v, _, w in GRAPH_FAULTS if w], ids=str)
def test_what_the_reader_refuses_by_its_form_does_not_fit(path: str, value: Any, words: str) -> None:
    if any(w in words for w in _BEYOND):
        fits("planner-graph/1", put(GRAPH, path, value))
        return
    with pytest.raises(jsonschema.ValidationError):
        fits("planner-graph/1", put(GRAPH, path, value))
