"""`h3sim find`: which scheme serves pages best, and how sure that is."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.cli.options import add_buffer_option, add_load_options, read_config
from h3sim.cli.parsing import Mistakes, Parser, RawHelp, progress_bar
from h3sim.cli.subjects import add_pages, add_schemes, read_pages, read_schemes
from h3sim.cli.tables import add_wide, fitted, ratios, table, terminal_width
from h3sim.documents import shown
from h3sim.errors import InputError, Problem
from h3sim.fitting import SURE
from h3sim.printable import printable
from h3sim.study import find, resolve_scheme
from h3sim.study.arms import arms_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from h3sim.study import FoundScheme

__all__ = ["add_command", "add_network_within", "network_within_problems"]

_EPILOG = """\
examples:
  h3sim find http2rulez --network cable --loss 1%
  h3sim find corpus:small --scheme chrome-h2,firefox-eps,h3sim-1 --resources all
  h3sim find http2rulez --scheme rr,wrr --param turn_packets=1,4,16
  h3sim find my-page.json --scheme marx-2019,h3sim-1 --baseline chrome-h2 --seeds 100

All schemes meet the same pages and seeds; the better half goes on, round by round, until what is
best is sure or the seeds are used up. Then the choice is put over other networks, and over what
may have been misjudged. With --param, each scheme is tried with every combination of the values
that it can have: of keys of its file (h3sim show scheme NAME), with dots between tables, or of
send_buffer_kb, send_buffer_refill, retransmission_order and cc, which servers choose.
"""
_NETWORKS = "cable,4g,dsl"
_MOST_WITHIN = 100


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "find",
        help=summary,
        description="Find the scheme with the least ByteIndex, and say how sure that is.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    add_schemes(parser)
    parser.add_argument(
        "--param",
        metavar="KEY=VALUES",
        action="append",
        default=[],
        help="try these values of a parameter, with commas between; may be given several times",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        default="chrome-eps",
        help="what the gain is told over (default: %(default)s)",
    )
    parser.add_argument(
        "--resources",
        choices=("atf", "all"),
        default="atf",
        help="above the fold, or all resources",
    )
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument(
        "--seeds",
        type=int,
        default=30,
        metavar="N",
        help="at most so many, from --seed on (default: %(default)s)",
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="SHARE", help="default: %(default)s"
    )
    parser.add_argument(
        "--robustness-networks",
        metavar="NAMES",
        default=_NETWORKS,
        help="where the choice is tried as well, with commas between (default: %(default)s)",
    )
    add_network_within(parser, usual=1.0)
    parser.add_argument("--json", action="store_true", help="print h3sim-found/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_find)


def add_network_within(parser: argparse.ArgumentParser, *, usual: float) -> None:
    """Add the option that takes the network for a guess."""
    parser.add_argument(
        "--network-uncertainty",
        type=float,
        default=usual,
        metavar="FACTOR",
        help="the network is a guess: draw RTT and rate anew with each seed, up to so many times or"
        " as small a part of what is said (default: %(default)g; 1: as said)",
    )


def _find(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
    pages = read_pages(options, mistakes)
    wanted = read_schemes(options, mistakes)
    mistakes.collect(partial(resolve_scheme, options.baseline))
    mistakes.collect(partial(_check, options))
    vary = mistakes.collect(partial(_varied, options.param)) or {}
    mistakes.collect(partial(arms_of, wanted, vary))
    networks = [name for name in options.robustness_networks.split(",") if name]
    for name in networks:
        mistakes.collect(partial(catalog.load_network, name))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb, pages=pages)
    if mistakes.lines or config is None:
        return mistakes.tell("find")
    with progress_bar("load") as progress:
        found = find(
            pages,
            schemes=wanted,
            vary=vary,
            which=options.resources,
            baseline=options.baseline,
            n_seeds=options.seeds,
            confidence=options.confidence,
            networks=networks,
            network_within=options.network_uncertainty,
            config=config,
            progress=progress,
        )
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
        return 0
    _show(found, terminal_width(options))
    return 0


def _varied(given: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values that are tried, by key.

    >>> _varied(["turn_packets=1,4", "classes.all.incremental=true"])
    {'turn_packets': [1, 4], 'classes.all.incremental': [True]}
    """
    wrong = [text for text in given if not all(text.partition("=")[::2])]
    if wrong:
        message = f"must be like turn_packets=1,4, is {shown(wrong[0])}"
        raise InputError([Problem(key="--param", message=message)])
    pairs = (text.partition("=")[::2] for text in given)
    return {key: [_value(text) for text in values.split(",")] for key, values in pairs}


def _value(text: str) -> Any:
    """Return what *text* stands for in a scheme's file: a number, true, false, or itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def network_within_problems(options: argparse.Namespace) -> list[Problem]:
    """Return what is wrong with how far the network may be off."""
    if 1 <= options.network_uncertainty <= _MOST_WITHIN:
        return []
    message = f"must be 1 to {_MOST_WITHIN}, is {options.network_uncertainty:g}"
    return [Problem(key="--network-uncertainty", message=message)]


def _check(options: argparse.Namespace) -> None:
    problems = []
    if options.seeds < 1:
        problems.append(Problem(key="--seeds", message=f"must be 1 or more, is {options.seeds}"))
    if not 0 < options.confidence < 1:
        message = f"must be between 0 and 1, is {options.confidence:g}"
        problems.append(Problem(key="--confidence", message=message))
    problems += network_within_problems(options)
    if problems:
        raise InputError(problems)


def _show(found: FoundScheme, width: int | None) -> None:
    print(f"{fitted(printable(found.verdict), width)}\n")
    print(f"{fitted(printable(found.told()), width)}; {found.n_loads:,} loads\n")
    rows = found.rows
    body = zip(
        [row.scheme for row in rows],
        [row.pairs for row in rows],
        *(ratios(rows.column(name), apart=SURE) for name in ("ratio", "low", "high")),
        [found.standing(row) for row in rows],
        strict=True,
    )
    headers = ("scheme", "pairs", "times the best", "low", "high", "")
    print(table(headers, body, width=width, shorten=True))
    if found.robustness:
        print(f"\nwhat {printable(found.best)} loses where something is otherwise:\n")
        lost = ((row.changed, row.best_there, f"{100 * row.loss:.1f}") for row in found.robustness)
        print(table(("changed", "best there", "loss %"), lost, width=width, shorten=True))
