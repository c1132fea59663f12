"""`h3sim show`: one page, scheme, network or profile in full, or its file as a template."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.cli.parsing import ErrorList, RawHelp, check_plot_path, print_file
from h3sim.cli.tables import add_wide, fitted, terminal_width
from h3sim.errors import InputError, ValidationIssue
from h3sim.page import TriggerEvent
from h3sim.schema import parse_toml
from h3sim.table import Table, format_pairs
from h3sim.text import escape_control, plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from h3sim.cli.parsing import Parser
    from h3sim.page import Page, Resource


_EPILOG = """\
examples:
  h3sim show scheme dfifo
  h3sim show page davies-meenan
  h3sim show scheme chrome-eps --toml > mine.toml && h3sim run http2rulez --scheme mine.toml
  h3sim show page davies-meenan --plot page.png
  h3sim show page davies-meenan --json > my-page.json

--toml and --json print the file itself: pages are JSON; schemes, networks and profiles are TOML.
"""
_LOADERS: dict[str, Callable[[str], object]] = {
    "page": catalog.load_page,
    "scheme": catalog.load_scheme,
    "network": catalog.load_network,
    "profile": catalog.load_profile,
}
_HEADED = ("format", "name", "title")
"""Keys shown in the heading, or not at all."""
_CLASS = "class"


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "show",
        help=summary,
        description="Show one page, scheme, network or transport profile in full.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("what", choices=tuple(_LOADERS), metavar="|".join(_LOADERS))
    parser.add_argument("name", metavar="NAME", help="a shipped name, or a file")
    as_file = parser.add_mutually_exclusive_group()
    as_file.add_argument("--toml", action="store_true", help="print the TOML file")
    as_file.add_argument("--json", action="store_true", help="print the JSON file of a page")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="plot a page's sizes and dependencies: FILE.png, .svg or .pdf",
    )
    add_wide(parser)
    parser.set_defaults(command=_show)


def _show(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    mistakes.collect(lambda: _check_form(options))
    mistakes.collect(lambda: check_plot_path(options.plot))
    found: Any = mistakes.collect(lambda: _LOADERS[options.what](options.name))
    if found is None or mistakes.lines:
        return mistakes.tell("show")
    if options.plot is not None:
        found.plot.save(options.plot)
    text = catalog.text_of(options.what, options.name)
    if options.toml or options.json:
        print_file(text)
        return 0
    width = terminal_width(options)
    parts = _of_page(json.loads(text), found, width) if options.what == "page" else _of(text, width)
    print("\n\n".join(parts))
    return 0


def _check_form(options: argparse.Namespace) -> None:
    if options.toml and options.what == "page":
        raise InputError([ValidationIssue(key="--toml", message="a page is JSON: use --json")])
    if options.plot is not None and options.what != "page":
        raise InputError(
            [
                ValidationIssue(
                    key="--plot", message=f"is valid only with a page, not with a {options.what}"
                )
            ]
        )
    if options.json and options.what != "page":
        message = f"a {options.what} is TOML: use --toml"
        raise InputError([ValidationIssue(key="--json", message=message)])


def _of(text: str, width: int | None) -> Iterator[str]:
    """Yield the text of a TOML file: its values, then each of its tables."""
    document = parse_toml(text, InputError, source="")
    yield _head(document.get("name"), document.get("title"), width)
    yield format_pairs(_values(document), width=width)
    for key, entry in document.items():
        if isinstance(entry, list) and entry and isinstance(entry[0], dict):
            yield _rows(key, entry, width)
        elif isinstance(entry, dict) and all(isinstance(row, dict) for row in entry.values()):
            yield _rows(key, [{key: name} | row for name, row in entry.items()], width)
        elif isinstance(entry, dict):
            yield f"{key}\n{format_pairs(_values(entry, indent='  '), width=width)}"


def _head(name: object, title: object, width: int | None) -> str:
    return fitted(escape_control(f"{name}: {title}" if title else str(name)), width)


def _values(document: dict[str, Any], *, indent: str = "") -> list[tuple[str, str]]:
    return [
        (f"{indent}{key}", _cell(value))
        for key, value in document.items()
        if key not in _HEADED and not _is_table(value)
    ]


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    )


def _rows(key: str, rows: list[dict[str, Any]], width: int | None) -> str:
    """Return an array of tables as text, one row per table and one column per key."""
    keys = list(dict.fromkeys(name for row in rows for name in row))
    keys.sort(key=_CLASS.__eq__)  # the result of a rule follows its conditions
    body = Table(keys, [[_cell(row.get(name, "")) for name in keys] for row in rows]).to_text(width)
    return body if key in keys else f"{key}\n{body}"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _of_page(document: dict[str, Any], page: Page, width: int | None) -> Iterator[str]:
    kb = page.total_bytes / 1000
    yield _head(page.name, f"{plural(len(page.resources), 'resource')}, {kb:,.0f} kB", width)
    known = {key: document[key] for key in ("url",) if key in document}
    said = _values(known | dict(page.provenance))
    if said:
        yield format_pairs(said, width=width)
    headers = ("resource", "kind", "bytes", "above the fold", "requested")
    rows = [
        (
            resource.id,
            resource.kind.value,
            f"{resource.size_bytes:,}",
            "yes" if resource.above_the_fold else "",
            _asked(resource),
        )
        for resource in page.resources
    ]
    yield Table(headers, rows).to_text(width, shorten=True)


def _asked(resource: Resource) -> str:
    """Describe in a few words when a resource is requested."""
    found = resource.discovered
    if found is None:
        return "at navigation start"
    delay = f"{found.delay_ns / 1e6:g} ms"
    if found.by is None or found.at is TriggerEvent.TIME:
        return f"{delay} after navigation start"
    when = f"when {found.by} is {found.at.value}"
    if found.at is TriggerEvent.OFFSET:
        when = f"at byte {found.offset_bytes:,} of {found.by}"
    elif found.at is TriggerEvent.REQUEST:
        when = f"with {found.by}"
    return f"{when} + {delay}" if found.delay_ns else when
