"""What servers say themselves: Priority fields of responses, hints, and doubts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.http import ClientPriorityValidator
from h3sim.importers.recorded_request import RecordedRequest, priority_fields
from h3sim.page import Kind, ServerPriority
from h3sim.schemes import scheme_from_dict, scheme_to_dict
from h3sim.schemes.rules import ServerHint
from h3sim.signals import BucketPriority, Eps, H2Priority, Signalling
from h3sim.values.errors import PageError, SchemeError
from tests.helpers import page_of, replay, with_updates

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 1400}
CHROME = h3sim.load_scheme("chrome-eps")
MUTE = replace(
    CHROME, name="mute", signalling=Signalling.SERVER, rules=(), otherwise="low-incremental"
)
"""Chrome's classes, for a client that sends no priorities."""


def image(id_: str, **keys: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "request"}
    return {"id": id_, "kind": "image", "bytes": 7000, "discovered": found, **keys}


class TestMerging:
    def test_what_the_response_leaves_out_stays(self) -> None:
        client = Eps(urgency=5, incremental=True)
        assert ServerPriority(urgency=1).merged_with(client) == Eps(urgency=1, incremental=True)
        assert ServerPriority(incremental=False).merged_with(client) == Eps(urgency=5)
        bucket = BucketPriority(bucket=1, level=1)
        assert ServerPriority(level=3).merged_with(bucket) == BucketPriority(bucket=1, level=3)
        assert ServerPriority(urgency=0).merged_with(bucket) == bucket
        assert ServerPriority(urgency=0).merged_with(H2Priority()) == H2Priority()

    def test_it_counts_from_when_the_response_is_ready(self) -> None:
        page = page_of(
            ROOT, image("a"), image("b", server_ms=25, server_priorities=[{"urgency": 0}])
        )
        load = h3sim.simulate(page, scheme=with_updates("lsquic"))
        signal = Eps(urgency=0, incremental=True)
        assert load.trace.signals[-1] == (25_000_000, 8, signal)
        assert load.trace.order == [0, 4] + [8] * 5 + [4] * 4

    def test_after_so_many_bytes_it_changes(self) -> None:
        word = [{"bucket": 60, "level": 3}, {"after_bytes": 2000, "bucket": 0, "level": 1}]
        page = page_of(ROOT, image("a"), image("b", server_priorities=word))
        load = h3sim.simulate(page, scheme="cloudflare")
        # 2,000 bytes are passed with the second packet of 1,400; then all others go first.
        assert load.trace.order == [8, 8, 0] + [4] * 5 + [8] * 3

    def test_a_later_signal_of_the_client_replaces_it(self) -> None:
        seen = [{"when": {"at": "time", "delay_ms": 35}, "fetchpriority": "low"}]
        page = page_of(
            ROOT, image("a", server_priorities=[{"urgency": 0}], priority_changes=seen), image("b")
        )
        load = h3sim.simulate(page, scheme=with_updates("lsquic"))
        reported = [s.signal for s in load.trace.signals if s.element_id == 4]
        assert reported == [
            Eps(urgency=2, incremental=True),
            Eps(urgency=0, incremental=True),
            Eps(urgency=3, incremental=True),
        ]

    def test_a_later_server_priority_is_merged_with_the_current_one_of_the_client(self) -> None:
        seen = [{"when": {"at": "time", "delay_ms": 15}, "fetchpriority": "low"}]
        word = [{"after_bytes": 6000, "incremental": False}]
        page = page_of(ROOT, image("a", server_priorities=word, priority_changes=seen))
        load = h3sim.simulate(page, scheme=with_updates("lsquic"))
        assert [s.signal for s in load.trace.signals if s.element_id == 4] == [
            Eps(urgency=2, incremental=True),
            Eps(urgency=3, incremental=True),
            Eps(urgency=3, incremental=False),
        ]

    def test_a_server_without_a_word_is_as_before(self) -> None:
        page = page_of(ROOT, image("a"), image("b"))
        plain = h3sim.simulate(page, scheme=with_updates("lsquic"))
        idle = page.with_("b", server_priorities=[{"after_bytes": 10**6, "urgency": 0}])
        assert (
            h3sim.simulate(idle, scheme=with_updates("lsquic")).trace.packet_rows
            == plain.trace.packet_rows
        )

    def test_links_carry_it_too(self) -> None:
        word = [{"urgency": 0, "incremental": False}, {"after_bytes": 20_000, "urgency": 6}]
        page = page_of(
            ROOT, image("a", bytes=40_000), image("b", bytes=40_000, server_priorities=word)
        )
        for name in ("lsquic", "quiche"):
            load = h3sim.simulate(page, scheme=name, network="sander-2mbps-100ms-2pct")
            assert load.timings[2].first_byte_ms < load.timings[1].first_byte_ms
            assert load.timings[2].finished_ms > load.timings[1].finished_ms


