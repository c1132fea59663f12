"""Loads whose signals come late, overtaken or again, by hand; Figures 4 to 6 of Marx 2019."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.page import page_from_dict
from h3sim.schemes import Scheme, scheme_from_dict
from h3sim.signals import ORPHANS, Eps
from h3sim.transport import LinkProfile, Network
from h3sim.transport.link_profile import LinkJitter
from h3sim.values.units import mbps, ms
from tests.helpers import scripted_page
from tests.unit.driving import on

if TYPE_CHECKING:
    from h3sim import Load, Page


def chain(signalling: str, arrangement: str = "chain") -> Scheme:
    """Return first in, first out, as a tree whose clients say so."""
    return scheme_from_dict(
        {
            "format": "h3sim-scheme/1",
            "name": "mine",
            "title": "Mine",
            "mechanism": "tree",
            "signalling": signalling,
            "source": "me",
            "classes": {"all": {"arrangement": arrangement}},
        }
    )


class TestConstantPace:
    """10 ms a packet; a request and what goes with it need half of 40 ms."""

    @pytest.mark.parametrize("signalling", ["h2", "draft-20", "draft-22"])
    def test_signals_come_half_a_round_trip_later(self, signalling: str) -> None:
        page = scripted_page([(0, "document", 2), (5, "image", 1)])
        load = h3sim.simulate(page, scheme=chain(signalling), rtt_ms=40, handshake=False)
        assert load.trace.order == [0, 0, 4]
        assert [(s.at_ns, s.element_id, s.signal) for s in load.trace.signals] == [
            (ms(20), 0, on(None)),
            (ms(25), 4, on(0)),
        ]

    @pytest.mark.parametrize("signalling", ["h2", "draft-20", "draft-22"])
    def test_placeholders_are_declared_once_the_connection_is_there(self, signalling: str) -> None:
        scheme = "firefox-h2" if signalling == "h2" else f"firefox-{signalling}"
        page = scripted_page([(0, "document", 1)])
        load = h3sim.simulate(page, scheme=scheme, rtt_ms=40)
        assert [(s.at_ns, s.element_id) for s in load.trace.signals] == [
            (ms(60), element_id) for element_id in (-1, -2, -3, -4, -5, -6, 0)
        ]

    def test_the_client_frees_a_chain_before_the_server_forgets_its_streams(self) -> None:
        """The server keeps a stream for 500 ms; a client knows at once that it has all of it."""
        steps = [(0, "document", 1), (100, "image", 1)]
        page = scripted_page(steps)
        message = [
            {s.element_id: s.signal for s in h3sim.simulate(page, scheme=scheme).trace.signals}[4]
            for scheme in (chain("server"), chain("h2"))
        ]
        assert message == [on(0), on(None)]

    @pytest.mark.parametrize("signalling", ["h2", "draft-20", "draft-22"])
    def test_p_plus_lets_normal_have_its_weight_again_when_the_client_has_all_of_high(
        self, signalling: str
    ) -> None:
        scheme = scheme_from_dict(P_PLUS | {"signalling": signalling})
        page = scripted_page([(0, "document", 2), (0, "image", 6), (0, "other", 6)])
        load = h3sim.simulate(page, scheme=scheme, rtt_ms=40, handshake=False)
        changes = [(s.at_ns, s.signal) for s in load.trace.signals if s.element_id == -2]
        # At 20 with the request; at 60 when the second packet, sent at 30 and delivered at 50 or
        # 20 ms later, is all there, and that has come up again.
        assert [signal.weight for _, signal in changes] == [256, 1, 256]
        done_ns = next(ms(row.finished_ms) for row in load.timings if row.stream_id == 0)
        assert changes[2][0] == done_ns + ms(20)

    def test_strict_priorities_go_with_requests_and_their_placeholders_in_frames(self) -> None:
        scheme = scheme_from_dict(P_PLUS | {"mechanism": "strict", "signalling": "draft-20"})
        page = scripted_page([(0, "document", 2), (0, "image", 1)])
        load = h3sim.simulate(page, scheme=scheme)
        assert [reported.element_id for reported in load.trace.signals] == [-1, -2, -2, 0, 4, -2]


P_PLUS = {
    "format": "h3sim-scheme/1",
    "name": "mine",
    "title": "Mine",
    "mechanism": "tree",
    "source": "me",
    "placeholders": [
        {"name": "high", "weight": 256},
        {"name": "low", "weight": 256, "yields_to": "first", "yielding_weight": 1},
    ],
    "classes": {"first": {"group": "high"}, "rest": {"group": "low"}},
    "rules": [{"kind": "document", "class": "first"}],
}


def page_up(*names: str, kinds: str = "document", last: int = 10) -> Page:
    """Return a page of resources that are asked for 10 ms after one another, in packets of 1200."""
    entries = []
    for position, name in enumerate(names):
        kind, n_packets = ("document", 60) if not position else (kinds, last)
        entry = {"id": name, "kind": kind, "bytes": 1200 * n_packets, "request_bytes": 200}
        if position:
            entry["discovered"] = {"at": "time", "delay_ms": 10 * position}
        entries.append(entry)
    return page_from_dict({"format": "h3sim-page/1", "name": "up", "resources": entries})


def over(page: Page, scheme: str | Scheme, up: LinkProfile, **setting: Any) -> Load:
    down = LinkProfile(rate_bps=mbps(2), queue_bytes=1_000_000)
    network = Network(name="mine", rtt_ns=ms(100), down=down, up=up)
    return h3sim.simulate(
        page, scheme=scheme, network=network, cc="constant", handshake="none", **setting
    )


def losing(*packets: int) -> LinkProfile:
    """Return a way up that loses these packets; acknowledgements are not counted."""
    return LinkProfile(loss_list=packets, loss_list_from_bytes=150)


def runs(load: Load) -> list[str]:
    """Return who was sent from, once for as long as it goes on."""
    ids = [load.page.resources[stream_id // 4].id for stream_id in load.trace.order]
    return [name for name, _ in groupby(ids)]


def first_heard(load: Load) -> list[int]:
    """Return what the server heard of, in that order."""
    return list(dict.fromkeys(reported.element_id for reported in load.trace.signals))


XAB = page_up("X", "A", "B", kinds="image")


class TestLinks:
    @pytest.mark.parametrize("scheme", ["fifo-h2", "fifo-draft-20", "fifo-draft-22"])
    def test_without_loss_a_chain_is_sent_in_its_order(self, scheme: str) -> None:
        load = over(XAB, scheme, losing())
        assert runs(load) == ["X", "A", "B"]
        assert first_heard(load) == [0, 4, 8]

    def test_frames_leave_before_the_request_that_is_stated_with_them(self) -> None:
        """So a parent that is declared at once is there, and nothing gets a default priority."""
        page = page_up("X", "A", "B", kinds="image")
        for scheme in ("firefox-h2", "firefox-draft-20", "firefox-draft-22"):
            load = over(page, scheme, losing())
            assert first_heard(load) == [-1, -2, -3, -4, -5, -6, 0, 4, 8], scheme

    @pytest.mark.parametrize("scheme", ["fifo-h2", "fifo-draft-20", "fifo-draft-22"])
    def test_over_tcp_what_was_stated_first_is_heard_first(self, scheme: str) -> None:
        load = over(XAB, scheme, losing(1), transport="tcp")
        assert first_heard(load) == [0, 4, 8]
        assert runs(load) == ["X", "A", "B"]

    def test_eps_needs_no_other_stream(self) -> None:
        """The field comes with its request, so a lost request delays itself alone."""
        load = over(XAB, "chrome-eps", losing(1))
        assert first_heard(load) == [0, 8, 4]
        assert all(
            reported.signal == Eps(urgency=2, incremental=True)
            for reported in load.trace.signals[1:]
        )

    def test_signals_that_overtake_one_another_are_put_in_order_on_the_control_stream(self) -> None:
        """Requests change places by jitter alone: nothing is lost."""
        up = LinkProfile(jitter=LinkJitter(mean_ns=ms(30), deviation_ns=ms(30), reorder=True))
        heard_in = {
            scheme: [over(XAB, scheme, up, seed=seed) for seed in range(8)]
            for scheme in ("fifo-draft-20", "fifo-draft-22")
        }
        swapped = [first_heard(load) != [0, 4, 8] for load in heard_in["fifo-draft-20"]]
        assert any(swapped)
        for load in heard_in["fifo-draft-22"]:
            inserted = [
                reported for reported in load.trace.signals if reported.signal.depends_on != ORPHANS
            ]
            assert [reported.element_id for reported in inserted] == [0, 4, 8]


class TestFigures:
    """Marx 2019, § 3."""

    def test_figure_4_the_last_exclusive_one_to_come_has_supplanted_the_other(self) -> None:
        """A client of HTTP/2 over QUIC: C and then B exclusively below A."""
        page = page_from_dict(
            {
                "format": "h3sim-page/1",
                "name": "figure-4",
                "resources": [
                    {"id": "A", "kind": "document", "bytes": 72_000, "request_bytes": 200},
                    {**LATER, "id": "C", "kind": "image"},
                    {**LATER, "id": "B", "kind": "script", "discovered": AT_20},
                ],
            }
        )
        assert runs(over(page, "chrome-h2", losing())) == ["A", "B", "C"]
        assert runs(over(page, "chrome-h2", losing(1))) == ["A", "C", "B"]

    def test_figure_5_before_draft_22_b_takes_every_second_packet_from_x(self) -> None:
        load = over(XAB, "fifo-draft-20", losing(1))
        n_packets = load.trace.order.count(8)
        assert runs(load) == ["X", *["B", "X"] * n_packets, "A"]

    def test_figure_5_what_a_brings_along_puts_b_right_in_draft_20_and_not_in_http_2(self) -> None:
        """B is long: A comes while it is sent."""
        page = page_up("X", "A", "B", kinds="image", last=60)
        for scheme, is_right in (("fifo-draft-20", True), ("fifo-h2", False)):
            load = over(page, scheme, losing(1))
            came_ns = next(r.arrived_at_ns for r in load.trace.requests if r.stream_id == 4)
            after = [stream for at_ns, _, stream, *_ in load.trace.packet_rows if at_ns > came_ns]
            # What is in flight at that instant may still be B's.
            order = [name for name, _ in groupby(after)]
            assert (order[-3:] == [0, 4, 8]) is is_right, scheme

    def test_figure_6_from_draft_22_on_a_and_b_wait_for_x(self) -> None:
        page = page_up("X", "C", "A", "B", kinds="image")
        load = over(page, "fifo-draft-22", losing(1))
        assert runs(load) == ["X", "C", "A", "B"]
        orphans = [
            reported for reported in load.trace.signals if reported.signal.depends_on == ORPHANS
        ]
        assert [reported.element_id for reported in orphans] == [8, 12]
        # In draft-20 the same loss lets A, and B after it, take from X.
        taking = runs(over(page, "fifo-draft-20", losing(1)))
        assert taking[:4] == ["X", "A", "X", "A"]
        assert taking.index("B") < len(taking) - 1 - taking[::-1].index("X")


LATER: dict[str, Any] = {
    "bytes": 12_000,
    "request_bytes": 200,
    "discovered": {"at": "time", "delay_ms": 10},
}
AT_20 = {"at": "time", "delay_ms": 20}
