"""`h3sim list` and `h3sim show`: what is shipped, by name, and one of it in full."""

from __future__ import annotations

import itertools
import json
import sys
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import catalog
from h3sim._version import __version__
from h3sim.cli import common, output
from h3sim.cli.command import Argument, Options, command, refuse
from h3sim.schema import format_value, parse_toml
from h3sim.schema.output import COUNT, NUMBER, TEXT, VERSION, ObjectType, OutputSchema, Property
from h3sim.schema.values import ListOf
from h3sim.schemes import scheme_to_dict
from h3sim.values._mypyc import doc_of
from h3sim.values.errors import InputError, UnknownNameError
from h3sim.values.table import Table, format_pairs
from h3sim.values.text import escape_control, plural
from h3sim.values.units import to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.load.figures import Figure
    from h3sim.page import Page, Resource
    from h3sim.papers.experiments import Experiment
    from h3sim.papers.findings import Finding
    from h3sim.schema.values import ValueType
    from h3sim.schemes import Scheme
    from h3sim.transport import LinkProfile, Network
    from h3sim.values.plugins import Listed, PluginRegistry


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
    kind: ValueType = TEXT
    """Type of its value in `h3sim-list/1`."""

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
    """Return the delays of links in ms, or which packets others overtake."""
    if network.down is not None and network.down.jitter is not None:
        return f"{to_ms(network.down.jitter.mean_ns):g} ms"
    hold = network.jitter if network.down is None else network.down.hold
    return None if hold is None else hold.text


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


