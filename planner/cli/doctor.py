"""``planner doctor``: is everything here that the planner needs, and can the solvers be trusted?"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from planner.cli.check import JSON
from planner.cli.output import ExitCode, emit_json, show, table

__all__ = ["doctor"]

_CORE = ("numpy", "networkx", "numba", "ortools", "pulp", "highspy", "msgspec", "pandas", "rich", "typer")
_EXTRAS = {
    "torch": ("torch", "transformers"),
    "onnx": ("onnx",),
    "viz": ("matplotlib",),
    "notebooks": ("nbclient", "nbformat", "ipykernel"),
}

#: (what, does it work?, remark)
Finding = tuple[str, bool, str]


def doctor(as_json: JSON = False) -> int:
    """Check versions, extras, solvers, the compiler and this machine; exit 1 if something that is needed fails."""
    needed = [
        *(_version(name) for name in _CORE),
        _tried("solver trust test", _solvers),
        _tried("numba compiles", _compiler),
        _tried("cache folder writable", _cache),
    ]
    extras = [_extra(name, packages) for name, packages in _EXTRAS.items()]
    facts = {
        "planner": _planner_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": str(_cores()),
        "memory": _memory(),
        "methods": _tried("methods", _methods)[2],
    }
    good = all(works for _, works, _ in needed)
    if as_json:
        emit_json(
            {
                "ok": good,
                "facts": facts,
                "checks": [{"name": n, "ok": w, "remark": r} for n, w, r in needed],
                "extras": [{"name": n, "ok": w, "remark": r} for n, w, r in extras],
            }
        )
    else:
        rows = [(name, "", value) for name, value in facts.items()]
        rows += [(name, "ok" if works else "FAILS", remark) for name, works, remark in needed]
        rows += [(name, "ok" if works else "absent", remark) for name, works, remark in extras]
        show(
            table("", ("what", "state", "remark"), rows, left=("what", "state", "remark")),
            "all that is needed works" if good else "something that is needed fails",
        )
    return ExitCode.DONE if good else ExitCode.FAILURE


def _version(package: str) -> Finding:
    try:
        return package, True, metadata.version(package)
    except metadata.PackageNotFoundError:
        return package, False, "not installed"


def _extra(name: str, packages: tuple[str, ...]) -> Finding:
    found = [_version(package) for package in packages]
    remark = ", ".join(f"{package} {text}" for package, _, text in found)
    works = all(there for _, there, _ in found)
    return f"extra {name}", works, remark if works else f"{remark}; pip install 'offload-planner[{name}]'"


def _tried(what: str, attempt: Callable[[], str]) -> Finding:
    """A doctor reports what is broken; it must not break on it."""
    try:
        return what, True, attempt()
    except Exception as error:  # noqa: BLE001
        return what, False, f"{type(error).__name__}: {error}"


def _solvers() -> str:
    from planner.exact.trust import certifies

    if not certifies():
        raise RuntimeError("a solver gives a wrong answer on a known instance; its proofs are not used")
    return "known instances solved right"


def _compiler() -> str:
    import numba

    double = numba.njit(lambda x: 2 * x)
    if double(21) != 42:
        raise RuntimeError("compiled code gives a wrong answer")
    return f"llvmlite {metadata.version('llvmlite')}"


def _cache() -> str:
    """Compiled code is kept next to the package, or in the user's cache folder where that cannot be written."""
    import tempfile

    own = Path(__file__).parents[1]
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for folder in [Path(chosen)] if chosen else [own, user, *user.parents]:
        if folder.is_dir():
            if not os.access(folder, os.W_OK):
                continue
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
    raise OSError("no folder for compiled code can be written: set NUMBA_CACHE_DIR")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    from planner.units import format_bytes

    try:
        return format_bytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return "unknown"


def _planner_version() -> str:
    from planner import __version__

    return __version__


def _methods() -> str:
    from planner.heuristics.registry import available
    from planner.solve import METHODS

    return ", ".join([*METHODS, *available()])
