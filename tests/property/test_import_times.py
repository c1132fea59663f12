"""If bytes come when they came in the recording, each trigger fires when its request was made."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3sim.importers import causes as rules
from h3sim.importers import import_page
from h3sim.page import TriggerEvent
from tests.recordings import SITE, entry, har

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from h3sim.importers import ImportedPage

_MIMES = ("text/html", "text/css", "text/javascript", "image/png")
_RECEIVE_MS = 20
"""How long each entry of `tests.recordings` takes to arrive."""
_BYTES = 1000


@st.composite
def recordings(draw: DrawFn) -> dict[str, Any]:
    """Return a HAR in which each request has one before it as its initiator."""
    entries = [entry("/0", 0, draw(st.integers(_RECEIVE_MS, 300)), mime="text/html")]
    start_ms = 0
    for number in range(1, draw(st.integers(2, 8))):
        start_ms += draw(st.integers(0, 120))
        entries.append(
            entry(
                f"/{number}",
                start_ms,
                draw(st.integers(_RECEIVE_MS, 300)),
                mime=draw(st.sampled_from(_MIMES)),
                _initiator={"type": "parser", "url": f"{SITE}/{draw(st.integers(0, number - 1))}"},
                _was_pushed=draw(st.sampled_from("00001")),
            )
        )
    return har(*entries)


def check_triggers_fire_as_recorded(document: dict[str, Any]) -> None:
    """A request is due when it was made, whatever of its parent was there by then."""
    times = {}
    for number, each in enumerate(document["log"]["entries"]):
        start_ms = float(each["startedDateTime"][17:26]) * 1000
        times[f"{number}"] = (start_ms, start_ms + each["time"])
    for resource in _imported(document).page.resources:
        discovery = resource.discovered
        if discovery is None:
            continue
        parent_start_ms, parent_end_ms = times[discovery.by]
        event_ms = {
            TriggerEvent.REQUEST: parent_start_ms,
            TriggerEvent.COMPLETE: parent_end_ms,
            TriggerEvent.EXECUTED: parent_end_ms,
            TriggerEvent.OFFSET: parent_end_ms
            - _RECEIVE_MS * (1 - (discovery.offset_bytes or 0) / _BYTES),
        }[discovery.at]
        due_ms = event_ms + discovery.delay_ns / 1e6
        # An offset is a whole byte: the time of one may be missing. Delays are microseconds.
        tolerance_ms = _RECEIVE_MS / _BYTES + 0.001
        assert due_ms == pytest.approx(times[resource.id][0], abs=tolerance_ms)


def _imported(document: dict[str, Any]) -> ImportedPage:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.har"
        path.write_text(json.dumps(document), encoding="utf-8")
        return import_page(path)


@settings(max_examples=60)
@given(recordings())
def test_triggers_fire_when_requests_were_made(document: dict[str, Any]) -> None:
    check_triggers_fire_as_recorded(document)


def test_the_law_fails_for_rules_without_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    late = entry("/1", 500, 60, mime="image/png")
    document = har(entry("/0", 0, 100, mime="text/html"), late)
    check_triggers_fire_as_recorded(document)
    monkeypatch.setattr(rules, "_delay_after_ms", lambda child, event_ms: 0.0)
    with pytest.raises(AssertionError):
        check_triggers_fire_as_recorded(document)


@st.composite
def coarse_recordings(draw: DrawFn) -> dict[str, Any]:
    """Return a HAR of a recorder with a coarse clock: many requests begin and end at once."""
    entries = [entry("/0", 0, 0, mime="text/html", timings={})]
    for number in range(1, draw(st.integers(2, 8))):
        start_ms, took_ms = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        mime = draw(st.sampled_from((*_MIMES, "application/json", "font/woff2")))
        entries.append(entry(f"/{number}", start_ms, took_ms, mime=mime, timings={}))
    return har(*draw(st.permutations(entries)))


@settings(max_examples=200)
@given(coarse_recordings())
def test_no_recording_has_a_cycle_of_causes(document: dict[str, Any]) -> None:
    assert _imported(document).n_resources == len(document["log"]["entries"])