def _scheme_groups(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each set of schemes with its names, and then those that are in none."""
    others = dict.fromkeys(names)
    for name in catalog.scheme_set_names():
        members = catalog.scheme_set(name) or ()
        yield name, ", ".join(members)
        for member in members:
            others.pop(member, None)
    yield "others", ", ".join(others)


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


def _metrics() -> Iterable[Figure]:
    from h3sim.load.figures import FIGURES  # lazy: the other lists need no metric

    return (figure for figure in FIGURES if figure.is_column)


def _findings() -> Iterable[Finding]:
    from h3sim.papers.findings import list_findings  # lazy: the other lists need no paper

    return list_findings()


def _experiments() -> Iterator[Experiment]:
    from h3sim.papers.experiments import experiment_names, load_experiment  # lazy, as above

    yield from map(load_experiment, experiment_names())


_NAMES = ListOf(TEXT, "names")
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
            _Column(
                "placeholders", "placeholders", lambda each: len(each.placeholders), kind=COUNT
            ),
            _SOURCE_COLUMN,
        ),
        shown=4,
    ),
    "clients": _Listing(
        lambda: catalog.list_clients(),
        (
            _Column("client", "name"),
            _Column("what it is", "title"),
            _Column("version", "version"),
            _Column("signals", "signals", lambda client: ", ".join(client.tables)),
            _Column("read", "date"),
            _SOURCE_COLUMN,
        ),
        shown=5,
    ),
    "servers": _Listing(
        lambda: catalog.list_servers(),
        (
            _Column("server", "name"),
            _Column("what it is", "title"),
            _Column("mechanism", "mechanism", "mechanism.value"),
            _Column("reads", "reads", "reads.value"),
            _Column("version", "version"),
            _Column("read", "date"),
            _SOURCE_COLUMN,
        ),
        shown=4,
    ),
    "networks": _Listing(
        lambda: catalog.list_networks(),
        (
            _Column("network", "name"),
            _Column("Mbit/s down", "down_mbps", _down_mbps, _format_number, NUMBER),
            _Column("Mbit/s up", "up_mbps", lambda each: _mbps(each.up), _format_number, NUMBER),
            _Column("RTT ms", "rtt_ms", lambda each: to_ms(each.rtt_ns), _format_number, NUMBER),
            _Column("loss %", "loss", lambda each: each.down and each.down.loss, _percent, NUMBER),
            _Column(
                "burst packets",
                "burst",
                lambda network: network.down and network.down.loss_burst,
                _format_number,
                NUMBER,
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
            _Column("resources", "resources", "n_resources", kind=COUNT),
            _Column("kB", "bytes", "total_bytes", lambda n: f"{n / 1000:,.0f}", COUNT),
            _Column("above the fold", "above_the_fold", "n_above_the_fold", kind=COUNT),
            _SOURCE_COLUMN,
        ),
        shown=4,
    ),
    "experiments": _Listing(
        _experiments,
        (_Column("experiment", "name"), _Column("what it is", "title"), _SOURCE_COLUMN),
    ),
    "findings": _Listing(
        _findings,
        (
            _Column("finding", "name", "id"),
            _Column("what was published", "statement"),
            _SOURCE_COLUMN,
            _Column("experiment", "experiment", "study"),
        ),
    ),
    "metrics": _Listing(
        _metrics,
        (_Column("metric", "name"), _Column("what it is", "about"), _Column("title", "title")),
        shown=2,
    ),
    "sets": _Listing(
        _sets,
        (
            _Column("set", "name"),
            _Column("of", "of"),
            _Column("number", "names", "names", lambda names: str(len(names)), _NAMES),
            _Column("which", "names", "names", _first_names, _NAMES),
            _Column("all", "names", "names", ", ".join, _NAMES),
        ),
        shown=4,
    ),
}


_KINDS = {column.key: column.kind for entry in _LISTINGS.values() for column in entry.columns}
_ROW = ObjectType(*(Property(key, _KINDS[key], is_optional=key != "name") for key in _KINDS))
LIST = OutputSchema(
    "h3sim-list/1",
    "Shipped items, by name",
    VERSION,
    Property("of", TEXT, "the kind of list"),
    Property("rows", ListOf(_ROW, "rows"), "one per item; missing values are left out"),
)


_HALVES = ("client", "server")
"""Halves of schemes, with names that a scheme may have, too: alone they mean the scheme."""
_FILE_TYPES = ("page", "scheme", *_HALVES, "network", "profile")
"""Kinds of what is shown from a file, which can also be printed."""
_SHOWABLE_TYPES = (*_FILE_TYPES, "experiment", "finding", "metric")
_HEADING_KEYS = ("format", "name", "title")
"""Keys shown in the heading, or not at all."""
_RESULT_KEY = "class"
"""Key with the result of a scheme's rule, which is shown after the rule's conditions."""


def _names_of(kind: str) -> list[str]:
    """Return the names of all that is shipped of a kind."""
    listing = _LISTINGS[f"{kind}s"]
    (name,) = (column for column in listing.columns if column.key == "name")
    return [name.value_of(item) for item in listing.items()]


def _resolve_kind(options: Options) -> None:
    """Find the kind of a name that is given alone.

    Raises:
        InputError: if the name is missing, or several things have it.
        UnknownNameError: if nothing has it.
    """
    if options.what in _SHOWABLE_TYPES:
        if options.name is None:
            message = f"is missing: `h3sim list {options.what}s` shows all"
            raise InputError.at("NAME", message)
        return
    if options.name is not None:
        message = f"must be one of {', '.join(_SHOWABLE_TYPES)}, is {format_value(options.what)}"
        raise InputError.at("WHAT", message)
    name = options.what
    names = {kind: _names_of(kind) for kind in _SHOWABLE_TYPES}
    kinds = [kind for kind in _SHOWABLE_TYPES if name in names[kind]]
    halves = [kind for kind in kinds if kind in _HALVES] if "scheme" in kinds else []
    kinds = [kind for kind in kinds if kind not in halves]
    if len(kinds) > 1:
        commands = " or ".join(f"`h3sim show {kind} {name}`" for kind in kinds)
        message = f"is the name of {' and of '.join(f'a {kind}' for kind in kinds)}: use {commands}"
        raise InputError.at(name, message)
    if not kinds:
        every = list(dict.fromkeys(itertools.chain(*names.values())))
        kind = "shipped " + ", ".join(_SHOWABLE_TYPES[:-1]) + f" or {_SHOWABLE_TYPES[-1]}"
        raise UnknownNameError(kind, name, every, "h3sim list WHAT")
    options.what, options.name = kinds[0], name
    if halves:
        others = " and ".join(f"a {kind} (`h3sim show {kind} {name}`)" for kind in halves)
        print(f"h3sim show: this is the scheme; {name} is also {others}", file=sys.stderr)


def _check_form(options: Options) -> None:
    _resolve_kind(options)
    what = options.what
    if what == "page":
        refuse([("--toml", "a page is JSON: use --json")] if options.toml else [])
    elif what not in _FILE_TYPES:
        given = ("--toml", options.toml), ("--json", options.json), ("--plot", options.plot)
        refuse([(flag, f"does not go with a {what}") for flag, value in given if value])
    elif options.plot is not None and what != "scheme":
        refuse([("--plot", f"is valid only with a page or a scheme, not with a {what}")])
    elif options.json:
        refuse([("--json", f"a {what} is TOML: use --toml")])


def _document_of(kind: str, text: str, found: Any) -> dict[str, Any]:
    """Return what is shown of a TOML file: a scheme with its halves, a client's tables by name."""
    document = parse_toml(text, InputError, source="")
    if kind == "scheme":
        resolved = scheme_to_dict(found) or {}
        if "classes" not in document:
            _fill_numbers(resolved["classes"], found)
        return document | {key: resolved[key] for key in resolved if key not in document}
    tables = found.tables if kind == "client" else {}
    for key in tables:
        document |= {f"{key}.{name}": value for name, value in document.pop(key).items()}
    return document


def _fill_numbers(classes: dict[str, dict[str, Any]], scheme: Scheme) -> None:
    """Add the numbers that classes have by default, where others have other ones."""
    keys = {key for entry in classes.values() for key, value in entry.items() if type(value) is int}
    for name, entry in classes.items():
        entry |= {key: getattr(scheme.class_named(name), key) for key in sorted(keys)}


def _toml_parts(
    document: dict[str, Any], width: int | None, *more: tuple[str, str]
) -> Iterator[str]:
    """Yield the text of a TOML file: its values and *more*, then each of its tables."""
    yield _heading(document.get("name"), document.get("title"), width)
    yield format_pairs([*_plain_values(document), *more], width=width)
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


def _one_of(kind: str, name: str) -> Any:
    """Return the item of that name in a list.

    Raises:
        UnknownNameError: if there is none.
    """
    found = dict(zip(_names_of(kind), _LISTINGS[f"{kind}s"].items(), strict=True))
    if name not in found:
        raise UnknownNameError(kind, name, list(found))
    return found[name]


def _metric_parts(name: str, width: int | None) -> Iterator[str]:
    figure: Figure = _one_of("metric", name)
    yield _heading(name, figure.title, width)
    uses = ["columns of studies" + (" on request (metrics=...)" if figure.is_on_demand else "")]
    uses += [f"JSON of a load ({'.'.join(figure.key)})"] if figure.key else []
    uses += ["tables of speedups over seeds"] if figure.is_compared else []
    uses += [f"h3sim compare --metric {name}"]
    rows = [("what it is", figure.about), ("where", "; ".join(uses))]
    if figure.is_computed:
        rows.append(("needs", "a page that the browser computes (--browser parse)"))
    yield format_pairs(rows, width=width)


def _finding_parts(name: str, width: int | None) -> Iterator[str]:
    finding: Finding = _one_of("finding", name)
    yield _heading(finding.id, finding.statement, width)
    pairs = [("source", finding.source), ("experiment", finding.study or _MISSING_VALUE)]
    pairs += [("cannot be judged", finding.cannot)] if finding.cannot else []
    pairs += [("note", finding.note)] if finding.note else []
    yield format_pairs(pairs, width=width)
    if finding.claims:
        rows = (
            (
                claim.statement,
                claim.figure.removeprefix(f"{finding.study}:"),
                " and ".join(
                    limit.criterion.describe(str(limit.threshold)) for limit in claim.limits
                ),
            )
            for claim in finding.claims
        )
        yield Table(("claim", "figure", "holds if it is"), rows).to_text(width)
        yield f"`h3sim reproduce {finding.id}` judges it."


def _experiment_parts(name: str, width: int | None) -> Iterator[str]:
    experiment: Experiment = _one_of("experiment", name)
    yield _heading(name, experiment.title, width)
    judged = [finding.id for finding in _findings() if name in finding.studies]
    quick = _MISSING_VALUE if experiment.is_about_headers else str(experiment.quick)
    pairs = [
        ("source", experiment.source),
        ("quick variant", quick),
        ("findings", ", ".join(judged) or _MISSING_VALUE),
    ]
    yield format_pairs(pairs, width=width)
    if experiment.paper:
        yield Table(("figure", "in the paper"), experiment.paper.items()).to_text(width)
    yield f"`h3sim reproduce {name}` repeats it."


_PARTS: Mapping[str, Callable[[str, int | None], Iterator[str]]] = {
    "experiment": _experiment_parts,
    "finding": _finding_parts,
    "metric": _metric_parts,
}


def _save_card(scheme: Scheme, options: Options) -> None:
    """Save the figure of a scheme with an example."""
    from h3sim.load import simulate  # lazy: the other kinds need no load
    from h3sim.reporting.output import save_figure

    card = simulate("davies-meenan", scheme=scheme).plot.scheme_card(**output.figure_style(options))
    save_figure(card, options.plot)
    output.report_written(options.plot)


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
      h3sim list schemes --no-truncate | less -S
      h3sim list sets
      h3sim list findings
      h3sim list schemes --json > schemes.json

    `h3sim show` shows one of them in full. Schemes are grouped by sets, whose names other commands
    accept, too; with --no-truncate each has a row.
    """
    listing = _LISTINGS[options.what]
    rows = listing.rows()
    if options.json:
        document = {"version": __version__, "of": options.what, "rows": rows}
        output.print_json(LIST.write(document))
        return
    if options.what == "schemes" and options.width is not None:
        pairs = _scheme_groups([row["name"] for row in rows])
        print(format_pairs([*pairs], width=options.width) + "\n")
        more = "`h3sim show scheme NAME` explains one; --no-truncate prints a row for each."
        print(output.fitted(more, options.width))
        return
    shown = _make_table(rows, listing.columns)
    if options.width is not None and shown.text_width > options.width:
        shown = _make_table(rows, listing.columns[: listing.shown])
    print(shown.to_text(options.width))


@command(
    "show",
    Argument(
        "WHAT",
        f"one of {', '.join(_SHOWABLE_TYPES)}; or a name alone, if only one of these has it",
        dest="what",
    ),
    Argument("NAME", "a shipped name, or a file", nargs="?"),
    Argument("--toml", "print the TOML file", not_with="--json"),
    common.JSON("print the JSON file of a page"),
    common.PLOT("plot a page's sizes and dependencies, or a scheme's strip and priorities"),
    *common.figure_options(),
    common.NO_TRUNCATE,
    checks=(_check_form,),
)
def _show(options: Options) -> None:
    """Show one page, scheme, client, server, network, profile, experiment, finding or metric.

    Examples:
      h3sim show scheme dfifo --plot dfifo.png
      h3sim show nghttp3
      h3sim show client firefox
      h3sim show server nghttp3
      h3sim show scheme "firefox before nghttp3"
      h3sim show finding marx-2
      h3sim show metric hol_stream_bytes
      h3sim show page davies-meenan
      h3sim show client chrome --toml > mine.toml && h3sim run http2rulez --client mine.toml
      h3sim show page davies-meenan --plot page.png
      h3sim show page davies-meenan --json > my-page.json

    --toml and --json print the file itself: pages are JSON; all others are TOML. A name that a
    scheme and a server share means the scheme.
    """
    if options.what not in _FILE_TYPES:
        print("\n\n".join(_PARTS[options.what](options.name, options.width)))
        return
    found: Any = getattr(catalog, f"load_{options.what}")(options.name)
    if options.what == "scheme" and options.plot is not None:
        _save_card(found, options)
    elif options.plot is not None:
        output.save_plot(found, options)
    text, width = catalog.text_of(options.what, options.name), options.width
    if options.toml or options.json:
        output.print_file(text)
        return
    if options.what == "page":
        parts = _page_parts(json.loads(text), found, width)
    else:
        # Numbers alone do not say which of them go first.
        precedence = getattr(getattr(found, "mechanism", None), "precedence", "")
        document = _document_of(options.what, text, found)
        parts = _toml_parts(document, width, *([("order", precedence)] if precedence else ()))
    print("\n\n".join(parts))
