"""`h3sim list`: the shipped pages, schemes, networks and other resources, by name."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import catalog
from h3sim._mypyc import doc_of
from h3sim._version import __version__
from h3sim.cli.parsing import RawHelp
from h3sim.cli.tables import add_wide, terminal_width
from h3sim.table import Table
from h3sim.units import to_mbps, to_ms

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from h3sim.cli.parsing import Parser
    from h3sim.plugins import Listed, PluginRegistry
    from h3sim.transport import Jitter, Network


_EPILOG = """\
examples:
  h3sim list schemes
  h3sim list pages --no-truncate | less -S
  h3sim list sets
  h3sim list schemes --json > schemes.json

`h3sim show` shows one of them in full.
"""
_SHOWN_NAMES = 12
_NONE = "-"


class _Column(NamedTuple):
    """Table column: its header, the key of its value and the value's format."""

    head: str
    key: str
    show: Callable[[Any], str] = str


class _Listing(NamedTuple):
    """List of shipped items: one row each with the keys of `h3sim-list/1`, and table columns.

    Columns after the first *shown* appear only in tables of unlimited width.
    """

    columns: Sequence[_Column]
    rows: Iterable[Mapping[str, Any]]
    shown: int | None = None
    is_one_line: bool = False


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "list",
        help=summary,
        description="List what is shipped, by the names that other commands accept.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("what", choices=tuple(_LISTS), metavar="|".join(_LISTS))
    parser.add_argument("--json", action="store_true", help="print h3sim-list/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    listing = _LISTS[options.what]()
    if options.json:
        from h3sim.catalog.formats import LIST  # lazy: tables do not need it

        document = {"version": __version__, "of": options.what, "rows": [*listing.rows]}
        print(json.dumps(LIST.write(document), allow_nan=False))
        return 0
    columns = listing.columns[: None if options.no_truncate else listing.shown]
    rows = ([_cell(row.get(column.key), column) for column in columns] for row in listing.rows)
    heads = [column.head for column in columns]
    print(Table(heads, rows).to_text(terminal_width(options), shorten=listing.is_one_line))
    return 0


def _cell(fact: object, column: _Column) -> str:
    return _NONE if fact in (None, "") else column.show(fact)


def _schemes() -> _Listing:
    columns = (
        *(_Column("scheme", "name"), _Column("what it is", "title")),
        *(_Column("mechanism", "mechanism"), _Column("signalling", "signalling")),
        *(_Column("placeholders", "placeholders"), _Column("source", "source")),
    )
    rows = (
        {
            "name": s.name,
            "title": s.title,
            "source": s.source,
            "mechanism": s.mechanism.value,
            "signalling": s.signalling.value,
            "placeholders": len(s.placeholders),
        }
        for s in catalog.list_schemes()
    )
    return _Listing(columns, rows, shown=4)


def _networks() -> _Listing:
    columns = (
        _Column("network", "name"),
        *(_Column("Mbit/s down", "down_mbps", _short), _Column("Mbit/s up", "up_mbps", _short)),
        *(_Column("RTT ms", "rtt_ms", _short), _Column("loss %", "loss", _percent)),
        *(_Column("burst packets", "burst", _short), _Column("jitter", "jitter")),
        _Column("source", "source"),
    )
    rows = (
        {
            "name": n.name,
            "rtt_ms": to_ms(n.rtt_ns),
            "source": n.source,
            **_rates(n),
            **_accidents(n),
        }
        for n in catalog.list_networks()
    )
    return _Listing(columns, rows)


def _short(value: float) -> str:
    return f"{value:g}"


def _percent(share: float) -> str:
    return f"{100 * share:g}" if share else _NONE


def _rates(network: Network) -> dict[str, float | None]:
    if network.constant_rate is not None:
        return {"down_mbps": to_mbps(network.constant_rate.rate_bps)}
    links = {"down_mbps": network.down, "up_mbps": network.up}
    rates = {key: None if link is None else link.mean_rate_bps for key, link in links.items()}
    return {key: None if rate is None else float(rate) / 1e6 for key, rate in rates.items()}


def _accidents(network: Network) -> dict[str, Any]:
    down = network.down
    if down is None:
        return {"jitter": _jitter(network.jitter)}
    jitter = None if down.jitter is None else f"{to_ms(down.jitter.mean_ns):g} ms"
    return {"loss": down.loss, "burst": down.loss_burst, "jitter": jitter}


def _jitter(jitter: Jitter | None) -> str | None:
    if jitter is None:
        return None
    low, high = jitter.min_overtaken, jitter.max_overtaken
    return f"{jitter.every}:{low}" if low == high else f"{jitter.every}:{low}-{high}"


def _profiles() -> _Listing:
    columns = (
        *(_Column("profile", "name"), _Column("what it is", "title")),
        *(_Column("transport", "transport"), _Column("controller", "cc")),
        *(_Column("retransmits", "retransmit"), _Column("source", "source")),
    )
    rows = (
        {
            "name": p.name,
            "title": p.title,
            "source": p.source,
            "transport": p.protocol.value,
            "cc": p.cc,
            "retransmit": p.retransmit,
        }
        for p in catalog.list_profiles()
    )
    return _Listing(columns, rows, shown=5)


def _controllers() -> _Listing:
    from h3sim.transport.congestion.registry import REGISTRY  # lazy: plug-ins are searched for

    return _registered("controller", REGISTRY, {})


def _schedulers() -> _Listing:
    from h3sim.schemes.registry import ABOUT, REGISTRY  # lazy: plug-ins are searched for

    return _registered("scheduler", REGISTRY, ABOUT)


def _registered(kind: str, registry: PluginRegistry[Any], said: Mapping[str, str]) -> _Listing:
    rows = (
        {
            "name": entry.name,
            "title": said.get(entry.name) or _first_sentence(entry),
            "from": entry.origin,
        }
        for entry in registry.listed()
    )
    columns = (_Column(kind, "name"), _Column("what it does", "title"), _Column("from", "from"))
    return _Listing(columns, rows)


def _first_sentence(entry: Listed[Any]) -> str:
    """Return the first sentence of the docstring; for shipped factories, of what they make."""
    part = entry.part
    if isinstance(part, partial):
        # Making a plug-in's object may be expensive, or fail.
        part = type(part()) if entry.is_own else part.func
    text = doc_of(part) or ""
    return text.split("\n\n", 1)[0].split(". ", 1)[0].replace("\n", " ").removesuffix(".")


def _pages() -> _Listing:
    columns = (
        *(_Column("page", "name"), _Column("resources", "resources")),
        _Column("kB", "bytes", lambda n_bytes: f"{n_bytes / 1000:,.0f}"),
        *(_Column("above the fold", "above_the_fold"), _Column("source", "source")),
    )
    rows = (
        {
            "name": page.name,
            "resources": page.n_resources,
            "bytes": page.total_bytes,
            "above_the_fold": page.n_above_the_fold,
            "source": page.source,
        }
        for page in catalog.page_summaries()
    )
    return _Listing(columns, rows, is_one_line=True)


def _sets() -> _Listing:
    found = [("schemes", name, catalog.scheme_set(name)) for name in catalog.scheme_set_names()]
    found += [("pages", name, catalog.page_set(name)) for name in catalog.page_set_names()]
    columns = (
        *(_Column("set", "name"), _Column("of", "of")),
        *(_Column("number", "names", _number), _Column("which", "names", _first_names)),
        _Column("all", "names", ", ".join),
    )
    rows = ({"name": name, "of": of, "names": [*(names or ())]} for of, name, names in found)
    return _Listing(columns, rows, shown=4)


def _number(names: Sequence[str]) -> str:
    return str(len(names))


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
