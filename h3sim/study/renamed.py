"""Options that were renamed: files of users have the old names, and errors give the new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FLAGS", "OPTIONS", "with_new_names"]

OPTIONS = {
    "burst": "mean_loss_burst",
    "jitter": "reorder",
    "buffer_kb": "send_buffer_kb",
    "buffers_kb": "send_buffers_kb",
    "buffer_model": "send_buffer_refill",
    "retransmit": "retransmission_order",
    "retention_ms": "closed_stream_retention_ms",
    "metadata": "signalling",
    "headers": "header_compression",
    "hosts": "connections",
    "max_simulated_s": "time_limit_s",
    "cpu_factor": "cpu_slowdown",
    "max_requests": "max_concurrent_requests",
    "max_requests_per_host": "max_concurrent_requests_per_host",
    "styles_stop_parser": "stylesheets_block_parser",
    "background_at_ms": "hidden_at_ms",
    "records_wire": "record_packets",
}
"""Options of a load by their old names."""
_VALUES: dict[str, dict[Any, Any]] = {
    "buffer_model": {"refilled": "continuous", "bursts": "when-empty"},
    "hosts": {"one": "single", "recorded": "per-host"},
    "metadata": {True: "metadata", False: None},
}
"""Values of theirs that were renamed, too."""
FLAGS = {
    **{f"--{old}".replace("_", "-"): f"--{new}".replace("_", "-") for old, new in OPTIONS.items()},
    "--metadata": "--signalling metadata",
    "--wide": "--no-truncate",
    "--against": "--diff",
    "--which": "--resources",
    "--given": "--bound",
    "--by": "--group-by",
    "--over": "--model",
    "--of": "--direction",
    "--vary": "--param",
    "--network-within": "--network-uncertainty",
    "--other-networks": "--robustness-networks",
    "--until-width": "--target-ci-width",
    "--accept": "--update",
    "--beside": "--with-page (of measure: --with-log)",
    "--without": "--remove",
    "--late": "--late-kind",
    "--unset": "--clear",
}
"""Flags of the command line by their old names."""


def with_new_names(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a saved load with the names that options have now.

    >>> with_new_names({"hosts": "recorded", "rtt_ms": 40})
    {'connections': 'per-host', 'rtt_ms': 40}
    """
    return {
        OPTIONS.get(key, key): (
            _VALUES[key].get(value, value)
            if key in _VALUES and isinstance(value, str | bool)
            else value
        )
        for key, value in configuration.items()
    }
