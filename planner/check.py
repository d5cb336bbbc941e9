"""Placeholder until the checker lands."""
from typing import Any

def check(problem: Any, program: Any) -> Any:
    """Not built yet."""
    raise RuntimeError("the checker has not landed")
