"""The order in which a server sent the bytes of responses, and what else it could have sent.

From a server's log the order is that of the log. From a client's it is that of packet numbers:
numbers that are missing were lost, and gaps in the streams tell what they carried.
"""

from __future__ import annotations

import enum
import re
from bisect import bisect_left
from collections import Counter, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.http import PriorityReceiver, StreamPriorities
from h3sim.importers import read_recording
from h3sim.importers.recorded_request import first_of
from h3sim.importers.source import opened
from h3sim.qlog import EntryKind, read_timeline
from h3sim.qlog.container import LogError
from h3sim.qlog.lost_packets import lost_frames
from h3sim.qlog.records import StreamFrame
from h3sim.qlog.timeline import INITIAL_LIMIT, Entry
from h3sim.signals import Signalling
from h3sim.values.constants import MAX_VARINT, STREAM_ID_STEP
from h3sim.values.errors import InputError
from h3sim.values.ranges import Ranges
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from h3sim.importers.recorded_request import RecordedRequest
    from h3sim.qlog import SenderView, TimelineLog
    from h3sim.signals import Signal


class StepKind(enum.IntEnum):
    """Kinds of steps."""

    OPEN = 0
    """A request with its signal."""
    UPDATE = 1
    """A new signal of an open stream."""
    ACTIVATE = 2
    """The stream may have bytes to send from here on."""
    READY = 3
    """The stream surely has bytes to send from here on."""
    DEACTIVATE = 4
    """All its bytes were sent, or flow control blocks the rest."""
    LOST = 5
    """Some of its bytes are lost, and are sent again later."""
    SENT = 6
    """New bytes were sent."""
    RESENT = 7
    """Lost bytes were sent again."""
    REPAIRED = 8
    """None of its bytes waits to be sent again."""
    TOUCHED = 9
    """Some of its bytes were acknowledged or lost."""
    CLOSE = 10
    """Its last byte was acknowledged, or sent, if the log has no acknowledgements."""


class Step(NamedTuple):
    """One step of a server; *is_choice* if it could have sent something else."""

    kind: StepKind
    at_ns: int
    stream_id: int
    n_bytes: int = 0
    number: int = -1
    """The packet's number."""
    signal: Signal | None = None
    is_choice: bool = False
    offset: int = 0
    """The first of the bytes that were sent."""


@dataclass(frozen=True, kw_only=True)
class SendOrder:
    """The steps of a server, in its order."""

    title: str
    source: str
    """The log that they are from: "server", "client", "HAR" or "network" (Chromium's)."""
    steps: tuple[Step, ...]
    packet_bytes: int
    """The usual number of stream bytes in a packet."""
    turn_bytes: int
    """The largest number, which schedulers expect of a quantum."""
    knows_losses: bool
    """True if the log says when the server learnt of losses."""
    paths: Mapping[int, str]
    unknown: tuple[str, ...]
    signals: Mapping[int, Signal] = field(default_factory=dict)
    """The last signal of each stream that has one."""
    has_signals: bool = False
    """True if the log has a priority signal."""
    n_updates: int = 0
    """Number of changed signals of streams that had bytes to send."""


class _Packet(NamedTuple):
    at_ns: int
    number: int
    frames: list[StreamFrame]
    is_inferred: bool = False
    """True if it was lost, so that it shows no choice: its frames are inferred."""


WAITS_MS = (0, 50, 3_600_000)
"""Times for which responses may take longer to be ready than the log shows; with the last one, only
their first bytes show that they are."""


