"""``import planner`` and reading a file pull in nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import planner
from tests.toys import toy

HEAVY = ("torch", "ortools", "pulp", "highspy", "pandas", "matplotlib", "numba", "networkx", "transformers", "onnx")
WORK = {
    "import": "import planner",
    "load": "import planner; planner.load(sys.argv[1])",
    "check": "import planner; from planner.program import Program, Run; "
             "assert planner.check(planner.load(sys.argv[1]), Program((Run('f'),))).valid",
    "names": "import planner; [getattr(planner, n) for n in planner.__all__]",
}


@pytest.mark.parametrize("work", WORK)
def test_nothing_heavy_is_imported(work: str, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(toy("a=1@D", "f(1): a -> b(1)", D=2).to_dict()))
    heavy = f"sorted(set({HEAVY!r}) & set(sys.modules))"
    code = f"import sys; {WORK[work]}; print({heavy})"
    result = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"


def test_the_public_names_are_those_of_the_table() -> None:
    here = {"__version__", "check", "compare", "info", "replay", "solve"}
    assert set(planner.__all__) == here | set(planner._WHERE)
    assert list(planner.__all__) == sorted(planner.__all__)
