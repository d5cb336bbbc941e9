"""Speed of the pieces that every run goes through: load, check, replay, the command's start.

    python benchmarks/speed.py

Prints the best of five of each: a graph file of 16,000 objects read and validated; a program of 20,000 instructions checked
and replayed (demand paging on copies of a bundled model's graph); CPU seconds of `planner --help`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import planner
from planner.heuristics.demand import demand_program
from planner.io import load_graph
from planner.program import Program


def best(run: Callable[[], Any], times: int = 5) -> float:
    """Return the least wall-clock time of a few runs, ms."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return 1e3 * min(found)


def chain(ops: int) -> dict[str, Any]:
    """Return a graph of ``ops`` ops and as many tensors, where each op reads the last two results."""
    tensors = [{"name": "x", "size": 4096, "home": ["device"]}] + [
        {"name": f"layer.{i}.out", "size": 4096 + i, "kind": "activation"} for i in range(ops - 1)]
    names = [t["name"] for t in tensors]
    rows = [{"name": f"layer.{i}", "reads": names[max(0, i - 1): i + 1], "writes": [names[i + 1]] if i + 1 < ops else [],
             "duration": 1000 + i, "flops": 2 * i, "bytes": 3 * i, "dtype": "bf16"} for i in range(ops)]
    return {"format": "planner-graph/1", "name": "chain", "tensors": tensors, "ops": rows}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.json"
        path.write_text(json.dumps(chain(8000)))
        print(f"load    16,000 objects            {best(lambda: load_graph(path)):8.1f} ms")
    problem = planner.Problem(planner.load_model("llama3-8b-train-adamw"), planner.preset("h100-pcie5"), {"device": 16 * 2**30})
    program = demand_program(problem)
    assert program is not None
    report = planner.check(problem, program)
    assert report.valid, report.violations[:3]
    size = len(program)
    planner.replay(problem, program)
    scale = 20_000 / size
    print(f"check   {size:6,} instructions       {best(lambda: planner.check(problem, program)):8.1f} ms"
          f"   ({scale * best(lambda: planner.check(problem, program)):.1f} ms per 20,000)")
    print(f"replay  {size:6,} instructions       {best(lambda: planner.replay(problem, program)):8.1f} ms"
          f"   ({scale * best(lambda: planner.replay(problem, program)):.1f} ms per 20,000)")
    assert isinstance(program, Program)
    found = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "planner", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"planner --help                    {min(found):8.2f} CPU s")


if __name__ == "__main__":
    main()