def send_orders(path: str | Path, *, trace: int | None = None) -> Iterator[SendOrder]:
    """Yield the order in which the server of a qlog, or of a recording with chunk times, sent.

    A log rarely says when responses were ready. Each order allows for more time (`WAITS_MS`); a log
    that does say yields one.

    Raises:
        InputError: if the file cannot be read, or listing the mistakes in it.
    """
    if _is_recording(path):
        if trace is not None:
            message = "selects a log of a qlog, and this is a recording"
            raise InputError.at("trace", message)
        arrivals = _recorded_arrivals(path)
        yield from (_order_of_arrivals(arrivals, ms(wait_ms)) for wait_ms in WAITS_MS)
        return
    log = read_timeline(path, trace=trace)
    if "QMUX" in log.protocols:
        message = "is a log over QMux, in which the turns of a scheduler cannot be told yet"
        raise InputError.at("", message, str(path))
    # The server's log first: it has the order itself, and what the server knew.
    if log.server is not None and log.server.frames:
        waits_ms: tuple[int, ...] = WAITS_MS
        if any(entry.kind is EntryKind.WRITTEN for entry in log.server.entries):
            waits_ms = WAITS_MS[:1]  # it shows when responses were ready
        yield from (_order_of_server(log, log.server, ms(wait_ms)) for wait_ms in waits_ms)
        return
    assert log.client is not None  # noqa: S101 - one of them has frames
    if log.client.is_multipath:
        message = "is a client's log of multipath QUIC: the order of sending is in the server's"
        raise InputError.at("", message, str(path))
    arrivals = _client_arrivals(log, log.client)
    yield from (_order_of_arrivals(arrivals, ms(wait_ms)) for wait_ms in WAITS_MS)


def _is_http2(log: TimelineLog) -> bool:
    return "TCP" in log.protocols


_RECORDING_HEAD = re.compile(r'\s*\{\s*"(log|constants)"\s*:')
"""The first key of a HAR, or of Chromium's network log."""


def _is_recording(path: str | Path) -> bool:
    """Return whether the file is a recording, which may be compressed, and not a qlog."""
    if Path(path).name.casefold().endswith((".har", ".har.gz")):
        return True
    with opened(path, LogError) as text:
        return text.is_zipped or _RECORDING_HEAD.match(text.peek()) is not None


# HARs and network logs


def _recorded_arrivals(path: str | Path) -> _Arrivals:
    """Return the chunks of the connection with most of them."""
    recording = read_recording(path)
    by_connection: dict[str, list[RecordedRequest]] = {}
    for request in recording.requests:
        if request.pieces and request.start_ms is not None and "1." not in request.protocol:
            name = request.reached.connection or request.reached.address
            by_connection.setdefault(name, []).append(request)
    if not by_connection:
        message = "has no times of chunks (in a HAR `_chunks`) over HTTP/2 or HTTP/3"
        raise InputError.at("", message, str(path))
    chosen = max(by_connection.values(), key=lambda found: sum(len(each.pieces) for each in found))
    chosen.sort(key=lambda request: request.asked_ms or request.start_ms or 0)
    entries: list[Entry] = []
    chunks: list[tuple[float, int, int, int]] = []
    for number, request in enumerate(chosen):
        stream_id, offset = STREAM_ID_STEP * number, 0
        at_ns = ms(request.asked_ms or request.start_ms or 0)
        entries.append(Entry(EntryKind.REQUEST, at_ns, stream_id))
        if request.priority_field:
            entries.append(Entry(EntryKind.FIELD, at_ns, stream_id, request.priority_field))
        for at_ms, n_bytes in request.pieces:
            chunks.append((at_ms, stream_id, offset, n_bytes))
            offset += n_bytes
    packets = [
        _Packet(ms(at_ms), number, [StreamFrame(stream_id, offset, n_bytes, False)])
        for number, (at_ms, stream_id, offset, n_bytes) in enumerate(sorted(chunks))
    ]
    unknown = [str(problem) for problem in first_of(recording.problems, recording.n_problems)]
    unknown.append("packets: chunks of responses stand in for them")
    if n_others := sum(map(len, by_connection.values())) - len(chosen):
        unknown.append(f"{n_others} requests of other connections, which are left out")
    return _Arrivals(
        entries=entries,
        packets=packets,
        acked={},
        title=Path(path).name.partition(".")[0],
        source="network" if recording.dialect == "net-log" else "HAR",
        is_http2=False,
        paths={STREAM_ID_STEP * number: request.url for number, request in enumerate(chosen)},
        unknown=tuple(unknown),
    )


# Server's logs


