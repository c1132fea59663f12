"""The public names of `h3sim.http`, each loaded when it is first used."""

from h3sim.http.advice import AdviceJudge as AdviceJudge
from h3sim.http.byte_marks import ByteMarks as ByteMarks
from h3sim.http.headers_first_sender import HeadersFirstSender as HeadersFirstSender
from h3sim.http.priorities import (
    PriorityFrameError as PriorityFrameError,
    StreamPriorities as StreamPriorities,
)
from h3sim.http.priority_field import (
    format_priority as format_priority,
    merge_priority as merge_priority,
    parse_priority as parse_priority,
)
from h3sim.http.priority_receiver import (
    PriorityReceiver as PriorityReceiver,
    SchedulerUpdate as SchedulerUpdate,
)
from h3sim.http.section_sender import SectionSender as SectionSender
from h3sim.http.send_buffer import SendBufferRefill as SendBufferRefill
from h3sim.http.stream_sender import (
    Retransmit as Retransmit,
    StreamSender as StreamSender,
)

__all__: list[str]
