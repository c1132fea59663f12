"""qlog files: containers (JSON or a JSON text sequence, gzipped or not) and their events."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO

from h3sim.schema import open_input
from h3sim.schema.files import GZIP_MAGIC, json_error_message
from h3sim.values.constants import MAX_VARINT
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.units import NS_PER_DAY, NS_PER_MS, NS_PER_S, NS_PER_US

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedReader
    from pathlib import Path


RECORD_SEPARATOR = "\x1e"
"""The record separator of a JSON text sequence (RFC 7464 § 2.2)."""
_MAX_PROBLEMS = 20
"""The number of errors at which reading stops: of a file of another kind every line is wrong."""
_MAX_DOCUMENT_CHARS, _MAX_RECORD_CHARS = 100_000_000, 10_000_000
"""The maximum characters of a document, which is held in memory at 5 to 25 bytes each, and of a
record of a sequence. A file of 1.5 MB can unpack to a thousand times as much."""
_MAX_EVENTS = 4_000_000
"""The maximum number of events of a sequence: a packet takes about 400 bytes in memory."""
_MAX_NESTING = 100
"""Brackets within brackets of a cut document; events have about ten."""
_RECORD_TOO_LONG = f"is a record of more than {_MAX_RECORD_CHARS // 1_000_000} MB"


class LogError(InputError):
    """A log that cannot be written or read."""


class Findings:
    """Findings while a log is read: errors, and missing data."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.unknown: list[str] = []
        """Missing data of the log, and what replaces it."""
        self._problems: list[ValidationIssue] = []

    def wrong(self, key: str, message: str) -> None:
        """Record an error.

        Raises:
            LogError: with all errors so far, if there are too many to continue.
        """
        self._problems.append(ValidationIssue(key=key, message=message))
        if len(self._problems) == _MAX_PROBLEMS:
            more = ValidationIssue(key="", message="possibly more: reading stopped here")
            self._problems.append(more)
            self.raise_if_any()

    def fatal(self, key: str, message: str) -> NoReturn:
        """Raise an error after which reading cannot continue."""
        raise LogError([*self._problems, ValidationIssue(key=key, message=message)], self.source)

    def raise_if_any(self) -> None:
        """Raise a LogError if there were errors."""
        if self._problems:
            raise LogError(self._problems, self.source)


class RawTrace(NamedTuple):
    """One trace of a file: *head* has all its keys except "events"."""

    key: str
    """Position of the trace in the file, for messages."""
    title: str
    head: dict[str, Any]
    events: Iterable[tuple[str, Any]]
    """Each event, with its position in the file."""


class _CutGzipFile(gzip.GzipFile):
    """Gzip file that ends where it was cut off, if it has any data before that."""

    def __init__(self, raw: BufferedReader, findings: Findings) -> None:
        super().__init__(fileobj=raw)
        self._findings = findings
        self._is_empty = True

    def read1(self, size: int = -1) -> bytes:
        """Return some bytes, none at the end of the file."""
        try:
            found = super().read1(size)
        except EOFError:
            if self._is_empty:
                raise
            self._findings.unknown.append(
                "what came after the end of the packed file: it is cut off"
            )
            return b""
        self._is_empty = self._is_empty and not found
        return found


@contextmanager
def opened(path: str | Path, findings: Findings) -> Iterator[TextIO]:
    """Open the file at *path* as text; errors while it is read become a LogError."""
    with ExitStack() as stack:
        raw = stack.enter_context(open_input(path, LogError))
        try:
            is_gzip = raw.peek(2)[:2] == GZIP_MAGIC
            binary = stack.enter_context(_CutGzipFile(raw, findings)) if is_gzip else raw
            yield io.TextIOWrapper(binary, encoding="utf-8-sig")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            findings.fatal("", f"cannot be unpacked: {error}")
        except UnicodeDecodeError as error:
            findings.fatal("", f"is not UTF-8: {error.reason}")


