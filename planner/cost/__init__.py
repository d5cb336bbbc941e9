"""What an op costs: roofline times from its work, and times measured on the machine at hand."""

from __future__ import annotations

from planner.cost.roofline import roofline_ns

__all__ = ["roofline_ns"]
