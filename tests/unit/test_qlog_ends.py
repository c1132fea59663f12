"""Reading what a server logged, or both ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.export.load_document import measured_to_dict
from tests.logs import MS, NO_UPLINK, frame, packet, reading, trace

if TYPE_CHECKING:
    from pathlib import Path

# A response of 400 bytes as its server tells it: packet 1 is lost, what it carried goes again in
# packet 3; nothing is heard of packet 4.
SERVED = [
    packet(40, "received", 0, frame(0, 0, 30, fin=True)),
    packet(50, "sent", 0, frame(0, 0, 100)),
    packet(51, "sent", 1, frame(0, 100, 100)),
    packet(52, "sent", 2, frame(0, 200, 100)),
    packet(90, "received", 1, {"frame_type": "ack", "acked_ranges": [["2"], [0, 0]]}),
    {"time": 90, "name": "recovery:metrics_updated", "data": {"min_rtt": 40, "cwnd": 12000}},
    packet(91, "sent", 3, frame(0, 100, 100)),
    packet(92, "sent", 4, frame(0, 300, 100, fin=True)),
    packet(131, "received", 2, {"frame_type": "ack", "acked_ranges": [[2, 3], [0]]}),
]


def test_a_server_derives_arrivals_from_acknowledgements(tmp_path: Path) -> None:
    log = reading(tmp_path, trace(SERVED, "server"))
    assert [row[:2] for row in log.trace.packet_rows] == [
        (50 * MS, 70 * MS),
        (51 * MS, None),
        (52 * MS, 72 * MS),
        (91 * MS, 111 * MS),
        (92 * MS, 112 * MS),
    ]
    request = log.trace.requests[0]
    assert (request.requested_at_ns, request.arrived_at_ns) == (20 * MS, 40 * MS)
    assert log.unknown[:2] == (
        "when packets arrived: the client has no log here; taken as sent + 20 ms, half the least"
        " RTT",
        "whether 1 packet arrived, neither acknowledged nor lost; taken as arrived",
    )
    figures = measured_to_dict(log)
    counts = {"sent": 5, "sent_bytes": 500, "lost": 1, "retransmitted": 1, "queue_drops": None}
    assert figures["packets"] == counts | NO_UPLINK
    assert (figures["hol"]["stream_bytes"], figures["hol"]["stream_delay_ms"]) == (100, 39)


def lost(number: int) -> dict[str, Any]:
    data = {"header": {"packet_type": "1RTT", "packet_number": number}}
    return {"time": 90, "name": "recovery:packet_lost", "data": data}


@pytest.mark.parametrize(
    ("events", "arrived"),
    [
        # Without acknowledgements, what is declared lost is lost, and all else arrived.
        ([lost(1)], [True, False, True]),
        ([], [True, True, True]),
        # What was declared lost and acknowledged all the same was late, not lost.
        ([lost(1), SERVED[8]], [True, False, True]),
        ([lost(2), SERVED[8]], [True, False, True]),
    ],
)
def test_the_log_of_the_server_decides_what_arrived(
    tmp_path: Path, events: list[Any], arrived: list[bool]
) -> None:
    sent = [*SERVED[:4], packet(91, "sent", 3, frame(0, 100, 100, fin=True))]
    log = reading(tmp_path, trace([*sent, *events], "server"))
    assert [row[1] is not None for row in log.trace.packet_rows][:3] == arrived


CLIENTS_VIEW = [
    packet(20, "sent", 0, frame(0, 0, 30, fin=True)),
    packet(73, "received", 0, frame(0, 0, 100)),
    packet(76, "received", 2, frame(0, 200, 100)),
    packet(115, "received", 3, frame(0, 100, 100)),
    packet(116, "received", 4, frame(0, 300, 100, fin=True)),
]


def test_both_ends_logs_make_up_one_connection(tmp_path: Path) -> None:
    log = reading(tmp_path, trace(SERVED, "server"), trace(CLIENTS_VIEW))
    assert [row[:2] for row in log.trace.packet_rows] == [
        (50 * MS, 73 * MS),
        (51 * MS, None),
        (52 * MS, 76 * MS),
        (91 * MS, 115 * MS),
        (92 * MS, 116 * MS),
    ]
    request = log.trace.requests[0]
    assert (request.requested_at_ns, request.arrived_at_ns) == (20 * MS, 40 * MS)
    assert log.unseen_packets == 0
    assert measured_to_dict(log)["packets"] == {
        "sent": 5,
        "sent_bytes": 500,
        "lost": 1,
        "retransmitted": 1,
        "queue_drops": None,
        **NO_UPLINK,
    }


def test_two_clocks_that_cannot_be_compared_leave_only_the_clients(tmp_path: Path) -> None:
    unknown = {"clock_type": "monotonic", "epoch": "unknown"}
    other = trace(SERVED, "server", reference_time=unknown)
    log = reading(tmp_path, other, trace(CLIENTS_VIEW))
    assert [row[1] for row in log.trace.packet_rows] == [73 * MS, None, 76 * MS, 115 * MS, 116 * MS]
    assert [row[0] for row in log.trace.packet_rows] == [
        73 * MS,
        73 * MS,
        76 * MS,
        115 * MS,
        116 * MS,
    ]
    assert log.trace.requests[0].arrived_at_ns == 20 * MS
    assert "when packets were sent: the two logs have different clocks" in log.unknown


@pytest.mark.parametrize(
    ("reference", "server_reference"),
    [
        (1_700_000_000_010, 1_700_000_000_003),
        ("17", "10"),
        (
            {"epoch": "unknown", "wall_clock_time": "2026-03-01T10:00:00.0080000000001Z"},
            {"epoch": "unknown", "wall_clock_time": "2026-03-01T11:00:00.001+01:00"},
        ),
    ],
)
def test_logs_with_different_references_are_offset_by_their_difference(
    tmp_path: Path, reference: object, server_reference: object
) -> None:
    server = trace(SERVED, "server", reference_time=server_reference)
    log = reading(tmp_path, server, trace(CLIENTS_VIEW, reference_time=reference))
    # The server's zero is 7 ms earlier.
    assert [row[0] for row in log.trace.packet_rows] == [
        (at - 7) * MS for at in (50, 51, 52, 91, 92)
    ]
    assert not any("clocks" in line for line in log.unknown)


def test_an_offset_with_which_packets_arrive_before_they_are_sent_is_not_used(
    tmp_path: Path,
) -> None:
    server = trace(SERVED, "server", reference_time=60)
    log = reading(tmp_path, server, trace(CLIENTS_VIEW, reference_time=0))
    assert any("different clocks" in line for line in log.unknown)


def test_a_request_before_a_servers_log_is_its_zero(tmp_path: Path) -> None:
    moved = [{**event, "time": event["time"] - 40} for event in SERVED]
    figures = measured_to_dict(reading(tmp_path, trace(moved, "server")))
    assert figures["resources"][0]["requested_ms"] == 0
    # Packet 4 is sent 52 ms after the request arrived, and travels for 20 ms as that did.
    assert figures["page_load_ms"] == 92


def test_two_logs_with_times_of_day_share_a_clock(tmp_path: Path) -> None:
    day_ms = 1_700_000_000_000
    ends = [
        trace(
            [{**event, "time": event["time"] + day_ms} for event in events],
            end,
            time_format="absolute",
        )
        for end, events in (("server", SERVED), ("client", CLIENTS_VIEW))
    ]
    rows = reading(tmp_path, *ends).trace.packet_rows
    # The client's first event, at 20, is 0.
    assert [row[0] for row in rows] == [30 * MS, 31 * MS, 32 * MS, 71 * MS, 72 * MS]
    assert rows[0][1] == 53 * MS


@pytest.mark.parametrize("protocols", [["QUIC", "HTTP3"], ["TCP", "HTTP2"]])
def test_a_response_of_which_bytes_never_came_is_left_out(
    tmp_path: Path, protocols: list[str]
) -> None:
    # Nothing was sent again of what packet 1 carried.
    sent = [*SERVED[1:4], packet(53, "sent", 5, frame(4, 0, 10, fin=True))]
    came = [*CLIENTS_VIEW[:3], packet(80, "received", 5, frame(4, 0, 10, fin=True))]
    ends = (trace(sent, "server", protocol_type=protocols), trace(came, protocol_type=protocols))
    log = reading(tmp_path, *ends)
    (row,) = measured_to_dict(log)["resources"]
    assert (row["stream_id"], row["finished_ms"]) == (4, 80)
    assert "the end of responses that are left out: stream 0" in log.unknown


def test_the_end_of_a_response_that_was_only_ever_lost_is_missed(tmp_path: Path) -> None:
    sent = [
        packet(1, "sent", 0, frame(0, 0, 10), frame(4, 0, 10)),
        packet(2, "sent", 1, frame(0, 10, 5)),
    ]
    came = [packet(9, "received", 0, frame(0, 0, 10), frame(4, 0, 10))]
    log = reading(tmp_path, trace(sent, "server"), trace(came))
    assert [request.stream_id for request in log.trace.requests] == [4]
