"""One fault a file: an error that names the file, the path inside it and the value; several faults are listed together."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.errors import InputError
from planner.io.files import load_graph, load_machine, load_problem
from planner.io.plan_json import load_plan

GRAPH: dict[str, Any] = {
    "format": "planner-graph/1", "name": "g",
    "tensors": [{"name": "a", "size": 1, "home": ["device"]}, {"name": "w", "size": 4, "home": ["host"]},
                {"name": "b", "size": 1}],
    "ops": [{"name": "f", "reads": ["a", "w"], "writes": ["b"], "duration": 5}],
}
MACHINE: dict[str, Any] = {
    "format": "planner-machine/1", "name": "m",
    "tiers": [{"name": "device", "capacity": 16}, {"name": "host", "capacity": None}],
    "links": [{"src": "host", "dst": "device", "bandwidth": "1GB/s"}],
}
PROBLEM: dict[str, Any] = {"format": "planner-problem/1", "graph": GRAPH, "machine": MACHINE}
PLAN: dict[str, Any] = {"format": "planner-plan/1", "problem": "0" * 64, "program": [["run", "f"]], "claim": {}}


def put(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with one member set (``"tensors.0.size"``; ``"ops.+"`` appends)."""
    found: Any = json.loads(json.dumps(data))
    place, (*keys, last) = found, path.split(".")
    for key in keys:
        place = place[int(key) if isinstance(place, list) else key]
    if last == "+":
        place.append(value)
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return found  # type: ignore[no-any-return]


#: path to set, value, path in the message, words in the message
GRAPH_FAULTS = [
    ("tensors.+", {"name": "a", "size": 1, "home": ["host"]}, "tensors[3].name",
     "duplicate tensor name 'a' (first at tensors[0])"),
    ("ops.+", {"name": "f", "duration": 1}, "ops[1].name", "duplicate op name 'f' (first at ops[0])"),
    ("ops.0.reads", ["a", "nosuch"], "ops[0].reads", "unknown tensor 'nosuch'"),
    ("ops.+", {"name": "g", "writes": ["b"], "duration": 1}, "ops[1].writes", "'b' has two producers, 'f' and 'g'"),
    ("tensors.0.size", -1, "tensors[0].size", "-1"), ("tensors.0.size", 1.5, "tensors[0].size", "1.5"),
    ("tensors.0.size", "abc", "tensors[0].size", "'abc'"), ("tensors.0.size", "nan", "tensors[0].size", "'nan'"),
    ("tensors.0.size", None, "tensors[0].size", "None"), ("tensors.0.size", True, "tensors[0].size", "True"),
    ("tensors.0.size", "1Gb", "tensors[0].size", "bits"), ("tensors.0.size", 2**63, "tensors[0].size", "2^62"),
    ("tensors.0.size", [1], "tensors[0].size", "[1]"), ("tensors.0", 7, "tensors[0]", "7: must be an object"),
    ("tensors", {}, "tensors", "{}: must be a list"), ("tensors.0", {"size": 1}, "tensors[0].name", "is missing"),
    ("tensors.0", {"name": "a", "home": ["device"]}, "tensors[0].size", "is missing"),
    ("tensors.0.name", 5, "tensors[0].name", "5: must be a string"), ("tensors.0.name", "", "tensors[0].name", "''"),
    ("tensors.0.name", "a@b", "tensors[0].name", "reserved"), ("tensors.0.name", "a#0", "tensors[0].name", "reserved"),
    ("tensors.0.home", "device", "tensors[0].home", "'device': must be a list of names"),
    ("tensors.0.home", [3], "tensors[0].home", "3: must be a name"),
    ("tensors.0.keep", 3, "tensors[0].keep", "3: must be"),
    ("tensors.0.kind", None, "tensors[0].kind", "None: must be a string"),
    ("tensors.0.storage", 0, "tensors[0].storage", "unknown field 'storage'"),
    ("nmae", "x", "nmae", "unknown field 'nmae'"),
    ("tensors.2.keep", "home", "tensors[2].keep", "'home' needs a home"),
    ("tensors.+", {"name": "z", "size": 1, "keep": "host"}, "tensors[3].keep", "no op writes it"),
    ("tensors.+", {"name": "z", "size": 1, "alias_of": "q"}, "tensors[3].alias_of", "unknown tensor 'q'"),
    ("tensors.+", {"name": "z", "size": 1, "alias_of": "z"}, "tensors[3].alias_of", "'z' is an alias of itself"),
    ("tensors.+", {"name": "z", "size": 9, "alias_of": "w"}, "tensors[3].size", "9: larger than its storage 'w' of 4"),
    ("ops.0.duration", -1, "ops[0].duration", "-1"), ("ops.0.duration", "soon", "ops[0].duration", "'soon'"),
    ("ops.0.duration", 2.5, "ops[0].duration", "2.5"), ("ops.0.duration", "5", "", ""),
    ("ops.0.workspace", "1G", "ops[0].workspace", "ambiguous"),
    ("ops.0.stream", 1, "ops[0].stream", "1: must be a string"),
    ("ops.0.recomputable", 1, "ops[0].recomputable", "1: must be true or false"),
    ("ops.0.reads", "a", "ops[0].reads", "'a': must be a list of names"),
    ("ops.0.reeds", [], "ops[0].reeds", "unknown field"),
    ("ops.0.updates", ["b"], "ops[0].updates", "both written and updated"),
    ("ops.0.after", ["x"], "ops[0].after", "unknown op 'x'"),
    ("ops.0.after", ["f"], "ops", "cycle: f > f"), ("ops.0.writes", ["w"], "ops[0].writes", "cannot be created"),
    ("ops.0.flops", -1, "ops[0].flops", "-1"), ("ops.0.flops", "9", "ops[0].flops", "'9': must be"),
    ("ops.0.placements", [{"at": {"q": "host"}, "duration": 1}], "ops[0].placements[0].at", "'q' is not an operand"),
    ("ops.0.placements", [{"at": {"w": "host"}}], "ops[0].placements[0].duration", "is missing"),
    ("ops.0.placements", [{"at": ["w"], "duration": 1}], "ops[0].placements[0].at", "must be an object"),
    ("ops.0.placements", {"at": {}}, "ops[0].placements", "must be a list"),
    ("name", 4, "name", "4: must be a string"),
]


