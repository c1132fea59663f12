"""What a load reports while it runs, and what it leaves out because nobody asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from simpy.core import EmptySchedule

import h3sim
from h3sim import engine
from h3sim.engine.environment import EventPriority, LoadEnvironment
from h3sim.engine.http_connection import HttpConnection
from h3sim.engine.signalling import ServerPriorityPolicy, has_server_priorities, has_thresholds
from h3sim.load.run import run_spec
from h3sim.page import Kind, Resource, ServerPriority
from h3sim.signals import Eps, Signal
from h3sim.values.errors import NetworkError
from tests.helpers import page_of

if TYPE_CHECKING:
    from h3sim.transport import Network

NETWORKS = {
    "constant rate": {"network": "marx-2019"},
    "reordering": {"network": "marx-2019-jitter"},
    "TCP at a constant rate": {"network": "marx-2019-jitter", "transport": "tcp"},
    "QUIC": {"network": "fibre"},
    "TCP": {"network": "fibre", "transport": "tcp"},
    "QPACK": {"network": "fibre", "header_compression": "early-qpack"},
    "HPACK": {"network": "fibre", "transport": "tcp", "header_compression": "hpack"},
}


@pytest.mark.parametrize("options", NETWORKS.values(), ids=NETWORKS)
def test_the_browser_hears_of_a_response_when_something_waits_for_its_bytes(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[tuple[int, int]] = []
    original = HttpConnection.on_delivered

    def counted(self: Any, stream_id: int, contiguous: int, now_ns: int) -> None:
        reports.append((stream_id, contiguous))
        original(self, stream_id, contiguous, now_ns)

    monkeypatch.setattr(HttpConnection, "on_delivered", counted)
    found = {"by": "/", "at": "offset", "offset_bytes": 30_000}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 140_000},
        {"id": "a", "kind": "image", "bytes": 70_000, "discovered": found},
    )
    h3sim.simulate(page, scheme="fifo", handshake=False, **options)
    for stream_id, thresholds in ((0, [30_000, 140_000]), (4, [70_000])):
        reached = [n_bytes for reported, n_bytes in reports if reported == stream_id]
        # One more where a packet that was waited for brings those behind it: of 100 or 50.
        assert len(reached) <= len(thresholds) + 1
        assert reached[0] >= thresholds[0]
        assert reached[-1] == thresholds[-1]


def test_packets_and_frames_are_not_recorded_unasked() -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 14_000})
    spec = engine.LoadSpec(
        page, scheme=h3sim.load_scheme("fifo"), network=h3sim.load_network("fibre")
    )
    (connection,) = run_spec(spec).connections
    assert (connection.n_frames, connection.frame_bytes) == (0, 0)
    assert not run_spec(spec).trace.wire
    assert run_spec(spec, record_packets=True).trace.wire


def test_no_two_kinds_of_events_tie() -> None:
    assert [kind.value for kind in EventPriority] == list(range(7))


def test_an_environment_without_events_says_so() -> None:
    with pytest.raises(EmptySchedule):
        LoadEnvironment().step()


def test_a_queue_must_hold_the_packets_of_either_end() -> None:
    network = h3sim.load_network("fibre")
    assert network.down is not None
    assert network.up is not None
    small = replace(
        network,
        down=replace(network.down, queue_bytes=1600, queue_bdp=None),
        up=replace(network.up, queue_bytes=1600, queue_bdp=None),
    )
    page = page_of({"id": "/", "kind": "document", "bytes": 14_000})
    profile = h3sim.load_profile("default")
    for end, key in (("tcp", "down"), ("tcp_client", "up")):
        settings = getattr(profile, end)
        large = replace(profile, **{end: replace(settings, mss_bytes=2000)})
        with pytest.raises(NetworkError) as caught:
            _load_over(page, small, large)
        assert [issue.key for issue in caught.value.problems] == [f"{key}.queue_bytes"]


def _load_over(page: Any, network: Network, profile: Any) -> Any:
    return h3sim.simulate(
        page, scheme="fifo", network=network, transport="tcp", transport_profile=profile
    )


class SignalLog:
    """Records the signals that a server's streams are given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, Signal]] = []

    def open(self, element_id: int, signal: Signal) -> None:
        self.calls.append(("open", element_id, signal))

    def update(self, element_id: int, signal: Signal) -> None:
        self.calls.append(("update", element_id, signal))


def policy(*resources: Resource, validates: bool) -> tuple[Any, Any]:
    scheme = replace(h3sim.load_scheme("chrome-eps"), validates_client_priorities=validates)
    streams: Any = SignalLog()
    made = ServerPriorityPolicy(
        streams,
        scheme,
        resource_of=lambda stream_id: resources[stream_id // 4],
        now_ns=lambda: 7,
        thresholds=None,
    )
    return made, streams


def resource(kind: Kind, *said: ServerPriority) -> Resource:
    return Resource(id=kind.value, kind=kind, size_bytes=1000, server_priorities=said)


class TestServerPriorityPolicy:
    def test_it_merges_with_what_the_server_said_last(self) -> None:
        said = (ServerPriority(urgency=1), ServerPriority(incremental=True))
        merging, streams = policy(resource(Kind.IMAGE, *said), validates=False)
        merging.open(0, Eps(urgency=5))
        merging.on_response(0)
        both = Eps(urgency=1, incremental=True)
        assert streams.calls[-2:] == [("update", 0, Eps(urgency=1)), ("update", 0, both)]
        assert merging.record == [(7, 0, Eps(urgency=1)), (7, 0, both)]

    def test_a_client_that_is_not_believed_cannot_change_its_mind(self) -> None:
        doubting, streams = policy(resource(Kind.IMAGE), resource(Kind.STYLESHEET), validates=True)
        doubting.open(0, Eps(urgency=1))
        doubting.open(4, Eps(urgency=6))
        by_type = {element_id: signal for _, element_id, signal in streams.calls}
        assert by_type[4].urgency < by_type[0].urgency
        streams.calls.clear()
        doubting.update(4, Eps(urgency=7))
        assert [call for call in streams.calls if call == ("update", 4, Eps(urgency=7))] == []

    def test_an_update_that_is_not_believed_changes_all_that_is_open(self) -> None:
        doubting, streams = policy(resource(Kind.IMAGE), resource(Kind.STYLESHEET), validates=True)
        doubting.open(0, Eps(urgency=5))
        doubting.open(4, Eps(urgency=3))
        doubting.update(0, Eps(urgency=4))
        assert streams.calls[-1] == ("update", 0, Eps(urgency=4))
        assert doubting.record == []
        # An image above a stylesheet: from now on types alone count, those of both.
        doubting.update(0, Eps(urgency=3))
        by_type = [(0, Eps(urgency=3, incremental=True)), (4, Eps(urgency=0))]
        assert streams.calls[-2:] == [("update", *change) for change in by_type]
        assert doubting.record == [(7, *change) for change in by_type]

    def test_placeholders_are_not_judged(self) -> None:
        doubting, streams = policy(resource(Kind.IMAGE), validates=True)
        doubting.open(-1, Eps(urgency=0))
        assert streams.calls == [("open", -1, Eps(urgency=0))]

    def test_thresholds_are_watched_only_where_there_are_any(self) -> None:
        scheme = h3sim.load_scheme("chrome-eps")
        for said, expected in (
            ({"urgency": 1}, False),
            ({"urgency": 1, "after_bytes": 500}, True),
        ):
            page = page_of(
                {"id": "/", "kind": "document", "bytes": 1000, "server_priorities": [said]}
            )
            assert has_server_priorities(page, scheme)
            assert has_thresholds(page, scheme) is expected
