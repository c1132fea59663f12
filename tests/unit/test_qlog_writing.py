"""Loads as qlogs: what each end logs, in either dialect, as readers of qlog want it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.qlog import LogError, LoggedResource, write_qlog
from h3sim.signals import BucketPriority, Eps, H2Priority
from h3sim.trace import Delivery, RecoveryRow, Request, SignalSent, Trace, WireRow, with_delivery
from tests.logs import qlog_document

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000

# Stream 0 is asked for at 1 ms, which the server learns at 2. Packet 1 is lost; its bytes go again
# with those of stream 4, which ends in the same packet.
REQUESTS = (Request(0, 1, MS, 2 * MS, 300), Request(4, 0, 3 * MS, 4 * MS, 50))
PACKETS = (
    (5 * MS, 6 * MS, 0, 0, 100, 0),
    (6 * MS, None, 0, 100, 100, 1),
    (7 * MS, 8 * MS, 0, 200, 100, 2),
    (9 * MS, 10 * MS, 0, 100, 100, 4),
    (9 * MS, 10 * MS, 4, 0, 50, 4),
)
RESOURCES = {0: LoggedResource("/a.css", 280, 40, 3 * MS), 4: LoggedResource("/b.js")}


def made(**changes: Any) -> Trace:
    fields = {"requests": REQUESTS, "packet_rows": PACKETS, "signals": (), **changes}
    fields = {"delivery": Delivery.STREAM, **fields}
    fields["packet_rows"] = with_delivery(fields["packet_rows"], fields["delivery"])
    return Trace(**fields)


def ends(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {entry["vantage_point"]["type"]: entry["events"] for entry in document["traces"]}


def short(event: dict[str, Any]) -> tuple[Any, ...]:
    """Return an event as a row: time, name, number, and (stream, offset, length, fin) per frame."""
    data = event["data"]
    name = event["name"].partition(":")[2]
    if name in ("packet_sent", "packet_received"):
        frames = [
            tuple(f[k] for k in ("stream_id", "offset", "length", "fin")) for f in data["frames"]
        ]
        return (
            event["time"],
            name,
            data["header"]["packet_number"],
            data["raw"]["length"],
            *frames,
        )
    if name == "data_moved":
        return (event["time"], name, data["stream_id"], data["offset"], data["length"])
    fields = {entry["name"]: entry["value"] for entry in data["frame"]["headers"]}
    return (event["time"], name, data["stream_id"], fields)


def test_the_complete_log_of_a_small_load() -> None:
    logs = ends(qlog_document(made(), title="small", resources=RESOURCES))
    assert [short(event) for event in logs["server"]] == [
        (2, "packet_received", 0, 65, (0, 0, 40, True)),
        (2, "frame_parsed", 0, {":method": "GET", ":path": "/a.css"}),
        (4, "packet_received", 1, 125, (4, 0, 100, True)),
        (4, "frame_parsed", 4, {":method": "GET", ":path": "/b.js"}),
        (4, "data_moved", 4, 0, 50),
        (5, "data_moved", 0, 0, 300),
        (5, "packet_sent", 0, 125, (0, 0, 100, False)),
        (6, "packet_sent", 1, 125, (0, 100, 100, False)),
        (7, "packet_sent", 2, 125, (0, 200, 100, True)),
        (9, "packet_sent", 4, 175, (0, 100, 100, False), (4, 0, 50, True)),
    ]
    assert [short(event) for event in logs["client"]] == [
        (1, "frame_created", 0, {":method": "GET", ":path": "/a.css"}),
        (1, "packet_sent", 0, 65, (0, 0, 40, True)),
        (3, "frame_created", 4, {":method": "GET", ":path": "/b.js"}),
        (3, "packet_sent", 1, 125, (4, 0, 100, True)),
        (6, "packet_received", 0, 125, (0, 0, 100, False)),
        (6, "data_moved", 0, 0, 100),
        (6, "frame_parsed", 0, {":status": "200", "content-length": "280"}),
        (8, "packet_received", 2, 125, (0, 200, 100, True)),
        (10, "packet_received", 4, 175, (0, 100, 100, False), (4, 0, 50, True)),
        (10, "data_moved", 0, 100, 200),
        (10, "data_moved", 4, 0, 50),
    ]


def test_the_head_states_what_readers_of_0_3_look_for() -> None:
    document = qlog_document(made(), title="small")
    assert {key: value for key, value in document.items() if key != "traces"} == {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": "small",
    }
    server, client = (
        {key: value for key, value in entry.items() if key != "events"}
        for entry in document["traces"]
    )
    common = {
        "time_format": "relative",
        "reference_time": 0,
        "protocol_type": ["QUIC", "HTTP3"],
    }
    assert server == {
        "vantage_point": {"name": "h3sim server", "type": "server"},
        "common_fields": common,
    }
    assert client == {
        "vantage_point": {"name": "h3sim client", "type": "client"},
        "common_fields": common,
    }
    sent = ends(document)["server"][6]
    assert sent == {
        "time": 5.0,
        "name": "transport:packet_sent",
        "data": {
            "header": {"packet_type": "1RTT", "packet_number": 0},
            "raw": {"length": 125},
            "frames": [
                {
                    "frame_type": "stream",
                    "stream_id": 0,
                    "offset": 0,
                    "length": 100,
                    "fin": False,
                    "raw": {"payload_length": 100},
                }
            ],
        },
    }


def test_the_current_drafts_have_other_words_for_the_same() -> None:
    document = qlog_document(made(), title="small", dialect="draft", resources=RESOURCES)
    assert document["file_schema"] == "urn:ietf:params:qlog:file:contained"
    assert document["serialization_format"] == "application/qlog+json"
    assert "qlog_version" not in document
    client = document["traces"][1]
    assert client["event_schemas"] == [
        "urn:ietf:params:qlog:events:quic-13",
        "urn:ietf:params:qlog:events:http3-13",
    ]
    assert client["common_fields"] == {
        "time_format": "relative_to_epoch",
        "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
    }
    names = {event["name"] for event in client["events"]}
    assert names == {
        *("quic:packet_sent", "quic:packet_received", "quic:stream_data_moved"),
        *("http3:frame_created", "http3:frame_parsed"),
    }
    received = client["events"][4]["data"]["frames"][0]
    assert received == {
        "frame_type": "stream",
        "stream_id": 0,
        "offset": 0,
        "fin": False,
        "raw": {"length": 100, "payload_length": 100},
    }
    moved = client["events"][5]["data"]
    assert moved == {
        "stream_id": 0,
        "offset": 0,
        "from": "transport",
        "to": "application",
        "raw": {"length": 100},
    }
    # HTTP3FrameParsed has a stream and a frame, and nothing else.
    parsed = [event["data"] for event in client["events"] if event["name"].endswith("_parsed")]
    assert [sorted(data) for data in parsed] == [["frame", "stream_id"]]
    assert parsed[0]["frame"]["raw"] == {"length": 20}


def test_the_current_drafts_have_updates_of_priority_on_the_control_stream() -> None:
    signals = (SignalSent(1 * MS, 0, Eps()), SignalSent(2 * MS, 0, Eps(urgency=0)))
    document = qlog_document(made(signals=signals), title="small", dialect="draft")
    updates = [
        event["data"]
        for event in ends(document)["server"]
        if event["data"].get("frame", {}).get("frame_type") == "priority_update"
    ]
    frame = {"frame_type": "priority_update", "stream_id": 0, "priority_field_value": "u=0"}
    assert updates == [{"stream_id": 2, "frame": frame}]


def test_tcp_hands_over_in_the_order_of_the_connection() -> None:
    # Stream 4 was there at 7, and waits for stream 0's packet, which was sent before it.
    packets = ((1 * MS, 9 * MS, 0, 0, 300, 0), (2 * MS, 7 * MS, 4, 0, 50, 1))
    moved = {}
    for delivery in Delivery:
        document = qlog_document(made(delivery=delivery, packet_rows=packets), title="x")
        moved[delivery] = [
            short(event) for event in ends(document)["client"] if "moved" in event["name"]
        ]
    assert moved[Delivery.STREAM] == [
        (7, "data_moved", 4, 0, 50),
        (9, "data_moved", 0, 0, 300),
    ]
    assert moved[Delivery.CONNECTION] == [
        (9, "data_moved", 0, 0, 300),
        (9, "data_moved", 4, 0, 50),
    ]
    assert document["traces"][0]["common_fields"]["protocol_type"] == ["TCP", "HTTP2"]
    draft = qlog_document(
        made(delivery=Delivery.CONNECTION, packet_rows=packets), title="x", dialect="draft"
    )
    assert draft["traces"][0]["common_fields"]["h3sim_protocols"] == ["TCP", "HTTP2"]


WIRE = (
    WireRow(True, 0, 5 * MS, 6 * MS, 131, ()),
    WireRow(True, 1, 6 * MS, None, 131, ()),
    WireRow(True, 2, 7 * MS, 8 * MS, 131, ()),
    WireRow(True, 3, 7 * MS, 8 * MS, 40, ((0, 1),)),
    WireRow(True, 4, 9 * MS, 10 * MS, 190, ()),
    WireRow(False, 0, MS, 2 * MS, 80, ()),
    WireRow(False, 1, 3 * MS, 4 * MS, 90, ()),
    WireRow(False, 2, 8 * MS, 9 * MS, 40, ((2, 2), (0, 0))),
)


def test_rows_of_the_wire_give_sizes_acknowledgements_and_packets_without_data() -> None:
    logs = ends(qlog_document(made(wire=WIRE), title="x", resources=RESOURCES))
    sent = [event for event in logs["server"] if event["name"] == "transport:packet_sent"]
    numbers = [event["data"]["header"]["packet_number"] for event in sent]
    assert numbers == [0, 1, 2, 3, 4]
    assert [event["data"]["raw"]["length"] for event in sent] == [131, 131, 131, 40, 190]
    assert sent[3]["data"]["frames"] == [{"frame_type": "ack", "acked_ranges": [[0, 1]]}]
    heard = [event for event in logs["server"] if event["name"] == "transport:packet_received"]
    # The requests stand in the packets that brought them.
    assert [
        (frame["stream_id"], frame["length"])
        for event in heard[:2]
        for frame in event["data"]["frames"]
    ] == [(0, 40), (4, 100)]
    assert heard[2]["data"]["frames"] == [{"frame_type": "ack", "acked_ranges": [[0, 0], [2, 2]]}]


def test_recovery_is_logged_by_the_server_losses_first() -> None:
    row = RecoveryRow(8 * MS, 12_000, None, 400, 3_500_000, 3 * MS, 2 * MS, 250_000, (1,))
    later = row._replace(at_ns=9 * MS, ssthresh=6000, lost=())
    logs = ends(qlog_document(made(recovery=(row, later)), title="x"))
    reported = [event for event in logs["server"] if event["name"].startswith("recovery:")]
    metrics = {
        "min_rtt": 2.0,
        "smoothed_rtt": 3.5,
        "latest_rtt": 3.0,
        "rtt_variance": 0.25,
        "congestion_window": 12_000,
        "bytes_in_flight": 400,
    }
    assert reported == [
        {
            "time": 8.0,
            "name": "recovery:packet_lost",
            "data": {"header": {"packet_type": "1RTT", "packet_number": 1}},
        },
        {"time": 8.0, "name": "recovery:metrics_updated", "data": metrics},
        {
            "time": 9.0,
            "name": "recovery:metrics_updated",
            "data": {**metrics, "ssthresh": 6000},
        },
    ]
    assert not any(event["name"].startswith("recovery:") for event in logs["client"])


SIGNALS = (
    SignalSent(2 * MS, 0, Eps(urgency=0, incremental=True)),
    SignalSent(4 * MS, 4, Eps()),
    SignalSent(4 * MS, 0, Eps(urgency=5)),
    SignalSent(9 * MS, 0, Eps()),
)
TREE = (
    SignalSent(2 * MS, -1, H2Priority(weight=4)),
    SignalSent(2 * MS, 0, H2Priority(weight=32, depends_on=-1)),
    SignalSent(4 * MS, 4, H2Priority(weight=8, depends_on=0, exclusive=True)),
)


def priorities(events: list[dict[str, Any]]) -> list[tuple[float, int, str]]:
    reported = []
    for event in events:
        frame = event["data"].get("frame", {})
        if frame.get("frame_type") == "priority_update":
            reported.append((event["time"], frame["element_id"], frame["value"]))
        reported += [
            (event["time"], event["data"]["stream_id"], entry["value"])
            for entry in frame.get("headers", ())
            if entry["name"] == "priority"
        ]
    return reported


def test_priorities_are_fields_of_requests_and_updates_as_rfc_9218_has_them() -> None:
    logs = ends(qlog_document(made(signals=SIGNALS), title="x"))
    # What stream 4 asks for is the default: its request says nothing.
    assert priorities(logs["client"]) == [(1, 0, "u=0, i"), (3, 0, "u=5")]
    # The last one is known from the server only.
    assert priorities(logs["server"]) == [(2, 0, "u=0, i"), (4, 0, "u=5"), (9, 0, "")]
    drafts = ends(qlog_document(made(signals=SIGNALS), title="x", dialect="draft"))
    assert {
        "frame_type": "priority_update",
        "stream_id": 0,
        "priority_field_value": "u=5",
    } in [event["data"].get("frame") for event in drafts["client"]]


def test_changes_of_a_tree_are_logged_as_priority_frames() -> None:
    logs = ends(qlog_document(made(signals=TREE), title="x"))
    frames = [
        (event["time"], event["data"]["frame"])
        for event in logs["client"]
        if event["data"].get("frame", {}).get("frame_type") == "priority"
    ]
    placeholder = {"prioritized_element_type": "placeholder", "prioritized_element_id": 0}
    root = {"prioritized_element_type": "request_stream", "prioritized_element_id": 0}
    other = {"prioritized_element_type": "request_stream", "prioritized_element_id": 4}
    below = {"element_dependency_type": "placeholder", "element_dependency_id": 0}
    behind = {"element_dependency_type": "request_stream", "element_dependency_id": 0}
    what = {"frame_type": "priority", "exclusive": False}
    assert frames == [
        (1, what | placeholder | {"weight": 4}),
        (1, what | root | below | {"weight": 32}),
        (3, what | other | behind | {"weight": 8, "exclusive": True}),
    ]
    assert priorities(logs["client"]) == []


def test_nothing_is_logged_where_nothing_was_signalled(tmp_path: Path) -> None:
    text = [SignalSent(4 * MS, 4, BucketPriority(bucket=63, level=3)), *SIGNALS]
    silent = ends(qlog_document(made(signals=(text[0],)), title="x"))
    known = ends(qlog_document(made(signals=tuple(text)), title="x", signals_are_sent=False))
    assert silent == known == ends(qlog_document(made(), title="x"))
    # A server that knows by itself, as Marx 2019 ran it, was told nothing.
    for scheme, is_known in (("dfifo", False), ("fifo-h2", True), ("chrome-eps", True)):
        path = tmp_path / f"{scheme}.qlog"
        write_load_qlog(h3sim.simulate("davies-meenan", scheme=scheme), path)
        assert ("priority" in path.read_text(encoding="utf-8")) == is_known


def test_a_response_that_arrives_as_it_is_requested_stands_behind_its_request() -> None:
    # Asked for, sent and there at 5: a tick of the pace, and no delay.
    at_ns = 5 * MS
    trace = made(
        requests=(Request(0, 0, at_ns, at_ns, 9),), packet_rows=((at_ns, at_ns, 0, 0, 9, 0),)
    )
    events = ends(qlog_document(trace, title="x", resources={0: LoggedResource("/", 9)}))["client"]
    assert [event["name"] for event in events] == [
        *("http:frame_created", "transport:packet_sent"),
        *("transport:packet_received", "http:data_moved", "http:frame_parsed"),
    ]


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize("rtt_ms", [0, 30])
def test_times_never_fall_and_requests_stand_before_responses(
    transport: str, rtt_ms: float
) -> None:
    load = h3sim.simulate(
        "davies-meenan", scheme="rr", transport=transport, rtt_ms=rtt_ms, reorder="4:1-3"
    )
    asks = {"client": "transport:packet_sent", "server": "transport:packet_received"}
    for end, events in ends(qlog_document(load.trace, title="x")).items():
        times = [event["time"] for event in events]
        assert times == sorted(times)
        begun: dict[int, str] = {}
        for event in events:
            for frame in event["data"].get("frames", ()):
                begun.setdefault(frame["stream_id"], event["name"])
        assert begun == dict.fromkeys((row.stream_id for row in load.timings), asks[end])


def test_a_text_sequence_holds_the_clients_log_record_by_record(tmp_path: Path) -> None:
    path = tmp_path / "load.sqlog"
    write_qlog(made(), path, title="small", resources=RESOURCES)
    records = path.read_text().split("\x1e")
    assert records[0] == ""
    assert all(record.endswith("\n") and record.count("\n") == 1 for record in records[1:])
    head, *events = map(json.loads, records[1:])
    assert (head["qlog_version"], head["qlog_format"], head["title"]) == (
        "0.3",
        "JSON-SEQ",
        "small",
    )
    assert head["trace"]["vantage_point"]["type"] == "client"
    document = qlog_document(made(), title="small", resources=RESOURCES)
    assert events == ends(document)["client"]


def test_a_file_is_written_completely_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "load.qlog"
    path.write_text("what was there")
    dumps = json.dumps
    calls = iter(range(5))

    def full(*args: Any, **more: Any) -> str:
        if next(calls, None) is None:
            raise OSError(28, "No space left on device")
        return dumps(*args, **more)

    monkeypatch.setattr(json, "dumps", full)
    with pytest.raises(LogError, match=r"load\.qlog: .*No space left on device"):
        write_qlog(made(), path, title="small")
    assert [entry.name for entry in tmp_path.iterdir()] == ["load.qlog"]
    assert path.read_text() == "what was there"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("load.json", r"\.qlog or \.sqlog"),
        ("none/load.qlog", "there is no folder"),
        ("folder.qlog", "is a folder"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.qlog").mkdir()
    with pytest.raises(LogError, match=message):
        write_qlog(made(), tmp_path / name, title="x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.qlog"]


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dialect must be one of 0\.3, draft, is '0\.4'"):
        qlog_document(made(), title="x", dialect="0.4")
