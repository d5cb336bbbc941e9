"""Show a running solve on stderr: a live line on a terminal, else a plain line every few seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from planner.cli.output import note

if TYPE_CHECKING:
    from planner.progress import ProgressEvent

__all__ = ["Reporter", "progress_line"]

#: Seconds between plain lines.
_EVERY = 5.0


def progress_line(event: ProgressEvent) -> str:
    """Return one line: time, what runs, incumbent, bound, gap."""
    from planner.units import format_duration

    best = "–" if event.incumbent_ns is None else format_duration(event.incumbent_ns)
    bound = "–" if event.bound_ns is None else format_duration(event.bound_ns)
    gap = "–" if event.gap is None else f"{100 * event.gap:.2f} %"
    return f"{event.elapsed_s:7.1f} s  {event.phase:<24}  makespan {best}  bound {bound}  gap {gap}"


class Reporter:
    """A context in which it can be called with each `ProgressEvent`."""

    def __init__(self) -> None:
        self._live: Any = None
        self._last = time.monotonic()

    def __enter__(self) -> Reporter:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live("planning …", console=Console(stderr=True), transient=True, refresh_per_second=4)
            self._live.start()
        return self

    def __call__(self, event: ProgressEvent) -> None:
        line = progress_line(event)
        if self._live is not None:
            self._live.update(line)
        elif time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            note(line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
