"""A server's streams: scheduling, send buffer, flow control, and received priorities.

It may import schedulers and signals, and knows no transport. Begin with `stream_sender.py`.
"""

from h3sim.http.header_senders import HeadersFirstSender, QmuxSender, SectionSender
from h3sim.http.priority_field import (
    ClientPriorityValidator,
    format_priority,
    merge_priority,
    parse_priority,
)
from h3sim.http.send_buffer import ByteThresholds, SendBufferRefill
from h3sim.http.signal_receiver import (
    DefaultPriority,
    PriorityFrameError,
    PriorityReceiver,
    SchedulerUpdate,
    StreamPriorities,
)
from h3sim.http.stream_sender import StreamSender

__all__ = [
    "ByteThresholds",
    "ClientPriorityValidator",
    "DefaultPriority",
    "HeadersFirstSender",
    "PriorityFrameError",
    "PriorityReceiver",
    "QmuxSender",
    "SchedulerUpdate",
    "SectionSender",
    "SendBufferRefill",
    "StreamPriorities",
    "StreamSender",
    "format_priority",
    "merge_priority",
    "parse_priority",
]
