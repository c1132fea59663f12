"""The rows of a fact table, checked: every mistake with the key it stands at."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h3sim.capture.dialects.facts_checks import check_graph
from h3sim.capture.inference.kinds import plain_mime
from h3sim.capture.inference.observed import first_of
from h3sim.documents import DocumentReader, shown
from h3sim.errors import PageError, Problem
from h3sim.page.resource import MAX_STREAM_BYTES, MAX_TIME_NS
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["FactsTable", "Row", "RowType", "read_table"]

_MAX_TIME_MS = to_ms(MAX_TIME_NS)
_TEXTS = ("parent", "parent_basis", "mime", "chrome_priority", "initiator_type")
_SIZES = (
    *("status", "body_bytes", "content_bytes", "ref_offset"),
    *("req_header_bytes", "resp_header_bytes"),
)
_TIMES = ("start_ms", "first_byte_ms", "end_ms", "exec_ms")
_NEEDED = ("id", "parent", "type", "body_bytes", "start_ms")
_PROVENANCE = ("captured", "recorder", "browser", "license", "body_basis", "grade")
_SOURCE = ("source_repo", "source_path", "commit")
MENDED_NS = ms(100)
"""Times that run backwards by no more are mended: two processes' clocks differ, digits are cut."""
_NOT_IN_IDS = "?#;&"
"""What begins or parts a query string, which may hold what is nobody's business."""


class RowType(enum.Enum):
    """What a resource is, in the words of a table."""

    HTML = "html"
    CSS = "css"
    SCRIPT = "js"
    FONT = "font"
    IMAGE = "image"
    FETCH = "xhr"
    MEDIA = "media"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One resource as it was recorded; None where the recording does not say."""

    id: str
    parent: str | None
    basis: str
    """How the recorder, or who made the table, knew the parent: "initiator", "referer", ..."""
    type: RowType
    mime: str
    status: int | None
    body_bytes: int | None
    content_bytes: int | None
    start_ns: int
    first_byte_ns: int | None
    end_ns: int | None
    priority: str | None
    initiator: str | None
    offset_bytes: int | None
    """Where in the decoded parent it is named."""
    executes_ns: int | None
    chunks: tuple[tuple[int, int], ...]
    """When how many bytes more were there: (ns, bytes), times rising."""
    request_header_bytes: int | None
    response_header_bytes: int | None
    host: str
    """Its host, under another name: "host-1", "host-2" and so on; "" where none is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsTable:
    """A fact table: rows in its order, the root among them."""

    name: str
    rows: tuple[Row, ...]
    provenance: Mapping[str, str]
    held_by: Mapping[str, str]
    """What held the parser: the kind of hold ("css", "script-sync", "script-defer") by id."""
    mended: tuple[Problem, ...]
    """Times that ran backwards by a little, and what was taken instead."""


def read_table(document: object, source: str) -> FactsTable:
    """Return the table that *document* is.

    Raises:
        PageError: listing every mistake in it.
    """
    reader = DocumentReader()
    if not isinstance(document, dict):
        reader.report("", f"must be an object, is {shown(document)}")
        raise PageError(reader.problems, source)
    for key in ("name", "resources"):
        if key not in document:
            reader.report(key, "is missing")
    entries = _entries(reader, document["resources"]) if "resources" in document else {}
    mended: list[Problem] = []
    hosts = _hosts(entries.values())
    rows = {
        n: _row(reader, f"resources[{n}]", entry, mended, hosts) for n, entry in entries.items()
    }
    check_graph(reader, rows)
    table = FactsTable(
        name=_text(reader, "name", document.get("name", "")) or "",
        rows=tuple(rows.values()),
        provenance=dict(_provenance(reader, document))
        | ({"hosts": str(len(hosts))} if hosts else {}),
        held_by=dict(_holds(reader, document.get("hol"), {row.id for row in rows.values()})),
        mended=tuple(mended),
    )
    if reader.problems:
        raise PageError(first_of(reader.problems), source)
    return table


def _entries(reader: DocumentReader, value: object) -> dict[int, dict[str, Any]]:
    """Return the rows that are tables, by place."""
    if not isinstance(value, list):
        reader.report("resources", f"must be a list of tables, is {shown(value)}")
        return {}
    if not value:
        reader.report("resources", "a page needs at least one resource")
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            reader.report(f"resources[{index}]", f"must be a table, is {shown(entry)}")
    return {index: entry for index, entry in enumerate(value) if isinstance(entry, dict)}


def _row(
    reader: DocumentReader,
    key: str,
    entry: Mapping[str, Any],
    mended: list[Problem],
    hosts: Mapping[str, str],
) -> Row:
    for name in _NEEDED:
        if name not in entry:
            reader.report(f"{key}.{name}", "is missing")
    text = {name: _text(reader, f"{key}.{name}", entry.get(name)) for name in _TEXTS}
    size = {name: _size(reader, f"{key}.{name}", entry.get(name)) for name in _SIZES}
    time = {name: _time(reader, f"{key}.{name}", entry.get(name)) for name in _TIMES}
    _check_times(reader, key, entry, time, mended)
    return Row(
        id=_id(reader, f"{key}.id", entry.get("id", f"({key})")),
        parent=text["parent"],
        basis=text["parent_basis"] or "unknown",
        type=reader.choice(f"{key}.type", entry.get("type", "other"), RowType),
        mime=plain_mime(text["mime"] or ""),
        status=size["status"],
        body_bytes=size["body_bytes"],
        content_bytes=size["content_bytes"],
        start_ns=time["start_ms"] or 0,
        first_byte_ns=time["first_byte_ms"],
        end_ns=time["end_ms"],
        priority=text["chrome_priority"],
        initiator=text["initiator_type"],
        offset_bytes=size["ref_offset"],
        executes_ns=time["exec_ms"],
        chunks=_chunks(reader, f"{key}.chunks", entry.get("chunks"), mended),
        request_header_bytes=size["req_header_bytes"],
        response_header_bytes=size["resp_header_bytes"],
        host=hosts.get(str(entry.get("host")), ""),
    )


