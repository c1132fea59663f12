"""What a fact table may hold, declared, and what must hold among its rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from h3sim.capture.inference.kinds import kind_of_word, plain_mime
from h3sim.capture.inference.observed import first_of
from h3sim.documents import shown
from h3sim.documents.arguments import Only
from h3sim.documents.declared import declared, read_table, says
from h3sim.documents.refused import (
    MAX_PROBLEMS,
    RefusedError,
    TooManyProblemsError,
    collected,
)
from h3sim.documents.values import Choice, ListOf, OrNone, Text, ValueType, Whole
from h3sim.errors import PageError, Problem
from h3sim.page import Kind
from h3sim.page.checks import circle_problems, id_problems
from h3sim.page.discovery import DELAY
from h3sim.page.resource import MAX_STREAM_BYTES
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FactsRow", "FactsTable", "read_facts"]

ValueT = TypeVar("ValueT")
MENDED_NS = ms(100)
"""Times that run backwards by no more are mended: two processes' clocks differ, digits are cut."""
_OF_GRAPH = re.compile(r"resources(\[\d+\](\.id|\.parent)?)?")
_KINDS = {
    word: kind_of_word(word) or Kind.OTHER
    for word in ("html", "css", "js", "font", "image", "xhr", "media", "other")
}
"""The types of rows, in the words of a table."""


class _Id(Text):
    """A name; what begins or parts a query string may hold what is nobody's business."""

    def accept(self, value: Any) -> str:
        text = super().accept(value)
        if any(character in text for character in "?#;&"):
            raise RefusedError(f"must be a plain name, without a query string: {shown(text)}")
        return text


class _Type(Choice):
    def read(self, given: Any) -> Kind:
        return _KINDS[self.accept(given)]


class _Host(ValueType):
    """Any name, which is not kept; what is none says nothing."""

    def read(self, given: Any) -> str:
        return given if isinstance(given, str) else ""


class _Chunk(ValueType):
    """When how many bytes more were there: [ms, bytes] in a file, (ns, bytes) inside."""

    def read(self, given: Any) -> tuple[int, int]:
        if not isinstance(given, list) or len(given) != 2:
            raise RefusedError(f"must be [ms, bytes], is {shown(given)}")
        kinds = ("[0]", DELAY.read, given[0]), ("[1]", _SIZE.read, given[1])
        taken, problems = collected(kinds)
        if problems:
            raise RefusedError(problems)
        return taken[0], taken[1]


_SIZE = Whole(low=0, high=MAX_STREAM_BYTES)


