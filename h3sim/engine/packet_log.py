"""What is written down of packets over links, and of the server's recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.engine.transport import Carried
from h3sim.trace import MAX_PENDING, RecoveryRow, RowRecorder, WireRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.transport import Progress
    from h3sim.transport.endpoint import Endpoint

__all__ = ["PacketLog"]

_REPORT_EVERY_PACKETS = 1024

OnSent = "Callable[[Any, int, int | None], None]"


class PacketLog:
    """The rows of packets down; with *records_wire* every packet both ways, and recovery.

    *progress* is told how many of *n_packets* were sent.
    """

    def __init__(
        self, *, records_wire: bool, progress: Progress | None = None, n_packets: int = 0
    ) -> None:
        self.records_wire = records_wire
        self._progress = progress
        self._n_packets = n_packets
        self._recorder = RowRecorder()
        self._pending = self._recorder.pending
        self.delivered_at_ns = self._recorder.delivered_at_ns
        """For each row; the client's receiver writes it."""
        self.first_row: dict[int, int] = {}
        """The first row of each packet that is under way to the client, or lost."""
        self._wire: list[WireRow] = []
        self._recovery: list[RecoveryRow] = []

    def on_sent_down(self, packet: Any, now_ns: int, arrives_at_ns: int | None) -> None:
        """Write down what a packet of the server carries, a row for each piece of a stream."""
        if not packet.frames:
            return
        rows, delivered_at_ns, number = self._pending, self.delivered_at_ns, packet.number
        self.first_row[number] = len(delivered_at_ns)
        for stream_id, offset, n_bytes in packet.frames:
            rows.append((now_ns, arrives_at_ns, stream_id, offset, n_bytes, number))
            delivered_at_ns.append(None)
        if len(rows) >= MAX_PENDING:
            self._recorder.pack()

    def noting(self, endpoint: Endpoint, *, is_down: bool) -> Callable[..., None] | None:
        """Return what is to be told of each packet that *endpoint* sends; None for nothing."""
        if not self.records_wire and self._progress is None:
            return self.on_sent_down if is_down else None

        def note(packet: Any, now_ns: int, arrives_at_ns: int | None) -> None:
            if is_down:
                self.on_sent_down(packet, now_ns, arrives_at_ns)
                self._report(packet.number)
            if self.records_wire:
                acked = endpoint.ack_ranges(packet)
                self._wire.append(
                    WireRow(is_down, packet.number, now_ns, arrives_at_ns, packet.size_bytes, acked)
                )

        return note

    def noting_recovery(self, endpoint: Endpoint) -> Callable[[int], None] | None:
        """Return what is to be told when something happened to *endpoint*; None for nothing."""
        if not self.records_wire:
            return None
        return lambda now_ns: self._recovery.append(endpoint.recovery_row(now_ns))

    def carried(self) -> Carried:
        """Return what was written down."""
        return Carried(self._recorder.rows(), tuple(self._wire), tuple(self._recovery))

    def _report(self, number: int) -> None:
        if self._progress is not None and not number % _REPORT_EVERY_PACKETS:
            self._progress(min(number, self._n_packets), self._n_packets)