def _order_of_server(log: TimelineLog, timeline: SenderView, wait_ns: int) -> SendOrder:
    """Return the order in the log of a server whose responses take *wait_ns* longer."""
    requested = _first_times(timeline.entries, EntryKind.REQUEST)
    packets = [
        _Packet(entry.at_ns, entry.value, timeline.frames.get(entry.value, []))
        for entry in timeline.entries
        if entry.kind is EntryKind.PACKET
    ]
    # A log that shows what the application wrote shows when responses were ready.
    is_written = any(entry.kind is EntryKind.WRITTEN for entry in timeline.entries)
    if not is_written:
        wait_ns += max(_uncontended_delays(requested, packets), default=0)
    builder = _Builder(packets, timeline.entries, is_http2=_is_http2(log), is_written=is_written)
    due: list[tuple[int, int]] = []
    for entry in timeline.entries:
        if entry.kind is EntryKind.PACKET:
            # Not at the same instant: a log does not always say which came first.
            while due and due[0][0] < entry.at_ns:
                builder.ready(heappop(due)[1], entry.at_ns)
            builder.packet(_Packet(entry.at_ns, entry.value, timeline.frames.get(entry.value, [])))
        elif entry.kind is EntryKind.ACKED:
            for number in entry.value:
                builder.acked(entry.at_ns, timeline.frames[number])
        elif entry.kind is EntryKind.LOST:
            builder.lost(entry.at_ns, timeline.frames.get(entry.value, []))
        else:
            builder.entry(entry)
            if entry.kind is (EntryKind.WRITTEN if is_written else EntryKind.REQUEST):
                heappush(due, (entry.at_ns + wait_ns, entry.stream_id))
    return builder.order(
        title=log.title,
        source="server",
        knows_losses=any(entry.kind is EntryKind.LOST for entry in timeline.entries),
        paths=timeline.ids,
        unknown=log.unknown,
    )


def _first_times(entries: Iterable[Entry], kind: EntryKind) -> dict[int, int]:
    times: dict[int, int] = {}
    for entry in entries:
        if entry.kind is kind:
            times.setdefault(entry.stream_id, entry.at_ns)
    return times


def _uncontended_delays(requested: Mapping[int, int], packets: Iterable[_Packet]) -> list[int]:
    """Return the time from request to first byte of the responses that waited for no other."""
    spans: dict[int, tuple[int, int]] = {}
    for packet in packets:
        for frame in packet.frames:
            first_ns = spans.get(frame.stream_id, (packet.at_ns, 0))[0]
            spans[frame.stream_id] = (first_ns, packet.at_ns)
    delays = []
    for stream_id, (first_ns, _) in spans.items():
        asked_ns = requested.get(stream_id)
        others = (span for other, span in spans.items() if other != stream_id)
        if asked_ns is not None and not any(
            begun_ns < first_ns and end_ns > asked_ns for begun_ns, end_ns in others
        ):
            delays.append(max(0, first_ns - asked_ns))
    return delays


# Clients' logs


@dataclass(frozen=True, kw_only=True)
class _Arrivals:
    """The view of a client: its requests and signals, and packets by number."""

    entries: list[Entry]
    packets: list[_Packet]
    acked: Mapping[int, int]
    """The packet of the server that first acknowledged each request, where it is known."""
    is_http2: bool
    title: str
    source: str
    paths: Mapping[int, str]
    unknown: tuple[str, ...]


def _client_arrivals(log: TimelineLog, timeline: SenderView) -> _Arrivals:
    """Return what the log of a client shows."""
    received = sorted(number for number in timeline.packets)
    packets = [
        _Packet(timeline.packets[number], number, timeline.frames.get(number, []))
        for number in received
    ]
    acked: dict[int, int] = {}
    for entry in timeline.entries:
        if entry.kind is EntryKind.REQUEST_ACKED:
            acked.setdefault(entry.stream_id, entry.value)
    frames_by_packet = {packet.number: packet.frames for packet in packets}
    carried = lost_frames(frames_by_packet, timeline.missing_numbers())
    return _Arrivals(
        entries=timeline.entries,
        packets=_with_lost_frames(packets, carried),
        acked=acked,
        title=log.title,
        source="client",
        is_http2=_is_http2(log),
        paths=timeline.ids,
        unknown=log.unknown,
    )


_OF_CLIENT = frozenset(
    {EntryKind.FIELD, EntryKind.UPDATE, EntryKind.TREE, EntryKind.LIMIT, EntryKind.ACKED}
)
"""Entries that reach the server as requests do."""
_QUEUE_SHARE = 0.5
"""The share of a round trip for which a packet may wait in queues, if the log does not say."""


