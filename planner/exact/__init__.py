"""Exact formulations, one file each, with the mathematics at the top of its module."""
