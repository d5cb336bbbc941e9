"""The command line: ``planner plan | check | compare | replay | info | capture | export | presets | doctor``.

One file a command; `planner.cli.source` reads PROBLEM and the options that shape it, `planner.cli.output` holds exit
codes and how things are printed. Commands import what they need when they run, so that ``planner --help`` stays quick.
"""

from planner.cli.app import main

__all__ = ["main"]
