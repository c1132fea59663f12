"""`h3sim list`: what is shipped, by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import catalog
from h3sim.cli.parsing import RawHelp
from h3sim.cli.tables import add_wide, table, terminal_width
from h3sim.compiling import doc_of
from h3sim.units import to_mbps, to_ms

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from h3sim.cli.parsing import Parser
    from h3sim.plugins import PluginRegistry
    from h3sim.transport import Jitter, Network

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim list schemes
  h3sim list pages --wide | less -S
  h3sim list sets

`h3sim show` tells all about one of them.
"""
_SHOWN_NAMES = 12


class _Listing(NamedTuple):
    """A table; columns beyond *shown* stand in it only where it may be as wide as it gets."""

    headers: Sequence[str]
    rows: Iterable[Sequence[str]]
    shown: int | None = None
    is_one_line: bool = False


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "list",
        help=summary,
        description="Show what is shipped, by the names that other commands take.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("what", choices=tuple(_LISTS), metavar="|".join(_LISTS))
    add_wide(parser)
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    listing = _LISTS[options.what]()
    upto = None if options.wide else listing.shown
    width = terminal_width(options)
    rows = (row[:upto] for row in listing.rows)
    print(table(listing.headers[:upto], rows, width=width, shorten=listing.is_one_line))
    return 0


def _schemes() -> _Listing:
    headers = ("scheme", "what it is", "mechanism", "signalling", "placeholders", "source")
    rows = (
        (s.name, s.title, s.mechanism.value, s.signalling.value, str(len(s.placeholders)), s.source)
        for s in catalog.list_schemes()
    )
    return _Listing(headers, rows, shown=4)


def _networks() -> _Listing:
    headers = ("network", "Mbit/s down", "Mbit/s up", "RTT ms", "loss %", "burst packets")
    rows = (
        (n.name, *_rates(n), f"{to_ms(n.rtt_ns):g}", *_accidents(n), n.source)
        for n in catalog.list_networks()
    )
    return _Listing((*headers, "jitter", "source"), rows)


def _rates(network: Network) -> tuple[str, str]:
    if network.constant_rate is not None:
        return f"{to_mbps(network.constant_rate.rate_bps):g}", "-"
    links = (network.down, network.up)
    rates = [None if link is None else link.mean_rate_bps for link in links]
    down, up = ("-" if rate is None else f"{float(rate) / 1e6:g}" for rate in rates)
    return down, up


def _accidents(network: Network) -> tuple[str, str, str]:
    down = network.down
    if down is None:
        return "-", "-", _jitter(network.jitter)
    burst = "-" if down.loss_burst is None else f"{down.loss_burst:g}"
    jitter = "-" if down.jitter is None else f"{to_ms(down.jitter.mean_ns):g} ms"
    return f"{100 * down.loss:g}" if down.loss else "-", burst, jitter


def _jitter(jitter: Jitter | None) -> str:
    if jitter is None:
        return "-"
    low, high = jitter.min_overtaken, jitter.max_overtaken
    return f"{jitter.every}:{low}" if low == high else f"{jitter.every}:{low}-{high}"


def _profiles() -> _Listing:
    headers = ("profile", "what it is", "transport", "controller", "retransmits", "source")
    rows = (
        (p.name, p.title, p.protocol.value, p.cc, p.retransmit, p.source)
        for p in catalog.list_profiles()
    )
    return _Listing(headers, rows, shown=5)


def _controllers() -> _Listing:
    from h3sim.transport.congestion.registry import REGISTRY  # on use: plug-ins are searched for

    return _registered("controller", REGISTRY, {})


def _schedulers() -> _Listing:
    from h3sim.schemes.registry import ABOUT, REGISTRY  # on use: plug-ins are searched for

    return _registered("scheduler", REGISTRY, ABOUT)


def _registered(kind: str, registry: PluginRegistry[Any], said: Mapping[str, str]) -> _Listing:
    rows = (
        (entry.name, said.get(entry.name) or _first_sentence(entry.part), entry.origin)
        for entry in registry.listed()
    )
    return _Listing((kind, "what it does", "from"), rows)


def _first_sentence(factory: Callable[..., object]) -> str:
    """Return what the class or function says of itself; of ours, what is made."""
    text = doc_of(type(factory()) if isinstance(factory, partial) else factory) or "-"
    return text.split("\n\n", 1)[0].split(". ", 1)[0].replace("\n", " ").removesuffix(".")


def _pages() -> _Listing:
    headers = ("page", "resources", "kB", "above the fold", "source")
    rows = (
        (
            page.name,
            str(page.n_resources),
            f"{page.total_bytes / 1000:,.0f}",
            str(page.n_above_the_fold),
            page.source,
        )
        for page in catalog.page_summaries()
    )
    return _Listing(headers, rows, is_one_line=True)


def _sets() -> _Listing:
    found = [("schemes", name, catalog.scheme_set(name)) for name in catalog.scheme_set_names()]
    found += [("pages", name, catalog.page_set(name)) for name in catalog.page_set_names()]
    rows = (
        (name, of, str(len(names or ())), _first_names(names or ()), ", ".join(names or ()))
        for of, name, names in found
    )
    return _Listing(("set", "of", "number", "which", "all"), rows, shown=4)


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


_LISTS: dict[str, Callable[[], _Listing]] = {
    "schemes": _schemes,
    "networks": _networks,
    "profiles": _profiles,
    "controllers": _controllers,
    "schedulers": _schedulers,
    "pages": _pages,
    "sets": _sets,
}
