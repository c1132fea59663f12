"""What is written as a HAR and read back asks for the same, at the same times."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.export.har import level_of
from h3sim.importers import import_page
from h3sim.importers.formats.har import HarReader
from h3sim.importers.recorded_request import Recording
from h3sim.importers.source import JsonPart
from h3sim.page import Discovery, Kind, Page, RecordedPriority, Resource, TriggerEvent
from h3sim.signals import Eps
from tests.effort import law
from tests.har_schema import HAR_SCHEMA
from tests.property.strategies import cases

if TYPE_CHECKING:
    from h3sim import Load

SCHEMES = ("rr", "dfifo", "chrome-eps", "bucket-html")
US = 0.001


def observed(document: dict[str, Any]) -> list[Any]:
    """Return the requests that the reader sees in *document*."""
    recording = Recording(source="load.har")
    reader = HarReader(recording)
    for number, entry in enumerate(document["log"]["entries"]):
        reader.add(JsonPart(("log", "entries"), entry, number))
    return recording.requests


def imported(document: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.har"
        path.write_text(json.dumps(document), "utf-8")
        return import_page(path)


def by_start(load: Load) -> list[tuple[Any, Any]]:
    """Return requests with their times as entries are sorted: the root's begins to connect."""
    asked = list(zip(load.trace.requests, load.timings, strict=True))
    root = load.page.root
    return sorted(asked, key=lambda row: 0 if row[0].resource == root else row[1].requested_ms)


def recorded(load: Load, stream_id: int) -> tuple[RecordedPriority, ...]:
    """Return what a reader must find of what was said first of a stream."""
    signal = next(each for _, id_, each in load.trace.signals if id_ == stream_id)
    level = level_of(signal)
    message = [] if level is None else [RecordedPriority(browser="chrome", level=level)]  # type: ignore[arg-type]
    if isinstance(signal, Eps) and signal.field_value:
        field = {"urgency": signal.urgency, "incremental": signal.incremental}
        message.append(RecordedPriority(**field))  # type: ignore[arg-type]
    return tuple(message)


@law(60, usual=30)
@given(cases(), st.sampled_from(SCHEMES))
def test_times_sizes_and_priorities_come_back(case: Any, scheme: str) -> None:
    load = case.but(scheme=scheme).run()
    document = load.to_har()
    assert list(jsonschema.Draft202012Validator(HAR_SCHEMA).iter_errors(document)) == []
    seen = observed(document)
    asked = by_start(load)
    for request, (_, timing) in zip(seen[1:], asked[1:], strict=True):
        assert request.start_ms == pytest.approx(timing.requested_ms, abs=US)
    for request, (_, timing) in zip(seen, asked, strict=True):
        assert request.first_byte_ms == pytest.approx(timing.first_byte_ms, abs=US)
        assert request.end_ms == pytest.approx(timing.finished_ms, abs=US)
        assert sum(n_bytes for _, n_bytes in request.pieces) == timing.bytes
    read = imported(document)
    assert read.skipped == ()
    for resource, (request, _) in zip(read.page.resources, asked, strict=True):
        original = load.page.resources[request.resource]
        assert (resource.size_bytes, resource.kind) == (original.size_bytes, original.kind)
        assert resource.header_bytes == request.length_bytes - original.size_bytes
        assert resource.request_bytes == (original.request_bytes or 100)
        assert resource.recorded == recorded(load, request.stream_id)


@pytest.mark.parametrize(
    ("rtt_ms", "connect_ms", "start_ms"),
    [(10, 10, 10), (1e-6, -1, 0)],  # dates have no nanoseconds
)
def test_the_entry_that_connects_is_first_wherever_the_page_has_its_root(
    rtt_ms: float, connect_ms: float, start_ms: float
) -> None:
    by_the_clock = Resource(
        id="a", kind=Kind.DOCUMENT, size_bytes=8, discovered=Discovery(at=TriggerEvent.TIME)
    )
    page = Page(
        name="p", resources=(by_the_clock, Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9))
    )
    load = h3sim.simulate(page, scheme="rr", rtt_ms=rtt_ms)
    entries = load.to_har()["log"]["entries"]
    assert [timing.id for timing in load.timings] == ["a", "/"]
    assert [entry["response"]["content"]["size"] for entry in entries] == [9, 8]
    assert [entry["timings"]["connect"] for entry in entries] == [connect_ms, -1]
    assert [request.start_ms for request in observed(load.to_har())] == [0, start_ms]
