"""HiGHS without its banner."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["quiet_highs"]


@contextlib.contextmanager
def _stdout_closed() -> Iterator[None]:
    """Send what C code prints on standard output to nowhere."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
        ctypes.CDLL(None).fflush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def quiet_highs() -> Any:
    """Return a HiGHS instance that prints nothing and uses one thread (its constructor prints, whatever the options).

    HiGHS has one pool of threads a process, and refuses to run with another number of threads than the first run asked for;
    so the pool is closed first.
    """
    import highspy

    highspy.Highs.resetGlobalScheduler(True)
    with _stdout_closed():
        highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    return highs
