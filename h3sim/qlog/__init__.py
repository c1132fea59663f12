"""qlog: loads written as logs that qvis opens, and logs of real stacks read as traces.

What is written: version 0.3, which qvis reads, or the dialect of the current drafts
(draft-ietf-quic-qlog-main-schema, -quic-events and -h3-events). What is read: those two, and the
older ones with `event_fields` (draft-00 to draft-02).
"""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
