"""The server: scheduler and send buffer put together, and what it is told of priorities."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.http.advice import AdviceJudge
    from h3sim.http.byte_marks import ByteMarks
    from h3sim.http.headers_first_sender import HeadersFirstSender
    from h3sim.http.priorities import PriorityFrameError, StreamPriorities
    from h3sim.http.priority_field import format_priority, merge_priority, parse_priority
    from h3sim.http.priority_receiver import PriorityReceiver, SchedulerUpdate
    from h3sim.http.section_sender import SectionSender
    from h3sim.http.send_buffer import SendBufferRefill
    from h3sim.http.stream_sender import Retransmit, StreamSender

__all__ = [
    "AdviceJudge",
    "ByteMarks",
    "HeadersFirstSender",
    "PriorityFrameError",
    "PriorityReceiver",
    "Retransmit",
    "SchedulerUpdate",
    "SectionSender",
    "SendBufferRefill",
    "StreamPriorities",
    "StreamSender",
    "format_priority",
    "merge_priority",
    "parse_priority",
]

__getattr__, __dir__ = attach(
    __name__,
    advice="AdviceJudge",
    byte_marks="ByteMarks",
    headers_first_sender="HeadersFirstSender",
    priorities="PriorityFrameError StreamPriorities",
    priority_field="format_priority merge_priority parse_priority",
    priority_receiver="PriorityReceiver SchedulerUpdate",
    section_sender="SectionSender",
    send_buffer="SendBufferRefill",
    stream_sender="Retransmit StreamSender",
)
