"""Arguments of many commands, except those of pages, schemes and loads."""

from __future__ import annotations

from functools import partial

from h3sim.cli import output
from h3sim.cli.command import Argument
from h3sim.schema.values import Integer, Number

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


def figure_options(needs: str = "--plot") -> tuple[Argument, Argument]:
    """Return the options for the style of figures; they go only with the option *needs*."""
    style = Argument(
        "--style STYLE",
        "style of figures; paper: 8 pt type, no title, legend above the data",
        default="screen",
        choices=("screen", "paper"),
        is_rare=True,
        needs=needs,
    )
    width = Argument(
        "--width WIDTH",
        "with --style paper: the width of a column (3.33 in) or a page (7 in)",
        choices=("column", "page"),
        is_rare=True,
        needs="--style",
        dest="figure_width",
    )
    return style, width
