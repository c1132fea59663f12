"""When bytes that were lost go again."""

from __future__ import annotations

import enum

__all__ = ["Retransmit"]


class Retransmit(enum.Enum):
    """When bytes that were lost go again; RFC 9218 § 12 leaves it to the server."""

    FIRST = "first"
    """Before anything new, in the order in which they were lost."""
    PRIORITY = "priority"
    """Before anything new, the most important stream first."""
    TURN = "turn"
    """When it is the stream's turn, before its new bytes (quicly)."""
