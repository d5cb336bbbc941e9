"""Chapter 14: one fault a file, each with a message that names path and value, exit code 2 and no traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.cli import main
from planner.errors import InputError
from planner.io.problem_json import problem_from_dict
from tests.cases.verified import stream_weights

Data = dict[str, Any]


def _set(*path: Any) -> Callable[[Data], None]:
    *keys, last, value = path

    def change(data: Data) -> None:
        place: Any = data
        for key in keys:
            place = place[key]
        place[last] = value

    return change


def _append(value: Any, *path: Any) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        place: Any = data
        for key in path:
            place = place[key]
        place.append(value)

    return change


T, O, TIER, LINK = ("graph", "tensors"), ("graph", "ops"), ("machine", "tiers"), ("machine", "links")  # noqa: E741

FAULTS: dict[str, tuple[Callable[[Data], None], str]] = {
    "duplicate tensor": (_append({"name": "w1", "size": 4, "home": ["host"]}, *T), "duplicate tensor name 'w1'"),
    "duplicate op": (_append({"name": "op1", "reads": ["a0"], "duration": 1}, *O), "duplicate op name 'op1'"),
    "unknown tensor": (_set(*O, 0, "reads", ["a0", "nosuch"]), "nosuch"),
    "two producers": (_set(*O, 1, "writes", ["a1"]), "two producers"),
    "size -1": (_set(*T, 0, "size", -1), "-1"),
    "size 1.5": (_set(*T, 0, "size", 1.5), "1.5"),
    "size abc": (_set(*T, 0, "size", "abc"), "abc"),
    "size NaN": (_set(*T, 0, "size", float("nan")), "nan"),
    "time -1": (_set(*O, 0, "duration", -1), "-1"),
    "time inf": (_set(*O, 0, "duration", float("inf")), "inf"),
    "rate 0": (_set(*LINK, 0, "bandwidth", 0), "bandwidth"),
    "unknown home": (_set(*T, 1, "home", ["hots"]), "hots"),
    "unknown tier of a link": (_set(*LINK, 0, "src", "hots"), "hots"),
    "link to itself": (_set(*LINK, 0, "src", "device"), "itself"),
    "parallel links": (_append({"src": "host", "dst": "device", "bandwidth": "1GB/s"}, *LINK), "second link"),
    "no way to the device": (lambda d: d["machine"]["links"].clear(), "no link leads from its home"),
    "unknown key": (_set(*TIER, 0, "capasity", 4), "capasity"),
    "unknown rule": (_set("rules", "recomput", True), "recomput"),
    "pin of nothing": (_set("rules", "pin", {"nosuch": "device"}), "nosuch"),
    "conflicting pins": (_set("rules", "pin", {"w1": "device", "w*": "host"}), "pins 'w1'"),
    "output nobody writes": (_append({"name": "ghost", "size": 1, "keep": "device"}, *T), "ghost"),
    "alias of an alias": (lambda d: d["graph"]["tensors"].extend(
        [{"name": "b", "size": 1, "alias_of": "w1"}, {"name": "c", "size": 1, "alias_of": "b"}]), "itself an alias"),
    "alias larger than its base": (_append({"name": "b", "size": 99, "alias_of": "w1"}, *T), "larger than its storage"),
    "reserved name": (_append({"name": "a@b", "size": 1, "home": ["host"]}, *T), "reserved"),
    "budget of an unknown tier": (_set("budgets", {"hbm": 4}), "hbm"),
    "budget above the capacity": (_set("budgets", {"device": 10**6}), "above the usable capacity"),
    "wrong format": (_set("format", "planner-problem/9"), "planner-problem/9"),
}


def test_82_the_base_is_sound() -> None:
    assert problem_from_dict(stream_weights(13).to_dict()).capacity["device"] == 13


@pytest.mark.parametrize(("change", "words"), FAULTS.values(), ids=list(FAULTS))
def test_82_one_fault_one_message(
    change: Callable[[Data], None], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = copy.deepcopy(stream_weights(13).to_dict())
    change(data)
    with pytest.raises(InputError) as caught:
        problem_from_dict(data)
    assert words in str(caught.value)
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(data))
    assert main(["plan", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert "broken.json" in printed.err.replace("\n", "")


@pytest.mark.parametrize("text", ["", "{", '{"format": "planner-problem/1",}', "[" * 10**6, "null", "[]", "\x00"],
                         ids=["empty", "open", "trailing comma", "deep nesting", "null", "list", "binary"])
def test_82_files_that_are_no_problem(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text)
    assert main(["plan", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err


def test_82_faults_are_listed_together() -> None:
    data = stream_weights(13).to_dict()
    data["graph"]["tensors"][0]["size"] = -1
    data["graph"]["ops"][0]["duration"] = "soon"
    with pytest.raises(InputError) as caught:
        problem_from_dict(data)
    assert len(caught.value.faults) >= 2
    assert {"-1", "soon"} <= {w for f in caught.value.faults for w in ("-1", "soon") if w in str(f)}


def test_82_residents_larger_than_their_tier_are_infeasible(tmp_path: Path) -> None:
    """The contract calls this infeasible (3), not bad input."""
    data = stream_weights(13).to_dict()
    data["graph"]["tensors"][0]["size"] = 50
    file = tmp_path / "big.json"
    file.write_text(json.dumps(data))
    assert main(["plan", str(file), "--json"]) == 3
