"""Plans as traces, memory snapshots, tables and pages: each a function of a plan that returns the file's bytes."""

from planner.io.exporters.csv import to_csv
from planner.io.exporters.html import to_html
from planner.io.exporters.memory_viz import to_memory_viz
from planner.io.exporters.perfetto import to_perfetto

__all__ = ["to_csv", "to_html", "to_memory_viz", "to_perfetto"]