def raw_traces(stream: TextIO, findings: Findings) -> Iterator[RawTrace]:
    """Yield the traces of a file; the events of each must be consumed before the next trace.

    A sequence is read record by record, so it may be larger than memory.

    Raises:
        LogError: if the file cannot be read, or a document is too large for memory.
    """
    # One character beyond the limit distinguishes a line that is too long from one that fits.
    first = stream.readline(_MAX_DOCUMENT_CHARS + 1)
    while first and not first.strip():
        first = stream.readline(_MAX_DOCUMENT_CHARS + 1)
    if first.startswith(RECORD_SEPARATOR):
        yield _sequence(_separated_records(_lines(first, stream, findings), findings), findings)
        return
    is_short = len(first) <= _MAX_DOCUMENT_CHARS
    document, message = _parse_json(first) if is_short else (None, "too long")
    if isinstance(document, dict) and "trace" in document:
        yield _sequence(_line_records(_lines(first, stream, findings)), findings)
        return
    rest = stream.read(max(_MAX_DOCUMENT_CHARS + 1 - len(first), 1))
    if len(first) + len(rest) > _MAX_DOCUMENT_CHARS:
        findings.fatal(
            "",
            f"is more than {_MAX_DOCUMENT_CHARS // 1_000_000} MB of JSON (unpacked), which must fit"
            " into memory: write it as a JSON text sequence (.sqlog)",
        )
    # Many logs are a single line, which has been parsed already.
    if message or rest.strip():
        document, message = _parse_json(first + rest)
    if message:
        text = first + rest
        n_chars, closing = _end_of_events(text)
        if not n_chars:
            findings.fatal("", f"is not JSON: {message}")
        document, message_of_part = _parse_json(text[:n_chars] + closing)
        if message_of_part:
            findings.fatal("", f"is not JSON: {message}")
        findings.unknown.append(f"what came after character {n_chars:,}, where the log is cut off")
    yield from _traces_of_document(document, findings)


_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]}]', re.DOTALL)
"""Tokens that show how deep a value is nested, strings possibly without an end."""
_CLOSING = {"{": "}", "[": "]"}
_EVENTS_NESTING = "{[{["
"""Opened brackets within the events of a trace of a document."""


def _end_of_events(text: str) -> tuple[int, str]:
    """Return how many characters of a cut document end with an event, and what then closes it.

    0 if no event is complete, or all brackets are closed, so that nothing was cut off.

    >>> _end_of_events('{"traces": [{"events": [{"time": 1}, {"ti')
    (35, ']}]}')
    >>> _end_of_events('{"traces": [{"events": [{"time": 1},]}]}')
    (0, '')
    """
    nesting, n_chars = "", 0
    for found in _STRING_OR_BRACKET.finditer(text):
        sign = found[0]
        if sign in _CLOSING:
            nesting += sign
        elif sign in _CLOSING.values():
            nesting = nesting[:-1]
            n_chars = found.end() if nesting == _EVENTS_NESTING else n_chars
        if len(nesting) > _MAX_NESTING:
            return 0, ""
    closing = "".join(_CLOSING[sign] for sign in reversed(_EVENTS_NESTING))
    return (n_chars, closing) if nesting and n_chars else (0, "")


def _traces_of_document(document: object, findings: Findings) -> Iterator[RawTrace]:
    """Yield the traces of a JSON document."""
    if not isinstance(document, dict) or "traces" not in document:
        findings.fatal("", "is not a qlog: it has neither 'traces' nor 'trace'")
    traces = document["traces"]
    if not isinstance(traces, list):
        findings.fatal("traces", "must be a list")
    for number, trace in enumerate(traces):
        key = f"traces[{number}]"
        if not isinstance(trace, dict):
            findings.wrong(key, "must be an object")
        elif "error_description" in trace and "events" not in trace:
            continue  # the reason why a trace could not be logged, instead of its events
        elif not isinstance(trace.get("events"), list):
            findings.wrong(f"{key}.events", "must be a list" if "events" in trace else "is missing")
        else:
            events = (
                (f"{key}.events[{index}]", event) for index, event in enumerate(trace["events"])
            )
            head = {name: value for name, value in trace.items() if name != "events"}
            yield RawTrace(key, _title(document, trace), head, events)


class _Record(NamedTuple):
    """A record of a JSON text sequence, and the number of its first line."""

    line: int
    text: str
    is_complete: bool
    """False for the last record of a log whose writer was stopped."""