def _check_times(
    reader: DocumentReader,
    key: str,
    entry: Mapping[str, Any],
    time: dict[str, int | None],
    mended: list[Problem],
) -> None:
    """Note what runs backwards; clocks that differ a little are mended."""
    if "start_ms" in entry and entry["start_ms"] is None:
        reader.report(f"{key}.start_ms", "must be a number, is None")
    told = reader.reported()
    for later, earlier in (
        ("first_byte_ms", "start_ms"),
        ("end_ms", "start_ms"),
        ("end_ms", "first_byte_ms"),
    ):
        before, after = time[earlier], time[later]
        if before is None or after is None or after >= before:
            continue
        if f"{key}.{later}" in told or f"{key}.{earlier}" in told:
            continue
        if before - after <= MENDED_NS:
            time[later] = before
            mended.append(_mend(f"{key}.{later}", before - after, earlier))
        else:
            reader.report(f"{key}.{later}", f"lies before {earlier}: {entry[later]}")
            told = reader.reported()


def _id(reader: DocumentReader, key: str, value: object) -> str:
    text = reader.text(key, value)
    if isinstance(value, str) and not value:
        reader.report(key, "must not be empty")
    if any(character in text for character in _NOT_IN_IDS):
        reader.report(key, f"must be a plain name, without a query string: {shown(text)}")
    return text


def _text(reader: DocumentReader, key: str, value: object) -> str | None:
    return None if value is None else reader.text(key, value)


def _size(reader: DocumentReader, key: str, value: object) -> int | None:
    return None if value is None else reader.whole(key, value, low=0, high=MAX_STREAM_BYTES)


def _time(reader: DocumentReader, key: str, value: object) -> int | None:
    """Return nanoseconds; 0 in place of what is no time from 0 to a day."""
    if value is None:
        return None
    told = len(reader.problems)
    number = reader.number(key, value)
    if len(reader.problems) == told and not 0 <= number <= _MAX_TIME_MS:
        reader.report(key, f"must be from 0 ms to a day, is {shown(value)}")
        return 0
    return ms(number)


def _mend(key: str, by_ns: int, earlier: str) -> Problem:
    return Problem(key=key, message=f"lies {to_ms(by_ns):g} ms before {earlier}, taken as that")


def _chunks(
    reader: DocumentReader, key: str, value: object, mended: list[Problem]
) -> tuple[tuple[int, int], ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        reader.report(key, f"must be a list of [ms, bytes], is {shown(value)}")
        return ()
    chunks: list[tuple[int, int]] = []
    for index, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2:
            reader.report(f"{key}[{index}]", f"must be [ms, bytes], is {shown(pair)}")
            continue
        at_ns = _time(reader, f"{key}[{index}][0]", pair[0])
        n_bytes = reader.whole(f"{key}[{index}][1]", pair[1], low=0, high=MAX_STREAM_BYTES)
        at_ns = at_ns or 0
        late_ns = chunks[-1][0] - at_ns if chunks else 0
        if 0 < late_ns <= MENDED_NS:
            mended.append(_mend(f"{key}[{index}][0]", late_ns, "the chunk ahead of it"))
            at_ns = chunks[-1][0]
        elif late_ns > 0:
            reader.report(f"{key}[{index}][0]", f"lies before the chunk ahead of it: {pair[0]}")
        chunks.append((at_ns, n_bytes))
    return tuple(chunks)


def _hosts(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what each host is called in the page: names are not kept."""
    hosts = (host for entry in entries if isinstance(host := entry.get("host"), str))
    return {host: f"host-{number}" for number, host in enumerate(dict.fromkeys(hosts), 1)}


def _provenance(reader: DocumentReader, document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where the facts come from; a query string in the name of a source is cut off."""
    given = {name: _text(reader, name, document.get(name)) for name in (*_SOURCE, *_PROVENANCE)}
    source = " ".join((given[name] or "").partition("?")[0] for name in _SOURCE).strip()
    tool = ", ".join(given[name] or "" for name in ("recorder", "browser") if given[name])
    notes = [
        f"{name}: {given[key]}"
        for name, key in (("body sizes", "body_basis"), ("grade", "grade"))
        if given[key]
    ]
    for name, said in (
        ("source", source),
        ("recorded", given["captured"]),
        ("tool", tool),
        ("licence", given["license"]),
        ("notes", "; ".join(notes)),
    ):
        if said:
            yield name, said


def _holds(reader: DocumentReader, value: object, ids: set[str]) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    for index, entry in enumerate(reader.tables("hol", value)):
        kind = _text(reader, f"hol[{index}].kind", entry.get("kind"))
        resource = _text(reader, f"hol[{index}].resource", entry.get("resource"))
        if resource is not None and resource not in ids:
            reader.report(f"hol[{index}].resource", f"no resource has the id {shown(resource)}")
        elif resource is not None and kind is not None:
            yield resource, kind
