"""A resource of a page, and what is known of its priority, as frozen values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim.documents.declared import declared, says, settle
from h3sim.documents.nested import Table
from h3sim.documents.values import Choice, Flag, ListOf, Number, Text, Whole
from h3sim.errors import PageError, Problem
from h3sim.page.discovery import DELAY, MAX_TIME_NS, TRIGGER, At, Discovery
from h3sim.page.server_priority import ServerPriority
from h3sim.protocol import MAX_VARINT
from h3sim.signals import MAX_URGENCY, MAX_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DEFAULT_REQUEST_BYTES",
    "FLAGS",
    "MAX_TIME_NS",
    "At",
    "Discovery",
    "FetchPriority",
    "Group",
    "Kind",
    "Level",
    "PriorityChange",
    "RecordedFrom",
    "RecordedPriority",
    "Resource",
]

MAX_STREAM_BYTES = MAX_VARINT
"""The largest final size of a stream (RFC 9000 § 4.5)."""
DEFAULT_REQUEST_BYTES = 100
"""What a request takes where neither the page nor a codec says it (network.md: 60 to 400 bytes)."""


class Kind(enum.Enum):
    """What a resource is to the browser."""

    DOCUMENT = "document"
    STYLESHEET = "stylesheet"
    SCRIPT = "script"
    FONT = "font"
    IMAGE = "image"
    FETCH = "fetch"
    MEDIA = "media"
    OTHER = "other"


class FetchPriority(enum.Enum):
    """The page author's hint."""

    HIGH = "high"
    LOW = "low"
    AUTO = "auto"


_SIZE = Whole(low=0, high=MAX_STREAM_BYTES, hint="what a stream can carry")


def _flag(about: str, used_by: str = "schemes", key: str = "") -> Any:
    return field(default=False, metadata=says(Flag(), about, used_by=used_by, key=key))


def _time(about: str, used_by: str) -> Any:
    return field(default=0, metadata=says(DELAY, about, used_by=used_by))


class Level(enum.Enum):
    """Chrome's levels of priority, as DevTools calls them."""

    VERY_HIGH = "VeryHigh"
    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"
    VERY_LOW = "VeryLow"


class Group(enum.Enum):
    """Firefox's classes of service, by the groups of its dependency tree."""

    URGENT_START = "urgent-start"
    LEADERS = "leaders"
    UNBLOCKED = "unblocked"
    FOLLOWERS = "followers"
    SPECULATIVE = "speculative"
    BACKGROUND = "background"


