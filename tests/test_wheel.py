"""An installed wheel holds what the package needs: models, schemas, types, licence."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--quiet", "-w", str(folder)]
    subprocess.run(command, check=True, timeout=300)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_contents(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "planner/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert sum(name.startswith("planner/_models/") for name in names) >= 5
    assert not [
        name
        for name in names
        if name.startswith(("tests", "models", "benchmarks")) or name.endswith((".pyc", ".nbc"))
    ]


@pytest.mark.slow
def test_bundled_models_load_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(target), str(wheel)]
    subprocess.run(command, check=True, timeout=300)
    code = (
        "import planner; from planner.models import available, load_model; names = available(); "
        "print(planner.__file__, min(len(load_model(n).ops) for n in names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        text=True,
        capture_output=True,
        timeout=120,
        check=True,
    )
    where, smallest = done.stdout.split()
    assert where.startswith(str(target))
    assert int(smallest) > 0
