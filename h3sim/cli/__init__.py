"""The command line."""

from h3sim.cli.main import main

__all__ = ["main"]
