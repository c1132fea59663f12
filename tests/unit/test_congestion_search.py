"""SEARCH by hand: the first RTT is 100 ms, so bins have 35 ms and a window 350 ms.

An RTT of 100 ms is two bins and 30 ms of a third, 85 % of it.
"""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.transport.congestion.slow_start import Search
from h3sim.transport.profile import ProfileError
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sender


class Bins:
    """Sends and acknowledges bytes bin by bin; the first ACK comes at 0 ms."""

    def __init__(self) -> None:
        self.search = Search()
        self.search.on_ack(0, ms(100), 0, 0)
        self.n_bins = 0

    def pass_one(self, sent: int, acked: int, *, rtt_ms: float = 100, skipped: int = 0) -> bool:
        """Return whether slow start ends with the ACK behind the next bin."""
        self.n_bins += 1 + skipped
        self.search.on_sent(0, sent)
        return self.search.on_ack(0, ms(rtt_ms), acked, ms(35 * self.n_bins) + 1)

    def ended_at(self, sent: int, acked: int, *, most: int = 40, **how: Any) -> int | None:
        """Return the number of the bin that ends slow start."""
        return next((n for n in range(1, most) if self.pass_one(sent, acked, **how)), None)


def test_slow_start_goes_on_while_what_was_sent_is_delivered() -> None:
    assert Bins().ended_at(1000, 1000) is None


@pytest.mark.parametrize(("acked", "ended_at"), [(750, None), (741, None), (740, 13), (100, 13)])
def test_slow_start_ends_where_26_percent_of_what_was_sent_a_round_trip_before_is_missing(
    acked: int, ended_at: int | None
) -> None:
    """Bin 13 is the first that has a window, ten bins, of bytes sent two bins before it."""
    assert Bins().ended_at(1000, acked) == ended_at


def test_bytes_sent_count_up_to_the_part_of_a_bin() -> None:
    """At bin 13, bins 1 to 11 lie a round trip back; 85 % of bin 1 and 15 % of bin 11 count.

    The other nine have 1000 each. Were the last 11,000, 9000 + 850 + 1650 = 11,500 were sent, and
    8500 of them delivered are 26 % less; with 8600 it is 25 %.
    """
    for acked, is_end in ((850, True), (860, False)):
        bins = Bins()
        for number in range(1, 13):
            assert not bins.pass_one(11_000 if number == 11 else 1000, acked)
        assert bins.pass_one(1000, acked) is is_end


def test_doubling_that_is_delivered_a_round_trip_later_goes_on() -> None:
    bins, flying = Bins(), [0, 0, 0]
    for number in range(30):
        flying.append(1000 * 2 ** (number // 3))
        assert not bins.pass_one(flying[-1], flying[-4])


def test_an_rtt_of_more_bins_than_are_kept_tells_nothing() -> None:
    assert Bins().ended_at(1000, 100, rtt_ms=35 * 15) is None
    assert Bins().ended_at(1000, 100, rtt_ms=35 * 14) is not None


def test_a_silence_of_more_than_a_window_begins_anew() -> None:
    bins = Bins()
    for _ in range(12):
        assert not bins.pass_one(1000, 100)
    assert not bins.pass_one(1000, 100, skipped=10)
    assert bins.search.on_ack(0, ms(100), 0, ms(35 * bins.n_bins) + 2) is False
    assert bins.ended_at(1000, 100) is not None


def test_an_ack_that_did_not_need_the_window_ends_nothing() -> None:
    bins = Bins()
    for _ in range(12):
        bins.pass_one(1000, 100)
    assert not bins.search.on_ack(0, ms(100), 100, ms(35 * 13) + 1, True)


@pytest.mark.parametrize("name", ["cubic", "newreno"])
def test_the_window_at_the_end_is_the_threshold(name: str) -> None:
    sender = Sender(name, window=100_000, search=True)
    for number in range(40):
        at_ms = 36 * number
        sender.send(4, at_ms=at_ms)
        sender.ack(number, at_ms=at_ms)
        if sender.controller.ssthresh is not None:
            break
    assert sender.controller.ssthresh == sender.window < 130_000


def test_a_long_queue_is_filled_less_than_without_it() -> None:
    """A queue of four bandwidth-delay products overflows in a slow start that nothing ends."""
    page = h3sim.page.page_from_dict(
        {
            "format": "h3sim-page/1",
            "name": "large",
            "resources": [{"id": "/", "kind": "document", "bytes": 5_000_000}],
        }
    )
    network = h3sim.load_network("fibre").with_(rate_mbps=20, rtt_ms=50, queue_bdp=4)
    drops = {}
    for has_search in (False, True):
        profile = h3sim.load_profile("default").with_(hystart=False, search=has_search)
        load = h3sim.simulate(page, scheme="fifo", network=network, transport_profile=profile)
        drops[has_search] = load.packets.queue_drops
    assert drops[True] < drops[False] / 4


def test_only_one_end_of_slow_start_can_be_chosen() -> None:
    with pytest.raises(ProfileError, match="hystart"):
        h3sim.load_profile("default").with_(search=True, hystart=True)
