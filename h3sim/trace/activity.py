"""What a browser did with a page: downloads, computations and milestones, and what began them."""

from __future__ import annotations

import enum
from typing import NamedTuple

__all__ = ["Activity", "Work"]


class Work(enum.Enum):
    """What kind of activity it is."""

    LOOK_UP = "lookup"
    """The name of a host is looked up."""
    CONNECT = "connect"
    """A connection is set up: handshakes of transport and TLS."""
    DOWNLOAD = "download"
    """From the request to the last byte."""
    PARSE = "parse"
    """A piece of the document."""
    STYLE = "style"
    """A stylesheet is parsed."""
    EXECUTE = "execute"
    """A script runs, or something else is decoded."""
    FIRST_PAINT = "first paint"
    DOM_CONTENT_LOADED = "DOMContentLoaded"
    LOAD = "load"

    @property
    def is_computation(self) -> bool:
        """Whether it keeps the main thread busy."""
        return self in (Work.PARSE, Work.STYLE, Work.EXECUTE)

    @property
    def is_of_network(self) -> bool:
        """Whether it is done to bring a resource."""
        return self in (Work.LOOK_UP, Work.CONNECT, Work.DOWNLOAD)

    @property
    def is_milestone(self) -> bool:
        """Whether it is an instant, of the whole page."""
        return self in (Work.FIRST_PAINT, Work.DOM_CONTENT_LOADED, Work.LOAD)


class Activity(NamedTuple):
    """One activity: of a *resource* (its index in the page), or of the page (None).

    *after* is the index, among the activities, of the one that let this one begin: the last of all
    it waited for. Where that one ends later than this one begins, a part of it was enough (the
    first bytes of a document name a stylesheet).
    """

    work: Work
    resource: int | None
    began_at_ns: int
    ended_at_ns: int
    after: int | None
