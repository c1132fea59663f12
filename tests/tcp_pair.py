"""Two TCP endpoints and the path between them, driven by a heap; a small Reno; scripted sources."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from h3sim.transport.congestion import CongestionController
from h3sim.transport.endpoint import FrameHeader, Source
from h3sim.transport.quic.handshake import HandshakeMode, Role
from h3sim.transport.tcp import Segment, TcpEndpoint, TcpSettings
from h3sim.transport.tcp.settings import RECORD_OVERHEAD_BYTES
from h3sim.values.constants import FRAME_HEADER_BYTES
from h3sim.values.units import ms, to_ms

__all__ = [
    "CLIENT",
    "MSS",
    "SERVER",
    "FixedHeader",
    "FixedWindow",
    "Pair",
    "Reno",
    "ScriptedSource",
    "Sent",
    "body_bytes",
    "drops",
]

MSS = 1448

CLIENT, SERVER = Role.CLIENT, Role.SERVER


class ScriptedSource(Source):
    """Gives out streams in the order in which they were put in."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, int, int]] = deque()
        self.taken: list[tuple[int, int, int]] = []
        self.acked: list[tuple[int, int, int]] = []
        self.has_data = False

    def put(self, stream_id: int, n_bytes: int, offset: int = 0) -> None:
        self._waiting.append((stream_id, offset, n_bytes))
        self.has_data = True

    def peek(self) -> tuple[int, int] | None:
        return self._waiting[0][:2] if self._waiting else None

    def take(
        self, max_bytes: int | None = None, header: Any = None, min_bytes: int = 0
    ) -> tuple[int, int, int] | None:
        if not self._waiting or max_bytes is None:
            return None
        stream_id, offset, left = self._waiting.popleft()
        n_bytes = min(left, max_bytes)
        if n_bytes < left:
            self._waiting.appendleft((stream_id, offset + n_bytes, left - n_bytes))
        self.taken.append((stream_id, offset, n_bytes))
        self.has_data = bool(self._waiting)
        return self.taken[-1]

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        self.acked.append((stream_id, offset, n_bytes))

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        raise AssertionError("TCP sends again by itself")

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        raise AssertionError("TCP has no limit per stream")


