"""What is written down of packets over links, and of the server's recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from h3sim.engine.transport import Carried
from h3sim.trace import RecoveryRow, RowRecorder, WireRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.transport import Progress
    from h3sim.transport.endpoint import Endpoint
    from h3sim.transport.packets import WirePacket

__all__ = ["PacketLog", "SentLog"]

_REPORT_EVERY_PACKETS: Final = 1024


class SentLog:
    """What is told of each packet that one end sends."""

    def on_sent(self, packet: WirePacket, now_ns: int, arrives_at_ns: int | None) -> None:
        """Write down a packet that leaves now, and when it arrives; None: never."""
        raise NotImplementedError


class DownRows(SentLog):
    """The rows of the packets down: one for each piece of a stream."""

    __slots__ = ("_pack_from_row", "_pending", "_recorder", "delivered_at_ns")

    def __init__(self, recorder: RowRecorder) -> None:
        self._recorder = recorder
        self._pending = recorder.pending
        self._pack_from_row = recorder.max_pending
        """What is pending is packed with the packet of this row, or the next."""
        self.delivered_at_ns = recorder.delivered_at_ns

    def on_sent(self, packet: WirePacket, now_ns: int, arrives_at_ns: int | None) -> None:
        """Write down what a packet of the server carries."""
        rows, delivered_at_ns, number = self._pending, self.delivered_at_ns, packet.number
        # The receiver finds the rows of a packet by it, without a table of packets.
        packet.first_row = first_row = len(delivered_at_ns)
        for stream_id, offset, n_bytes in packet.frames:
            rows.append((now_ns, arrives_at_ns, stream_id, offset, n_bytes, number))
            delivered_at_ns.append(None)
        if first_row >= self._pack_from_row:
            self._recorder.pack()
            self._pack_from_row = first_row + self._recorder.max_pending


class WireRows(SentLog):
    """Every packet of one end, whatever it carries; those down are told to *rows* as well."""

    def __init__(self, endpoint: Endpoint[Any], log: PacketLog, rows: DownRows | None) -> None:
        self._endpoint = endpoint
        self._log = log
        self._rows = rows

    def on_sent(self, packet: WirePacket, now_ns: int, arrives_at_ns: int | None) -> None:
        """Write down a packet, and what it acknowledges; report how far the load has come."""
        log, number = self._log, packet.number
        if self._rows is not None:
            self._rows.on_sent(packet, now_ns, arrives_at_ns)
            log.report(number)
        if log.record_packets:
            acked, is_down = self._endpoint.ack_ranges(packet), self._rows is not None
            log.wire.append(
                WireRow(is_down, number, now_ns, arrives_at_ns, packet.size_bytes, acked)
            )


class PacketLog:
    """The rows of packets down; with *record_packets* every packet both ways, and recovery.

    *progress* is told how many of *n_packets* were sent.
    """

    def __init__(
        self, *, record_packets: bool, progress: Progress | None = None, n_packets: int = 0
    ) -> None:
        self.record_packets = record_packets
        self._progress = progress
        self._n_packets = n_packets
        self._recorder = RowRecorder()
        self._rows = DownRows(self._recorder)
        self.delivered_at_ns = self._recorder.delivered_at_ns
        """For each row; the client's receiver writes it."""
        self.wire: list[WireRow] = []
        self._recovery: list[RecoveryRow] = []

    def of(self, endpoint: Endpoint[Any], *, is_down: bool) -> SentLog | None:
        """Return what is to be told of each packet that *endpoint* sends; None for nothing."""
        rows = self._rows if is_down else None
        if not self.record_packets and self._progress is None:
            return rows
        return WireRows(endpoint, self, rows)

    def noting_recovery(self, endpoint: Endpoint[Any]) -> Callable[[int], None] | None:
        """Return what is to be told when something happened to *endpoint*; None for nothing."""
        if not self.record_packets:
            return None
        return lambda now_ns: self._recovery.append(endpoint.recovery_row(now_ns))

    def carried(self) -> Carried:
        """Return what was written down."""
        return Carried(self._recorder.rows(), tuple(self.wire), tuple(self._recovery))

    def report(self, number: int) -> None:
        """Tell how far the load has come, now and then."""
        if self._progress is not None and not number % _REPORT_EVERY_PACKETS:
            self._progress(min(number, self._n_packets), self._n_packets)
