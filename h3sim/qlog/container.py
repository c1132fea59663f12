"""qlog files in any container: JSON or a JSON text sequence, gzipped or not."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO

from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import open_input
from h3sim.schema.files import GZIP_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


RECORD_SEPARATOR = "\x1e"
"""The record separator of a JSON text sequence (RFC 7464 § 2.2)."""
_MAX_PROBLEMS = 20
_MAX_DOCUMENT, _MAX_RECORD = 100_000_000, 10_000_000
"""The maximum characters of a document, which is held in memory at 5 to 25 bytes each, and of a
record of a sequence. A file of 1.5 MB can unpack to a thousand times as much."""
_MAX_EVENTS = 4_000_000
"""The maximum events of a sequence; a packet takes about 400 bytes in memory."""
_TOO_LONG = f"is a record of more than {_MAX_RECORD // 1_000_000} MB"


class LogError(InputError):
    """A log that cannot be written or read."""


class Findings:
    """Findings while a log is read: errors, and missing data."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.unknown: list[str] = []
        self._problems: list[ValidationIssue] = []

    def wrong(self, key: str, message: str) -> None:
        """Record an error.

        Raises:
            LogError: with all errors so far, if there are too many to continue.
        """
        self._problems.append(ValidationIssue(key=key, message=message))
        if len(self._problems) == _MAX_PROBLEMS:
            self._problems.append(
                ValidationIssue(key="", message="possibly more: reading stopped here")
            )
            self.raise_if_any()

    def fatal(self, key: str, message: str) -> NoReturn:
        """Raise an error after which reading cannot continue."""
        raise LogError([*self._problems, ValidationIssue(key=key, message=message)], self.source)

    def raise_if_any(self) -> None:
        """Raise a LogError if there were errors."""
        if self._problems:
            raise LogError(self._problems, self.source)


class RawTrace(NamedTuple):
    """One trace of a file: *head* is everything except its events, which come with their keys."""

    key: str
    title: str
    head: dict[str, Any]
    events: Iterable[tuple[str, Any]]


@contextmanager
def opened(path: str | Path, findings: Findings) -> Iterator[TextIO]:
    """Open the file at *path* as text; errors while it is read become a LogError."""
    with ExitStack() as stack:
        raw = stack.enter_context(open_input(path, LogError))
        try:
            is_gzip = raw.peek(2)[:2] == GZIP_MAGIC
            binary = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_gzip else raw
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
    first = stream.readline(_MAX_DOCUMENT + 1)
    while first and not first.strip():
        first = stream.readline(_MAX_DOCUMENT + 1)
    if first.startswith(RECORD_SEPARATOR):
        yield _sequence(_records(_lines(first, stream, findings), findings), findings)
        return
    document, message = _parsed(first) if len(first) <= _MAX_DOCUMENT else (None, "too long")
    if isinstance(document, dict) and "trace" in document:
        yield _sequence(_filled(_lines(first, stream, findings)), findings)
        return
    rest = stream.read(max(_MAX_DOCUMENT + 1 - len(first), 1))
    if len(first) + len(rest) > _MAX_DOCUMENT:
        findings.fatal(
            "",
            f"is more than {_MAX_DOCUMENT // 1_000_000} MB of JSON (unpacked), which must fit into"
            " memory: write it as a JSON text sequence (.sqlog)",
        )
    # Many logs are a single line, which has been parsed already.
    if message or rest.strip():
        document, message = _parsed(first + rest)
    if message:
        findings.fatal("", f"is not JSON: {message}")
    yield from _contained(document, findings)


def _contained(document: object, findings: Findings) -> Iterator[RawTrace]:
    """Yield the traces of a document."""
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
            continue  # a trace that could not be logged has a reason, and no events
        elif not isinstance(trace.get("events"), list):
            findings.wrong(f"{key}.events", "must be a list" if "events" in trace else "is missing")
        else:
            events = (
                (f"{key}.events[{index}]", event) for index, event in enumerate(trace["events"])
            )
            head = {name: value for name, value in trace.items() if name != "events"}
            yield RawTrace(key, _title(document, trace), head, events)


def _sequence(records: Iterator[tuple[int, str, bool]], findings: Findings) -> RawTrace:
    """Return the one trace of a sequence."""
    line, text, _ = next(records)
    head, message = _parsed(text)
    if message:
        findings.fatal(f"line {line}", f"is not JSON: {message}")
    if not isinstance(head, dict) or not isinstance(head.get("trace"), dict):
        findings.fatal(f"line {line}", "is not the head of a qlog: it has no 'trace'")
    trace = head["trace"]
    return RawTrace("trace", _title(head, trace), trace, _events(records, findings))


def _events(
    records: Iterator[tuple[int, str, bool]], findings: Findings
) -> Iterator[tuple[str, Any]]:
    for number, (line, text, is_complete) in enumerate(records, 1):
        if number > _MAX_EVENTS:
            findings.fatal(f"line {line}", f"is the end of {_MAX_EVENTS:,} events, the maximum")
        event, message = _parsed(text)
        if not message:
            yield f"line {line}", event
        elif is_complete:
            findings.wrong(f"line {line}", f"is not JSON: {message}")
        else:
            # The writer was stopped; the records before are valid (RFC 7464 § 2.3).
            findings.unknown.append(f"what came after line {line}, where the log is cut off")


def _lines(first: str, stream: TextIO, findings: Findings) -> Iterator[tuple[int, str]]:
    """Yield *first* and the other lines of *stream*, with their numbers."""
    line, number = first, 1
    while line:
        if len(line) > _MAX_RECORD:
            findings.fatal(f"line {number}", _TOO_LONG)
        yield number, line
        line, number = stream.readline(_MAX_RECORD + 1), number + 1


def _records(
    lines: Iterable[tuple[int, str]], findings: Findings
) -> Iterator[tuple[int, str, bool]]:
    """Yield (line number, text, whether it is complete) of each record after a separator."""
    parts: list[str] = []
    begun = 1
    n_chars = 0
    for number, line in lines:
        n_chars += len(line)
        if n_chars > _MAX_RECORD:
            findings.fatal(f"line {begun}", _TOO_LONG)
        *before, rest = line.split(RECORD_SEPARATOR)
        for piece in before:
            parts.append(piece)
            text = "".join(parts)
            if text.strip():
                yield begun, text, True
            parts, begun, n_chars = [], number, len(line)
        parts.append(rest)
    text = "".join(parts)
    if text.strip():
        yield begun, text, text.endswith("\n")


def _filled(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, bool]]:
    """Yield the same for records that are one per line."""
    for number, line in lines:
        if line.strip():
            yield number, line, line.endswith("\n")


def _title(outer: dict[str, Any], trace: dict[str, Any]) -> str:
    titles = (outer.get("title"), trace.get("title"))
    return next((title for title in titles if isinstance(title, str) and title), "")


def _parsed(text: str) -> tuple[Any, str]:
    """Return the parsed *text*, and an error message."""
    try:
        return json.loads(text, parse_constant=_refuse), ""
    except json.JSONDecodeError as error:
        if not text.strip():
            return None, "it is empty"
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else ""
        return None, f"{error.msg} at {where or f'column {error.colno}'}"
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:
        return None, str(error)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
