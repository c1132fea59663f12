"""Reading qlogs of clients: every dialect, and what a log does not say."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.export.load_document import measured_to_dict
from h3sim.qlog import LogError, parse_qlog
from h3sim.trace import Delivery
from tests.logs import MS, NO_UPLINK, RS, document, frame, headers, packet, reading, save, trace

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.qlog import MeasuredLog


# One connection: stream 0 is asked for at 1 ms and comes in packets 0 and 2, which overtakes 1;
# stream 4, asked for at 2 ms, comes in packet 1. Stream 3 is the server's control stream.
SMALL = [
    packet(1, "sent", 0, frame(0, 0, 30, fin=True)),
    packet(2, "sent", 1, frame(4, 0, 30, fin=True), {"frame_type": "padding"}),
    packet(10, "received", 0, frame(3, 0, 9), frame(0, 0, 1000)),
    packet(20.5, "received", 2, frame(0, 1000, 500, fin=True)),
    packet(21.000001, "received", 1, frame(4, 0, 700, fin=True)),
]
SMALL_ROWS = [
    (10 * MS, 10 * MS, 0, 0, 1000, 0, 10 * MS),
    (21 * MS + 1, 21 * MS + 1, 4, 0, 700, 1, 21 * MS + 1),
    (20_500_000, 20_500_000, 0, 1000, 500, 2, 20_500_000),
]
SMALL_REQUESTS = [(0, MS, 1500), (4, 2 * MS, 700)]


def seen(log: MeasuredLog) -> tuple[list[Any], list[Any]]:
    requests = [(r.stream_id, r.requested_at_ns, r.length_bytes) for r in log.trace.requests]
    return list(log.trace.packet_rows), requests


def moved_by(times: float, unit: float = 1) -> list[dict[str, Any]]:
    return [{**event, "time": (event["time"] + times) * unit} for event in SMALL]


def as_delta(*, first: float = 0) -> list[dict[str, Any]]:
    times = [event["time"] for event in SMALL]
    gaps = [times[0] + first, *(b - a for a, b in pairwise(times))]
    return [{**event, "time": gap} for event, gap in zip(SMALL, gaps, strict=True)]


def as_draft() -> dict[str, Any]:
    """Return the connection as the current drafts have it."""
    events = json.loads(json.dumps(SMALL).replace("transport:", "quic:"))
    for event in events:
        for entry in event["data"]["frames"]:
            if "length" in entry:
                entry["raw"] = {"length": entry.pop("length")}
            if entry.get("offset") == 0:
                del entry["offset"]
    clock = {"clock_type": "monotonic", "epoch": "unknown"}
    return {
        "file_schema": "urn:ietf:params:qlog:file:contained",
        "serialization_format": "application/qlog+json",
        "traces": [trace(events, time_format="relative_to_epoch", reference_time=clock)],
    }


def as_rows(*, units: str, upper: bool = False) -> dict[str, Any]:
    """Return the connection as draft-00 and -01 have it: rows of fields, numbers as text."""
    scale = 1000 if units == "us" else 1
    rows = []
    for event in SMALL:
        data = json.loads(json.dumps(event["data"]))
        data["packet_type"] = data["header"].pop("packet_type")
        data["header"]["packet_number"] = str(data["header"]["packet_number"])
        for entry in data["frames"]:
            entry["frame_type"] = entry["frame_type"].upper() if upper else entry["frame_type"]
            if "stream_id" in entry:
                entry["id"] = str(entry.pop("stream_id"))
                entry |= {"offset": str(entry["offset"]), "length": str(entry["length"])}
        category, _, name = event["name"].partition(":")
        row = [f"{event['time'] * scale:.6f}", category, name, "line", data]
        rows.append([row[0], category.upper(), name.upper(), *row[3:]] if upper else row)
    names = ["relative_time", "category", "event_type", "trigger", "data"]
    entry = {
        "vantage_point": {"type": "CLIENT" if upper else "client"},
        "configuration": {"time_units": units},
        "common_fields": {"reference_time": "1575028855415"},
        "event_fields": [name.upper() for name in names] if upper else names,
        "events": rows,
    }
    return {"qlog_version": "draft-00" if upper else "draft-01", "traces": [entry]}


DIALECTS = {
    "0.3": document(trace(SMALL)),
    "microseconds": document(trace(moved_by(0, 1000), time_units="us")),
    "relative to the event before": document(trace(as_delta(), time_format="delta")),
    "the same in the drafts' words": document(
        trace(as_delta(), time_format="relative_to_previous_event")
    ),
    "the current drafts": as_draft(),
    "draft-01": as_rows(units="ms"),
    "draft-01 in microseconds": as_rows(units="us"),
    "draft-00": as_rows(units="ms", upper=True),
    "an empty last event": document(trace([*SMALL, {}])),
    "events with category and type apart": document(
        trace(
            {"time": e["time"], "category": "transport", "type": e["name"][10:], "data": e["data"]}
            for e in SMALL
        )
    ),
    "the view of a point before the client": document(
        {**trace(SMALL), "vantage_point": {"type": "network", "flow": "client"}}
    ),
    "a trace that failed beside it": document({"error_description": "lost"}, trace(SMALL)),
    "a connection that came to nothing beside it": document(trace(SMALL[:1]), trace(SMALL)),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_connection_is_read_from_every_dialect(tmp_path: Path, dialect: str) -> None:
    log = parse_qlog(save(tmp_path / "small.qlog", DIALECTS[dialect]))
    assert seen(log) == (SMALL_ROWS, SMALL_REQUESTS)
    assert (log.trace.delivery, log.unseen_packets) == (Delivery.STREAM, 0)


@pytest.mark.parametrize(
    "content",
    [
        trace(moved_by(1_700_000_000_000), time_format="absolute"),
        trace(as_delta(first=1_700_000_000_000), time_format="delta"),
        trace(moved_by(1_700_000_000_000), time_format="relative_to_epoch"),
    ],
)
def test_times_of_day_count_from_the_first_event(tmp_path: Path, content: dict[str, Any]) -> None:
    rows, requests = seen(reading(tmp_path, content))
    # A float of today's milliseconds tells a quarter of a microsecond at best.
    assert [row[1] for row in rows] == pytest.approx([9 * MS, 20 * MS, 19_500_000], abs=300)
    assert [request[1] for request in requests] == pytest.approx([0, MS], abs=300)


SEQUENCE_HEAD = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "title": "seq"}


def sequence(*, before: str = RS, after: str = "\n", indent: int | None = None) -> str:
    head = {key: value for key, value in trace([]).items() if key != "events"}
    records = [{**SEQUENCE_HEAD, "trace": head}, *SMALL]
    return "".join(f"{before}{json.dumps(record, indent=indent)}{after}" for record in records)


@pytest.mark.parametrize(
    "text",
    [
        sequence(),
        sequence(indent=2),
        sequence(after=""),
        sequence(before="", after="\n\n"),
        "\n" + sequence(),
    ],
    ids=["JSON-SEQ", "over several lines", "without line ends", "a record a line", "late"],
)
def test_a_sequence_is_read_however_its_records_are_set_apart(tmp_path: Path, text: str) -> None:
    log = parse_qlog(save(tmp_path / "small.sqlog", text))
    assert seen(log) == (SMALL_ROWS, SMALL_REQUESTS)
    assert log.title == "seq"


@pytest.mark.parametrize("text", [sequence(), json.dumps(document(trace(SMALL)))])
def test_a_gzipped_log_is_read_whatever_it_is_called(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.qlog"
    path.write_bytes(gzip.compress(text.encode()))
    assert seen(parse_qlog(path)) == (SMALL_ROWS, SMALL_REQUESTS)


def test_a_log_without_title_goes_by_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.client.sqlog.gz"
    path.write_text(json.dumps(document(trace(SMALL), title="")))
    assert parse_qlog(path).title == "shop"


def test_a_sequence_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    cut = sequence() + RS + '{"time": 22, "name": "transport:pack'
    log = parse_qlog(save(tmp_path / "cut.sqlog", cut))
    assert seen(log) == (SMALL_ROWS, SMALL_REQUESTS)
    assert "what came after line 7, where the log is cut off" in log.unknown


@pytest.mark.parametrize("cut", ["", "]", "]}", ', {"time": 22, "name": "transport:pack', ", ["])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_that_was_cut_off_is_read_up_to_there(
    tmp_path: Path, cut: str, indent: int | None
) -> None:
    text = json.dumps(document(trace(SMALL)), indent=indent)
    kept = text
    for _ in "]}]}":  # what closes the events, the trace, the traces and the document
        kept = kept[:-1].rstrip()
    log = parse_qlog(save(tmp_path / "cut.qlog", kept + cut))
    assert seen(log) == (SMALL_ROWS, SMALL_REQUESTS)
    assert any("where the log is cut off" in each for each in log.unknown)


def test_a_document_with_a_mistake_within_is_not_taken_for_a_cut_one(tmp_path: Path) -> None:
    text = json.dumps(document(trace(SMALL))).replace('"name"', "name", 1)
    with pytest.raises(LogError, match="is not JSON"):
        parse_qlog(save(tmp_path / "wrong.qlog", text))


@pytest.mark.parametrize("text", [sequence(), json.dumps(document(trace(SMALL)))])
def test_a_packed_log_that_was_cut_off_is_read_up_to_there(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.qlog.gz"
    path.write_bytes(gzip.compress(text.encode())[:-9])
    log = parse_qlog(path)
    assert seen(log) == (SMALL_ROWS, SMALL_REQUESTS)
    assert any("cut off" in each for each in log.unknown)


def test_a_log_without_a_vantage_point_is_classified_by_who_sends_first(tmp_path: Path) -> None:
    unsaid = {key: value for key, value in trace(SMALL).items() if key != "vantage_point"}
    log = reading(tmp_path, unsaid)
    assert seen(log) == (SMALL_ROWS, SMALL_REQUESTS)
    assert "who wrote traces[0]; by its first packet, the client" in log.unknown


@pytest.mark.parametrize(
    ("n_streams", "expected"),
    [(1, (7000, 7000)), (2, (3000, 5000)), (5, (1000, 1000))],
)
def test_the_count_of_sander_is_met_through_a_log(
    tmp_path: Path, n_streams: int, expected: tuple[int, int]
) -> None:
    # Ten packets of 1000 bytes, streams in turn; the third is lost and sent again at the end. The
    # sums are worked out in test_metrics_hol.py.
    sent = [(4 * (n % n_streams), n // n_streams * 1000) for n in range(10)]
    numbered = [(n, *sent[n]) for n in range(10) if n != 2] + [(10, *sent[2])]
    events = [
        packet(number, "received", number, frame(stream_id, offset, 1000))
        for number, stream_id, offset in numbered
    ]
    log = reading(tmp_path, trace(events))
    figures = measured_to_dict(log)
    hol = figures["hol"]
    assert (hol["sander_stream_bytes"], hol["sander_connection_bytes"]) == expected
    assert figures["packets"] == {
        "sent": 11,
        "sent_bytes": None,
        "lost": 1,
        "retransmitted": None,
        "queue_drops": None,
        **NO_UPLINK,
    }
    # What one order would have made wait depends on what the lost packet carried.
    assert (hol["connection_bytes"], hol["connection_delay_ms"]) == (None, None)
    assert hol["stream_bytes"] == expected[0]


def test_numbers_that_the_handshake_took_are_not_missing(tmp_path: Path) -> None:
    # A stack that numbers all its packets in one row: 0 to 2 were of the handshake, 4 was lost.
    events = [packet(1, "received", n) for n in range(3)]
    for event, kind in zip(events, ("initial", "handshake", "handshake"), strict=True):
        event["data"]["header"]["packet_type"] = kind
    events += [
        packet(2, "received", 3, frame(0, 0, 10)),
        packet(3, "received", 5, frame(0, 20, 10)),
        packet(9, "received", 6, frame(0, 10, 10)),
    ]
    assert reading(tmp_path, trace(events)).unseen_packets == 1


def test_numbers_that_a_server_skips_are_no_losses(tmp_path: Path) -> None:
    # Numbers 1 and 4 were never sent: no stream has a gap.
    numbers = [0, 2, 3, 5, 6]
    events = [
        packet(number, "received", number, frame(4 * (index % 2), index // 2 * 100, 100))
        for index, number in enumerate(numbers)
    ]
    log = reading(tmp_path, trace(events))
    figures = measured_to_dict(log)
    counts = {"sent": 5, "sent_bytes": 500, "lost": 0, "retransmitted": 0, "queue_drops": 0}
    assert figures["packets"] == counts | NO_UPLINK
    assert figures["hol"]["connection_bytes"] == 0
    assert any("2 packets were ever sent" in line for line in log.unknown)


def test_a_number_far_ahead_is_skipped_at_no_cost(tmp_path: Path) -> None:
    events = [
        packet(1, "received", 0, frame(0, 0, 100)),
        packet(2, "received", 2**61, frame(0, 100, 100)),
        packet(3, "received", 2**61 + 2, frame(0, 300, 100)),
        packet(9, "received", 2**61 + 3, frame(0, 200, 100)),
    ]
    assert reading(tmp_path, trace(events)).unseen_packets == 1


@pytest.mark.parametrize("key", ["path", "path_id"])
def test_paths_that_number_their_packets_separately_are_told_apart(
    tmp_path: Path, key: str
) -> None:
    events = [
        {**packet(1, "received", 0, frame(0, 0, 100)), key: 0},
        {**packet(2, "received", 1, frame(0, 100, 100)), key: 0},
        {**packet(3, "received", 1, frame(0, 200, 100, fin=True)), key: 1},
        {**packet(4, "received", 1, frame(0, 200, 100, fin=True)), key: 1},  # a duplicate
    ]
    log = reading(tmp_path, trace(events))
    assert [row[2:6] for row in log.trace.packet_rows] == [
        (0, 0, 100, 0),
        (0, 100, 100, 1),
        (0, 200, 100, 2),
    ]
    assert log.unseen_packets == 1  # number 0 of the second path
    # A connection that migrates has one sequence of numbers (RFC 9000 § 9).
    events[2]["data"]["header"]["packet_number"] = 2
    assert len(reading(tmp_path, trace(events[:3])).trace.packet_rows) == 3


def test_acks_and_losses_are_those_of_a_path(tmp_path: Path) -> None:
    ack = {"frame_type": "path_ack", "path_id": 1, "acked_ranges": [[1, 1], [3, 3]]}
    sent = [
        {**packet(at, "sent", at % 10, frame(stream_id, 100 * (at % 10), 100)), "path_id": path}
        for path, stream_id, first in ((0, 0, 10), (1, 4, 20))
        for at in range(first, first + 4)
    ]
    acked = {**packet(50, "received", 9, ack), "path_id": 0}
    resent = {**packet(60, "sent", 4, frame(4, 0, 100)), "path_id": 0}
    again = {**packet(61, "sent", 5, frame(4, 200, 100)), "path_id": 0}
    log = reading(tmp_path, trace([*sent, acked, resent, again], "server"))
    rows = log.trace.packet_rows
    # Numbers 0 and 2 of the second path were lost; of the first one, nothing was acknowledged.
    assert [row[5] for row in rows if row[1] is None] == [4, 6]
    assert [resource.body_bytes for resource in log.resources] == [400, 400]


@pytest.mark.parametrize("first_ms", [-500, -20, 0, 300])
def test_a_log_that_begins_before_its_reference_has_no_negative_times(
    tmp_path: Path, first_ms: float
) -> None:
    begun = {"time": first_ms, "name": "transport:packet_sent", "data": {"frames": []}}
    events = [begun, *moved_by(first_ms)]
    figures = measured_to_dict(reading(tmp_path, trace(events)))
    assert figures["resources"][0]["requested_ms"] == 1 + max(first_ms, 0)
    assert figures["page_load_ms"] == pytest.approx(21 + max(first_ms, 0))


def test_a_packet_that_comes_twice_counts_once(tmp_path: Path) -> None:
    again = packet(30, "received", 2, frame(0, 1000, 500, fin=True))
    assert seen(reading(tmp_path, trace([*SMALL, again]))) == (SMALL_ROWS, SMALL_REQUESTS)


def test_a_frame_without_bytes_counts_only_if_it_ends_its_stream(tmp_path: Path) -> None:
    events = [
        packet(1, "received", 0, frame(0, 0, 0)),
        packet(2, "received", 1, frame(0, 0, 8)),
        packet(3, "received", 2, frame(0, 8, 0, fin=True)),
    ]
    log = reading(tmp_path, trace(events))
    assert [row[4:6] for row in log.trace.packet_rows] == [(8, 1), (0, 2)]
    assert measured_to_dict(log)["page_load_ms"] == 3


def test_delivery_times_that_a_client_logs_are_used(tmp_path: Path) -> None:
    moved = {"stream_id": 0, "offset": 0, "length": 1500, "from": "transport", "to": "application"}
    others = [{**moved, "to": "transport", "from": "application"}, {**moved, "stream_id": 3}]
    events = [
        *SMALL,
        {"time": 30, "name": "http:data_moved", "data": moved},
        *({"time": 40, "name": "http:data_moved", "data": data} for data in others),
    ]
    log = reading(tmp_path, trace(events))
    # Stream 4, of which nothing is said, is delivered as it came.
    assert log.trace.delivered_at_ns == [30 * MS, 21 * MS + 1, 30 * MS]


def test_a_body_is_as_long_as_its_header_states(tmp_path: Path) -> None:
    events = [
        headers(0, "created", 0, path="/index.html"),
        headers(0, "created", 4, path="/too-long"),
        packet(1, "received", 0, frame(0, 0, 60, fin=True), frame(4, 0, 60, fin=True)),
        headers(1, "parsed", 0, content_length="40"),
        headers(1, "parsed", 4, content_length="99"),
    ]
    log = reading(tmp_path, trace(events))
    assert log.resources == (("/index.html", 40), ("/too-long", 60))
    assert log.unknown[1:] == ("how long bodies are; all bytes of the stream stand in: stream 4",)


def test_a_response_cut_off_before_its_declared_length_is_left_out(tmp_path: Path) -> None:
    events = [
        packet(1, "received", 0, frame(0, 0, 60), frame(4, 0, 60), frame(8, 0, 60, fin=True)),
        *(headers(1, "parsed", id_, content_length=n) for id_, n in ((0, "99"), (4, "40"))),
        headers(1, "parsed", 8, content_length="99"),  # the answer to a HEAD request
    ]
    log = reading(tmp_path, trace(events))
    assert [request.stream_id for request in log.trace.requests] == [4, 8]
    assert "the end of responses that are left out: stream 0" in log.unknown
    assert "whether responses that lack a FIN are whole: stream 4" in log.unknown


@pytest.mark.parametrize("end", ["client", "server"])
def test_a_response_that_was_reset_before_its_end_is_left_out(tmp_path: Path, end: str) -> None:
    reset = {"frame_type": "reset_stream", "error_code": 268}
    down, up = ("received", "sent") if end == "client" else ("sent", "received")
    events = [
        packet(0, up, 0, *(frame(stream_id, 0, 9, fin=True) for stream_id in (0, 4, 8))),
        packet(1, down, 0, frame(0, 0, 60), frame(4, 0, 60), frame(8, 0, 60, fin=True)),
        packet(2, down, 1, {**reset, "stream_id": 0, "final_size": 61}),
        packet(3, down, 2, {**reset, "stream_id": 4, "final_size": "60"}),
    ]
    log = reading(tmp_path, trace(events, end))
    # Of stream 4 all came that was sent: it may be whole, and that this is not known is said.
    assert [request.stream_id for request in log.trace.requests] == [4, 8]
    assert "the end of responses that are left out: stream 0" in log.unknown
    assert "whether responses that lack a FIN are whole: stream 4" in log.unknown


def test_a_frame_of_header_fields_has_the_name_of_draft_02_as_well(tmp_path: Path) -> None:
    events = [
        headers(0, "created", 0, path="/index.html"),
        packet(1, "received", 0, frame(0, 0, 60, fin=True)),
        headers(1, "parsed", 0, content_length="40"),
    ]
    for event in (events[0], events[2]):
        event["data"]["frame"]["frame_type"] = "header"
    assert reading(tmp_path, trace(events)).resources == (("/index.html", 40),)


def test_requests_stand_in_the_order_made(tmp_path: Path) -> None:
    events = [
        headers(1, "created", 4, path="/first"),
        headers(2, "created", 0, path="/second"),
        packet(5, "received", 0, frame(0, 0, 60, fin=True), frame(4, 0, 60, fin=True)),
    ]
    figures = measured_to_dict(reading(tmp_path, trace(events)))
    assert [row["id"] for row in figures["resources"]] == ["/first", "/second"]
    assert figures["byte_index_ms"]["all"] == 4  # from 1 to 5


def test_responses_whose_end_never_came_are_left_out_and_named(tmp_path: Path) -> None:
    events = [
        packet(0, "sent", 0, *(frame(4 * n, 0, 9) for n in range(9))),
        packet(1, "received", 0, frame(0, 0, 10, fin=True), frame(4, 10, 10, fin=True)),
        packet(2, "received", 1, *(frame(4 * n, 5, 10) for n in range(2, 9))),
        packet(3, "received", 2, frame(36, 0, 10)),
    ]
    log = reading(tmp_path, trace(events))
    assert [row["stream_id"] for row in measured_to_dict(log)["resources"]] == [0, 36]
    assert "the end of responses that are left out: streams 4, 8, 12, 16, 20 and 3 more" in (
        log.unknown
    )
    assert "whether responses that lack a FIN are whole: stream 36" in log.unknown
    assert "when requests were made; their first byte stands in: stream 36" in log.unknown
    assert "what was asked for: streams 0, 36" in log.unknown


def test_figures_are_of_the_responses_that_are_complete_next_to_one_that_is_not(
    tmp_path: Path,
) -> None:
    """All arrives in the order sent, and one response is empty; of another the end is missing."""
    events = [headers(0, "created", stream_id, path=f"/{stream_id}") for stream_id in (0, 4, 8, 12)]
    events += [
        packet(10, "received", 0, frame(0, 0, 100, fin=True)),
        headers(11, "parsed", 4, content_length="900"),
        packet(12, "received", 1, frame(4, 0, 50)),
        packet(13, "received", 2, frame(8, 0, 100, fin=True)),
        headers(14, "parsed", 12, content_length="0"),
        packet(14, "received", 3, frame(12, 0, 0, fin=True)),
    ]
    path = save(tmp_path / "log.qlog", document(trace(events)))
    rows = h3sim.read_qlog(path).to_dict()["resources"]
    times = {row["stream_id"]: (row["first_byte_ms"], row["finished_ms"]) for row in rows}
    assert times == {0: (10, 10), 8: (13, 13), 12: (14, 14)}