class TestHints:
    def test_a_scheme_states_it_by_path(self) -> None:
        hints = (ServerHint(path="*.jpg", server_priority=ServerPriority(urgency=0)),)
        page = page_of(ROOT, image("a.png"), image("b.jpg"))
        load = h3sim.simulate(page, scheme=replace(CHROME, hints=hints))
        reported = {s.element_id: s.signal for s in load.trace.signals}
        assert reported[4] == Eps(urgency=2, incremental=True)
        assert reported[8] == Eps(urgency=0, incremental=True)

    def test_a_scheme_file_has_them(self) -> None:
        document = {
            "format": "h3sim-scheme/1",
            "name": "hints",
            "title": "",
            "source": "",
            "mechanism": "eps",
            "signalling": "eps",
            "validates_client_priorities": True,
            "hints": [{"path": "*", "urgency": 1, "after_bytes": 9}],
            "classes": {"all": {}},
        }
        scheme = scheme_from_dict(document)
        assert scheme.hints[0].server_priority == ServerPriority(urgency=1, after_bytes=9)
        assert scheme_to_dict(scheme) == document | {"otherwise": "all"}

    def test_doubts_go_with_urgencies(self) -> None:
        with pytest.raises(SchemeError, match="validates_client_priorities: is only allowed with"):
            replace(h3sim.load_scheme("rr"), validates_client_priorities=True)


class TestDoubts:
    def test_good_advice_is_never_overruled(self) -> None:
        judge = ClientPriorityValidator()
        assert judge.on_open(0, Kind.DOCUMENT, Eps(urgency=0)) == []
        assert judge.on_open(4, Kind.IMAGE, Eps(urgency=3)) == []
        assert judge.on_open(8, Kind.STYLESHEET, Eps(urgency=2)) == []
        assert judge.on_update(4, Eps(urgency=4)) is None
        assert not judge.overrules

    def test_a_stylesheet_behind_an_image_is_bad_advice(self) -> None:
        judge = ClientPriorityValidator()
        judge.on_open(0, Kind.STYLESHEET, Eps(urgency=5))
        changes = judge.on_open(4, Kind.IMAGE, Eps(urgency=4))
        assert changes == [(0, Eps(urgency=0)), (4, Eps(urgency=3, incremental=True))]
        # From then on nothing is believed.
        assert judge.on_open(8, Kind.SCRIPT, Eps(urgency=7)) == [(8, Eps(urgency=1))]
        assert judge.on_update(4, Eps(urgency=0)) == [(4, Eps(urgency=3, incremental=True))]

    @pytest.mark.parametrize(
        ("kind", "own"),
        [
            (Kind.DOCUMENT, Eps(urgency=0, incremental=True)),
            (Kind.STYLESHEET, Eps(urgency=0)),
            (Kind.FONT, Eps(urgency=1)),
            (Kind.SCRIPT, Eps(urgency=1)),
            (Kind.FETCH, Eps(urgency=2, incremental=True)),
            (Kind.IMAGE, Eps(urgency=3, incremental=True)),
            (Kind.MEDIA, Eps(urgency=3, incremental=True)),
            (Kind.OTHER, Eps(urgency=3, incremental=True)),
        ],
    )
    def test_a_server_that_doubts_goes_by_the_type(self, kind: Kind, own: Eps) -> None:
        judge = ClientPriorityValidator()
        judge.on_open(0, Kind.IMAGE, Eps(urgency=3))
        judge.on_open(4, Kind.STYLESHEET, Eps(urgency=3))
        assert judge.on_open(8, kind, Eps(urgency=7)) == [(8, own)]

    @pytest.mark.parametrize("kind", [Kind.DOCUMENT, Kind.STYLESHEET, Kind.FONT, Kind.SCRIPT])
    @pytest.mark.parametrize("urgency", [2, 3, 4])
    def test_what_blocks_must_be_more_urgent_than_an_image(self, kind: Kind, urgency: int) -> None:
        """Whichever comes first; what is fetched may wait for it."""
        behind, before = ClientPriorityValidator(), ClientPriorityValidator()
        behind.on_open(0, Kind.IMAGE, Eps(urgency=3))
        behind.on_open(4, kind, Eps(urgency=urgency))
        before.on_open(0, kind, Eps(urgency=urgency))
        before.on_open(4, Kind.MEDIA, Eps(urgency=3))
        assert behind.overrules == before.overrules == (urgency >= 3)
        fetched = ClientPriorityValidator()
        fetched.on_open(0, Kind.IMAGE, Eps(urgency=3))
        assert fetched.on_open(4, Kind.FETCH, Eps(urgency=urgency)) == []

    def test_what_was_closed_is_no_evidence(self) -> None:
        judge = ClientPriorityValidator()
        judge.on_open(0, Kind.IMAGE, Eps())
        judge.on_closed(0)
        assert judge.on_open(4, Kind.STYLESHEET, Eps()) == []
        assert judge.on_update(0, Eps()) is None

    def test_a_client_without_signals_gets_a_server_priority(self) -> None:
        steps = [(0, "image", 9), (25, "stylesheet", 2)]
        believed = replay(steps, MUTE)  # type: ignore[arg-type]
        doubted = replay(steps, replace(MUTE, validates_client_priorities=True))  # type: ignore[arg-type]
        assert believed.trace.order == [0, 0, 0, 4, 0, 4] + [0] * 5
        assert doubted.trace.order == [0, 0, 4, 4] + [0] * 7

    def test_a_response_that_has_left_the_scheduler_casts_no_doubt(self) -> None:
        doubting = replace(MUTE, validates_client_priorities=True, retention_ns=0)
        steps = [(0, "image", 1), (25, "stylesheet", 2)]
        signals = replay(steps, doubting).trace.signals  # type: ignore[arg-type]
        assert [signal.element_id for signal in signals] == [0, 4]


