"""`h3sim list` and `h3sim show`: what is shipped, by name, and one of it in full."""

from __future__ import annotations

import json
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import catalog
from h3sim._mypyc import doc_of
from h3sim._version import __version__
from h3sim.cli import common, output
from h3sim.cli.command import Argument, Options, command, refuse
from h3sim.errors import InputError
from h3sim.schema import parse_toml
from h3sim.table import Table, format_pairs
from h3sim.text import escape_control, plural
from h3sim.units import to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.page import Page, Resource
    from h3sim.plugins import Listed, PluginRegistry
    from h3sim.transport import LinkProfile, Network


_MAX_LISTED_NAMES = 12
_MISSING_VALUE = "-"


class _Column(NamedTuple):
    """Column of a list."""

    head: str
    key: str
    """Key of its value in `h3sim-list/1`."""
    source: str | Callable[[Any], Any] = ""
    """Attribute or function of the item for the value; by default the attribute *key*."""
    show: Callable[[Any], str] = str
    """Formats the value."""

    def value_of(self, item: Any) -> Any:
        return (
            self.source(item)
            if callable(self.source)
            else attrgetter(self.source or self.key)(item)
        )

    def text(self, row: Mapping[str, Any]) -> str:
        value = row[self.key]
        return _MISSING_VALUE if value in (None, "") else self.show(value)


class _Listing(NamedTuple):
    """List of shipped items: a function that returns them, and the columns of their table.

    Columns after the first *shown* appear only if the whole table fits the width of the output.
    """

    items: Callable[[], Iterable[Any]]
    columns: Sequence[_Column]
    shown: int | None = None

    def rows(self) -> list[dict[str, Any]]:
        return [
            {column.key: column.value_of(item) for column in self.columns} for item in self.items()
        ]


def _make_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[_Column]) -> Table[list[str]]:
    cells = ([column.text(row) for column in columns] for row in rows)
    return Table((column.head for column in columns), cells)


def _mbps(link: LinkProfile | None) -> float | None:
    rate_bps = None if link is None else link.mean_rate_bps
    return None if rate_bps is None else float(rate_bps) / 1e6


def _down_mbps(network: Network) -> float | None:
    rate = network.constant_rate
    return _mbps(network.down) if rate is None else to_mbps(rate.rate_bps)


def _jitter(network: Network) -> str | None:
    """Return the delays of links in ms, or how many packets overtake every n-th."""
    if network.down is not None:
        delays = network.down.jitter
        return None if delays is None else f"{to_ms(delays.mean_ns):g} ms"
    if (jitter := network.jitter) is None:
        return None
    low, high = jitter.min_overtaken, jitter.max_overtaken
    return f"{jitter.every}:{low}" if low == high else f"{jitter.every}:{low}-{high}"


def _format_number(value: float) -> str:
    return f"{value:g}"


def _percent(share: float) -> str:
    return f"{100 * share:g}" if share else _MISSING_VALUE


class _NamedPart(NamedTuple):
    name: str
    title: str
    origin: str


def _controllers() -> Iterable[_NamedPart]:
    from h3sim.transport.congestion.registry import REGISTRY  # lazy: plug-ins are searched for

    return _registered(REGISTRY, {})


def _schedulers() -> Iterable[_NamedPart]:
    from h3sim.schemes.registry import ABOUT, REGISTRY  # lazy: plug-ins are searched for

    return _registered(REGISTRY, ABOUT)


def _registered(registry: PluginRegistry[Any], about: Mapping[str, str]) -> Iterator[_NamedPart]:
    for entry in registry.listed():
        title = about.get(entry.name) or _first_sentence(entry)
        yield _NamedPart(entry.name, title, entry.origin)


def _first_sentence(entry: Listed[Any]) -> str:
    """Return the first sentence of the docstring; for shipped factories, of what they make."""
    part = entry.part
    if isinstance(part, partial):
        # Making a plug-in's object may be expensive, or fail.
        part = type(part()) if entry.is_own else part.func
    text = doc_of(part) or ""
    return text.split("\n\n", 1)[0].split(". ", 1)[0].replace("\n", " ").removesuffix(".")


class _Set(NamedTuple):
    name: str
    of: str
    names: Sequence[str]


def _sets() -> Iterator[_Set]:
    for name in catalog.scheme_set_names():
        yield _Set(name, "schemes", [*(catalog.scheme_set(name) or ())])
    for name in catalog.page_set_names():
        yield _Set(name, "pages", [*(catalog.page_set(name) or ())])


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED_NAMES} more" if len(names) > _MAX_LISTED_NAMES else ""
    return ", ".join(names[:_MAX_LISTED_NAMES]) + more


