"""The command line: each command is a declared list of arguments and a function.

It may import all rooms; only `__main__` imports it. Begin with `command.py` (what a command is),
then `run.py`, the command of a single load.
"""

from h3sim.cli.main import main

__all__ = ["main"]
