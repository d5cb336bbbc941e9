"""Heuristics: each turns a problem into a program, quickly and without proof."""
