"""Puts the two ends' logs together, or makes do with one."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from h3sim.ranges import Ranges
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.qlog.source import Findings
    from h3sim.qlog.vantage_point import VantagePoint
    from h3sim.trace import SentRow

__all__ = ["Responses", "StreamRow", "responses_of"]

_SHOWN_STREAMS = 5


class StreamRow(NamedTuple):
    """A response that arrived whole."""

    stream_id: int
    id: str
    requested_at_ns: int
    arrived_at_ns: int
    length_bytes: int
    body_bytes: int


class Responses(NamedTuple):
    """What was found out about all responses."""

    rows: list[SentRow]
    streams: list[StreamRow]
    unseen_packets: int


def responses_of(
    client: VantagePoint | None, server: VantagePoint | None, findings: Findings
) -> Responses:
    """Return what the logs of either end, or of both, tell; one at least is given."""
    if client is None:
        return _from_server(server, findings) if server is not None else Responses([], [], 0)
    if server is None:
        return _from_client(client, findings)
    shift_ns = _shift_ns(client, server)
    if shift_ns is None:
        findings.unknown.append("when packets were sent: the two logs have different clocks")
    rows = list(_rows_of_both(client, server, shift_ns))
    ends = _ends(client) | _ends(server)
    return Responses(rows, _streams(rows, client, server, ends, shift_ns, findings), 0)


def _from_client(client: VantagePoint, findings: Findings) -> Responses:
    """Take numbers up to the highest that are missing for losses, as Sander 2022 does."""
    findings.unknown.append("when packets were sent: the server has no log here")
    unseen = _unseen(client)
    if unseen:
        findings.unknown.append(
            f"what {_packets(unseen)} carried, of which only the number is missing; taken as lost"
        )
    rows: list[SentRow] = [
        (client.packets[number], client.packets[number], *frame[:3], number)
        for number in sorted(client.frames)
        for frame in client.frames[number]
    ]
    return Responses(rows, _streams(rows, client, None, _ends(client), 0, findings), unseen)


def _unseen(client: VantagePoint) -> int:
    """Return how many numbers are missing up to the highest.

    Some stacks number all packets in one row (aioquic): numbers before the first that the handshake
    took are not missing.
    """
    first = min(client.packets, default=0)
    taken = sum(number < first for number in client.handshake_numbers)
    return max(client.packets, default=-1) + 1 - len(client.packets) - taken


def _packets(number: int) -> str:
    return f"{number:,} packet{'' if number == 1 else 's'}"


def _rows_of_both(
    client: VantagePoint, server: VantagePoint, shift_ns: int | None
) -> Iterator[SentRow]:
    """Yield what the server sent and when it arrived; without a common clock, sent then."""
    latest_ns = 0
    for number in sorted(client.frames | server.frames):
        arrived_at_ns = client.packets.get(number)
        latest_ns = latest_ns if arrived_at_ns is None else max(latest_ns, arrived_at_ns)
        sent_at_ns = server.packets.get(number)
        if sent_at_ns is None or shift_ns is None:
            # A lost one was sent no later than what came after it arrived; nothing closer is known.
            sent_at_ns = latest_ns if arrived_at_ns is None else arrived_at_ns
        else:
            sent_at_ns += shift_ns
        # What the client saw goes before: it is what was measured.
        for stream_id, offset, n_bytes, _ in client.frames.get(number) or server.frames[number]:
            yield sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number


def _shift_ns(client: VantagePoint, server: VantagePoint) -> int | None:
    """Return what turns the server's times into the client's, None if they cannot be compared."""
    ours, theirs = client.clock, server.clock
    if ours.reference != theirs.reference or ours.base is None or theirs.base is None:
        return None
    return ours.ns(theirs.base - ours.base)


def _from_server(server: VantagePoint, findings: Findings) -> Responses:
    """Tell arrivals from what was acknowledged and declared lost."""
    delay_ns = (server.min_rtt_ns or 0) // 2
    findings.unknown.append(
        "when packets arrived: the client has no log here; taken as sent"
        + (f" + {to_ms(delay_ns):g} ms, half the least RTT" if delay_ns else "")
    )
    spans = server.acked.spans()
    starts = [start for start, _ in spans]
    rows: list[SentRow] = []
    unsure = 0
    for number in sorted(server.frames):
        sent_at_ns = server.packets[number]
        at = bisect_right(starts, number) - 1
        is_acked = at >= 0 and number < spans[at][1]
        # Below the highest acknowledged number, a packet that no ACK names did not come.
        is_lost = not is_acked and (number in server.lost or number < server.acked.end)
        unsure += not is_acked and not is_lost
        arrived_at_ns = None if is_lost else sent_at_ns + delay_ns
        for stream_id, offset, n_bytes, _ in server.frames[number]:
            rows.append((sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number))
    if unsure:
        findings.unknown.append(
            f"whether {_packets(unsure)} arrived, neither acknowledged nor lost; taken as arrived"
        )
    streams = _streams(rows, None, server, _ends(server), -delay_ns, findings)
    return Responses(rows, streams, 0)


def _ends(side: VantagePoint) -> dict[int, int]:
    """Return the final size of each stream whose FIN was seen."""
    return {
        frame.stream_id: frame.offset + frame.n_bytes
        for frames in side.frames.values()
        for frame in frames
        if frame.fin
    }


def _streams(
    rows: Iterable[SentRow],
    client: VantagePoint | None,
    server: VantagePoint | None,
    ends: dict[int, int],
    shift_ns: int | None,
    findings: Findings,
) -> list[StreamRow]:
    """Return the streams whose bytes all arrived; *shift_ns* takes server's to client's times."""
    got: dict[int, Ranges] = {}
    first_at_ns: dict[int, int] = {}
    sizes = dict(ends)
    for _, at_ns, stream_id, offset, n_bytes, _ in rows:
        ranges = got.setdefault(stream_id, Ranges())
        sizes[stream_id] = max(sizes.get(stream_id, 0), offset + n_bytes)
        if at_ns is not None:
            ranges.add(offset, offset + n_bytes)
            first_at_ns[stream_id] = min(first_at_ns.get(stream_id, at_ns), at_ns)
    said = _Said(client, server, shift_ns)
    gaps = _Gaps()
    streams: list[StreamRow] = []
    for stream_id in sorted(got):
        # Without a FIN a log that was cut off, or a response that was reset, shows in the length.
        size = sizes[stream_id] if stream_id in ends else said.least_bytes(stream_id, sizes)
        if stream_id not in first_at_ns or got[stream_id].contiguous < size:
            gaps.add("the end of responses that are left out", stream_id)
            continue
        if stream_id not in ends:
            gaps.add("whether responses that lack a FIN are whole", stream_id)
        streams.append(said.row(stream_id, first_at_ns[stream_id], size, gaps))
    findings.unknown += gaps.lines()
    return streams


class _Gaps:
    """What is not known, and of which streams."""

    def __init__(self) -> None:
        self._streams: dict[str, list[int]] = {}

    def add(self, what: str, stream_id: int) -> None:
        self._streams.setdefault(what, []).append(stream_id)

    def lines(self) -> Iterator[str]:
        for what, streams in self._streams.items():
            shown = ", ".join(map(str, streams[:_SHOWN_STREAMS]))
            more = f" and {n:,} more" if (n := len(streams) - _SHOWN_STREAMS) > 0 else ""
            yield f"{what}: stream{'s' if len(streams) > 1 else ''} {shown}{more}"


class _Said:
    """What either end says of requests and of what they ask for."""

    def __init__(
        self, client: VantagePoint | None, server: VantagePoint | None, shift_ns: int | None
    ) -> None:
        sides = [side for side in (client, server) if side is not None]
        # The client's word last, so that it counts where both have one.
        self._ids = {key: name for side in reversed(sides) for key, name in side.ids.items()}
        self._bodies = {key: n for side in reversed(sides) for key, n in side.body_bytes.items()}
        self._reset_at_bytes = {
            stream_id: size for side in sides for stream_id, size in side.reset_at_bytes.items()
        }
        self._arrived_at_ns = dict(server.asked_at_ns) if server is not None else {}
        if client is None:
            self._requested_at_ns = {
                stream_id: at_ns + (shift_ns or 0)
                for stream_id, at_ns in self._arrived_at_ns.items()
            }
        else:
            self._requested_at_ns = client.asked_at_ns
            self._arrived_at_ns = {
                stream_id: at_ns + shift_ns
                for stream_id, at_ns in self._arrived_at_ns.items()
                if shift_ns is not None
            }

    def least_bytes(self, stream_id: int, sizes: dict[int, int]) -> int:
        """Return how long a stream is at least: what was seen of it, and what either end says."""
        said = (self._bodies.get(stream_id, 0), self._reset_at_bytes.get(stream_id, 0))
        return max(sizes[stream_id], *said)

    def row(self, stream_id: int, first_at_ns: int, size: int, gaps: _Gaps) -> StreamRow:
        requested_at_ns = self._requested_at_ns.get(stream_id)
        if requested_at_ns is None:
            requested_at_ns = first_at_ns
            gaps.add("when requests were made; their first byte stands in", stream_id)
        if stream_id not in self._ids:
            gaps.add("what was asked for", stream_id)
        body_bytes = self._bodies.get(stream_id)
        if body_bytes is None or body_bytes > size:
            body_bytes = size
            gaps.add("how long bodies are; all bytes of the stream stand in", stream_id)
        return StreamRow(
            stream_id=stream_id,
            id=self._ids.get(stream_id, f"stream {stream_id}"),
            requested_at_ns=requested_at_ns,
            arrived_at_ns=self._arrived_at_ns.get(stream_id, requested_at_ns),
            length_bytes=size,
            body_bytes=body_bytes,
        )
