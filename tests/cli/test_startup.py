"""``planner --help`` and ``import planner`` stay quick and pull in nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import main

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "ortools", "pulp", "highspy", "pandas", "matplotlib", "numba", "networkx", "onnx", "transformers")


def _fresh(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, timeout=60, check=True
    )
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "action",
    [
        "import planner",
        "from planner.cli import main; main(['--help'])",
        "from planner.cli import main; main(['plan', '--help'])",
    ],
)
def test_nothing_heavy_is_imported(action: str) -> None:
    assert _fresh(f"{action}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])") == "[]"


def test_help_takes_little_cpu_time() -> None:
    code = "import time; from planner.cli import main; main(['--help']); print(time.process_time())"
    assert min(float(_fresh(code)) for _ in range(3)) <= 0.4


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in ("plan", "check", "compare", "replay", "info", "capture", "export", "presets", "doctor"):
        assert f"\n  {name} " in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    import planner

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == planner.__version__


def test_unknown_command_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plann"]) == 2
    printed = capsys.readouterr()
    assert "plann" in printed.err
    assert not printed.out
