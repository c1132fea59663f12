"""qlog: loads are written as logs that qvis opens, and logs of real stacks are read as traces.

Two dialects are written: version 0.3, which qvis reads, and that of the current drafts
(draft-ietf-quic-qlog-main-schema, -quic-events and -h3-events). The reader accepts both, and the
older versions with `event_fields` (draft-00 to draft-02).
"""

from h3sim.qlog.container import LogError
from h3sim.qlog.reader import MeasuredLog, MeasuredResource, parse_qlog
from h3sim.qlog.timeline import Entry, EntryKind, SenderView, TimelineLog, read_timeline
from h3sim.qlog.writer import DIALECTS, LoggedResource, check_qlog_path, write_qlog

__all__ = [
    "DIALECTS",
    "Entry",
    "EntryKind",
    "LogError",
    "LoggedResource",
    "MeasuredLog",
    "MeasuredResource",
    "SenderView",
    "TimelineLog",
    "check_qlog_path",
    "parse_qlog",
    "read_timeline",
    "write_qlog",
]
