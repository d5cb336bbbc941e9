"""Progress goes to stderr: a live line on a terminal, else plain lines that are not too many."""

from __future__ import annotations

import io
import sys

import pytest

from planner.cli import progress
from planner.cli.progress import Reporter, progress_line
from planner.progress import ProgressEvent

EVENT = ProgressEvent(3.25, "list schedule", 2_000_000, 1_000_000, 1.0)


def test_line_has_incumbent_bound_and_gap() -> None:
    line = progress_line(EVENT)
    for part in ("3.2 s", "list schedule", "makespan 2.000 ms", "bound 1.000 ms", "gap 100.00 %"):
        assert part in line
    assert "makespan –  bound –  gap –" in progress_line(ProgressEvent(0.0, "start", None, None, None))


def test_plain_lines_are_rare(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Reporter() as report:
        for tick in range(200):
            now[0] = tick / 10
            report(EVENT)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 3


def test_live_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with Reporter() as report:
        report(EVENT)
    assert "list schedule" in screen.getvalue()