def _order_of_arrivals(arrivals: _Arrivals, wait_ns: int) -> SendOrder:
    """Return the order of packets by number, if responses take up to *wait_ns* longer.

    A packet that arrived before the least delay after a request was sent without knowing of it.
    """
    entries, packets, acked = arrivals.entries, arrivals.packets, arrivals.acked
    requested = _first_times(entries, EntryKind.REQUEST)
    # A packet was sent before all later ones, so it was due when the first of them arrived.
    due_ns = [packet.at_ns for packet in packets]
    for index in range(len(packets) - 2, -1, -1):
        due_ns[index] = min(due_ns[index], due_ns[index + 1])
    first_ns: dict[int, int] = {}
    for packet, at_ns in zip(packets, due_ns, strict=True):
        for frame in packet.frames:
            first_ns.setdefault(frame.stream_id, at_ns)
    delays = [first_ns[key] - at_ns for key, at_ns in requested.items() if key in first_ns]
    least_ns = max(0, min(delays, default=0))
    alone_ns = max(_uncontended_delays(requested, packets), default=least_ns)
    numbers = [packet.number for packet in packets]

    def ready_index(stream_id: int, at_ns: int) -> int:
        if stream_id in acked:
            known_ns = due_ns[min(bisect_left(numbers, acked[stream_id]), len(due_ns) - 1)]
            return bisect_left(due_ns, known_ns + alone_ns - least_ns + wait_ns)
        return bisect_left(due_ns, at_ns + alone_ns + round(_QUEUE_SHARE * least_ns) + wait_ns)

    frames_of = {packet.number: packet.frames for packet in packets}
    first_signal = _first_times(entries, EntryKind.TREE)
    rows: list[tuple[int, bool, Entry | int]] = []
    for entry in entries:
        # The least delay has the time of a packet in it, and a stream may join before that.
        is_early = entry.kind in _SIGNALS_OR_REQUEST
        at_ns = entry.at_ns
        if entry.kind is EntryKind.REQUEST:
            # It may leave in two packets: the server has it with the one that has its priority.
            at_ns = max(at_ns, first_signal.get(entry.stream_id, at_ns))
        elif is_early:
            with_request_ns = requested.get(entry.stream_id, at_ns)
            is_early = at_ns <= max(with_request_ns, first_signal.get(entry.stream_id, 0))
        index = max(0, bisect_left(due_ns, at_ns + least_ns) - is_early)
        if entry.kind is EntryKind.REQUEST:
            rows.append((index, False, entry))
            ready_at = max(index, ready_index(entry.stream_id, entry.at_ns))
            rows.append((ready_at, True, entry.stream_id))
        elif entry.kind in _OF_CLIENT:
            rows.append((index, False, entry))
    # A client's limits reach the server half a round trip later, as its requests do.
    rows.sort(key=lambda row: row[:2])
    builder = _Builder(packets, entries, is_http2=arrivals.is_http2, is_written=False)
    position = 0
    for index, packet in enumerate(packets):
        while position < len(rows) and rows[position][0] <= index:
            event = rows[position][2]
            if not isinstance(event, Entry):
                builder.ready(event, packet.at_ns)
            elif event.kind is EntryKind.ACKED:
                for number in event.value:
                    builder.acked(packet.at_ns, frames_of[number])
            else:
                builder.entry(event._replace(at_ns=packet.at_ns))
            position += 1
        builder.packet(packet)
    return builder.order(
        title=arrivals.title,
        source=arrivals.source,
        knows_losses=False,
        paths=arrivals.paths,
        unknown=arrivals.unknown,
    )


def _with_lost_frames(packets: list[_Packet], lost: dict[int, list[StreamFrame]]) -> list[_Packet]:
    """Return *packets* and those *lost*, with what these are inferred to have carried."""
    if not lost:
        return packets
    inferred = [_Packet(0, number, frames, is_inferred=True) for number, frames in lost.items()]
    found = sorted([*packets, *inferred], key=lambda packet: packet.number)
    at_ns = packets[-1].at_ns
    for index in range(len(found) - 1, -1, -1):
        if found[index].is_inferred:
            found[index] = found[index]._replace(at_ns=at_ns)
        at_ns = found[index].at_ns
    return found


def _usual_bytes(packets: Iterable[_Packet]) -> int:
    sizes = Counter(frame.n_bytes for packet in packets for frame in packet.frames)
    return max(sizes, key=lambda size: (size * sizes[size], size), default=1) or 1


# Steps