class FixedHeader(FrameHeader):
    """Headers that are all of one length."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes

    def measure(self, stream_id: int, offset: int) -> int:
        return self.n_bytes


class FixedWindow(CongestionController):
    """A window that never changes; what it is told is kept."""

    def __init__(self, window_bytes: int) -> None:
        self.congestion_window = window_bytes
        self.ssthresh = None
        self.lost: list[list[int]] = []
        """The sequence numbers of what was lost together."""
        self.collapses = 0
        self.acked_bytes = 0
        self.in_flight: list[int] = []
        self.app_limited: list[bool] = []

    def on_sent(self, packet: Any, bytes_in_flight: Any) -> None:
        self.in_flight.append(bytes_in_flight)
        self.app_limited.append(packet.is_app_limited)

    def on_acked(
        self,
        packets: Any,
        now_ns: int,
        rtt: Any,
        bytes_in_flight: Any,
        is_cwnd_underutilized: bool,
    ) -> None:
        numbers = [packet.number for packet in packets]
        assert numbers == sorted(set(numbers))
        self.acked_bytes += sum(packet.size_bytes for packet in packets)

    def on_lost(self, packets: Any, now_ns: int, bytes_in_flight: Any, next_number: Any) -> None:
        assert packets
        assert all(packet.number < next_number for packet in packets)
        self.lost.append([packet.seq for packet in packets])

    def on_persistent_congestion(self, now_ns: int) -> None:
        self.collapses += 1

    def pacing_rate_bps(self, rtt: Any) -> int | None:
        return None


class Reno(FixedWindow):
    """Slow start with byte counting, additive increase, one half, two segments after a timeout."""

    def __init__(self, mss_bytes: int = 1448, window_bytes: int | None = None) -> None:
        super().__init__(window_bytes or 10 * mss_bytes)
        self.mss_bytes = mss_bytes
        self.windows: list[tuple[int, int]] = []
        self._counted = 0

    def on_acked(
        self,
        packets: Any,
        now_ns: int,
        rtt: Any,
        bytes_in_flight: Any,
        is_cwnd_underutilized: bool,
    ) -> None:
        super().on_acked(
            packets,
            now_ns=now_ns,
            rtt=rtt,
            bytes_in_flight=bytes_in_flight,
            is_cwnd_underutilized=is_cwnd_underutilized,
        )
        if is_cwnd_underutilized:
            return
        n_bytes = sum(packet.size_bytes for packet in packets)
        if self.ssthresh is None or self.congestion_window < self.ssthresh:
            self.congestion_window += n_bytes
        else:
            self._counted += n_bytes
            if self._counted >= self.congestion_window:
                self._counted -= self.congestion_window
                self.congestion_window += self.mss_bytes
        self.windows.append((now_ns, self.congestion_window))

    def on_lost(self, packets: Any, now_ns: int, bytes_in_flight: Any, next_number: Any) -> None:
        super().on_lost(
            packets, now_ns=now_ns, bytes_in_flight=bytes_in_flight, next_number=next_number
        )
        self.ssthresh = max(self.congestion_window // 2, 2 * self.mss_bytes)
        self.congestion_window = self.ssthresh
        self.windows.append((now_ns, self.congestion_window))

    def on_persistent_congestion(self, now_ns: int) -> None:
        super().on_persistent_congestion(now_ns=now_ns)
        self.congestion_window = 2 * self.mss_bytes
        self.windows.append((now_ns, self.congestion_window))


@dataclass
class Sent:
    """A segment that left, and when it arrives (None: never)."""

    role: Role
    at_ms: float
    segment: Segment
    arrives_ms: float | None


class Pair:
    """A client and a server with *rtt_ms* between them.

    *drop(role, index, segment)* says whether the index-th segment with data (SYNs and pure ACKs
    have the index None) of that end gets lost; *delay_ms(role, index, segment)* is what it takes
    beside half of the round trip.
    """

    def __init__(
        self,
        *,
        rtt_ms: float = 100,
        mode: Any = HandshakeMode.NONE,
        settings: Any = None,
        client_settings: Any = None,
        server_controller: Any = None,
        client_controller: Any = None,
        server_source: Any = None,
        drop: Any = None,
        delay_ms: float | None = None,
        answer: Any = None,
    ) -> None:
        settings = settings or TcpSettings()
        client_settings = client_settings or settings
        self.one_way_ns = ms(rtt_ms) // 2
        self.sources = {CLIENT: ScriptedSource(), SERVER: server_source or ScriptedSource()}
        self.controllers = {
            CLIENT: client_controller or FixedWindow(client_settings.initial_window_bytes),
            SERVER: server_controller or FixedWindow(settings.initial_window_bytes),
        }
        path_rtt_ns = ms(rtt_ms) if mode is HandshakeMode.NONE else None
        self.ends = {
            role: TcpEndpoint(
                chosen,
                self.controllers[role],
                self.sources[role],
                role,
                mode,
                path_rtt_ns=path_rtt_ns,
            )
            for role, chosen in ((CLIENT, client_settings), (SERVER, settings))
        }
        self.delivered: dict[Any, Any] = {CLIENT: [], SERVER: []}
        """(ms, stream, offset, bytes) as each end could read them."""
        self.sent: list[Sent] = []
        self.now_ns = 0
        self._answer = answer
        self._drop = drop or (lambda role, index, segment: False)
        self._delay_ms = delay_ms or (lambda role, index, segment: 0)
        self._indexes = {CLIENT: 0, SERVER: 0}
        self._heap: list[tuple[Any, ...]] = []
        self._count = 0

    def run(
        self, *, until_ms: float = 3_600_000, max_events: int = 1_000_000, flush: bool = True
    ) -> Pair:
        """Go on until nothing is due any more, or until that time.

        Unless *flush*, what was put in waits until something happens to its end.
        """
        for role in (CLIENT, SERVER) if flush else ():
            self._flush(role)
        for _ in range(max_events):
            following = [(self._heap[0][0], 0)] if self._heap else []
            for rank, role in ((1, CLIENT), (2, SERVER)):
                due_ns = self.ends[role].timer_at_ns()
                if due_ns is not None:
                    following.append((max(due_ns, self.now_ns), rank))
            if not following or min(following)[0] > ms(until_ms):
                return self
            self.now_ns, rank = min(following)
            if rank:
                role = (CLIENT, SERVER)[rank - 1]
                self.ends[role].on_timer(self.now_ns)
            else:
                role = self._arrive()
            self._flush(role)
        raise AssertionError("it does not come to an end")

    def put(self, role: Role, stream_id: int, n_bytes: int) -> None:
        """Give an end something to send."""
        self.sources[role].put(stream_id, n_bytes)

    # What a test asks for

    def data(self, role: Role = SERVER) -> list[Sent]:
        return [sent for sent in self.sent if sent.role is role and sent.segment.length]

    def acks(self, role: Role = CLIENT) -> list[Sent]:
        return [
            sent
            for sent in self.sent
            if sent.role is role and not sent.segment.length and not sent.segment.is_syn
        ]

    def again(self, role: Role = SERVER) -> list[tuple[float, int]]:
        """When what was sent again, by sequence number."""
        seen: set[int] = set()
        again = []
        for sent in self.data(role):
            if sent.segment.seq in seen:
                again.append((sent.at_ms, sent.segment.seq))
            seen.add(sent.segment.seq)
        return again

    def bytes_of(self, role: Role, stream_id: int) -> int:
        return sum(row[3] for row in self.delivered[role] if row[1] == stream_id)

    def done_ms(self, role: Role = CLIENT) -> float:
        return self.delivered[role][-1][0]  # type: ignore[no-any-return]

    def _arrive(self) -> Role:
        _, _, role, segment = heappop(self._heap)
        for stream_id, offset, n_bytes in self.ends[role].on_packet(segment, self.now_ns):
            self.delivered[role].append((to_ms(self.now_ns), stream_id, offset, n_bytes))
            if role is SERVER and self._answer is not None:
                self.put(SERVER, stream_id, self._answer[stream_id])
        return role  # type: ignore[no-any-return]

    def _flush(self, role: Role) -> None:
        other = SERVER if role is CLIENT else CLIENT
        for segment in self.ends[role].packets_to_send(self.now_ns):
            index = None
            if segment.length:
                index = self._indexes[role]
                self._indexes[role] += 1
            arrives_ns = None
            if not self._drop(role, index, segment):
                extra_ns = ms(self._delay_ms(role, index, segment))
                arrives_ns = self.now_ns + self.one_way_ns + extra_ns
                self._count += 1
                heappush(self._heap, (arrives_ns, self._count, other, segment))
            arrives_ms = None if arrives_ns is None else to_ms(arrives_ns)
            self.sent.append(Sent(role, to_ms(self.now_ns), segment, arrives_ms))


def body_bytes(n_segments: int, *, mss_bytes: int = 1448, record_bytes: int = 16_384) -> int:
    """How large a body is that fills so many segments exactly, frames and records included.

    >>> body_bytes(1), body_bytes(12)
    (1417, 17314)
    """
    left = n_segments * mss_bytes
    n_records = -(-left // (record_bytes + RECORD_OVERHEAD_BYTES))
    return left - n_records * (RECORD_OVERHEAD_BYTES + FRAME_HEADER_BYTES)


def drops(*indexes: int, role: Role = SERVER) -> Any:
    """Return what loses these segments with data, counted as they are sent."""
    return lambda sender, index, segment: sender is role and index in indexes