_SOURCE_COLUMN = _Column("source", "source")
_PART_COLUMNS = (_Column("what it does", "title"), _Column("from", "from", "origin"))
# With functions, so that the catalog imports only what the requested list needs.
_LISTINGS = {
    "schemes": _Listing(
        lambda: catalog.list_schemes(),
        (
            _Column("scheme", "name"),
            _Column("what it is", "title"),
            _Column("mechanism", "mechanism", "mechanism.value"),
            _Column("signalling", "signalling", "signalling.value"),
            _Column("placeholders", "placeholders", lambda scheme: len(scheme.placeholders)),
            _SOURCE_COLUMN,
        ),
        shown=4,
    ),
    "networks": _Listing(
        lambda: catalog.list_networks(),
        (
            _Column("network", "name"),
            _Column("Mbit/s down", "down_mbps", _down_mbps, _format_number),
            _Column("Mbit/s up", "up_mbps", lambda network: _mbps(network.up), _format_number),
            _Column("RTT ms", "rtt_ms", lambda network: to_ms(network.rtt_ns), _format_number),
            _Column("loss %", "loss", lambda network: network.down and network.down.loss, _percent),
            _Column(
                "burst packets",
                "burst",
                lambda network: network.down and network.down.loss_burst,
                _format_number,
            ),
            _Column("jitter", "jitter", _jitter),
            _SOURCE_COLUMN,
        ),
        shown=7,
    ),
    "profiles": _Listing(
        lambda: catalog.list_profiles(),
        (
            _Column("profile", "name"),
            _Column("what it is", "title"),
            _Column("transport", "transport", "protocol.value"),
            _Column("controller", "cc"),
            _Column("retransmits", "retransmit"),
            _SOURCE_COLUMN,
        ),
        shown=5,
    ),
    "controllers": _Listing(_controllers, (_Column("controller", "name"), *_PART_COLUMNS)),
    "schedulers": _Listing(_schedulers, (_Column("scheduler", "name"), *_PART_COLUMNS)),
    "pages": _Listing(
        lambda: catalog.page_summaries(),
        (
            _Column("page", "name"),
            _Column("resources", "resources", "n_resources"),
            _Column("kB", "bytes", "total_bytes", lambda n_bytes: f"{n_bytes / 1000:,.0f}"),
            _Column("above the fold", "above_the_fold", "n_above_the_fold"),
            _SOURCE_COLUMN,
        ),
        shown=4,
    ),
    "sets": _Listing(
        _sets,
        (
            _Column("set", "name"),
            _Column("of", "of"),
            _Column("number", "names", "names", lambda names: str(len(names))),
            _Column("which", "names", "names", _first_names),
            _Column("all", "names", "names", ", ".join),
        ),
        shown=4,
    ),
}


_SHOWABLE_TYPES = ("page", "scheme", "network", "profile")
_HEADING_KEYS = ("format", "name", "title")
"""Keys shown in the heading, or not at all."""
_RESULT_KEY = "class"
"""Key with the result of a scheme's rule, which is shown after the rule's conditions."""


def _check_form(options: Options) -> None:
    what = options.what
    if what == "page":
        refuse([("--toml", "a page is JSON: use --json")] if options.toml else [])
    elif options.plot is not None:
        refuse([("--plot", f"is valid only with a page, not with a {what}")])
    elif options.json:
        refuse([("--json", f"a {what} is TOML: use --toml")])


def _toml_parts(text: str, width: int | None) -> Iterator[str]:
    """Yield the text of a TOML file: its values, then each of its tables."""
    document = parse_toml(text, InputError, source="")
    yield _heading(document.get("name"), document.get("title"), width)
    yield format_pairs(_plain_values(document), width=width)
    for key, entry in document.items():
        if isinstance(entry, list) and entry and isinstance(entry[0], dict):
            yield _table_text(key, entry, width)
        elif isinstance(entry, dict) and all(isinstance(row, dict) for row in entry.values()):
            yield _table_text(key, [{key: name} | row for name, row in entry.items()], width)
        elif isinstance(entry, dict):
            yield f"{key}\n{format_pairs(_plain_values(entry, indent='  '), width=width)}"


def _heading(name: object, title: object, width: int | None) -> str:
    return output.fitted(escape_control(f"{name}: {title}" if title else str(name)), width)


def _plain_values(document: dict[str, Any], *, indent: str = "") -> list[tuple[str, str]]:
    return [
        (f"{indent}{key}", _cell_text(value))
        for key, value in document.items()
        if key not in _HEADING_KEYS and not _is_table(value)
    ]


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    )


