"""The server: scheduler and send buffer put together, and what it is told of priorities."""

from h3sim.server.hearing import Heard, Hearing
from h3sim.server.priorities import PriorityFrameError, StreamPriorities
from h3sim.server.priority_field import format_priority, merge_priority, parse_priority
from h3sim.server.server import RETENTION_NS, Retransmit, Server

__all__ = [
    "RETENTION_NS",
    "Heard",
    "Hearing",
    "PriorityFrameError",
    "Retransmit",
    "Server",
    "StreamPriorities",
    "format_priority",
    "merge_priority",
    "parse_priority",
]
