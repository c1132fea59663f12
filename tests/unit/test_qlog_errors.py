"""A log that cannot be read says where and why, a line for each mistake."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.qlog import LogError, container, parse_qlog
from tests.helpers import unworded

if TYPE_CHECKING:
    from pathlib import Path

RS = "\x1e"


def frame(**changes: Any) -> dict[str, Any]:
    fields = {"frame_type": "stream", "stream_id": 0, "offset": 0, "length": 10, **changes}
    return {key: value for key, value in fields.items() if value is not ...}


def received(number: Any = 0, frames: Any = None, **changes: Any) -> dict[str, Any]:
    header = {"packet_type": "1RTT", "packet_number": number}
    data = {"header": header, "frames": [frame()] if frames is None else frames}
    return {"time": 1, "name": "transport:packet_received", "data": data, **changes}


def trace(*events: Any, end: str = "client", **common: Any) -> dict[str, Any]:
    return {"vantage_point": {"type": end}, "common_fields": common, "events": list(events)}


def document(*traces: Any) -> dict[str, Any]:
    return {"qlog_version": "0.3", "traces": list(traces)}


def lines_of(folder: Path, content: object) -> list[str]:
    path = folder / "bad.qlog"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(LogError) as caught:
        parse_qlog(path)
    lines = caught.value.lines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return unworded(line.removeprefix(f"{path}: ") for line in lines)


FILES = {
    "": "is not JSON: it is empty",
    "{": "is not JSON: Expecting property name enclosed in double quotes at column 2",
    '{"a': "is not JSON: Unterminated string starting at column 2",
    '{"a\n": 1}': "is not JSON: Invalid control character at column 4",
    '{"traces":\n[1 2]}': "is not JSON: Expecting ',' delimiter at line 2, column 4",
    '{"traces": [NaN]}': "is not JSON: NaN is no number",
    "[" * 100_000: "is not JSON: it is nested too deeply",
    "[]": "is not a qlog: it has neither 'traces' nor 'trace'",
    '{"log": {"entries": []}}': "is not a qlog: it has neither 'traces' nor 'trace'",
    '{"traces": {}}': "traces: must be a list",
    '{"traces": []}': "holds no packet with bytes of a response",
    '{"traces": [3]}': "traces[0]: must be an object",
    '{"traces": [{}]}': "traces[0].events: is missing",
    '{"traces": [{"events": {}}]}': "traces[0].events: must be a list",
    f"{RS}{{3: 4}}\n": "line 1: is not JSON: Expecting property name enclosed in double quotes"
    " at column 2",
    f'{RS}{{"time": 1}}\n': "line 1: is not the head of a qlog: it has no 'trace'",
    f'{RS}{{"trace": {{}}}}\n{RS}nonsense\n': "line 2: is not JSON: Expecting value at column 1",
}


@pytest.mark.parametrize("text", FILES, ids=range(len(FILES)))
def test_a_file_that_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    assert lines_of(tmp_path, text) == [FILES[text]]


@pytest.mark.parametrize(
    ("content", "start"),
    [
        (b"\xff\xfe{}", "is not UTF-8: "),
        (gzip.compress(b'{"traces": []}', mtime=0)[:10], "cannot be unpacked: "),
        (b"\x1f\x8b nonsense", "cannot be unpacked: "),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, content: bytes, start: str) -> None:
    (line,) = lines_of(tmp_path, content)
    assert line.startswith(start)


def test_what_does_not_fit_into_memory_is_refused_with_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_MAX_DOCUMENT_CHARS", 1000)
    one_line = json.dumps({"traces": [], "title": "x" * 990})
    for text in (one_line, f"{{\n{one_line[1:]}", f"\n{one_line}"):
        (line,) = lines_of(tmp_path, gzip.compress(text.encode(), mtime=0))
        assert "MB of JSON (unpacked), which must fit into memory" in line
    monkeypatch.undo()
    monkeypatch.setattr(container, "_MAX_RECORD_CHARS", 100)
    head = '{"trace": {"vantage_point": {"type": "client"}}}'
    event = json.dumps({"time": 1, "x": "y" * 100})
    assert lines_of(tmp_path, f"{RS}{head}\n{RS}{event}\n") == [
        "line 2: is a record of more than 10 MB"
    ]
    assert lines_of(tmp_path, f"{head}\n{event}\n") == ["line 2: is a record of more than 10 MB"]
    assert lines_of(tmp_path, f"{RS}{head}\n{RS}" + "{\n" * 60) == [
        "line 2: is a record of more than 10 MB"
    ]
    monkeypatch.setattr(container, "_MAX_EVENTS", 2)
    events = "".join(f'{RS}{{"time": {n}}}\n' for n in range(3))
    assert lines_of(tmp_path, f"{RS}{head}\n{events}") == [
        "line 4: is the end of 2 events, the maximum"
    ]


def test_one_of_several_connections_is_measured_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "two.qlog"
    logs = [trace(received(frames=[frame(length=n, fin=True)])) for n in (10, 20)]
    path.write_text(json.dumps(document(*logs)), encoding="utf-8")
    with pytest.raises(LogError, match=r"traces\[1\]: is a second log of a client.*--trace N"):
        parse_qlog(path)
    measured = [h3sim.read_qlog(path, trace=number).to_dict() for number in (1, 2)]
    assert [row["bytes"] for log in measured for row in log["resources"]] == [10, 20]
    with pytest.raises(LogError, match=r"two\.qlog: has 2 traces, and no trace 3"):
        parse_qlog(path, trace=3)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"none\.qlog: .*No such file"):
        parse_qlog(tmp_path / "none.qlog")
    with pytest.raises(LogError, match="Is a directory"):
        parse_qlog(tmp_path)


EVENTS = {
    "an event of no kind": (7, ": is 7"),
    "no time": ({**received(), "time": None}, ".time: is missing"),
    "a word for time": (received(time="soon"), '.time: is "soon"'),
    "no end of time": (received(time=10**400), ".time: is 1"),
    "data of no kind": (received(data=[1]), ".data: is [1]"),
    "no number": (
        received(...),
        ".data.header.packet_number: is missing",
    ),
    "a negative number": (
        received(-1),
        ".data.header.packet_number: is -1",
    ),
    "frames of no kind": (received(frames="x"), '.data.frames: is "x"'),
    "a frame of no kind": (received(frames=[1]), ".data.frames[0]: is 1"),
    "no stream": (
        received(frames=[frame(), frame(stream_id=...)]),
        ".data.frames[1].stream_id: is missing",
    ),
    "no length": (
        received(frames=[frame(length=...)]),
        ".data.frames[0].length: is missing",
    ),
    "half a byte": (
        received(frames=[frame(offset=0.5)]),
        ".data.frames[0].offset: is 0.5",
    ),
    "too long a stream": (
        received(frames=[frame(offset=2**62 - 1)]),
        ".data.frames[0]: exceeds the largest offset of a stream (2^62 - 1)",
    ),
    "HTTP without stream": (
        {
            "time": 1,
            "name": "http:frame_created",
            "data": {"frame": {"frame_type": "headers", "headers": []}},
        },
        ".data.stream_id: is missing",
    ),
}


@pytest.mark.parametrize("error", EVENTS)
def test_an_error_in_an_event_is_reported_with_its_place(tmp_path: Path, error: str) -> None:
    event, line = EVENTS[error]
    text = json.dumps(document(trace(received(9), event)), default=lambda _: None)
    (reported,) = lines_of(tmp_path, text)
    key, _, what = line.partition(": ")
    assert re.match(rf"{re.escape(f'traces[0].events[1]{key}')}: .*{re.escape(what)}", reported)
    sequence = f"{RS}{json.dumps({'trace': trace()})}\n\n{RS}{json.dumps(event, default=str)}\n"
    if "..." not in sequence.lower() and "Ellipsis" not in sequence:
        (reported,) = lines_of(tmp_path, sequence)
        assert re.match(rf"{re.escape(f'line 3{key}')}: .*{re.escape(what)}", reported)


def test_an_error_in_what_a_server_received_is_reported_once(tmp_path: Path) -> None:
    text = json.dumps(document(trace(received(frames="x"), end="server")))
    line = 'traces[0].events[0].data.frames: is "x"'
    assert lines_of(tmp_path, text).count(line) == 1


@pytest.mark.parametrize("ranges", [["1-3"], [[1, 2, 3]], [[]], [[3, 1]], [[-1]], "all"])
def test_an_invalid_acknowledgement_is_reported(tmp_path: Path, ranges: Any) -> None:
    ack = received(1, [{"frame_type": "ack", "acked_ranges": ranges}])
    (line,) = lines_of(tmp_path, document(trace(received(), ack, end="server")))
    assert line == (
        "traces[0].events[1].data.frames[0].acked_ranges: must be like [[0, 4], [6]], is"
        f" {json.dumps(ranges)}"
    )


def test_every_error_is_reported_up_to_twenty(tmp_path: Path) -> None:
    events = [received(-n) for n in range(1, 4)]
    assert [line.partition(":")[0] for line in lines_of(tmp_path, document(trace(*events), 7))] == [
        *(f"traces[0].events[{n}].data.header.packet_number" for n in range(3)),
        "traces[1]",
    ]
    lines = lines_of(tmp_path, document(trace(*(received(-n) for n in range(1, 50)))))
    assert len(lines) == 21
    assert lines[20] == "possibly more: reading stopped here"


def test_several_connections_are_not_mixed(tmp_path: Path) -> None:
    events = [received(0, group_id="a"), received(1, group_id="b")]
    assert lines_of(tmp_path, document(trace(*events))) == [
        'traces[0].events[1]: is of a second connection (group_id "b"); one is measured'
    ]
    assert lines_of(tmp_path, document(trace(received()), trace(received()))) == [
        "traces[1]: is a second log of a client; one connection is measured: `--trace N`"
        " (`trace=N`) takes trace N alone, from 1 on"
    ]
    ends = (trace(received(), ODCID="aa"), trace(received(), end="server", ODCID="bb"))
    assert lines_of(tmp_path, document(*ends)) == [
        "traces[1]: is of another connection (aa and bb): `--trace N` (`trace=N`) takes trace N"
        " alone, from 1 on"
    ]


def test_a_log_without_a_complete_response_is_refused(tmp_path: Path) -> None:
    only = received(frames=[frame(offset=5)])
    assert lines_of(tmp_path, document(trace(only))) == [
        "holds no response that arrived to its end"
    ]


def test_rows_of_fields_must_have_them_all(tmp_path: Path) -> None:
    fields = ["time", "category", "event", "data"]
    content = {**trace([1, "transport", "packet_received"]), "event_fields": fields}
    (line,) = lines_of(tmp_path, document(content))
    assert re.match(r'traces\[0\]\.events\[0\]: .*is \[1, "transport", "packet_received"\]', line)


def test_losses_over_tcp_need_the_servers_log(tmp_path: Path) -> None:
    events = [received(0), received(2, [frame(offset=10)])]
    content = trace(*events, protocol_type=["TCP", "HTTP2"])
    assert lines_of(tmp_path, document(content)) == [
        "lost packets hold up all behind them, and only the server's log says which"
    ]