class TestReading:
    @pytest.mark.parametrize(
        ("field", "urgency", "incremental"),
        [("u=1", 1, None), ("i", None, True), ("u=5, i=?0", 5, False)],
    )
    def test_a_field_is_parsed_as_written(
        self, field: str, urgency: int | None, incremental: bool | None
    ) -> None:
        request = RecordedRequest(key="k", url="u", response_priority=field)
        assert priority_fields(request) == (
            ServerPriority(urgency=urgency, incremental=incremental),
        )

    def test_cloudflare_has_fields_of_its_own(self) -> None:
        request = RecordedRequest(key="k", url="u", cf_priority="50/0")
        request.cf_priority_change = "8192:20/n, 90000:10/1, soon:1/1, 5:99/0"
        assert priority_fields(request) == (
            ServerPriority(bucket=50, level=3),
            ServerPriority(bucket=20, level=1, after_bytes=8192),
            ServerPriority(bucket=10, level=2, after_bytes=90_000),
        )

    def test_default_parameters_are_left_out(self) -> None:
        for field in ("", "x=1", "U=1"):
            assert priority_fields(RecordedRequest(key="k", url="u", response_priority=field)) == ()

    def test_a_har_keeps_it(self, tmp_path: Path) -> None:
        answer = {"status": 200, "headers": [{"name": "Priority", "value": "u=2"}]}
        answer |= {"content": {"mimeType": "text/html", "size": 9}}
        asked = {"method": "GET", "url": "https://a.example/", "headers": []}
        entry = {"request": asked, "response": answer, "time": 5, "timings": {}}
        entry |= {"startedDateTime": "2026-01-01T00:00:00Z"}
        path = tmp_path / "a.har"
        path.write_text(json.dumps({"log": {"entries": [entry]}}), encoding="utf-8")
        (root,) = h3sim.import_page(str(path)).page.resources
        assert root.server_priorities == (ServerPriority(urgency=2),)

    def test_a_word_that_has_no_information_is_an_error(self) -> None:
        with pytest.raises(PageError, match=r"server_priorities\[0\]: at least one of urgency"):
            page_of(ROOT, image("a", server_priorities=[{"after_bytes": 3}]))
