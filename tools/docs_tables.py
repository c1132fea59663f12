"""Writes the tables of the documentation that say what is declared: `python -m tools.docs_tables`.

A table is between `<!-- table NAME -->` and `<!-- end of table -->`; a test compares them. The
verdicts in docs/generated/findings.md are counted wherever a page says how many results hold.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.export.load_document import WRITTEN as OF_LOAD
from h3sim.export.load_file import LoadDocument
from h3sim.load.figures import FIGURES
from h3sim.load.options import flags_of
from h3sim.page import Page, Resource
from h3sim.papers.experiments import HeaderExperiment
from h3sim.papers.findings import FindingsFile, Verdict
from h3sim.papers.report import counted
from h3sim.papers.reproduce import REPRODUCTION
from h3sim.schema.errors import ABSENT
from h3sim.schema.fields import Record, fields_of
from h3sim.schema.output import ObjectType, OutputSchema
from h3sim.schema.values import Choice, OrNone, TableOf
from h3sim.schemes import Client, Scheme, Server, SignalClass, SignalTable
from h3sim.study.store import FORMAT as STORE_FORMAT
from h3sim.study.store import TABLES as STORE
from h3sim.study.study_file import StudyFile
from h3sim.transport.link_profile import LinkProfile
from h3sim.transport.profile import TransportProfile
from h3sim.transport.quic import QuicSettings
from h3sim.transport.tcp import TcpSettings
from tools import documented, formats, halves
from tools.findings import verdicts_in
from tools.formats import WRITTEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.schema.fields import FieldSpec
    from h3sim.schema.output import Property

__all__ = ["DOCS", "main", "written"]

DOCS = Path(__file__).resolve().parents[1] / "docs"
README = DOCS.parent / "README.md"
_COUNTS = re.compile(r"\d+ results of the papers( \| | )\d+ holds?[^|.\n]*?cannot be judged")
"""The number of results, and how many of each verdict there are."""
_TABLE = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end of table -->)", re.S)

Row = tuple[str, ...]


def _page_keys() -> Iterator[Row]:
    yield "key", "default", "description", "used by"
    for entry in fields_of(Resource):
        yield f"`{entry.key}`", _usual(entry), _about(entry), entry.used_by


def _resource_tables() -> Iterator[Row]:
    """Yield the keys of the tables in a resource; that of a trigger only once."""
    for row in _nested(Resource):
        if row[0] == "key" or ("." in row[0] and ".when." not in row[0]):
            yield row


def _usual(entry: FieldSpec) -> str:
    if entry.is_needed:
        return "needed"
    if isinstance(entry.kind, Record):
        return ""
    if entry.default is None and isinstance(entry.kind, OrNone):
        return '`"none"`'
    if entry.default in (ABSENT, None, (), "", {}):
        return ""
    if isinstance(entry.default, bool):
        return str(entry.default).lower()
    value = entry.kind.write(entry.default)
    if isinstance(value, str | list):
        return ", ".join(f"`{one}`" for one in ([value] if isinstance(value, str) else value))
    return f"{value >> 20} MiB" if _is_mebibytes(entry, value) else str(value).removesuffix(".0")


def _is_mebibytes(entry: FieldSpec, value: Any) -> bool:
    return entry.key.endswith("_bytes") and value >= 2**20 and not value % 2**20


def _about(entry: FieldSpec) -> str:
    if isinstance(entry.kind, Choice) and entry.is_needed:
        *others, last = (f"`{name}`" for name in entry.kind.options)
        return f"{entry.about}: {', '.join(others)} or {last}"
    return entry.about


def _load_options() -> Iterator[Row]:
    yield "command line", "Python", "default", "description"
    for entry in fields_of(h3sim.LoadConfig):
        shown = ", ".join(f"`{flag}`" for flag in flags_of(h3sim.LoadConfig)[entry.attribute])
        yield shown, f"`{entry.attribute}`", _usual(entry), entry.about


def _settings(cls: type) -> Iterator[Row]:
    yield "key", "default", "description"
    for entry in fields_of(cls):
        yield f"`{'`, `'.join(entry.keys)}`", _usual(entry), entry.about


def _nested(cls: type) -> Iterator[Row]:
    yield "key", "default", "description"
    yield from _rows(cls)


def _rows(cls: type, above: str = "") -> Iterator[Row]:
    """Yield the keys of a table and of the tables in it."""
    for entry in fields_of(cls):
        kind = getattr(entry.kind, "of", entry.kind)
        if isinstance(kind, Record) and kind.keys:  # its keys are in this table
            for key, usual, about in _rows(kind.cls, above):
                yield key, usual.replace("needed", ""), about
            continue
        yield f"`{above}{'`, `'.join(entry.keys)}`", _usual(entry), entry.about
        if isinstance(kind, Record):
            any_key = ".*" if isinstance(entry.kind, TableOf) else ""
            yield from _rows(kind.cls, f"{above}{entry.key}{any_key}.")


def _loads() -> Iterator[Row]:
    yield from _nested(LoadDocument)
    known = {figure.key[0] for figure in FIGURES if figure.key}
    for key in OF_LOAD.entries:
        if key.name not in known:
            yield f"`{key.name}`", "", _with_columns(key)


def _written() -> Iterator[Row]:
    yield "format", "key", "description"
    for format_ in (*WRITTEN, REPRODUCTION):
        for number, key in enumerate(format_.entries):
            yield "" if number else f"`{format_.name}`", f"`{key.name}`", _with_columns(key)


def _stores() -> Iterator[Row]:
    yield "table", "column", "type", "description"
    for table in STORE:
        for number, column in enumerate(table.columns):
            name = "" if number else f"`{table.name}`"
            yield name, f"`{column.name}`", f"`{column.type}`", column.about


def _with_columns(key: Property) -> str:
    """Return what a key is about, and which keys the tables below it have."""
    kind = getattr(key.kind, "of", key.kind)
    if isinstance(kind, OutputSchema):
        return f"{key.about}, as `{kind.name}`"
    if not isinstance(kind, ObjectType):
        return key.about
    return f"{key.about} ({', '.join(f'`{below.name}`' for below in kind.entries)})"


def _keys(rows: Iterator[Row], *left_out: str) -> Iterator[Row]:
    """Yield the rows but those of tables that another table has."""
    yield from (row for row in rows if not row[0].startswith(left_out))


def _shipped(kind: str) -> Iterator[Row]:
    yield kind, "description", "source"
    for each in getattr(h3sim, f"list_{kind}s")():
        yield f"`{each.name}`", each.title, each.source


def _figures() -> Iterator[Row]:
    yield "name", "in JSON", "label", "description"
    for figure in FIGURES:
        key = f"`{'.'.join(figure.key)}`" if figure.key else ""
        name = f"`{figure.name}`" if figure.is_column else ""
        yield name, key, figure.title, figure.about


def _format_versions() -> Iterator[Row]:
    yield "format", "description", "by this version"
    only_written = {schema.name for schema in WRITTEN} | {REPRODUCTION.name}
    names = {path.name: schema for path, schema in formats.published().items()}
    rows = {
        re.sub(r"-(\d+)\.schema\.json$", r"/\1", name): schema["title"]
        for name, schema in names.items()
    } | {STORE_FORMAT: "A store of studies"}
    for name, title in sorted(rows.items()):
        yield f"`{name}`", title, "only written" if name in only_written else "read and written"


_SECTIONS: dict[str, Callable[[], str]] = {
    "clients": halves.clients,
    "servers": halves.servers,
    "schemes": halves.schemes,
}
"""What is more than a table, by its name in a page."""
_TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "page-keys": _page_keys,
    "page-file-keys": lambda: _keys(_nested(Page), "`resources."),
    "resource-tables": _resource_tables,
    "load-options": _load_options,
    "figures": _figures,
    "network-keys": lambda: _keys(_nested(h3sim.Network), "`down.", "`up."),
    "link-keys": lambda: _nested(LinkProfile),
    "shipped-networks": lambda: _shipped("network"),
    "shipped-profiles": lambda: _shipped("profile"),
    "profile-keys": lambda: _settings(TransportProfile),
    "quic-settings": lambda: _settings(QuicSettings),
    "tcp-settings": lambda: _settings(TcpSettings),
    "study-keys": lambda: _nested(StudyFile),
    "load-keys": _loads,
    "written-keys": _written,
    "format-versions": _format_versions,
    "store-columns": _stores,
    "findings-keys": lambda: _nested(FindingsFile),
    "capabilities": halves.capabilities,
    "pairs": halves.pairs,
    "generated-pages": documented.pages,
    "scheme-keys": lambda: _keys(
        _nested(Scheme), "`client_windows.", "`server_windows.", "`hints.", "`classes."
    ),
    "class-keys": lambda: _settings(SignalClass),
    "client-keys": lambda: _settings(Client),
    "signal-keys": lambda: _settings(SignalTable),
    "server-keys": lambda: _settings(Server),
    "header-study-keys": lambda: _nested(HeaderExperiment),
}


def _markdown(rows: Iterator[Row]) -> str:
    head = next(rows)
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def written(text: str) -> str:
    """Return a page of the documentation with its tables as they are declared.

    Raises:
        KeyError: if there is no table of a name.
    """

    def table(found: re.Match[str]) -> Any:
        name = found[2]
        text = _SECTIONS[name]() if name in _SECTIONS else _markdown(_TABLES[name]())
        return f"{found[1]}\n{text}\n{found[3]}"

    return _COUNTS.sub(_counts, _TABLE.sub(table, text))


def _counts(found: re.Match[str]) -> str:
    """Return the number of findings, and of each verdict, in words."""
    verdicts = verdicts_in((documented.GENERATED / "findings.md").read_text("utf-8"))
    words = counted(map(Verdict, verdicts.values()))
    return f"{len(verdicts)} results of the papers{found[1]}{words}"


def main() -> None:
    """Write the tables of all pages."""
    for path in (README, *sorted(DOCS.rglob("*.md"))):
        text = path.read_text("utf-8")
        path.write_text(written(text), "utf-8")


if __name__ == "__main__":
    main()
