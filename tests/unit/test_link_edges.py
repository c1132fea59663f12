"""Links at their edges: queues that are just full, disciplines that keep their settings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from h3sim.transport import LinkProfile
from h3sim.transport.fair_link import FairLink
from h3sim.transport.link import ChangingLink, Link, PlainLink, RemoteLink, make_link
from h3sim.transport.link_profile import CoDel, FqCoDel, QueueDiscipline
from h3sim.transport.packets import CE, ECT, NOT_ECT
from h3sim.values.errors import NetworkError
from h3sim.values.rng import substream


def link_of(profile: LinkProfile) -> Any:
    return make_link(
        profile,
        rtt_ns=20_000_000,
        streams=lambda purpose: substream(0, purpose),
        upward=False,
    )


class TestDisciplines:
    def test_a_discipline_keeps_settings_that_it_has(self) -> None:
        own = FqCoDel(target_ns=7, interval_ns=70, quantum_bytes=300)
        link = LinkProfile(rate_bps=2_000_000, fq_codel=own)
        assert link.with_discipline(QueueDiscipline.FQ_CODEL).fq_codel == own
        as_codel = link.with_discipline(QueueDiscipline.CODEL)
        assert as_codel.codel == CoDel(target_ns=7, interval_ns=70)
        assert as_codel.fq_codel is None
        plain = LinkProfile(rate_bps=2_000_000)
        assert plain.with_discipline(QueueDiscipline.CODEL).codel == CoDel()
        back = as_codel.with_discipline(QueueDiscipline.DROP_TAIL)
        assert (back.codel, back.fq_codel) == (None, None)

    def test_bytes_of_a_queue_are_of_a_product_only_with_a_rate(self) -> None:
        assert LinkProfile(queue_bytes=5_000, rate_bps=8_000).queue_limit_bytes(10**9) == 5_000
        assert LinkProfile(rate_bps=8_000, queue_bdp=2).queue_limit_bytes(10**9) == 2_000

    def test_losses_contradict_one_another(self) -> None:
        for burst in (None, 2):
            with pytest.raises(NetworkError, match="loss_list"):
                LinkProfile(loss_list=(1,), loss=0.1, loss_burst=burst)
        # Of nine lost in ten, the mean burst is nine packets at least.
        assert LinkProfile(loss=0.9, loss_burst=9).loss_burst == 9
        with pytest.raises(NetworkError, match="loss_burst"):
            LinkProfile(loss=0.9, loss_burst=8.9)


class _Flow:
    """Takes the fates of packets."""

    def __init__(self) -> None:
        self.fates: list[tuple[Any, int | None]] = []

    def on_departed(self, packet: Any, arrives_at_ns: int | None) -> None:
        self.fates.append((packet, arrives_at_ns))


class _Calls:
    """Runs what links schedule, in the order of its times."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Any, Any]] = []

    def __call__(self, at_ns: int, rank: Any, call: Any, value: Any) -> None:
        self._waiting.append((at_ns, call, value))

    def run(self) -> None:
        while self._waiting:
            self._waiting.sort(key=lambda entry: entry[0])
            at_ns, call, value = self._waiting.pop(0)
            call(value, at_ns)


class TestRemoteLink:
    @pytest.mark.parametrize("discipline", [QueueDiscipline.CODEL, QueueDiscipline.FQ_CODEL])
    def test_a_longer_path_delays_what_leaves_a_managed_queue(
        self, discipline: QueueDiscipline
    ) -> None:
        profile = LinkProfile(rate_bps=8_000_000, queue_bytes=50_000).with_discipline(discipline)
        packets: list[Any] = [SimpleNamespace(number=number, ecn=False) for number in range(3)]
        fates = []
        for more_ns in (0, 3_000_000):
            near: Any
            if profile.fq_codel is None:
                near = link_of(profile)
            else:
                near = FairLink(
                    profile,
                    rtt_ns=20_000_000,
                    streams=lambda purpose: substream(0, purpose),
                    upward=False,
                )
            flow, calls = _Flow(), _Calls()
            link = RemoteLink(near, more_ns) if more_ns else near
            link.attach(calls, 0)
            for number in range(3):
                link.send_packet(number, packets[number], 1000, flow)
            link.drain()
            calls.run()
            fates.append(flow.fates)
        near_fates, far_fates = fates
        assert len(near_fates) == 3
        assert far_fates == [(packet, at_ns + 3_000_000) for packet, at_ns in near_fates]


