"""A scheme that is announced, and requests that say what they are for (Marx 2019, § 6), by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.engine.signalling import MetadataSignalling
from h3sim.load import in_words
from h3sim.page import FetchPriority, ResourceState
from h3sim.schemes import Scheme, make_policy, scheme_from_dict, scheme_to_dict
from h3sim.signals import Eps, Signalling
from h3sim.values.units import ms
from tests.helpers import page_of, replay, scripted_page, with_updates
from tests.unit.test_signalling_loads import XAB, first_heard, losing, over, runs

ROOT = {"id": "/", "kind": "document", "bytes": 1400}
SEEN = ResourceState(visible=True)
HIDDEN = ResourceState(hidden=True)


def announced(name: str) -> Scheme:
    return replace(with_updates(name), signalling=Signalling.METADATA)


def image(name: str, *changes: dict[str, Any]) -> dict[str, Any]:
    found = {"by": "/", "at": "request"}
    entry = {"id": name, "kind": "image", "bytes": 14_000, "discovered": found}
    return {**entry, "priority_changes": [*changes]}


class TestRequests:
    @pytest.mark.parametrize("name", ["firefox-h2", "chrome-h2", "chrome-eps", "bucket-html"])
    def test_no_frame_is_sent_for_what_is_known_with_a_request(self, name: str) -> None:
        load = replay([(0, "document", 1), (0, "image", 2)], name, signalling="metadata", rtt_ms=40)
        assert load.figures["priority_frames"] == 0
        assert load.figures["priority_frame_bytes"] == 0
        assert [reported.at_ns for reported in load.trace.signals if reported.element_id >= 0] == [
            ms(60)
        ] * 2

    def test_placeholders_cost_a_frame_each_where_they_are_not_announced(self) -> None:
        load = replay([(0, "document", 1)], "firefox-h2")
        assert (load.figures["priority_frames"], load.figures["priority_frame_bytes"]) == (6, 84)
        assert load.to_dict()["priority_frames"] == {"sent": 6, "bytes": 84}

    @pytest.mark.parametrize(
        ("transport", "n_bytes"),
        [
            # Header of TCP, overhead of a record, frames, HEADERS: 32 + 22 + 6 * 14 + 9 + 200.
            ("tcp", 347),
            # QUIC's header, six frames on streams of their own, and the request: 27 + 6 * (4 + 14)
            # + 4 + 200.
            ("quic", 339),
        ],
    )
    def test_a_frame_has_one_header_over_either_transport(
        self, transport: str, n_bytes: int
    ) -> None:
        page = page_of({**ROOT, "request_bytes": 200})
        load = h3sim.simulate(
            page,
            scheme="firefox-h2",
            network="dsl",
            transport=transport,
            handshake="none",
            record_packets=True,
        )
        first = next(row for row in load.trace.wire if not row.is_down)
        assert first.size_bytes == n_bytes
        assert load.figures["priority_frame_bytes"] == 6 * 14

    def test_a_request_that_is_lost_delays_itself_alone(self) -> None:
        """Figure 5 of Marx 2019 does not happen: B names no stream that has not come."""
        message = over(XAB, "fifo-draft-20", losing(1))
        assert runs(message)[:3] == ["X", "B", "X"]
        load = over(XAB, announced("fifo-draft-20"), losing(1))
        assert first_heard(load) == [0, 8, 4]
        assert runs(load) == ["X", "B", "A"]


class TestChanges:
    def test_a_change_is_one_frame_of_five_bytes_where_a_chain_needs_two(self) -> None:
        seen = {"when": {"at": "time", "delay_ms": 45}, "visible": True}
        page = page_of(ROOT, image("a"), image("b", seen), image("c"))
        message = h3sim.simulate(page, scheme="chrome-h2")
        load = h3sim.simulate(page, scheme="chrome-h2", signalling="metadata")
        # c, which stood below b, goes below a; and b below the document.
        assert (message.figures["priority_frames"], message.figures["priority_frame_bytes"]) == (
            2,
            28,
        )
        assert (load.figures["priority_frames"], load.figures["priority_frame_bytes"]) == (1, 5)
        assert load.trace.order == message.trace.order

    def test_it_takes_the_way_up(self) -> None:
        seen = {"when": {"at": "time", "delay_ms": 45}, "visible": True}
        page = page_of(ROOT, image("a"), image("b", seen))
        load = h3sim.simulate(page, scheme=announced("chrome-eps"), rtt_ms=20)
        heard = [reported for reported in load.trace.signals if reported.element_id == 8]
        assert [(reported.at_ns, reported.signal) for reported in heard] == [
            (ms(30), Eps(urgency=2, incremental=True)),
            (ms(55), Eps(urgency=1, incremental=True)),
        ]

    def test_a_tab_that_is_hidden_is_one_frame_for_all_its_streams(self) -> None:
        page = page_of(ROOT, *(image(name) for name in "abcd"))
        both = [
            h3sim.simulate(page, scheme="firefox-eps", hidden_at_ms=35, signalling=signalling)
            for signalling in (None, "metadata")
        ]
        assert [load.figures["priority_frames"] for load in both] == [4, 1]
        assert both[0].trace.order == both[1].trace.order

    def test_what_the_client_sends_no_frame_for_goes_with_later_requests(self) -> None:
        page = scripted_page([(0, "document", 3), (50, "image", 3)])
        scheme = replace(announced("firefox-eps"), updates=())
        load = h3sim.simulate(page, scheme=scheme, hidden_at_ms=15)
        assert load.figures["priority_frames"] == 0
        assert [reported.signal.field_value for reported in load.trace.signals] == [
            "u=0, i",
            "u=6, i",
        ]


class Heard:
    """A scheduler's ear: what it was told of each element, the last word."""

    def __init__(self) -> None:
        self.expected: dict[int, Any] = {}

    def open(self, element_id: int, signal: Any) -> None:
        assert element_id not in self.expected
        self.expected[element_id] = signal

    def update(self, element_id: int, signal: Any) -> None:
        assert element_id in self.expected
        self.expected[element_id] = signal