@pytest.mark.parametrize(("path", "value", "where", "words"), [f for f in GRAPH_FAULTS if f[3]], ids=str)
def test_graphs(path: str, value: Any, where: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(put(GRAPH, path, value)))
    with pytest.raises(InputError) as caught:
        planner.load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert any(f.where == where and words in f.problem for f in caught.value.faults), str(caught.value)
    # and as a part of a problem, with the longer path
    inner = tmp_path / "problem.json"
    inner.write_text(json.dumps(PROBLEM | {"graph": put(GRAPH, path, value)}))
    with pytest.raises(InputError) as caught:
        planner.load(inner)
    assert str(caught.value).startswith(f"{inner}: ")
    assert any(f.where == f"graph.{where}" and words in f.problem for f in caught.value.faults), str(caught.value)
    # and in a file of its own that the problem names
    inner.write_text(json.dumps(PROBLEM | {"graph": "broken.json"}))
    with pytest.raises(InputError) as caught:
        planner.load(inner)
    assert str(caught.value).startswith(f"{inner}: graph: {file}: ")


@pytest.mark.parametrize(("path", "value", "where", "words"), [
    ("tiers", [], "tiers", "at least one tier"),
    ("tiers.0.capasity", 4, "tiers[0].capasity", "unknown field 'capasity'"),
    ("tiers.0.capacity", 0, "tiers[0].capacity", "usable device capacity is 0"),
    ("tiers.0.reserve", "1073741840", "tiers[0].capacity", "usable device capacity is -1073741824 bytes (-1.00 GiB"),
    ("tiers.0.reserve", "110%", "tiers[0].reserve", "%"),
    ("tiers.0.granule", 0, "tiers[0].granule", "0"), ("tiers.0.direct", "yes", "tiers[0].direct", "'yes'"),
    ("tiers.0.direct_bandwidth", 5, "tiers[0].direct_bandwidth", "no effect"),
    ("tiers.1.name", "device", "tiers[1].name", "duplicate"),
    ("tiers.1.name", "any", "tiers[1].name", "'any'"), ("tiers.1.name", "a>b", "tiers[1].name", "'a>b'"),
    ("links.0.src", "hots", "links[0].src", "unknown tier 'hots'"), ("links.0.src", "device", "links[0]", "to itself"),
    ("links.0.bandwidth", 0, "links[0].bandwidth", "at least 1"),
    ("links.0.bandwidth", "25Gb/s", "links[0].bandwidth", "bits"),
    ("links.0.latency", "10", "", ""), ("links.0.latency", "10 uS", "links[0].latency", "'uS'"),
    ("links.+", {"src": "host", "dst": "device", "bandwidth": 1}, "links[1]", "a second link"),
    ("links.0", {"src": "host", "dst": "device"}, "links[0].bandwidth", "is missing"),
    ("compute", {"flops": {"bf16": "9T"}}, "compute.flops.bf16", "'9T'"),
    ("compute", {"efficiency": 1.2}, "compute.efficiency", "6/5"),
    ("compute", {"efficiency": "70%"}, "compute.efficiency", "'70%'"),
    ("compute", {"efficiency": "1e-999999999"}, "compute.efficiency", "without a unit"),
    ("compute", {"efficiency": 0}, "compute.efficiency", "above 0"), ("compute", 7, "compute", "7: must be an object"),
    ("notes", [], "notes", "[]: must be an object"),
])
def test_machines(path: str, value: Any, where: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(put(MACHINE, path, value)))
    if not words:
        load_machine(file)
        return
    with pytest.raises(InputError) as caught:
        load_machine(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert any(f.where == where and words in f.problem for f in caught.value.faults), str(caught.value)


@pytest.mark.parametrize(("path", "value", "where", "words"), [
    ("machine", "no-such-preset", "machine", "no-such-preset"), ("graph", "gone.json", "graph", "gone.json"),
    ("graph", None, "graph", "None"), ("graph", "no-such-model", "graph", "no-such-model"),
    ("bugdets", {}, "bugdets", "unknown field"),
    ("budgets", {"device": 17}, "budgets.device", "17 bytes is above"),
    ("budgets", {"device": 0}, "budgets.device", "positive"),
    ("budgets", {"vram": 1}, "budgets.vram", "unknown tier"),
    ("budgets", {"device": "6G"}, "budgets.device", "ambiguous"),
    ("budgets", 6, "budgets", "6: must be an object"), ("rules", {"offlaod": True}, "rules.offlaod", "unknown field"),
    ("rules", {"offload": "no"}, "rules.offload", "'no'"),
    ("rules", {"prune-dead": True}, "rules.prune-dead", "not built"),
    ("rules", {"pin": {"nosuch": "device"}}, "rules.pin.nosuch", "matches no tensor"),
    ("rules", {"chunk": 4}, "rules.chunk", "no effect"),
    ("rules", {"split": True, "chunk": 0}, "rules.chunk", "0"),
    ("rules", {"pin": {"w": "vram"}}, "rules.pin.w", "unknown tier 'vram'"),
    ("rules", {"pin": {"w": "device", "*": "host"}}, "rules.pin.w", "pins 'w' to 'device', another pattern to 'host'"),
    ("objective", "speed", "objective", "'speed'"), ("objective", "peak", "objective", "needs"),
    ("max_slowdown", 1.5, "objective", "no effect"), ("max_makespan", 7.6, "max_makespan", "7.6"),
    ("graph.tensors.1.home", ["hots"], "graph.tensors[1].home", "unknown home tier 'hots'"),
    ("graph.tensors.1.keep", "hots", "graph.tensors[1].keep", "unknown keep tier 'hots'"),
    ("graph.tensors.2.keep", "host", "graph.tensors[2].keep",
     "tensor 'b': no link leads from 'device' to its keep tier 'host'"),
    ("machine.links", [], "graph.tensors[1].home", "tensor 'w': no link leads from its home"),
    ("graph.ops.0.duration", None, "graph.ops[0]", "time of op 'f' is unknown"),
    ("graph.ops.0.placements", [{"at": {"w": "vram"}, "duration": 1}], "graph.ops[0].placements", "unknown tier 'vram'"),
    ("graph.ops.0.placements", [{"at": {"w": "device"}, "duration": 1}], "graph.ops[0].placements[0].at", "no operand off"),
    ("graph.ops.0.placements", [{"at": {"w": "host"}, "duration": 1}, {"at": {"w": "host", "a": "device"}, "duration": 2}],
     "graph.ops[0].placements[1].at", "already"),
    ("graph.tensors.0.size", 2**62, "graph.tensors", "all sizes together"), ("graph.ops.0.duration", 2**62, "", ""),
])
def test_problems(path: str, value: Any, where: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(put(PROBLEM, path, value)))
    if not words:
        load_problem(file)
        return
    with pytest.raises(InputError) as caught:
        load_problem(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert any(f.where == where and words in f.problem for f in caught.value.faults), str(caught.value)


@pytest.mark.parametrize(("path", "value", "where"), [
    ("program", [["run"]], "program[0]"), ("program", [["jump", "f"]], "program[0]"),
    ("program", [["copy", "w", "host"]], "program[0]"),
    ("program", [["run", "f"], 7], "program[1]"), ("program", [["drop", "w", 3]], "program[0]"),
    ("program", {}, "program"),
    ("program", [["run", "f", {"w": 3}]], "program[0]"), ("start", {"w": 3}, "start"), ("problem", None, "problem"),
    ("claim", [], "claim"), ("clame", {}, "clame"), ("format", "planner-plan/2", "format"),
])
def test_plans(path: str, value: Any, where: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(put(PLAN, path, value)))
    with pytest.raises(InputError) as caught:
        load_plan(file)
    assert str(caught.value).startswith(f"{file}: {where}: ")


@pytest.mark.parametrize(("text", "words"), [
    (b"", "empty"), (b" \n", "empty"), (b"{", "not JSON: "), (b'{"format": "planner-graph/1",}', "line 1, column 30"),
    (b"\x00", "not JSON"), (b'{"a": 1} x', "Extra data"), (b"[1,\n 2,,]", "line 2, column 4"), (b'{"a": NaN}', "NaN is not"),
    (b'{"a": -Infinity}', "-Infinity is not"), (b"\xff\xfe", "not UTF-8 text: byte 0 is 0xff"),
    (b'"\\ud800"', "stands for no"),
    (b'{"tensors": [{"name": "a", "size": 1, "size": 2}]}', "tensors[0].size: 'size' is given twice"),
    (b'{"format": 1, "format": 1, "x": {"y": 1, "y": 2}}', "x.y: 'y' is given twice"),
    (b"[" * 10**7, "nested too deep"), (b'{"a":' * 10**6, "nested too deep"),
    (b"[" * 10**6 + b"]" * 10**6, "nested too deep"),
    (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"), (b"null", "format None is not known"), (b"[]", "format None is not known"),
    (b'{"format": 3}', "format 3 is not known"), (b'{"format": "planner-graph/9"}', "planner-graph/9"),
])
def test_texts(text: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(text)
    with pytest.raises(InputError) as caught:
        planner.load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "bom.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(GRAPH).encode())
    assert load_graph(file).name == "g"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(GRAPH).encode())
    bent = packed[:30] + b"xx" + packed[32:]
    for name, data in (("plain.json.gz", b"{}"), ("cut.json.gz", packed[:-9]), ("bent.json.gz", bent)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=f"{name}: cannot be read: "):
            planner.load(tmp_path / name)
    for name in ("gone.json", "."):
        with pytest.raises(InputError, match="cannot be read: "):
            planner.load(tmp_path / name)


@pytest.mark.parametrize("key", ["assume-unknown", "assume_unknown", "inplace", "pow2", "prune-dead", "prune_dead"])
def test_options_that_are_known_and_not_built_are_refused_once(key: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(PROBLEM | {"rules": {key: True}}))
    with pytest.raises(InputError) as caught:
        load_problem(tmp_path / "p.json")
    assert [(f.where, f.problem) for f in caught.value.faults] == [
        (f"rules.{key}", "this option is known and not built; leave it out")]


def test_a_name_given_twice_is_one_fault(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps(put(GRAPH, "tensors.+", {"name": "a", "size": 1})))
    with pytest.raises(InputError) as caught:
        load_graph(tmp_path / "g.json")
    assert [f.where for f in caught.value.faults] == ["tensors[3].name"]


def test_several_faults_are_listed_together(tmp_path: Path) -> None:
    data = put(put(put(PROBLEM, "graph.tensors.0.size", -1), "machine.tiers.0.capasity", 1), "budgets", {"device": "6G"})
    data = put(put(data, "graph.ops.0.duration", "soon"), "graph.ops.0.reads", ["a", "nosuch"])
    data["rules"] = {"recomput": True}
    (tmp_path / "p.json").write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        load_problem(tmp_path / "p.json")
    assert {f.where for f in caught.value.faults} == {
        "graph.tensors[0].size", "graph.ops[0].duration", "graph.ops[0].reads", "machine.tiers[0].capasity", "budgets.device",
        "rules.recomput"}
    assert len(str(caught.value).splitlines()) == 7


def test_deep_graphs_are_no_problem(tmp_path: Path) -> None:
    n = 5000
    tensors = [{"name": f"t{i}", "size": 1, "home": [] if i else ["device"]} for i in range(n + 1)]
    ops = [{"name": f"f{i}", "reads": [f"t{i}"], "writes": [f"t{i + 1}"], "duration": 1} for i in range(n)]
    data = {"format": "planner-graph/1", "tensors": tensors, "ops": ops}
    (tmp_path / "deep.json").write_text(json.dumps(data))
    assert len(load_graph(tmp_path / "deep.json").ops) == n
    data["ops"] = ops[::-1]
    (tmp_path / "deep.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="topological"):
        load_graph(tmp_path / "deep.json")


def test_cycles_are_printed(tmp_path: Path) -> None:
    data = {"format": "planner-graph/1", "tensors": [{"name": n, "size": 1} for n in "abc"],
            "ops": [{"name": f"op{i}", "reads": [r], "writes": [w], "duration": 1}
                    for i, (r, w) in enumerate([("c", "a"), ("a", "b"), ("b", "c")], 1)]}
    (tmp_path / "loop.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="op1 > op2 > op3 > op1"):
        load_graph(tmp_path / "loop.json")