class RecordedFrom(enum.Enum):
    """The browser that was recorded."""

    CHROME = "chrome"
    FIREFOX = "firefox"
    SAFARI = "safari"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPriority:
    """What a browser really said of a resource: with its request, or later, *when* that fires.

    Raises:
        PageError: if it says nothing, or something of a place that it does not name.
    """

    browser: RecordedFrom | None = field(
        default=None, metadata=says(Choice(RecordedFrom), "which browser it was")
    )
    level: Level | None = field(
        default=None, metadata=says(Choice(Level), "Chrome's level", is_premise=True)
    )
    group: Group | None = field(
        default=None, metadata=says(Choice(Group), "Firefox's class", key="class", is_premise=True)
    )
    weight: int | None = field(
        default=None,
        metadata=says(Whole(low=1, high=MAX_WEIGHT), "the weight below that class or parent"),
    )
    depends_on: str | None = field(
        default=None,
        metadata=says(
            Text(),
            "what a PRIORITY frame names as its parent: the id of a resource, or one of"
            " recorded_groups; empty for the root of the tree",
            is_premise=True,
        ),
    )
    exclusive: bool | None = field(
        default=None, metadata=says(Flag(), "whether it takes in all below that parent")
    )
    urgency: int | None = field(
        default=None,
        metadata=says(Whole(low=0, high=MAX_URGENCY), "u of the Priority field", is_premise=True),
    )
    incremental: bool | None = field(
        default=None, metadata=says(Flag(), "i of the Priority field", is_premise=True)
    )
    when: Discovery | None = field(
        default=None,
        metadata=says(
            TRIGGER,
            "the trigger of a later change, as for `discovered`",
            stand_in=Discovery(at=At.TIME),
        ),
    )

    def __post_init__(self) -> None:
        settle(self, PageError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        said = (self.level, self.group, self.urgency, self.incremental, self.depends_on)
        if all(value is None for value in said):
            names = "level, class, urgency, incremental and depends_on"
            yield Problem(key="", message=f"one of {names} is needed: what was said")
        if self.weight is not None and self.group is None and self.depends_on is None:
            yield Problem(key="weight", message="goes only with a class or depends_on")
        if self.exclusive is not None and self.depends_on is None:
            yield Problem(key="exclusive", message="goes only with depends_on")
        if self.group is not None and self.depends_on is not None:
            yield Problem(key="depends_on", message="says the same as class: give only one")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityChange:
    """What becomes known of a resource, or is asked for it, *when* a trigger fires.

    What it leaves out stays as it was. Before the request it is said with that; afterwards the
    client may send a frame about the open stream (RFC 7540 § 6.3, RFC 9218 § 7).

    Raises:
        PageError: if it changes nothing.
    """

    when: Discovery = field(
        metadata=says(
            TRIGGER,
            "the trigger, as for `discovered`",
            stand_in=Discovery(at=At.TIME),
        )
    )
    visible: bool | None = field(
        default=None, metadata=says(Flag(), "it is seen in the viewport, once laid out")
    )
    hidden: bool | None = field(
        default=None, metadata=says(Flag(), "its tab is in the background from now on")
    )
    fetchpriority: FetchPriority | None = field(
        default=None,
        metadata=says(Choice(FetchPriority), "a script of the page asks for this instead"),
    )

    def __post_init__(self) -> None:
        settle(self, PageError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield that it changes nothing."""
        if all(value is None for value in (self.visible, self.hidden, self.fetchpriority)):
            message = "one of visible, hidden and fetchpriority is needed: what changes"
            yield Problem(key="", message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a page; `docs/page-format.md` explains each field.

    Choices may be given by their names ("image").

    Raises:
        PageError: listing every value that is of another type or out of range.

    >>> Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=-1)
    Traceback (most recent call last):
    ...
    h3sim.errors.PageError: a.css: bytes: must not be negative, is -1
    """

    id: str = field(
        metadata=says(
            Text(is_needed=True), "its name in the page; each stands once", used_by="everything"
        )
    )
    kind: Kind = field(metadata=says(Choice(Kind), "what it is to the browser", used_by="schemes"))
    mime: str = field(
        default="", metadata=says(Text(), "its media type; `kind` decides, not this", used_by="-")
    )
    host: str = field(
        default="",
        metadata=says(Text(), "its host (default: the root's)", used_by="[hosts](hosts.md)"),
    )
    size_bytes: int = field(
        metadata=says(
            _SIZE,
            "the response body as transferred, 0 to 2^62 - 1",
            used_by="everything",
            key="bytes",
            stand_in=MAX_STREAM_BYTES,  # no offset lies behind its end
        )
    )
    header_bytes: int = field(
        default=0,
        metadata=says(
            _SIZE,
            "the response header, sent in front of the body; ByteIndex does not weigh it",
            used_by="the stream's length",
        ),
    )
    request_bytes: int = field(
        default=0,
        metadata=says(
            _SIZE,
            "the size of the request; 0 for what HPACK makes of it over HTTP/2, else 100",
            used_by="the link up",
        ),
    )
    parse_ns: int = _time("how long it is parsed once it is there", "the trigger `executed`")
    execute_ns: int = _time("how long it then runs", "the trigger `executed`")
    server_ns: int = _time(
        "how long the server thinks before the response can be sent", "the server"
    )
    response_offsets: tuple[int, ...] = field(
        default=(),
        metadata=says(
            ListOf(Whole(low=0), "whole numbers"),
            "where the pieces of the response began in the recording, rising from 0 on",
            used_by="not yet",
        ),
    )
    in_head: bool = _flag("it is referenced from the head of the document")
    is_async: bool = _flag("a script that may run as soon as it is there", key="async")
    is_defer: bool = _flag("a script that runs after the document was parsed", key="defer")
    preload: bool = _flag("a preload link asks for it")
    render_blocking: bool = _flag(
        "nothing is painted before it is there", "the browser, when it [parses](browsers.md)"
    )
    after_first_image: bool = _flag("it was discovered after the first image in document order")
    above_the_fold: bool = _flag(
        "it is needed for what is seen without scrolling",
        "schemes that know, the second ByteIndex",
    )
    critical: bool = _flag("it is on the critical path of the page", "schemes that know")
    hero: bool = _flag("it is the main visible element", "the largest paint")
    is_lazy: bool = _flag(
        "it is asked for only once it comes into sight (`loading=lazy`)",
        "the browser, when it [parses](browsers.md)",
        key="lazy",
    )
    fetchpriority: FetchPriority = field(
        default=FetchPriority.AUTO,
        metadata=says(
            Choice(FetchPriority),
            "the author's hint: `high`, `low` or `auto`",
            used_by="schemes of today's browsers; the browser's [tight mode](browsers.md)",
        ),
    )
    priority_changes: tuple[PriorityChange, ...] = field(
        default=(),
        metadata=says(
            ListOf(Table(PriorityChange, noun="an object", is_kept=True), "objects"),
            "what changes its priority later: see [Changes](#changes-of-priority)",
            used_by="schemes, by their rules",
        ),
    )
    recorded: tuple[RecordedPriority, ...] = field(
        default=(),
        metadata=says(
            ListOf(Table(RecordedPriority, noun="an object", is_kept=True), "objects"),
            "what browsers said of it: see [Recorded priorities](#recorded-priorities)",
            used_by="the schemes `recorded`",
        ),
    )
    server_priorities: tuple[ServerPriority, ...] = field(
        default=(),
        metadata=says(
            ListOf(Table(ServerPriority, noun="an object", is_kept=True), "objects"),
            "what the origin says of it: see [The server's word](#the-servers-word)",
            used_by="servers with urgencies or buckets",
        ),
    )
    is_root: bool = _flag(
        "it is navigated to as the root is: by a tab, a window or a frame of its own, or by a"
        " redirect; see [Roots](#roots)",
        "the browser, schemes",
        key="root",
    )
    viewport: float | None = field(
        default=None,
        metadata=says(
            Number(low=0, high=1),
            "its visible share of the viewport's pixels, 0 to 1",
            used_by="the largest paint, SpeedIndex",
        ),
    )
    discovered: Discovery | None = field(
        default=None,
        metadata=says(
            TRIGGER,
            "what makes the browser ask for it: see [Triggers](#triggers); only a root has none",
            used_by="the browser",
            stand_in=Discovery(at=At.TIME),
        ),
    )

    def __post_init__(self) -> None:
        settle(self, PageError, self.id)

    @property
    def stream_bytes(self) -> int:
        """What its stream carries: response header and body."""
        return self.header_bytes + self.size_bytes

    @property
    def begins_page(self) -> bool:
        """Whether it is a root: something that is navigated to."""
        return self.is_root or self.discovered is None

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        offsets = self.response_offsets
        if any(b < a for a, b in zip((0, *offsets), offsets, strict=False)):
            yield Problem(key="response_offsets", message="must rise from 0 on")


FLAGS = {
    entry.key: entry.attribute
    for entry in declared(Resource)
    if isinstance(entry.kind, Flag) and entry.attribute != "is_root"
}
"""The flags of a page file, each with the attribute of `Resource` that holds it.

That of roots is none of them: it says what the page is, and not what a rule could ask for.
"""
