"""Exported files: what each must contain, read back by plain means."""

from __future__ import annotations

import csv
import io
import json
import pickle
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest

from planner.io.exporters import to_csv, to_html, to_memory_viz, to_perfetto
from planner.plan import Plan, Scope, Status
from planner.program import Program, Run
from tests.plotting.plans import as_plan, offload_plan
from tests.toys import toy


class _PlainOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise AssertionError(f"the pickle names {module}.{name}: loading it would run code")


def _snapshot(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = _PlainOnly(io.BytesIO(to_memory_viz(plan))).load()
    return found


@pytest.mark.parametrize("export", [to_csv, to_html, to_memory_viz, to_perfetto])
def test_same_bytes_twice_and_no_plan_is_refused(export: Callable[[Plan], bytes]) -> None:
    assert export(offload_plan()) == export(offload_plan())
    empty = Plan(offload_plan().problem, None, Status.INFEASIBLE, "", Scope("fixed", False, False, ("device",)))
    with pytest.raises(ValueError, match="no program"):
        export(empty)


def test_csv_has_one_row_an_instruction() -> None:
    plan = offload_plan()
    rows = list(csv.DictReader(io.StringIO(to_csv(plan).decode())))
    assert plan.program is not None
    assert len(rows) == len(plan.program)
    assert rows[0] == {"index": "0", "kind": "copy", "name": "w", "src": "host", "dst": "device", "start_ns": "0",
                       "end_ns": "2", "bytes": "3", "lane": "host>device"}


def test_perfetto_has_tracks_bars_and_counters() -> None:
    plan = offload_plan()
    data = json.loads(to_perfetto(plan))
    events = data["traceEvents"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert sorted(tracks.values()) == ["compute", "device>host", "host>device"]
    bars = [e for e in events if e["ph"] == "X"]
    assert [b["name"] for b in bars if tracks[b["pid"], b["tid"]] == "compute"] == ["op1", "op2", "op3", "op2", "op4"]
    assert [b["name"] for b in bars if b["cat"] == "recompute"] == ["op2"]
    assert max(b["ts"] + b["dur"] for b in bars) * 1000 == pytest.approx(plan.makespan_ns)
    moved = sum(b["args"]["bytes"] for b in bars if b["cat"] == "copy")
    assert moved == sum(plan.moved_bytes.values())
    used = [e["args"]["used"] for e in events if e["name"] == "device bytes"]
    assert max(used) == plan.peak_bytes["device"]
    assert {e["args"]["bytes"] for e in events if e["name"] == "device budget"} == {10}


def test_an_unbounded_tier_has_no_budget_track() -> None:
    plan = as_plan(toy("x=1@D", "op1(1): x -> y(1)", D=4, out="y@D"), Program((Run("op1"),)))
    names = {e["name"] for e in json.loads(to_perfetto(plan))["traceEvents"]}
    assert "device budget" in names
    assert "host budget" not in names


def test_memory_snapshot_allocates_and_frees_without_overlap() -> None:
    plan = offload_plan()
    data = _snapshot(plan)
    (trace,) = data["device_traces"]
    alive: dict[int, int] = {}
    highest = 0
    for event in trace:
        if event["action"] == "alloc":
            for start, size in alive.items():
                assert start + size <= event["addr"] or event["addr"] + event["size"] <= start, "blocks overlap"
            alive[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            assert alive.pop(event["addr"]) == event["size"]
        highest = max(highest, sum(alive.values()))
    assert highest <= plan.peak_bytes["device"]
    (segment,) = data["segments"]
    assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
    left = {b["address"]: b["size"] for b in segment["blocks"] if b["state"] == "active_allocated"}
    assert left == alive
    names = {e["frames"][0]["name"] for e in trace if e["action"] == "alloc"}
    assert {"x", "w", "a1", "a2", "a3", "y", "op3@workspace"} == names


def test_page_stands_alone_and_escapes_names() -> None:
    page = to_html(offload_plan()).decode()
    assert "<script" not in page
    assert "src=" not in page
    assert "href" not in page
    svg = ElementTree.fromstring(page[page.index("<svg"): page.index("</svg>") + 6])
    tips = [t.text for t in svg.iter("title")]
    assert len(tips) == 5 + 2 + 2
    assert "a1 host>device: 15 ns to 17 ns" in tips
    assert "peak 10 B, budget 10 B" in page


def test_a_page_of_many_bars_stays_small() -> None:
    n = 6000
    problem = toy("x=1@D", *(f"o{i}(1): {f'a{i - 1}' if i else 'x'} -> a{i}(0)" for i in range(n)), D=1)
    plan = as_plan(problem, Program(tuple(Run(f"o{i}") for i in range(n))))
    assert len(to_html(plan)) < 50_000
