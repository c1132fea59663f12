"""qlog: loads written as logs that qvis opens, and logs of real stacks read as traces.

What is written: version 0.3, which qvis reads, or the dialect of the current drafts
(draft-ietf-quic-qlog-main-schema, -quic-events and -h3-events). What is read: those two, and the
older ones with `event_fields` (draft-00 to draft-02).
"""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.qlog.reader import MeasuredLog, MeasuredResource, read_qlog
    from h3sim.qlog.source import LogError
    from h3sim.qlog.writer import (
        DIALECTS,
        LoggedResource,
        check_qlog_path,
        qlog_document,
        write_qlog,
    )

__all__ = [
    "DIALECTS",
    "LogError",
    "LoggedResource",
    "MeasuredLog",
    "MeasuredResource",
    "check_qlog_path",
    "qlog_document",
    "read_qlog",
    "write_qlog",
]

__getattr__, __dir__ = attach(
    __name__,
    reader="MeasuredLog MeasuredResource read_qlog",
    source="LogError",
    writer="DIALECTS LoggedResource check_qlog_path qlog_document write_qlog",
)
