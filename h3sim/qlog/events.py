"""Events of any qlog dialect in one form: time, name and data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.constants import MAX_VARINT
from h3sim.units import NS_PER_DAY, NS_PER_MS, NS_PER_US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.qlog.container import Findings, RawTrace


_MAX_TIME = 1e18
"""In any unit; in 2026 about 1.8e15 microseconds have passed since 1970."""
_DELTA = ("delta", "delta_time", "relative_to_previous_event")
_EVENTS_READ = {
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
_TIME_FIELDS = ("time", "relative_time", "delta_time")


class QlogEvent(NamedTuple):
    """An event that is used; *key* is its position in the file."""

    key: str
    at_ns: int
    what: str
    data: dict[str, Any]


def as_unsigned(value: object) -> int | None:
    """Return *value*, a number or text, as an integer from 0 to 2^62 - 1; None for others.

    >>> [as_unsigned(value) for value in (4, "4", 4.0, -4, 4.5, True, "4a")]
    [4, 4, 4, None, None, None, None]
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_VARINT:
        return None
    return value


class Clock:
    """The clock of a trace: converts its times to nanoseconds since its reference.

    Times of day, and others relative to a distant past, are relative to the first event.
    """

    def __init__(self, raw: RawTrace, findings: Findings, time_field: str | None) -> None:
        common = _object(raw.head.get("common_fields"))
        configuration = _object(raw.head.get("configuration"))
        units = configuration.get("time_units", common.get("time_units", "ms"))
        self._findings = findings
        self._ns_per_unit = NS_PER_US if units == "us" else NS_PER_MS
        self._form = str(common.get("time_format", time_field))
        self.is_delta = self._form in _DELTA
        self.reference = (self._form, units, repr(common.get("reference_time")))
        self.base: float | None = None
        """Time zero of the trace, in the units of the log."""
        self._now_ns = 0

    def at_ns(self, key: str, value: object) -> int | None:
        """Return the time *value*, or None after recording an error."""
        number = _number(value)
        if number is None:
            self._findings.wrong(f"{key}.time", f"must be a number, is {describe_value(value)}")
            return None
        if self.base is None:
            is_long_ago = abs(number) * self._ns_per_unit > NS_PER_DAY
            self.base = number if is_long_ago else 0
            if is_long_ago and self.is_delta:
                number = 0
        if self.is_delta:
            self._now_ns += round(number * self._ns_per_unit)
            return self._now_ns
        return round((number - self.base) * self._ns_per_unit)

    def ns(self, value: object) -> int | None:
        """Return a duration in nanoseconds, or None if it is invalid."""
        number = _number(value)
        return None if number is None else round(number * self._ns_per_unit)


def events_of(raw: RawTrace, findings: Findings) -> tuple[Clock, Iterator[QlogEvent]]:
    """Return the clock of a trace, and an iterator over its events that are used."""
    names = raw.head.get("event_fields")
    if not isinstance(names, list):
        clock = Clock(raw, findings, None)
        return clock, _events(raw, findings, clock, None, "time")
    columns = [str(name).casefold() for name in names]
    time_field = next((name for name in _TIME_FIELDS if name in columns), None)
    clock = Clock(raw, findings, time_field)
    return clock, _events(raw, findings, clock, columns, time_field or "time")


def _events(
    raw: RawTrace, findings: Findings, clock: Clock, columns: list[str] | None, time_field: str
) -> Iterator[QlogEvent]:
    common = _object(raw.head.get("common_fields"))
    groups: dict[str, None] = {}
    is_first = True
    for key, entry in raw.events:
        event = _as_object(entry, columns)
        if event is None:
            allowed = "an object" if columns is None else f"an object or {len(columns)} fields"
            findings.wrong(key, f"must be {allowed}, is {describe_value(entry)}")
            continue
        if not event:
            continue  # an empty last event allows for a trailing comma
        what = _EVENTS_READ.get(_name(event, common))
        # The first event defines time zero, and each delta is relative to the event before it,
        # including events that are not used.
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
        yield QlogEvent(key, at_ns, what, data)


def _as_object(entry: object, columns: list[str] | None) -> dict[str, Any] | None:
    if isinstance(entry, dict):
        return entry
    if isinstance(entry, list) and not entry:
        return {}
    if columns is None or not isinstance(entry, list) or len(entry) < len(columns):
        return None
    return dict(zip(columns, entry, strict=False))


def _name(event: dict[str, Any], common: dict[str, Any]) -> str:
    """Return the name of an event without its category."""
    for field in ("name", "event_type", "event", "type"):
        name = event.get(field, common.get(field))
        if isinstance(name, str):
            return name.rpartition(":")[2].casefold()
    return ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
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