@dataclass
class _Stream:
    """A response: *end* is its length, *next* the first byte never sent."""

    end: int = 0
    next: int = 0
    resent: deque[tuple[int, int]] = field(default_factory=deque)
    """The spans that are sent again from here on, in order."""
    limit: int | None = None
    written: int | None = None
    is_open: bool = False
    is_active: bool = False
    is_ready: bool = False
    lost: list[tuple[int, int]] = field(default_factory=list)
    acked: Ranges = field(default_factory=Ranges)

    @property
    def can_send(self) -> bool:
        return self.next < min(
            self.end,
            self.end if self.limit is None else self.limit,
            self.end if self.written is None else self.written,
        )


def _within(
    spans: Iterable[tuple[int, int]], start: int, stop: int = MAX_VARINT
) -> Iterator[tuple[int, int]]:
    """Yield the parts of *spans* from *start* to *stop*.

    >>> list(_within([(0, 5), (8, 12)], 3, 9)), list(_within([(0, 5)], 5))
    ([(3, 5), (8, 9)], [])
    """
    for span_start, span_stop in spans:
        low, high = max(span_start, start), min(span_stop, stop)
        if low < high:
            yield low, high


_FRAME_HEADER_BYTES = 4
"""The least: a type, a stream ID and a length (RFC 9000 § 19.8)."""
_SIGNALS = frozenset({EntryKind.FIELD, EntryKind.UPDATE, EntryKind.TREE})
_SIGNALS_OR_REQUEST = _SIGNALS | {EntryKind.REQUEST}