class TestOrder:
    """An image is asked for, then seen, then hinted to be low: the client's last word counts."""

    def speaking(self) -> tuple[Any, Any, Heard, list[int]]:
        page = page_of(ROOT, image("a"))
        scheme, heard, frames = announced("chrome-eps"), Heard(), list[int]()
        policy = make_policy(scheme, page)
        signals = MetadataSignalling(
            policy, heard, scheme, lambda number, _: frames.append(number), message_bytes=5
        )
        return signals, page.resources[1], heard, frames

    def test_what_is_known_before_the_request_goes_with_it(self) -> None:
        signals, resource, heard, frames = self.speaking()
        signals.on_changed(resource, SEEN, 0)
        signals.on_requested(4, resource)
        signals.on_request_arrived(4, resource, 1)
        assert frames == []
        assert heard.expected == {4: Eps(urgency=1, incremental=True)}

    @pytest.mark.parametrize("order", ["r01", "r10", "0r1", "1r0", "01r", "10r"])
    def test_in_whatever_order_it_comes(self, order: str) -> None:
        signals, resource, heard, frames = self.speaking()
        signals.on_requested(4, resource)
        signals.on_changed(resource, SEEN, 0)
        signals.on_changed(resource, ResourceState(visible=False), 0)
        assert frames == [0, 1]
        for coming in order:
            if coming == "r":
                signals.on_request_arrived(4, resource, 1)
            else:
                signals.on_message_arrived(int(coming), 1)
        assert heard.expected == {4: Eps(urgency=2, incremental=True)}

    def test_of_what_is_finished_nothing_is_reported(self) -> None:
        signals, resource, _, frames = self.speaking()
        signals.on_requested(4, resource)
        signals.on_finished(4)
        signals.on_changed(resource, SEEN, 0)
        signals.on_changed(None, HIDDEN, 0)
        assert frames == []

    def test_a_frame_that_overtakes_its_request_is_not_taken_back_by_it(self) -> None:
        signals, resource, heard, _ = self.speaking()
        signals.on_changed(resource, ResourceState(fetchpriority=FetchPriority.LOW), 0)
        signals.on_requested(4, resource)
        signals.on_changed(resource, ResourceState(fetchpriority=FetchPriority.HIGH), 0)
        signals.on_message_arrived(0, 1)
        signals.on_request_arrived(4, resource, 2)
        assert heard.expected == {4: Eps(urgency=1, incremental=True)}


class TestAsAnOption:
    def test_a_scheme_file_can_state_it(self) -> None:
        scheme = announced("p+")
        document = scheme_to_dict(scheme)
        assert document is not None
        assert document["signalling"] == "metadata"
        assert scheme_from_dict(document) == scheme

    def test_results_report_it(self) -> None:
        load = replay([(0, "document", 1)], "rr", signalling="metadata")
        assert load.configuration["signalling"] == "metadata"
        assert "priorities by metadata" in in_words(load.spec).values()
        assert "metadata" not in in_words(replay([(0, "document", 1)], "rr").spec)
        again = h3sim.export.load_from_dict(load.to_dict()).run()
        assert again.to_dict() == load.to_dict()
