"""Formats of others: logs out and in."""

from h3sim.formats.qlog import (
    DEFAULT_REQUEST_BYTES,
    LogError,
    LoggedResource,
    MeasuredLog,
    MeasuredResource,
    check_qlog_path,
    qlog_document,
    read_qlog,
    write_qlog,
)

__all__ = [
    "DEFAULT_REQUEST_BYTES",
    "LogError",
    "LoggedResource",
    "MeasuredLog",
    "MeasuredResource",
    "check_qlog_path",
    "qlog_document",
    "read_qlog",
    "write_qlog",
]
