"""Ways to run the command line on the toy problem."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planner.cli import main
from planner.plan import Plan
from tests.duplex import write_files

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Result:
    """What a command printed and returned."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Folder with graph.json, machine.json, problem.json and the optimal plan.json."""
    return write_files(tmp_path)


@pytest.fixture
def cli(files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command line in this process, in the folder of `files`."""
    monkeypatch.chdir(files)

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run


@pytest.fixture
def stub_solve(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Plan]], None]:
    """Put a function in the place of `planner.solve`."""

    def put(function: Callable[..., Plan]) -> None:
        # ``planner.solve`` is the function; the module of that name is found here.
        monkeypatch.setattr(sys.modules["planner.solve"], "solve", function)

    return put


def spawn(arguments: Sequence[object], folder: Path, script: str | None = None) -> subprocess.Popen[str]:
    """Start the command line in a process of its own (or ``script``, which may prepare things first)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    head = [sys.executable, "-c", script] if script else [sys.executable, "-m", "planner"]
    return subprocess.Popen(
        [*head, *(str(a) for a in arguments)],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