class _Builder:
    """Turns what a log shows into steps, in the order of the server."""

    def __init__(
        self, packets: list[_Packet], entries: Iterable[Entry], *, is_http2: bool, is_written: bool
    ) -> None:
        self._is_http2 = is_http2
        self._is_written = is_written
        self._has_acks = any(entry.kind is EntryKind.ACKED for entry in entries)
        self._packet_bytes = _usual_bytes(packets)
        sizes = (frame.n_bytes for packet in packets for frame in packet.frames)
        # A tree adds a packet to the time of a stream that joins: a little less would let it pass.
        largest = max((size for size in sizes if size < 2 * self._packet_bytes), default=1)
        # The headers of QUIC's frames differ in length: the shortest is added to the most bytes.
        self._turn_bytes = largest + _FRAME_HEADER_BYTES * (largest > self._packet_bytes)
        self._streams: dict[int, _Stream] = {}
        upto: dict[int, int] = {}
        for packet in packets:
            for stream_id, offset, n_bytes, _ in packet.frames:
                stream = self._streams.setdefault(stream_id, _Stream())
                stream.end = max(stream.end, offset + n_bytes)
                if n_bytes and offset + n_bytes <= upto.get(stream_id, 0):
                    stream.resent.append((offset, offset + n_bytes))
                upto[stream_id] = max(upto.get(stream_id, 0), offset + n_bytes)
        self._limit: int | None = None
        self._fields: dict[int, str] = {}
        self._requests: list[int] = []
        """Requests since the last packet."""
        self._frames: list[Entry] = []
        self._fresh: dict[int, int] = {}
        """Streams that were opened last, and when; they are not yet active."""
        self._eps = StreamPriorities()
        self._tree = PriorityReceiver(Signalling.H2)
        self._signals: dict[int, Signal] = {}
        self._n_ready = 0
        self._pending: dict[int, None] = {}
        self._n_updates = 0
        self._has_signals = False
        self.steps: list[Step] = []

    def entry(self, entry: Entry) -> None:
        """Take in what the server received, or its application wrote."""
        stream_id = entry.stream_id
        self._has_signals |= entry.kind in _SIGNALS
        match entry.kind:
            case EntryKind.REQUEST:
                self._requests.append(stream_id)
            case EntryKind.FIELD:
                self._fields[stream_id] = entry.value
                if (stream := self._streams.get(stream_id)) is not None and stream.is_open:
                    self._update_eps(entry)
            case EntryKind.UPDATE | EntryKind.TREE:
                self._frames.append(entry)
            case EntryKind.LIMIT:
                self._raise_limit(entry)
            case EntryKind.WRITTEN if stream_id in self._streams:
                stream = self._streams[stream_id]
                stream.written = (stream.written or 0) + entry.value
                self._update_activity(stream_id, entry.at_ns)

    def _raise_limit(self, entry: Entry) -> None:
        """Apply a flow control limit of the client."""
        if entry.stream_id == INITIAL_LIMIT:
            self._limit = entry.value
            for stream in self._streams.values():
                stream.limit = max(stream.limit or 0, entry.value)
        elif entry.stream_id in self._streams:
            stream = self._streams[entry.stream_id]
            if stream.limit is not None:
                stream.limit = max(stream.limit, entry.value)
                self._update_activity(entry.stream_id, entry.at_ns)

    def _receive(self, at_ns: int) -> None:
        """Pass on what arrived since the last packet: signals first, which requests refer to."""
        frames, self._frames = self._frames, []
        for entry in frames:
            if entry.kind is EntryKind.UPDATE:
                self._update_eps(entry)
                continue
            for element_id, signal, opens in self._tree.on_message(entry.stream_id, entry.value):
                self._signal(element_id, signal, opens=opens, at_ns=at_ns)
        requests, self._requests = self._requests, []
        for stream_id in requests:
            self._open_stream(stream_id, at_ns)

    def _open_stream(self, stream_id: int, at_ns: int) -> None:
        """Open a stream in the replayed scheduler, with the priority it has by now."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.is_open:
            return
        stream.is_open = True
        if self._is_written and stream.written is None:
            stream.written = 0
        signal = self._eps.on_request(stream_id, self._fields.get(stream_id))[0][1]
        if stream_id not in self._signals:
            # Opened with its request, unless a frame has given it a place in a tree.
            self._tree.on_request(stream_id, None)
            self._signal(stream_id, signal, opens=True, at_ns=at_ns)
        self._fresh[stream_id] = at_ns

    def _update_eps(self, entry: Entry) -> None:
        for element_id, signal in self._eps.on_priority_update(entry.stream_id, entry.value):
            self._signal(element_id, signal, opens=False, at_ns=entry.at_ns)

    def _signal(self, element_id: int, signal: Signal, *, opens: bool, at_ns: int) -> None:
        self._signals[element_id] = signal
        stream = self._streams.get(element_id)
        self._n_updates += not opens and stream is not None and stream.is_active
        kind = StepKind.OPEN if opens else StepKind.UPDATE
        self.steps.append(Step(kind, at_ns, element_id, signal=signal))

    def _activate(self, at_ns: int) -> None:
        """Activate the streams that were opened last."""
        fresh, self._fresh = self._fresh, {}
        for stream_id in fresh:
            self._update_activity(stream_id, at_ns)

    def ready(self, stream_id: int, at_ns: int) -> None:
        """Note that the stream has surely something to send."""
        self._receive(at_ns)
        self._activate(at_ns)
        stream = self._streams.get(stream_id)
        if stream is not None and stream.is_open and not stream.is_ready:
            stream.is_ready = True
            self._n_ready += stream.is_active
            self.steps.append(Step(StepKind.READY, at_ns, stream_id))

    def lost(self, at_ns: int, frames: Iterable[StreamFrame]) -> None:
        """Note that bytes were lost, if they are sent again later."""
        for stream_id, offset, n_bytes, _ in frames:
            stream = self._streams[stream_id]
            # Bytes that arrive after all are not sent again.
            is_acked = stream.acked.contiguous >= stream.end
            spans = [] if is_acked else list(_within(stream.resent, offset, offset + n_bytes))
            if spans and not stream.lost:
                self._pending[stream_id] = None
                self.steps.append(Step(StepKind.LOST, at_ns, stream_id))
            stream.lost += spans
            self.steps.append(Step(StepKind.TOUCHED, at_ns, stream_id))

    def acked(self, at_ns: int, frames: Iterable[StreamFrame]) -> None:
        """Note that these bytes were acknowledged."""
        for frame in frames:
            self.steps.append(Step(StepKind.TOUCHED, at_ns, frame.stream_id))
            stream = self._streams[frame.stream_id]
            was_acked = stream.acked.contiguous >= stream.end
            stream.acked.add(frame.offset, frame.offset + frame.n_bytes)
            if stream.acked.contiguous >= stream.end and not was_acked:
                if stream.lost:  # what waits to be sent again has arrived after all
                    stream.lost = []
                    del self._pending[frame.stream_id]
                    self.steps.append(Step(StepKind.REPAIRED, at_ns, frame.stream_id))
                self.steps.append(Step(StepKind.CLOSE, at_ns, frame.stream_id))

    def packet(self, packet: _Packet) -> None:
        """Take in a packet that the server sent."""
        self._receive(packet.at_ns)
        # A packet of the instant of a request may have been sent before it: logs are not exact, but
        # for those that show what was written before it.
        carried = {frame.stream_id for frame in packet.frames}
        if self._is_written or any(
            at_ns < packet.at_ns or key in carried for key, at_ns in self._fresh.items()
        ):
            self._activate(packet.at_ns)
        for frame in packet.frames:
            stream = self._streams[frame.stream_id]
            if not stream.is_open:
                self._open_stream(frame.stream_id, packet.at_ns)  # the log lacks its request
                self._activate(packet.at_ns)
            stop = frame.offset + frame.n_bytes
            if frame.n_bytes and stop <= stream.next:
                self._replay_resend(packet, frame, stream)
            elif frame.n_bytes:
                self._replay_send(packet, frame, stream, stop)

    def _replay_send(self, packet: _Packet, frame: StreamFrame, stream: _Stream, stop: int) -> None:
        """Replay new bytes of a stream in a packet."""
        stream_id = frame.stream_id
        if stream.written is not None:
            stream.written = max(stream.written, stop)
        if stream.limit is not None:
            stream.limit = max(stream.limit, stop)
        self._update_activity(stream_id, packet.at_ns)
        n_others = self._n_ready - (stream.is_active and stream.is_ready)
        is_head = self._is_http2 and not frame.offset and stop < stream.end
        # HEADERS of HTTP/2 leave before all bodies, whatever the scheduler (`HeadersFirstSender`).
        is_charged = not (is_head and frame.n_bytes < self._packet_bytes // 2)
        if is_charged:
            is_choice = n_others + len(self._pending) > 0
            self._add_step(StepKind.SENT, packet, frame, is_choice=is_choice)
        if not stream.is_ready:
            self.ready(stream_id, packet.at_ns)
        stream.next = stop
        self._update_activity(stream_id, packet.at_ns)

    def _replay_resend(self, packet: _Packet, frame: StreamFrame, stream: _Stream) -> None:
        """Replay bytes of a stream that were sent before."""
        stream_id, stop = frame.stream_id, frame.offset + frame.n_bytes
        stream.resent.popleft()
        was_lost = bool(stream.lost)
        is_choice = was_lost and self._n_ready + len(self._pending) > 1
        self._add_step(StepKind.RESENT, packet, frame, is_choice=is_choice)
        stream.lost = [*_within(stream.lost, 0, frame.offset), *_within(stream.lost, stop)]
        if was_lost and not stream.lost:
            del self._pending[stream_id]
            self.steps.append(Step(StepKind.REPAIRED, packet.at_ns, stream_id))
        self._close_if_done(stream_id, stream, packet.at_ns)

    def _add_step(
        self, kind: StepKind, packet: _Packet, frame: StreamFrame, *, is_choice: bool
    ) -> None:
        """Add a step that charges the stream."""
        self.steps.append(
            Step(
                kind,
                packet.at_ns,
                frame.stream_id,
                n_bytes=frame.n_bytes,
                number=packet.number,
                is_choice=is_choice and not packet.is_inferred,
                offset=frame.offset,
            )
        )

    def _update_activity(self, stream_id: int, at_ns: int) -> None:
        """Activate or deactivate a stream by whether it can send now."""
        stream = self._streams[stream_id]
        if not stream.is_open or stream.can_send == stream.is_active:
            return
        stream.is_active = stream.can_send
        self._n_ready += (1 if stream.is_active else -1) * stream.is_ready
        kind = StepKind.ACTIVATE if stream.is_active else StepKind.DEACTIVATE
        self.steps.append(Step(kind, at_ns, stream_id))
        self._close_if_done(stream_id, stream, at_ns)

    def _close_if_done(self, stream_id: int, stream: _Stream, at_ns: int) -> None:
        if self._has_acks:
            return
        if stream.next >= stream.end and not stream.resent and not stream.lost:
            self.steps.append(Step(StepKind.CLOSE, at_ns, stream_id))

    def order(self, **about: Any) -> SendOrder:
        """Return the steps."""
        return SendOrder(
            steps=tuple(self.steps),
            packet_bytes=self._packet_bytes,
            turn_bytes=self._turn_bytes,
            signals=self._signals,
            has_signals=self._has_signals,
            n_updates=self._n_updates,
            **about,
        )