class _Numbers:
    """A random source that gives these numbers, and none after them."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = [*numbers]

    def random(self) -> float:
        return self._numbers.pop(0)


class TestChangingLosses:
    def made(self, profile: LinkProfile) -> ChangingLink:
        """Return a link whose own losses draw 0.4 each time, and changed ones 0.1, 0.3, ..."""
        sources: dict[str, Any] = {
            "loss": _Numbers(*[0.4] * 9),
            "changed-loss": _Numbers(0.1, 0.3, 0.5),
        }
        return ChangingLink(profile, rtt_ns=0, streams=lambda purpose: sources[purpose])

    def test_a_changed_loss_takes_the_place_of_that_of_the_link(self) -> None:
        link = self.made(LinkProfile(loss=0.5))
        assert link.send(0, 100) is None
        link.change_loss(0.3)
        assert [link.send(0, 100) is None for _ in range(3)] == [True, False, False]
        link.change_loss(0)
        assert link.send(0, 100) == 0

    @pytest.mark.parametrize("loss", [-0.1, 1, "much", None])
    def test_a_loss_is_a_share_below_one(self, loss: Any) -> None:
        with pytest.raises(NetworkError, match="loss: must be 0 up to, but without, 1"):
            self.made(LinkProfile()).change_loss(loss)

    @pytest.mark.parametrize("rate_bps", [0, -1, 1.5, None])
    def test_a_rate_is_whole_and_above_zero(self, rate_bps: Any) -> None:
        link = self.made(LinkProfile(rate_bps=8000, burst_bytes=0))
        with pytest.raises(NetworkError, match="rate_mbps: must be a whole number of bit/s above"):
            link.change_rate(0, rate_bps)
        link.change_rate(0, 1)
        assert link.send(0, 1) == 8 * 10**9

    @pytest.mark.parametrize("profile", [LinkProfile(), LinkProfile(mahimahi=(1,))])
    def test_a_link_without_a_rate_has_none_to_change(self, profile: LinkProfile) -> None:
        with pytest.raises(NetworkError, match="rate_mbps: cannot change: this link has no rate"):
            self.made(profile).change_rate(0, 8000)


@pytest.mark.parametrize("form", [Link, PlainLink])
def test_what_has_left_leaves_room_for_exactly_as_much(form: type[Link]) -> None:
    """1000 bytes take 8 ms; of 2000 the first half has left by then."""
    profile = LinkProfile(rate_bps=1_000_000, burst_bytes=0, queue_bytes=2000)
    link = form(profile, rtt_ns=0, streams=lambda purpose: substream(0, purpose))
    assert [link.send(0, 1000) for _ in range(3)] == [8_000_000, 16_000_000, None]
    assert link.send(8_000_000, 1000) == 24_000_000


@pytest.mark.parametrize("loss", [1, 2, -1, float("nan"), float("inf"), "all", None])
def test_a_share_of_one_is_refused_whatever_the_bursts(loss: Any) -> None:
    with pytest.raises(NetworkError) as caught:
        LinkProfile(loss=loss, loss_burst=2)
    assert [problem.key for problem in caught.value.problems] == ["loss"]


@pytest.mark.parametrize("form", [Link, PlainLink, ChangingLink, FairLink, make_link])
@pytest.mark.parametrize(("upward", "arrives_at_ns"), [(None, 3), (False, 3), (True, 4)])
def test_a_link_leads_downward_unless_it_is_told_otherwise(
    form: Any, upward: bool | None, arrives_at_ns: int
) -> None:
    """The odd nanosecond of a round trip of seven is spent upward."""
    profile = LinkProfile(rate_bps=8_000_000, fq_codel=FqCoDel() if form is FairLink else None)
    given = {} if upward is None else {"upward": upward}
    link = form(profile, rtt_ns=7, streams=lambda purpose: substream(0, purpose), **given)
    flow, packet = _Flow(), SimpleNamespace(number=0, ecn=0)
    link.attach(_Calls(), 0)
    link.send_packet(0, packet, 1000, flow)
    assert flow.fates == [(packet, arrives_at_ns)]


class TestFairLink:
    """At 8 Mbit/s 1000 bytes take a millisecond."""

    def test_what_an_unused_opportunity_has_left_is_for_packets_that_waited(self) -> None:
        link = FairLink(
            LinkProfile(mahimahi=(2, 5), fq_codel=FqCoDel()),
            rtt_ns=0,
            streams=lambda purpose: substream(0, purpose),
        )
        calls, flow = _Calls(), _Flow()
        link.attach(calls, 0)
        packets: list[Any] = [SimpleNamespace(number=number, ecn=0) for number in range(4)]
        for packet in packets[:3]:
            link.send_packet(0, packet, 700, flow)
        calls.run()
        # The third has 100 bytes of the first opportunity.
        assert [at_ns for _, at_ns in flow.fates] == [2_000_000, 2_000_000, 5_000_000]
        link.send_packet(5_000_000, packets[3], 100, flow)
        calls.run()
        assert flow.fates[-1] == (packets[3], 7_000_000)

    def test_each_departure_is_scheduled_with_the_rank_of_the_link(self) -> None:
        link = FairLink(
            LinkProfile(rate_bps=8_000_000, burst_bytes=0, fq_codel=FqCoDel()),
            rtt_ns=0,
            streams=lambda purpose: substream(0, purpose),
        )
        scheduled: list[tuple[int, int]] = []
        link.attach(lambda at_ns, rank, call, value: scheduled.append((at_ns, rank)), 7)
        for number in range(2):
            link.send_packet(0, cast("Any", SimpleNamespace(number=number)), 1000, _Flow())
        assert scheduled == [(1_000_000, 7)]

    def test_what_a_frame_adds_takes_its_time(self) -> None:
        link = FairLink(
            LinkProfile(
                rate_bps=8_000_000, burst_bytes=0, frame_overhead_bytes=50, fq_codel=FqCoDel()
            ),
            rtt_ns=0,
            streams=lambda purpose: substream(0, purpose),
        )
        flow = _Flow()
        link.attach(_Calls(), 0)
        link.send_packet(0, cast("Any", SimpleNamespace(number=0)), 1000, flow)
        assert [at_ns for _, at_ns in flow.fates] == [1_050_000]

    def test_what_leaves_at_once_is_not_scheduled(self) -> None:
        link = FairLink(
            LinkProfile(rate_bps=8_000_000, burst_bytes=2000, fq_codel=FqCoDel()),
            rtt_ns=0,
            streams=lambda purpose: substream(0, purpose),
        )
        scheduled: list[int] = []
        link.attach(lambda at_ns, rank, call, value: scheduled.append(at_ns), 0)
        flow, packets = _Flow(), [SimpleNamespace(number=number) for number in range(3)]
        for packet in packets:
            link.send_packet(0, cast("Any", packet), 1000, flow)
        assert [at_ns for _, at_ns in flow.fates] == [0, 0, 1_000_000]
        assert scheduled == [1_000_000]

    def test_a_flow_goes_on_while_it_may_send_a_byte(self) -> None:
        link = FairLink(
            LinkProfile(rate_bps=8_000_000, burst_bytes=0, fq_codel=FqCoDel(quantum_bytes=1000)),
            rtt_ns=0,
            streams=lambda purpose: substream(0, purpose),
        )
        calls, first, second = _Calls(), _Flow(), _Flow()
        link.attach(calls, 0)
        for flow, n_bytes in ((first, 999), (second, 1000)):
            for number in range(2):
                link.send_packet(0, cast("Any", SimpleNamespace(number=number)), n_bytes, flow)
        calls.run()
        assert [at_ns for _, at_ns in first.fates] == [999_000, 1_998_000]
        assert [at_ns for _, at_ns in second.fates] == [2_998_000, 3_998_000]


@pytest.mark.parametrize(
    ("profile", "handles_packets"),
    [
        (LinkProfile(rate_bps=8000), False),
        (LinkProfile(rate_bps=8000, codel=CoDel()), False),
        (LinkProfile(rate_bps=8000, codel=CoDel(), ecn=True), True),
        (LinkProfile(rate_bps=8000, fq_codel=FqCoDel()), True),
    ],
)
def test_a_link_needs_packets_to_mark_them_or_to_tell_flows_apart(
    profile: LinkProfile, handles_packets: bool
) -> None:
    link = link_of(profile)
    assert link.handles_packets is handles_packets
    assert RemoteLink(link, 5).handles_packets is handles_packets


def test_what_is_lost_on_a_shared_link_arrives_nowhere() -> None:
    link = RemoteLink(link_of(LinkProfile(loss_list=(0, 1))), 5)
    assert link.send(0, 100) is None
    flow, packets = _Flow(), [SimpleNamespace(number=number, ecn=0) for number in range(2)]
    for packet in packets:
        link.send_packet(0, cast("Any", packet), 100, flow)
    assert flow.fates == [(packets[0], None), (packets[1], 10_000_005)]


def test_a_link_with_queues_per_flow_is_not_plain() -> None:
    assert not PlainLink.is_plain(LinkProfile(rate_bps=8000, fq_codel=FqCoDel()))
    assert not PlainLink.is_plain(LinkProfile(rate_bps=8000, codel=CoDel()))
    assert PlainLink.is_plain(LinkProfile(rate_bps=8000))


def test_codepoints_are_those_of_rfc_3168() -> None:
    """§ 5: ECT(0) is 10, and CE is 11."""
    assert (NOT_ECT, ECT, CE) == (0b00, 0b10, 0b11)


def test_codel_marks_what_is_capable_and_what_has_waited_for_too_long_alone() -> None:
    """30 packets at once, then one per millisecond: as of the drops in test_links.py."""
    link = link_of(LinkProfile(rate_bps=8_000_000, burst_bytes=0, codel=CoDel(), ecn=True))
    flow = _Flow()
    for number in range(210):
        packet = cast("Any", SimpleNamespace(number=number, ecn=ECT))
        link.send_packet(max(0, number - 29) * 1_000_000, packet, 1000, flow)
    marked = [packet.number for packet, _ in flow.fates if packet.ecn == CE]
    assert marked[0] == 105
    assert len(marked) == link.ecn_marks == 2
    assert None not in [at_ns for _, at_ns in flow.fates]
