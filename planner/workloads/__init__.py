"""Graphs built from formulas, without any framework."""