def _sequence(records: Iterator[_Record], findings: Findings) -> RawTrace:
    """Return the one trace of a sequence."""
    line, text, _ = next(records)
    head, message = _parse_json(text)
    if message:
        findings.fatal(f"line {line}", f"is not JSON: {message}")
    if not isinstance(head, dict) or not isinstance(head.get("trace"), dict):
        findings.fatal(f"line {line}", "is not the head of a qlog: it has no 'trace'")
    trace = head["trace"]
    return RawTrace("trace", _title(head, trace), trace, _parse_records(records, findings))


def _parse_records(records: Iterator[_Record], findings: Findings) -> Iterator[tuple[str, Any]]:
    """Yield the events of a sequence, each with its position in the file."""
    for number, (line, text, is_complete) in enumerate(records, 1):
        if number > _MAX_EVENTS:
            findings.fatal(f"line {line}", f"is the end of {_MAX_EVENTS:,} events, the maximum")
        event, message = _parse_json(text)
        if not message:
            yield f"line {line}", event
        elif is_complete:
            findings.wrong(f"line {line}", f"is not JSON: {message}")
        else:
            # The records before are valid (RFC 7464 § 2.3).
            findings.unknown.append(f"what came after line {line}, where the log is cut off")


def _lines(first: str, stream: TextIO, findings: Findings) -> Iterator[tuple[int, str]]:
    """Yield *first* and the other lines of *stream*, with their numbers."""
    line, number = first, 1
    while line:
        if len(line) > _MAX_RECORD_CHARS:
            findings.fatal(f"line {number}", _RECORD_TOO_LONG)
        yield number, line
        line, number = stream.readline(_MAX_RECORD_CHARS + 1), number + 1


def _separated_records(lines: Iterable[tuple[int, str]], findings: Findings) -> Iterator[_Record]:
    """Yield the records of a file in which a separator precedes each."""
    parts: list[str] = []  # of the current record
    first_line = 1
    n_chars = 0
    for number, line in lines:
        n_chars += len(line)
        if n_chars > _MAX_RECORD_CHARS:
            findings.fatal(f"line {first_line}", _RECORD_TOO_LONG)
        *ends_of_records, rest = line.split(RECORD_SEPARATOR)
        for end in ends_of_records:
            text = "".join((*parts, end))
            if text.strip():
                yield _Record(first_line, text, True)
            parts, first_line, n_chars = [], number, len(line)
        parts.append(rest)
    text = "".join(parts)
    if text.strip():
        yield _Record(first_line, text, text.endswith("\n"))


def _line_records(lines: Iterable[tuple[int, str]]) -> Iterator[_Record]:
    """Yield the records of a file with one per line, without separators."""
    for number, line in lines:
        if line.strip():
            yield _Record(number, line, line.endswith("\n"))


def _title(outer: dict[str, Any], trace: dict[str, Any]) -> str:
    titles = (outer.get("title"), trace.get("title"))
    return next((title for title in titles if isinstance(title, str) and title), "")


def _parse_json(text: str) -> tuple[Any, str]:
    """Return the parsed *text* and "", or None and an error message."""
    try:
        return json.loads(text, parse_constant=_reject_constant), ""
    except json.JSONDecodeError as error:
        if not text.strip():
            return None, "it is empty"
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        return None, f"{json_error_message(error)} at {line}column {error.colno}"
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:
        return None, str(error)


def _reject_constant(constant: str) -> NoReturn:
    """Reject NaN and Infinity, which Python's parser accepts but JSON forbids."""
    raise ValueError(f"{constant} is no number")


_MAX_TIME = 1e18
"""Largest time in any unit: in 2026 about 1.8e15 microseconds have passed since 1970."""
_DELTA_FORMATS = ("delta", "delta_time", "relative_to_previous_event")
"""Names of the time format in which a time is relative to the previous event."""
_KIND_BY_EVENT_NAME = {
    "packet_sent": "sent",
    "packet_received": "received",
    "packet_lost": "lost",
    "metrics_updated": "metrics",
    "metric_update": "metrics",
    "recovery_metrics_updated": "metrics",
    "frame_created": "created",
    "frame_parsed": "parsed",
    "data_moved": "moved",
    "stream_data_moved": "moved",
    "priority_updated": "prioritized",
    "parameters_set": "parameters",
}
"""Kinds of the events that are used, by their names in all versions, without a category."""
_TIME_FIELDS = ("time", "relative_time", "delta_time")
"""Names that the column of times can have in `event_fields`."""


