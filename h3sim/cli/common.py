"""Arguments of many commands, except those of pages, schemes and loads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.cli import output
from h3sim.cli.command import Argument, ArgumentSet, Options, refuse
from h3sim.schema.values import Integer, Number

if TYPE_CHECKING:
    import argparse

    from h3sim.schema.arguments import ErrorCollector


JSON = partial(Argument, "--json")
PLOT = partial(Argument, "--plot FILE", output=output.PLOT)
STORE = Argument("--store FILE", "store finished loads and reuse them")
WORKERS = Argument(
    "-j --workers N", "worker processes (default: one per core)", Integer(low=1, high=10_000)
)
DASK = Argument("--dask ADDRESS", "run on the workers of this dask.distributed scheduler")
RETRY = Argument("--retry-failed", "rerun loads that failed")
NO_TRUNCATE = Argument(
    "--no-truncate", "do not wrap or truncate output (default: fit the terminal)"
)
SAMPLE_MS = partial(
    Argument,
    "--sample-ms MS",
    "also show ByteIndexes sampled at this interval; use 100 to compare with Marx 2019",
    Number(low=0, high=1e9, is_above=True),
)


class FigureOptions(ArgumentSet):
    """Options for the style of figures, read into `options.figure_style`.

    They go only with the option *needs*, which requests figures.
    """

    is_rare = True

    def __init__(self, needs: str = "--plot") -> None:
        self._arguments = (
            Argument(
                "--style STYLE",
                "style of figures; paper: 8 pt type, no title, legend above the data",
                default="screen",
                choices=("screen", "paper"),
                is_rare=True,
                needs=needs,
            ),
            Argument(
                "--width WIDTH",
                "with --style paper: the width of a column (3.33 in) or a page (7 in)",
                default="page",
                choices=("column", "page"),
                is_rare=True,
                dest="figure_width",
            ),
        )

    def add(self, parser: argparse.ArgumentParser, *, shows_all: bool) -> None:
        """Add the options to *parser*; they are in its help only with *shows_all*."""
        for argument in self._arguments:
            argument.add(parser, shows_all=shows_all)

    def read_into(self, options: Options, errors: ErrorCollector) -> None:
        """Read `options.figure_style`, the keyword arguments of methods that draw."""
        for argument in self._arguments:
            if argument.dest not in options.given:
                setattr(options, argument.dest, argument.default)
            argument.read_into(options, errors)
        options.figure_style = {}
        if options.style == "paper":
            options.figure_style = {"style": "paper", "width": options.figure_width}
        elif "figure_width" in options.given:
            errors.collect("", lambda: refuse([("--width", "goes only with --style paper")]))
