"""qlog: loads are written as logs that qvis opens, and logs of real stacks are read as traces.

Two dialects are written: version 0.3, which qvis reads, and that of the current drafts
(draft-ietf-quic-qlog-main-schema, -quic-events and -h3-events). The reader accepts both, and the
older versions with `event_fields` (draft-00 to draft-02).
"""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
