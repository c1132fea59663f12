"""What is written as a qlog and read back is the same load, to the nanosecond."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from h3sim.export.load_document import measured_to_dict
from h3sim.qlog import LogError, LoggedResource, parse_qlog, write_qlog
from h3sim.trace import Delivery, Request, Trace, with_delivery
from tests.effort import law
from tests.logs import qlog_document

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUND_TRIPS = law(60)
DAY_NS = 86_400 * 10**9


@st.composite
def traces(draw: Any, *, may_lose: Any) -> Any:
    """A load whose responses all arrive: random frames, packets of one or more, losses, delays."""
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=5))
    asked = sorted(draw(st.lists(st.integers(0, DAY_NS), min_size=len(sizes), max_size=len(sizes))))
    left = {4 * n: (0, size) for n, size in enumerate(sizes)}
    waiting: list[Any] = []
    rows: list[Any] = []
    now_ns, number = draw(st.integers(0, DAY_NS)), 0
    while left or waiting:
        frames = []
        for _ in range(draw(st.integers(1, 3))):
            if waiting and (not left or draw(st.booleans())):
                frames.append(waiting.pop(0))
            elif left:
                stream_id = draw(st.sampled_from(sorted(left)))
                offset, size = left[stream_id]
                n_bytes = draw(st.integers(min(1, size - offset), size - offset))
                frames.append((stream_id, offset, n_bytes))
                left[stream_id] = (offset + n_bytes, size)
                if offset + n_bytes == size:
                    del left[stream_id]
        is_lost = may_lose and number < 30 and draw(st.integers(0, 3)) == 0
        arrived_at_ns = None if is_lost else now_ns + draw(st.integers(0, 10**8))
        waiting += frames if is_lost else []
        rows += [(now_ns, arrived_at_ns, *frame, number) for frame in frames]
        # Numbers between belong to packets without a byte of a response.
        now_ns += draw(st.integers(0, 10**8))
        number += 1
    requests = [
        Request(4 * n, n, at_ns, at_ns + draw(st.integers(0, 10**8)), sizes[n])
        for n, at_ns in enumerate(asked)
    ]
    delivery = draw(st.sampled_from(Delivery))
    return Trace(
        delivery=delivery,
        requests=tuple(requests),
        signals=(),
        packet_rows=with_delivery(rows, delivery),
    )


def read_back(trace: Any, name: str, dialect: Any) -> Any:
    resources = {
        request.stream_id: LoggedResource(f"/{request.stream_id}", request.length_bytes // 2)
        for request in trace.requests
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_qlog(trace, path, title="a title", dialect=dialect, resources=resources)
        return parse_qlog(path)


dialects = st.sampled_from(["0.3", "draft"])


@ROUND_TRIPS
@given(trace=traces(may_lose=True), dialect=dialects)
def test_both_ends_logs_give_the_load_back(trace: Any, dialect: Any) -> None:
    log = read_back(trace, "load.qlog", dialect)
    assert log.trace == trace
    assert log.title == "a title"
    assert [resource.id for resource in log.resources] == [
        f"/{r.stream_id}" for r in trace.requests
    ]
    assert [r.body_bytes for r in log.resources] == [r.length_bytes // 2 for r in trace.requests]
    assert log.unknown == ()
    assert log.unseen_packets == 0


@ROUND_TRIPS
@given(trace=traces(may_lose=False), dialect=dialects)
def test_the_clients_log_alone_gives_back_all_but_when_packets_left(
    trace: Any, dialect: Any
) -> None:
    log = read_back(trace, "load.sqlog", dialect)
    assert log.trace.delivery is trace.delivery
    assert [row[1:] for row in log.trace.packet_rows] == [row[1:] for row in trace.packet_rows]
    known = [(r.stream_id, r.resource, r.requested_at_ns, r.length_bytes) for r in trace.requests]
    assert known == [
        (r.stream_id, r.resource, r.requested_at_ns, r.length_bytes) for r in log.trace.requests
    ]
    assert log.unknown == ("when packets were sent: the server has no log here",)


def positions(value: Any, path: Any = ()) -> Iterator[Any]:
    """Yield the path to each value within a document."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from positions(value[key], (*path, key))
    if isinstance(value, list):
        for position, entry in enumerate(value):
            yield from positions(entry, (*path, position))


def changed(value: Any, path: Any, other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], other)
    return copy


others = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 20),
    st.floats(allow_nan=False),
    st.sampled_from(["", "0", "1RTT", "initial", "stream", "ack", "client", "server", "a:b"]),
    st.just([]),
    st.just({}),
    st.lists(st.integers(-1, 5), max_size=3),
)


@law(150, usual=60)
@given(data=st.data(), trace=traces(may_lose=True), dialect=dialects)
def test_whatever_stands_in_a_log_it_is_measured_or_refused(
    data: Any, trace: Any, dialect: Any
) -> None:
    resources = {request.stream_id: LoggedResource("/", 1) for request in trace.requests}
    document = qlog_document(trace, title="x", dialect=dialect, resources=resources)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(positions(document))))
        document = changed(document, path, data.draw(others))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changed.qlog"
        path.write_text(json.dumps(document))
        try:
            log = parse_qlog(path)
        except LogError as error:
            lines = error.lines()
        else:
            # Any other error would come out of here.
            lines = [f"{path}: {row['stream_id']}" for row in measured_to_dict(log)["resources"]]
    assert lines
    assert all(line.startswith(f"{path}: ") for line in lines)