def _known(kind: ValueType, key: str = "", default: Any = None) -> Any:
    """Return a field that is *default* where the recording says nothing."""
    return field(default=default, metadata=says(kind, key=key))


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsRow:
    """One resource as it was recorded; None where the recording does not say."""

    id: str = field(metadata=says(_Id(is_needed=True)))
    parent: str | None = field(metadata=says(OrNone(Text(), none=None)))
    kind: Kind = field(metadata=says(_Type(_KINDS), key="type", stand_in=Kind.OTHER))
    body_bytes: int | None = field(metadata=says(OrNone(_SIZE, none=None)))
    start_ns: int = field(metadata=says(DELAY))
    basis: str = _known(Text(), "parent_basis", "")
    """How the recorder, or who made the table, knew the parent: "initiator", "referer", ..."""
    mime: str = _known(Text(), default="")
    status: int | None = _known(_SIZE)
    content_bytes: int | None = _known(_SIZE)
    first_byte_ns: int | None = _known(DELAY, "first_byte_ms")
    end_ns: int | None = _known(DELAY, "end_ms")
    priority: str | None = _known(Text(), "chrome_priority")
    initiator: str | None = _known(Text(), "initiator_type")
    offset_bytes: int | None = _known(_SIZE, "ref_offset")
    """Where in the decoded parent it is named."""
    executes_ns: int | None = _known(DELAY, "exec_ms")
    chunks: tuple[tuple[int, int], ...] = _known(ListOf(_Chunk(), "[ms, bytes]"), default=())
    request_header_bytes: int | None = _known(_SIZE, "req_header_bytes")
    response_header_bytes: int | None = _known(_SIZE, "resp_header_bytes")
    host: str = _known(_Host(), default="")
    """Its host, under another name: "host-1", "host-2" and so on; "" where none is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    """What held the parser."""

    kind: str | None = _known(Text())
    resource: str | None = _known(Text())


class _HoldType(ValueType):
    def read(self, given: Any) -> _Hold:
        return _read(_Hold, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsTable:
    """A fact table: rows in its order, the root among them."""

    name: str = field(metadata=says(Text()))
    resources: list[Any] = field(
        metadata=says(Only("a list of tables", lambda value: isinstance(value, list)), stand_in=[])
    )
    source_repo: str = _known(Text(), default="")
    source_path: str = _known(Text(), default="")
    commit: str = _known(Text(), default="")
    captured: str = _known(Text(), default="")
    recorder: str = _known(Text(), default="")
    browser: str = _known(Text(), default="")
    licence: str = _known(Text(), "license", "")
    body_basis: str = _known(Text(), default="")
    grade: str = _known(Text(), default="")
    hol: tuple[_Hold, ...] = _known(ListOf(_HoldType(), "tables"), default=())
    """What held the parser: "css", "script-sync", "script-defer"."""
    rows: tuple[FactsRow, ...] = ()
    mended: tuple[Problem, ...] = ()
    """Times that ran backwards by a little, and what was taken instead."""

    @property
    def provenance(self) -> dict[str, str]:
        """Where the facts come from; a query string in the name of a source is cut off."""
        source = (self.source_repo, self.source_path, self.commit)
        notes = (("body sizes", self.body_basis), ("grade", self.grade))
        said = {
            "source": " ".join(part.partition("?")[0] for part in source).strip(),
            "recorded": self.captured,
            "tool": ", ".join(filter(None, (self.recorder, self.browser))),
            "licence": self.licence,
            "notes": "; ".join(f"{name}: {value}" for name, value in notes if value),
        }
        return {name: value for name, value in said.items() if value}


def read_facts(document: object, source: str) -> FactsTable:
    """Return the table that *document* is.

    Raises:
        PageError: listing every mistake in it.
    """
    if not isinstance(document, dict):
        message = f"must be an object, is {shown(document)}"
        raise PageError([Problem(key="", message=message)], source)
    problems: list[Problem] = []
    try:
        return _table(document, source, problems)
    except TooManyProblemsError:
        raise PageError(first_of(problems), source) from None


def _table(document: dict[str, Any], source: str, problems: list[Problem]) -> FactsTable:
    table = _taken(FactsTable, document, "", problems)
    if not table.resources and all(problem.key != "resources" for problem in problems):
        problems.append(Problem(key="resources", message="a page needs at least one resource"))
    mended: list[Problem] = []
    rows: dict[int, FactsRow] = {}
    hosts: dict[str, str] = {}
    for index, entry in enumerate(table.resources):
        key = f"resources[{index}]"
        row = _taken(FactsRow, entry, key, problems)
        if isinstance(entry, dict):
            row = _in_time(row, key, problems, mended)
            host = row.host and hosts.setdefault(row.host, f"host-{len(hosts) + 1}")
            rows[index] = replace(row, host=host, mime=plain_mime(row.mime))
    problems += _of_graph(rows, {problem.key for problem in problems})
    ids = {row.id for row in rows.values()}
    for number, hold in enumerate(table.hol):
        if hold.resource is not None and hold.resource not in ids:
            message = f"no resource has the id {shown(hold.resource)}"
            problems.append(Problem(key=f"hol[{number}].resource", message=message))
    if problems:
        raise PageError(first_of(problems), source)
    return replace(table, rows=tuple(rows.values()), mended=tuple(mended))


def _read(cls: type[ValueT], given: object) -> ValueT:
    """Return what a table says by the keys that are declared; null is nothing, where it may be."""
    if not isinstance(given, dict):
        return read_table(cls, given)
    fields = [field for field in declared(cls) if field.key in given]
    said = (field for field in fields if field.is_needed or given[field.key] is not None)
    return read_table(cls, {field.key: given[field.key] for field in said})


def _taken(cls: type[ValueT], given: object, key: str, problems: list[Problem]) -> ValueT:
    """Return the same, or what stands in for it after its problems were added."""
    try:
        return _read(cls, given)
    except RefusedError as refused:
        problems += refused.under(key)
        if isinstance(refused, TooManyProblemsError) or len(problems) > MAX_PROBLEMS:
            raise TooManyProblemsError(problems) from refused
        stand_in: ValueT = refused.stand_in
        return stand_in


def _in_time(row: FactsRow, key: str, problems: list[Problem], mended: list[Problem]) -> FactsRow:
    """Return a row with what runs backwards a little mended; note what runs back further."""

    def later(name: str, at_ns: int | None, since_ns: int | None, since: str) -> int | None:
        if at_ns is None or since_ns is None or at_ns >= since_ns:
            return at_ns
        if since_ns - at_ns > MENDED_NS:
            message = f"lies before {since}: {to_ms(at_ns):g}"
            problems.append(Problem(key=f"{key}.{name}", message=message))
            return None
        message = f"lies {to_ms(since_ns - at_ns):g} ms before {since}, taken as that"
        mended.append(Problem(key=f"{key}.{name}", message=message))
        return since_ns

    first_ns = later("first_byte_ms", row.first_byte_ns, row.start_ns, "start_ms")
    end_ns = later("end_ms", row.end_ns, row.start_ns, "start_ms")
    end_ns = later("end_ms", end_ns, first_ns, "first_byte_ms")
    chunks: list[tuple[int, int]] = []
    for number, (at_ns, n_bytes) in enumerate(row.chunks):
        ahead_ns = chunks[-1][0] if chunks else None
        kept_ns = later(f"chunks[{number}][0]", at_ns, ahead_ns, "the chunk ahead of it")
        chunks.append((at_ns if kept_ns is None else kept_ns, n_bytes))
    return replace(row, first_byte_ns=first_ns, end_ns=end_ns, chunks=tuple(chunks))


def _of_graph(rows: Mapping[int, FactsRow], told: set[str]) -> list[Problem]:
    """Return what is wrong with ids and parents, at keys of which nothing was said yet."""
    ids = {index: row.id for index, row in rows.items()}
    parents = {index: row.parent for index, row in rows.items()}
    found = [*id_problems(ids)]
    roots = [n for n, parent in parents.items() if parent is None]
    roots = [n for n in roots if f"resources[{n}].parent" not in told]
    for index in roots[1:]:
        message = f"a second root beside resources[{roots[0]}]: only one may have no parent"
        found.append(Problem(key=f"resources[{index}].parent", message=message))
    # Where ids or parents could not be read, nobody can say which are missing.
    if not any(_OF_GRAPH.fullmatch(key) for key in told):
        if not roots:
            message = "no root: one row must have the parent null"
            found.append(Problem(key="resources", message=message))
        named = {*ids.values(), None}
        found += [
            Problem(
                key=f"resources[{index}].parent", message=f"no resource has the id {shown(parent)}"
            )
            for index, parent in parents.items()
            if parent not in named
        ]
    found += circle_problems(ids, parents, key="parent")
    return [problem for problem in found if problem.key not in told]
