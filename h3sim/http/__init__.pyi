"""The public names of `h3sim.http`, each loaded when it is first used."""

from h3sim.http.header_senders import HeadersFirstSender as HeadersFirstSender
from h3sim.http.header_senders import SectionSender as SectionSender
from h3sim.http.priority_field import format_priority as format_priority
from h3sim.http.priority_field import merge_priority as merge_priority
from h3sim.http.priority_field import parse_priority as parse_priority
from h3sim.http.priority_field import ClientPriorityValidator as ClientPriorityValidator
from h3sim.http.send_buffer import ByteThresholds as ByteThresholds
from h3sim.http.send_buffer import SendBufferRefill as SendBufferRefill
from h3sim.http.signal_receiver import PriorityFrameError as PriorityFrameError
from h3sim.http.signal_receiver import DefaultPriority as DefaultPriority
from h3sim.http.signal_receiver import PriorityReceiver as PriorityReceiver
from h3sim.http.signal_receiver import SchedulerUpdate as SchedulerUpdate
from h3sim.http.signal_receiver import StreamPriorities as StreamPriorities
from h3sim.http.stream_sender import StreamSender as StreamSender

__all__: list[str]
