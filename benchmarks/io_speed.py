"""Time of reading, lowering, checking and replaying at the sizes that the design asks for.

    python benchmarks/io_speed.py [--repeat 5]

Prints the median of each and the limit it is held to: 150 ms to load a graph file of 16,000 objects, 200 ms to check
20,000 instructions. CPU time of this process, so that other load on the machine does not count.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner.check import check
from planner.graph import Graph, Op, Tensor
from planner.io.files import load_graph, save_graph
from planner.io.text import parse_json
from planner.presets import preset
from planner.problem import Problem
from planner.program import Copy, Drop, Instruction, Program, Run
from planner.replay import encode, replay

LOAD_MS, CHECK_MS = 150, 200


def layered(ops: int) -> Graph:
    """Return a chain of ops, half of them with a weight of their own, that has as many tensors as ops (and one more)."""
    tensors = [Tensor("model.input", 4096, ("device",), kind="input")]
    rows: list[Op] = []
    for i in range(ops):
        name = f"model.layers.{i // 8}.block.{i % 8}"
        reads = [tensors[-1].name]
        if i % 2 == 0:
            tensors.append(Tensor(f"{name}.weight", 4096 * (i % 7 + 1), ("host",), "home", "weight"))
            reads.append(tensors[-1].name)
            tensors.append(Tensor(f"{name}.out", 4096, kind="activation"))
            written: tuple[str, ...] = (tensors[-1].name,)
        else:
            written = ()
        rows.append(Op(name, tuple(reads), written, duration=1000 + i % 13, workspace=512 * (i % 3), flops=10**9 + i,
                       bytes=10**6 + i, dtype="bf16"))
    return Graph("layered", tuple(tensors), tuple(rows))


def streamed(problem: Problem, instructions: int) -> Program:
    """Return a legal program of about that many instructions: load, run, drop what is dead."""
    low, rows = problem.lowered, list[Instruction]()
    last = {n: i for i, op in enumerate(low.ops) for n in (*op.reads, *op.writes)}
    for i, op in enumerate(low.ops):
        loads = [n for n in op.reads if low.tensor[n].home == ("host",)]
        rows += [Copy(n, "host", "device") for n in loads]
        rows.append(Run(op.name))
        rows += [Drop(n, "device") for n in dict.fromkeys((*op.reads, *op.writes)) if last[n] == i]
    assert len(rows) >= instructions, len(rows)
    return Program(tuple(rows))


def median_ms(work: Callable[[], Any], repeat: int) -> float:
    """Return the median CPU time of a call, ms."""
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        work()
        times.append(1e3 * (time.process_time() - begin))
    return statistics.median(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    graph = layered(8000)
    objects = len(graph.tensors) + len(graph.ops)
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "g.json", Path(folder) / "g.json.gz"
        save_graph(graph, plain)
        save_graph(graph, packed)
        text = plain.read_bytes()
        rows = [
            (f"parse JSON, {len(text)} bytes", median_ms(lambda: parse_json(text), repeat), None),
            (f"load graph, {objects} objects, .json", median_ms(lambda: load_graph(plain), repeat), LOAD_MS),
            (f"load graph, {objects} objects, .json.gz", median_ms(lambda: load_graph(packed), repeat), LOAD_MS),
        ]
    machine = preset("h100-pcie5")
    problem = Problem(graph, machine)
    program = streamed(problem, 20_000)
    assert check(problem, program).valid
    encoded = encode(problem, program)
    replay(problem, encoded)  # compiles
    rows += [
        (f"lower problem, {objects} objects", median_ms(lambda: Problem(graph, machine), repeat), None),
        (f"check, {len(program)} instructions", median_ms(lambda: check(problem, program), repeat), CHECK_MS),
        (f"encode, {len(program)} instructions", median_ms(lambda: encode(problem, program), repeat), None),
        (f"replay, {len(program)} instructions", median_ms(lambda: replay(problem, encoded), repeat), None),
    ]
    for name, ms, limit in rows:
        print(f"{name:45s} {ms:8.1f} ms" + (f"  (limit {limit} ms)" if limit else ""))


if __name__ == "__main__":
    main()
