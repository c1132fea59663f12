"""Linux's send buffer where nobody sets its size: it grows with the congestion window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.tcp.records import SendStream

if TYPE_CHECKING:
    from h3sim.transport.endpoint import Source
    from h3sim.transport.tcp.settings import TcpSettings

__all__ = ["AutotunedSendStream"]

_TIMESTAMPS_BYTES: Final = 12
_HEADROOM_BYTES: Final = 320 + 320
"""MAX_TCP_HEADER, and the aligned skb_shared_info behind the data, both on 64-bit machines."""
_SK_BUFF_BYTES: Final = 256
"""An aligned sk_buff."""
_INITIAL_SEGMENTS: Final = 10
"""TCP_INIT_CWND."""
_WINDOWS: Final = 2
"""CUBIC needs 1.7 in a recovery, says tcp_sndbuf_expand; BBR asks for 3 (bbr_sndbuf_expand)."""


class AutotunedSendStream(SendStream):
    """A `SendStream` whose socket takes as much as Linux's autotuning lets it.

    At first 10 segments' memory twice over, 87,040 bytes with Ethernet's segments; more when an ACK
    has come, all that waited has left and the window is not filled (tcp_should_expand_sndbuf and
    tcp_sndbuf_expand in net/ipv4/tcp_input.c): then twice the memory of a window's segments, at
    most *send_buffer_bytes* (tcp_wmem[2]). A segment takes a power of two of memory, so this is six
    windows. A buffer that was full takes nothing before a third of it is free
    (sk_stream_is_writeable in include/net/sock.h), and with TCP_NOTSENT_LOWAT before less than half
    of the mark waits unsent (tcp_stream_memory_free).

    What the application has written and the socket has not taken is in its own write buffer, in the
    order in which it was written. Memory is counted by payload: what Linux adds for each of its
    own buffers, some per cent, is left out.
    """

    __slots__ = ("_is_full", "_limit_bytes", "_lowat_bytes", "_mss_bytes", "_per_segment_bytes")

    def __init__(self, settings: TcpSettings, source: Source) -> None:
        super().__init__(settings, source)
        self._mss_bytes = settings.mss_bytes
        data_bytes = settings.mss_bytes + _TIMESTAMPS_BYTES + _HEADROOM_BYTES
        self._per_segment_bytes = (1 << (data_bytes - 1).bit_length()) + _SK_BUFF_BYTES
        self._lowat_bytes = settings.notsent_lowat_bytes
        self._limit_bytes = 0
        self._grow(_INITIAL_SEGMENTS)
        self._is_full = False
        """Whether a write was refused (SOCK_NOSPACE), and room was not reported since."""

    def fill(self, acked: int, now_ns: int) -> None:
        """Take from the source what the socket has room for; *acked* bytes left it for good."""
        if self._is_full and not self._is_writable(acked):
            return
        self._is_full = False
        while True:
            taken = self.end
            self.end = min(self._written_to, taken + max(0, self._room(acked)))
            # A record is written whole: what the socket refuses of it stays with the application.
            if self.end < self._written_to:
                self._is_full = True
                return
            if not self._write_next(now_ns):
                return

    def expand(self, congestion_window: int) -> bool:
        """Grow with the window; return whether there is room now for what waits."""
        if not self._is_full:
            return False
        before = self._limit_bytes
        self._grow(max(_INITIAL_SEGMENTS, congestion_window // self._mss_bytes))
        return self._limit_bytes > before

    def _grow(self, segments: int) -> None:
        wanted = _WINDOWS * segments * self._per_segment_bytes
        # Never smaller again: tcp_sndbuf_expand only raises sk_sndbuf, also after the window was
        # cut.
        self._limit_bytes = max(self._limit_bytes, min(wanted, self._send_buffer_bytes))

    def _room(self, acked: int) -> int:
        """Return what the socket takes now."""
        room = self._limit_bytes - (self.end - acked)
        if self._lowat_bytes is None:
            return room
        return min(room, self._lowat_bytes - (self.end - self.sent))

    def _is_writable(self, acked: int) -> bool:
        """Return whether a socket that was full says that it has room."""
        lowat = self._lowat_bytes
        if lowat is not None and 2 * (self.end - self.sent) >= lowat:
            return False
        # sk_stream_is_writeable asks for half as much free as is used, so two thirds used at most.
        return 3 * (self.end - acked) <= 2 * self._limit_bytes