class QlogEvent(NamedTuple):
    """An event that is used; *key* is its position in the file, for messages."""

    key: str
    at_ns: int
    what: str
    """The kind of event, a value of `_KIND_BY_EVENT_NAME`."""
    data: dict[str, Any]
    path: str = ""
    """The network path of a packet, "" in logs that do not say it."""


def as_unsigned(value: object) -> int | None:
    """Return *value*, a number or text, as an integer from 0 to 2^62 - 1; None for others.

    >>> [as_unsigned(value) for value in (4, "4", 4.0, -4, 4.5, True, "4a")]
    [4, 4, 4, None, None, None, None]
    """
    # MAX_VARINT has 19 digits; converting a very long text would take time.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_VARINT:
        return None
    return value


_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d{1,9})?\d*([Zz]|[+-]\d\d:\d\d)")
"""A date and time of RFC 3339, to the nanosecond."""
_MILLISECONDS_SINCE_1970 = range(10**11, 10**14)
"""Times that are read as milliseconds since 1970 whatever the unit of the log: years 1973 to 5138.
Some logs in microseconds have such a reference."""


def _zero_ns(reference: object, units: object) -> int | None:
    """Return a `reference_time` in ns since the log's epoch, None if it is none or unknown.

    It is a number in the units of the log (draft-00 to -02, and 0.3), or an object with an `epoch`;
    of a monotonic clock, whose epoch is unknown, `wall_clock_time` is the date of its zero.

    >>> _zero_ns({"epoch": "unknown", "wall_clock_time": "1970-01-01T00:00:01.000000002Z"}, "ms")
    1000000002
    >>> _zero_ns("1500", "us"), _zero_ns({"clock_type": "monotonic", "epoch": "unknown"}, "ms")
    (1500000, None)
    """
    if isinstance(reference, dict):
        dates = (_date_ns(reference.get(name)) for name in ("epoch", "wall_clock_time"))
        return next((date_ns for date_ns in dates if date_ns is not None), None)
    number = _read_time(reference)
    if number is None:
        return _date_ns(reference)
    in_us = units == "us" and int(number) not in _MILLISECONDS_SINCE_1970
    return round(number * (NS_PER_US if in_us else NS_PER_MS))


def _date_ns(text: object) -> int | None:
    """Return a date and time of RFC 3339 in ns since 1970, None for other values."""
    match = _DATE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    day, time, fraction, zone = match.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        date = datetime.fromisoformat(f"{day}T{time}{zone}")
    except ValueError:
        return None
    return round(date.timestamp()) * NS_PER_S + int(f"{(fraction or '.')[1:]:0<9}")


class Clock:
    """The clock of a trace: converts its times to nanoseconds since its reference.

    Times of day, others relative to a distant past, and those of a log that began before its
    reference are relative to the first event.
    """

    def __init__(self, raw: RawTrace, findings: Findings, time_field: str | None) -> None:
        common = _object(raw.head.get("common_fields"))
        configuration = _object(raw.head.get("configuration"))
        units = configuration.get("time_units", common.get("time_units", "ms"))
        self._findings = findings
        self._ns_per_unit = NS_PER_US if units == "us" else NS_PER_MS
        time_format = str(common.get("time_format", time_field))
        self.is_delta = time_format in _DELTA_FORMATS
        self.reference = (time_format, units, repr(common.get("reference_time")))
        """Equal for two clocks with the same time zero."""
        is_absolute = time_format == "absolute"
        self.zero_ns = 0 if is_absolute else _zero_ns(common.get("reference_time"), units)
        """Time zero of the log as a date, in ns since 1970; None if the log does not say it."""
        self.base: float | None = None
        """Time zero of the trace, in the units of the log; None before the first event."""
        self._now_ns = 0

    def at_ns(self, key: str, value: object) -> int | None:
        """Return the time *value* of an event; None after recording an error under *key*."""
        number = _read_time(value)
        if number is None:
            self._findings.wrong(f"{key}.time", f"must be a number, is {describe_value(value)}")
            return None
        if self.base is None:
            has_far_zero = number < 0 or number * self._ns_per_unit > NS_PER_DAY
            self.base = number if has_far_zero else 0
            if has_far_zero and self.is_delta:
                number = 0
        if self.is_delta:
            self._now_ns += round(number * self._ns_per_unit)
            return self._now_ns
        return round((number - self.base) * self._ns_per_unit)

    def offset_to(self, other: Clock) -> int | None:
        """Return what is to be added to times of this clock to get those of the *other*, in ns.

        None if the logs do not say it.
        """
        if self.base is None or other.base is None:
            return None
        base_ns = round(self.base * self._ns_per_unit)
        base_ns -= round(other.base * other._ns_per_unit)
        if self.reference == other.reference:
            return base_ns
        if self.zero_ns is None or other.zero_ns is None:
            return None
        return base_ns + self.zero_ns - other.zero_ns

    def ns(self, value: object) -> int | None:
        """Return a duration in nanoseconds, or None if it is invalid."""
        number = _read_time(value)
        return None if number is None else round(number * self._ns_per_unit)


