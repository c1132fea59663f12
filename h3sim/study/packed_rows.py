"""Rows as a store keeps them: JSON, compressed with a dictionary of the usual columns."""

from __future__ import annotations

import zlib

_DICTIONARY = (
    b'{"page": null, "page_digest": null, "page_bytes": null, "page_atf_bytes": null, '
    b'"scheme": null, "network": null, "transport": "quic", "transport_profile": "default", '
    b'"cc": "cubic", "ecn": false, "rate_mbps": null, "interval_ms": null, "packet_bytes": '
    b'null, "rtt_ms": null, "loss": 0.0, "mean_loss_burst": null, "queue_bdp": null, '
    b'"queue_bytes": null, "queue_packets": null, "queue_discipline": "drop-tail", "reorder": '
    b'null, "send_buffer_kb": 0.0, "send_buffer_refill": null, "retransmission_order": '
    b'"first", "packet_threshold": null, "time_threshold": 1.125, "max_placeholders": null, '
    b'"closed_stream_retention_ms": 500.0, "signalling": "none", "handshake": "1-rtt", "seed": '
    b'null, "browser": "parse", "cpu_slowdown": 1.0, "preload_scanner": true, "tight_mode": '
    b'null, "commit_ms": 28.0, "paint_ms": 15.0, "paint": "progressive", "image_update_ms": '
    b'1000.0, "max_concurrent_requests": null, "max_concurrent_requests_per_host": null, '
    b'"stylesheets_block_parser": false, "hidden_at_ms": null, "header_compression": null, '
    b'"connections": "single", "max_connections_per_host": null, "cross_traffic": null, '
    b'"dns_ms": null, "time_limit_s": 3600.0, "network_digest": null, "path_digest": null, '
    b'"profile_digest": null, "controller_digest": null, "codec_digest": null, '
    b'"scheme_digest": null, "version": null, "byte_index_all_ms": null, "byte_index_atf_ms": '
    b'null, "byte_index_sampled_all_ms": null, "byte_index_sampled_atf_ms": null, '
    b'"object_index_all_ms": null, "object_index_atf_ms": null, "page_load_ms": null, '
    b'"first_paint_ms": null, "fcp_ms": null, "largest_paint_ms": null, "speed_index_ms": '
    b'null, "dom_content_loaded_ms": null, "load_event_ms": null, "hol_stream_bytes": null, '
    b'"hol_stream_delay_ms": null, "hol_connection_bytes": null, "hol_connection_delay_ms": '
    b'null, "hol_sander_stream_bytes": null, "hol_sander_connection_bytes": null, '
    b'"hol_packets_in_threes": null, "packets_sent": null, "packets_lost": null, '
    b'"packets_retransmitted": null, "packets_queue_drops": null, "packets_longest_burst": '
    b'null, "packets_mean_burst": 1.0, "priority_frames": null, '
    b'"priority_frame_bytes": null, "image_index_ms": null, "visual_first_change_ms": null, '
    b'"visual_vc85_ms": null, "visual_vc95_ms": null, "visual_vc99_ms": null, '
    b'"visual_last_change_ms": null} '
)
"""Text that compressed rows refer to, part of the format of stores: a change makes old ones
unreadable, while columns that are missing here only take more space."""
MAX_TEXT_BYTES = 64 << 20
"""Longest text that is compressed or read."""


def pack(text: str) -> bytes:
    """Return *text* compressed (RFC 1950, with a preset dictionary).

    >>> unpack(pack('{"page": "creative"}'))
    '{"page": "creative"}'
    """
    packer = zlib.compressobj(zdict=_DICTIONARY)
    return packer.compress(text.encode()) + packer.flush()


def unpack(data: bytes) -> str:
    """Return the text that *data* is the compressed form of.

    Raises:
        ValueError: if *data* is anything else.
    """
    unpacker = zlib.decompressobj(zdict=_DICTIONARY)
    try:
        text = unpacker.decompress(data, MAX_TEXT_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("is not one compressed text")
    return text.decode()