def _table_text(key: str, rows: list[dict[str, Any]], width: int | None) -> str:
    """Return an array of tables as text: a row for each, or a sentence if rows are too wide."""
    keys = list(dict.fromkeys(name for row in rows for name in row))
    keys.sort(key=lambda name: name == _RESULT_KEY)  # to the end
    shown = Table(keys, ([_cell_text(row.get(name, "")) for name in keys] for row in rows))
    if width is not None and shown.text_width > width:
        lines = (
            "; ".join(f"{name} {_cell_text(row[name])}" for name in keys if name in row)
            for row in rows
        )
        body = "\n".join(output.fitted(f"- {line}", width) for line in lines)
        return f"{key}\n{body}"
    body = shown.to_text()
    return body if key in keys else f"{key}\n{body}"


def _cell_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _page_parts(document: dict[str, Any], page: Page, width: int | None) -> Iterator[str]:
    kb = page.total_bytes / 1000
    yield _heading(page.name, f"{plural(len(page.resources), 'resource')}, {kb:,.0f} kB", width)
    known = {key: document[key] for key in ("url",) if key in document}
    values = _plain_values(known | dict(page.provenance))
    if values:
        yield format_pairs(values, width=width)
    shown = output.of(
        page.resources,
        ("resource", "id"),
        ("kind", lambda resource: resource.kind.value),
        ("bytes", "size_bytes"),
        ("above the fold", output.marked("above_the_fold")),
        ("requested", _requested),
    )
    yield shown.to_text(width)


def _requested(resource: Resource) -> str:
    """Describe when a resource is requested."""
    from h3sim.page import TriggerEvent  # lazy: lists need no model of a page

    found = resource.discovered
    if found is None:
        return "at navigation start"
    texts = []
    for each in found.alternatives:
        delay, names = f"{each.delay_ns / 1e6:g} ms", " and ".join(each.parents)
        if not names or each.at is TriggerEvent.TIME:
            texts.append(f"{delay} after navigation start")
            continue
        when = f"when {names} {'are' if len(each.parents) > 1 else 'is'} {each.at.value}"
        if each.at is TriggerEvent.OFFSET:
            when = f"at byte {each.offset_bytes:,} of {names}"
        elif each.at is TriggerEvent.REQUEST:
            when = f"with {names}"
        texts.append(f"{when} + {delay}" if each.delay_ns else when)
    return ", or ".join(texts)


@command(
    "list",
    Argument("WHAT", f"one of {', '.join(_LISTINGS)}", dest="what", choices=tuple(_LISTINGS)),
    common.JSON("print h3sim-list/1 instead"),
    common.NO_TRUNCATE,
)
def _print_list(options: Options) -> None:
    """List what is shipped, by the names that other commands accept.

    Examples:
      h3sim list schemes
      h3sim list pages --no-truncate | less -S
      h3sim list sets
      h3sim list schemes --json > schemes.json

    `h3sim show` shows one of them in full.
    """
    listing = _LISTINGS[options.what]
    rows = listing.rows()
    if options.json:
        from h3sim.catalog.formats import LIST  # lazy: tables do not need it

        document = {"version": __version__, "of": options.what, "rows": rows}
        output.print_json(LIST.write(document))
        return
    shown = _make_table(rows, listing.columns)
    if options.width is not None and shown.text_width > options.width:
        shown = _make_table(rows, listing.columns[: listing.shown])
    print(shown.to_text(options.width))


@command(
    "show",
    Argument(
        "WHAT", f"one of {', '.join(_SHOWABLE_TYPES)}", dest="what", choices=tuple(_SHOWABLE_TYPES)
    ),
    Argument("NAME", "a shipped name, or a file"),
    Argument("--toml", "print the TOML file", not_with="--json"),
    common.JSON("print the JSON file of a page"),
    common.PLOT("plot a page's sizes and dependencies: FILE.png, .svg or .pdf"),
    common.FigureOptions(),
    common.NO_TRUNCATE,
    checks=(_check_form,),
)
def _show(options: Options) -> None:
    """Show one page, scheme, network or transport profile in full.

    Examples:
      h3sim show scheme dfifo
      h3sim show page davies-meenan
      h3sim show scheme chrome-eps --toml > mine.toml && h3sim run http2rulez --scheme mine.toml
      h3sim show page davies-meenan --plot page.png
      h3sim show page davies-meenan --json > my-page.json

    --toml and --json print the file itself: pages are JSON; schemes, networks and profiles are
    TOML.
    """
    found: Any = getattr(catalog, f"load_{options.what}")(options.name)
    output.save_plot(found, options)
    text, width = catalog.text_of(options.what, options.name), options.width
    if options.toml or options.json:
        output.print_file(text)
        return
    parts = (
        _page_parts(json.loads(text), found, width)
        if options.what == "page"
        else _toml_parts(text, width)
    )
    print("\n\n".join(parts))