def events_of(raw: RawTrace, findings: Findings) -> tuple[Clock, Iterator[QlogEvent]]:
    """Return the clock of a trace, and an iterator over its events that are used."""
    names = raw.head.get("event_fields")
    columns = [str(name).casefold() for name in names] if isinstance(names, list) else None
    time_field = next((name for name in _TIME_FIELDS if name in (columns or ())), None)
    clock = Clock(raw, findings, time_field)
    return clock, _read_events(raw, findings, clock, columns, time_field or "time")


def _read_events(
    raw: RawTrace, findings: Findings, clock: Clock, columns: list[str] | None, time_field: str
) -> Iterator[QlogEvent]:
    """Yield the events that are used, with their times."""
    common = _object(raw.head.get("common_fields"))
    groups: dict[str, None] = {}
    is_first = True
    for key, entry in raw.events:
        event = _to_object(entry, columns)
        if event is None:
            allowed = "an object" if columns is None else f"an object or {len(columns)} fields"
            findings.wrong(key, f"must be {allowed}, is {describe_value(entry)}")
            continue
        if not event:
            continue  # an empty last event allows for a trailing comma
        what = _KIND_BY_EVENT_NAME.get(_event_name(event, common))
        # The clock also needs the times of unused events: the first one defines time zero, and a
        # delta is relative to the previous event.
        if what is None and not is_first and not clock.is_delta:
            continue
        is_first = False
        at_ns = clock.at_ns(key, event.get(time_field))
        if what is None or at_ns is None:
            continue
        data = event.get("data")
        if not isinstance(data, dict):
            findings.wrong(f"{key}.data", f"must be an object, is {describe_value(data)}")
            continue
        groups[repr(event.get("group_id"))] = None
        if len(groups) > 1:
            group = describe_value(event.get("group_id"))
            findings.fatal(key, f"is of a second connection (group_id {group}); one is measured")
        yield QlogEvent(key, at_ns, what, data, _path(event, data))


def _to_object(entry: object, columns: list[str] | None) -> dict[str, Any] | None:
    """Return an event as an object, also one given by columns; None if invalid."""
    if isinstance(entry, dict):
        return entry
    if isinstance(entry, list) and not entry:
        return {}
    if columns is None or not isinstance(entry, list) or len(entry) < len(columns):
        return None
    return dict(zip(columns, entry, strict=False))


def _event_name(event: dict[str, Any], common: dict[str, Any]) -> str:
    """Return the name of an event without its category."""
    for field in ("name", "event_type", "event", "type"):
        name = event.get(field, common.get(field))
        if isinstance(name, str):
            return name.rpartition(":")[2].casefold()
    return ""


def _path(event: dict[str, Any], data: dict[str, Any]) -> str:
    """Return the network path of an event: `path` now, `path_id` in picoquic's logs."""
    for table in (event, data, _object(data.get("header"))):
        for name in ("path", "path_id"):
            if isinstance(value := table.get(name), str | int):
                return str(value)
    return ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_time(value: object) -> float | None:
    """Return a time; None if it is no number, or out of range."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _MAX_TIME else None  # which is false for NaN


def describe_value(value: object) -> str:
    """Return a wrong value for a message, truncated if it is long."""
    if value is None:
        return "missing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."
