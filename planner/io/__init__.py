"""Versioned JSON files, importers and exporters."""

from planner.io.files import load, load_graph, load_machine, load_problem, save_graph

__all__ = ["load", "load_graph", "load_machine", "load_problem", "save_graph"]
