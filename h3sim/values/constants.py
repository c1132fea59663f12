"""Constants of the protocols that several parts share."""

from __future__ import annotations

from typing import Final

STREAM_ID_STEP: Final = 4
"""Distance between the streams of requests, 0, 4, 8, ...: client bidirectional (RFC 9000 § 2.1)."""
FRAME_HEADER_BYTES: Final = 9
"""The header of each frame of HTTP/2 (RFC 9113 § 4.1)."""
IP_HEADER_BYTES: Final = 20
"""An IPv4 header without options (RFC 791 § 3.1)."""
MAX_VARINT: Final = 2**62 - 1
"""The largest whole number that QUIC can write (RFC 9000 § 16): no stream is longer."""
UNLIMITED_BYTES: Final = 2**62
"""Flow control window that no stream can fill."""
HOP_BY_HOP_FIELDS: Final = frozenset(
    ("connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
)
"""Fields of HTTP/1.1 that HTTP/2 and HTTP/3 do not have (RFC 9114 § 4.2)."""
