"""Resources: their kind, size, trigger and priorities, as frozen values."""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.schema import format_value
from h3sim.schema.errors import ABSENT, RejectedValueError, collected
from h3sim.schema.fields import Record, declare, fields_of, validate, write_table
from h3sim.schema.values import (
    Choice,
    Flag,
    Integer,
    ListOf,
    Milliseconds,
    Number,
    Text,
    ValueType,
)
from h3sim.signals import MAX_URGENCY, MAX_WEIGHT, BucketPriority, Eps
from h3sim.values.constants import MAX_VARINT
from h3sim.values.errors import PageError, ValidationIssue
from h3sim.values.units import NS_PER_DAY, to_ms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from h3sim.signals import Signal


MAX_TIME_NS = NS_PER_DAY
"""A day: longer delays are mistakes."""
DELAY = Milliseconds(low=0, high=to_ms(MAX_TIME_NS), hint="a day")
"""The values of times and delays in files: milliseconds, which become nanoseconds."""


class TriggerEvent(enum.Enum):
    """The event that makes the browser request a resource."""

    TIME = "time"
    """Navigation start."""
    REQUEST = "request"
    """The parent is requested."""
    OFFSET = "offset"
    """A number of contiguous bytes of the parent were delivered."""
    COMPLETE = "complete"
    """All bytes of the parent were delivered."""
    EXECUTED = "executed"
    """The parent was delivered, parsed and executed."""


class _ParentIds(ValueType):
    """Field type: one id, or a list of several different ids."""

    def __init__(self) -> None:
        self._several = ListOf(Text(), "ids")

    def accept(self, value: Any) -> str | tuple[str, ...]:
        if isinstance(value, str):
            return Text().accept(value)
        if not isinstance(value, list | tuple):
            raise RejectedValueError(f"must be text or a list of ids, is {format_value(value)}")
        ids = self._several.accept(value)
        if not ids:
            raise RejectedValueError("must name at least one resource")
        if len({*ids}) < len(ids):
            raise RejectedValueError("names a resource twice")
        return ids if len(ids) > 1 else str(ids[0])

    def write(self, value: Any) -> Any:
        return value if isinstance(value, str) else list(value)

    def schema(self) -> dict[str, Any]:
        several = self._several.schema() | {"minItems": 1, "uniqueItems": True}
        return {"anyOf": [Text().schema(), several]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The trigger of a resource: it is requested *delay_ns* after event *at* of resource *by*.

    With several ids in *by*, the event must have happened to all of them (`Promise.all`). With
    *or_else*, whichever trigger fires first counts: another parent, or a timeout.

    Raises:
        PageError: listing every value that is out of range or belongs to another event.

    >>> either = Discovery(by=["a", "b"], at="complete", or_else=[
    ...     Discovery(by="/", at="executed", delay_ns=1_500_000_000)])
    >>> either.parents, either.waits_for, len(either.alternatives)
    (('a', 'b'), ('a', 'b', '/'), 2)
    """

    by: str | tuple[str, ...] | None = field(
        default=None,
        metadata=declare(
            _ParentIds(),
            "the id of the parent, or a list of ids, all of which are waited for; required except"
            " for `time`",
        ),
    )
    at: TriggerEvent = field(
        metadata=declare(
            Choice(TriggerEvent),
            "the event; see below",
            stand_in=TriggerEvent.COMPLETE,
            is_premise=True,
        )
    )
    offset_bytes: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=0), "bytes of the parent's body; required for `offset`, and only there"
        ),
    )
    delay_ns: int = field(
        default=0, metadata=declare(DELAY, "the time between the event and the request")
    )
    or_else: tuple[Discovery, ...] = ()
    """The other triggers of the same resource; in files all of them are one list."""

    def __post_init__(self) -> None:
        validate(self, PageError)
        if self.or_else != ():
            others = self.or_else if isinstance(self.or_else, list | tuple) else (self.or_else,)
            if not all(isinstance(each, Discovery) for each in others):
                message = f"must be triggers, is {format_value(self.or_else)}"
                raise PageError([ValidationIssue(key="or_else", message=message)])
            flat = tuple(each for other in others for each in other.alternatives)
            object.__setattr__(self, "or_else", flat)

    @property
    def alternatives(self) -> tuple[Discovery, ...]:
        """The triggers of which the first to fire counts: this one alone, and the others."""
        return (replace(self, or_else=()), *self.or_else) if self.or_else else (self,)

    @property
    def parents(self) -> tuple[str, ...]:
        """The ids in *by*, without those of *or_else*."""
        if self.by is None:
            return ()
        return (self.by,) if isinstance(self.by, str) else self.by

    @property
    def first_parent(self) -> str | None:
        """The first of `parents`, for uses that can follow only one; None if there is none."""
        return next(iter(self.parents), None)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The ids whose progress can trigger it: those of all `alternatives` but timers."""
        if not self.or_else:
            return () if self.at is TriggerEvent.TIME else self.parents
        found = (each.waits_for for each in self.alternatives)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))

    @property
    def is_joined(self) -> bool:
        """True if it waits for several resources, or has alternatives."""
        return bool(self.or_else) or len(self.parents) > 1

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors between its fields."""
        if self.at is TriggerEvent.OFFSET and len(self.parents) > 1:
            message = "must be one resource where at is 'offset'"
            yield ValidationIssue(key="by", message=message)
        if self.at is not TriggerEvent.TIME and self.by is None:
            yield ValidationIssue(key="by", message=f"is required where at is {self.at.value!r}")
        if self.at is TriggerEvent.OFFSET and self.offset_bytes is None:
            yield ValidationIssue(key="offset_bytes", message="is required where at is 'offset'")
        if self.at is not TriggerEvent.OFFSET and self.offset_bytes is not None:
            yield ValidationIssue(key="offset_bytes", message="is only allowed with at = 'offset'")


TRIGGER = Record(Discovery, noun="an object", keeps_partial=True)
"""A trigger in a page file."""


class _Alternatives(Record):
    """Field type: a trigger, or a list of those of which the first to fire counts."""

    def __init__(self) -> None:
        super().__init__(Discovery, noun="an object or a list of them", keeps_partial=True)

    def read(self, given: Any) -> Any:
        if not isinstance(given, list):
            return super().read(given)
        if not given:
            raise RejectedValueError("must have at least one trigger")
        found, problems = collected(
            (f"[{n}]", TRIGGER.read, entry) for n, entry in enumerate(given)
        )
        if problems:
            first = next((each for each in found if isinstance(each, Discovery)), ABSENT)
            raise RejectedValueError(problems, first)
        return replace(found[0], or_else=tuple(found[1:])) if len(found) > 1 else found[0]

    def accept(self, value: Any) -> Any:
        if isinstance(value, list | tuple) and value:
            first, *others = (TRIGGER.accept(each) for each in value)
            return replace(first, or_else=(*first.or_else, *others)) if others else first
        return super().accept(value)

    def write(self, value: Any) -> Any:
        written = [write_table(each) for each in value.alternatives]
        return written if len(written) > 1 else written[0]

    def schema(self) -> dict[str, Any]:
        one = super().schema()
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


ALTERNATIVES = _Alternatives()
"""The trigger of a resource in a page file, or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPriority:
    """The Priority field of a response (RFC 9218 § 8), or Cloudflare's `cf-priority`.

    With *after_bytes* it applies once that many bytes of the response have been scheduled
    (`cf-priority-change`). Cloudflare's concurrency 0, 1 and n are levels 3, 2 and 1.

    Raises:
        PageError: if it sets no value.
    """

    urgency: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=0, high=MAX_URGENCY), "u of the Priority field", is_premise=True
        ),
    )
    incremental: bool | None = field(
        default=None, metadata=declare(Flag(), "i of the Priority field", is_premise=True)
    )
    bucket: int | None = field(
        default=None, metadata=declare(Integer(low=0, high=63), "the bucket", is_premise=True)
    )
    level: int | None = field(
        default=None, metadata=declare(Integer(low=1, high=3), "the level in it", is_premise=True)
    )
    after_bytes: int = field(
        default=0,
        metadata=declare(Integer(low=0), "scheduled bytes from which it applies"),
    )

    def __post_init__(self) -> None:
        validate(self, PageError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield an error if it sets no value."""
        values = (self.urgency, self.incremental, self.bucket, self.level)
        if all(value is None for value in values):
            message = "at least one of urgency, incremental, bucket and level is required"
            yield ValidationIssue(key="", message=message)

    def merged_with(self, client_priority: Signal) -> Signal:
        """Return *client_priority* with the values that the server sets instead.

        >>> ServerPriority(urgency=1).merged_with(Eps(urgency=5, incremental=True))
        Eps(urgency=1, incremental=True)
        """
        if isinstance(client_priority, Eps):
            return Eps(
                urgency=client_priority.urgency if self.urgency is None else self.urgency,
                incremental=client_priority.incremental
                if self.incremental is None
                else self.incremental,
            )
        if isinstance(client_priority, BucketPriority):
            return BucketPriority(
                bucket=client_priority.bucket if self.bucket is None else self.bucket,
                level=client_priority.level if self.level is None else self.level,
            )
        return client_priority


MAX_STREAM_BYTES = MAX_VARINT
"""The largest final size of a stream (RFC 9000 § 4.5)."""
DEFAULT_REQUEST_BYTES = 100
"""The default size of a request if neither page nor codec has one (60 to 400 bytes)."""


class Kind(enum.Enum):
    """The type of a resource in the browser."""

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


class FontDisplay(enum.Enum):
    """The treatment of a text whose font has not arrived (CSS Fonts 4 § 11.1)."""

    AUTO = "auto"
    BLOCK = "block"
    SWAP = "swap"
    FALLBACK = "fallback"
    OPTIONAL = "optional"

    @property
    def hides_text(self) -> bool:
        """True if the text stays invisible for up to three seconds; `auto` means `block` today."""
        return self in (FontDisplay.AUTO, FontDisplay.BLOCK)


class ImageFormat(enum.Enum):
    """The format of an image, which determines how browsers paint it while it loads.

    `h3sim.load.painting` has the rule of each, and its source.
    """

    JPEG = "jpeg"
    PROGRESSIVE_JPEG = "progressive-jpeg"
    PNG = "png"
    GIF = "gif"
    WEBP = "webp"
    AVIF = "avif"
    SVG = "svg"
    OTHER = "other"

    @classmethod
    def of_name(cls, name: str) -> ImageFormat:
        """Return the format of a media type, or of a file name by its extension.

        Neither shows whether a JPEG is progressive; it is taken as baseline.

        >>> [ImageFormat.of_name(name).value for name in ("image/svg+xml", "a/b.JPG?w=9", "logo")]
        ['svg', 'jpeg', 'other']
        """
        path = name.partition("?")[0].partition("#")[0].lower()
        ending = path.removeprefix("image/") if path.startswith("image/") else path.split(".")[-1]
        return _FORMAT_BY_SUBTYPE.get(ending, cls.OTHER)

    @classmethod
    def of_bytes(cls, content: bytes) -> ImageFormat | None:
        """Return the format of an image by its first bytes; None if they do not show it.

        The frame header of a JPEG (ITU-T T.81 § B.1.1.3) says whether it is progressive: SOF2 or
        SOF10.

        >>> ImageFormat.of_bytes(bytes.fromhex("ffd8 ffe0 0004 0000 ffc2 0011"))
        <ImageFormat.PROGRESSIVE_JPEG: 'progressive-jpeg'>
        """
        if content.startswith(b"\xff\xd8"):
            return _read_jpeg_format(content)
        if content[4:12] in (b"ftypavif", b"ftypavis"):
            return cls.AVIF
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return cls.WEBP
        return {b"\x89PNG": cls.PNG, b"GIF8": cls.GIF}.get(content[:4])


_FORMAT_BY_SUBTYPE = {
    **{each.value: each for each in ImageFormat},
    **dict.fromkeys(("jpg", "pjpeg", "jfif"), ImageFormat.JPEG),
    **dict.fromkeys(("apng", "x-png"), ImageFormat.PNG),
    "svg+xml": ImageFormat.SVG,
}
"""Formats by file extension or subtype of the media type."""
_PROGRESSIVE_MARKERS = (0xC2, 0xCA)
"""The frame headers of progressive JPEGs, with Huffman and with arithmetic coding."""
_NON_FRAME_MARKERS = (0xC4, 0xC8, 0xCC)
"""Markers from C0 to CF that are not frame headers: tables, and a reserved one."""


def _read_jpeg_format(content: bytes) -> ImageFormat | None:
    """Return whether a JPEG is progressive, by its first frame marker."""
    at = 2  # after the start marker
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _PROGRESSIVE_MARKERS:
            return ImageFormat.PROGRESSIVE_JPEG
        if 0xC0 <= marker <= 0xCF and marker not in _NON_FRAME_MARKERS:
            return ImageFormat.JPEG
        # The marker's two bytes, then its segment, which begins with its length.
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return None


_STREAM_SIZE = Integer(low=0, high=MAX_STREAM_BYTES, hint="the largest size of a stream")


class _Piece(ValueType):
    """Field type: a piece of a body, [ms, bytes] in a file, (ns, bytes) in Python."""

    def __init__(self, low: int) -> None:
        self._kinds = (DELAY, Integer(low=low, high=MAX_STREAM_BYTES))

    def accept(self, value: Any) -> tuple[int, int]:
        return self._each("accept", value, list | tuple)

    def read(self, given: Any) -> tuple[int, int]:
        return self._each("read", given, list)

    def _each(self, method: str, given: Any, types: Any) -> tuple[int, int]:
        if not isinstance(given, types) or len(given) != 2:
            raise RejectedValueError(f"must be [ms, bytes], is {format_value(given)}")
        pairs = zip(self._kinds, given, strict=True)
        found, problems = collected(
            (f"[{n}]", getattr(kind, method), part) for n, (kind, part) in enumerate(pairs)
        )
        if problems:
            raise RejectedValueError(problems)
        at_ns, n_bytes = found
        return at_ns, n_bytes

    def write(self, value: Any) -> list[Any]:
        at_ns, n_bytes = value
        return [DELAY.write(at_ns), n_bytes]

    def schema(self) -> dict[str, Any]:
        parts = [kind.schema() for kind in self._kinds]
        return {"type": "array", "prefixItems": parts, "minItems": 2, "maxItems": 2}


def pieces_field(low: int) -> ListOf:
    """Return the type of a list of pieces of *low* bytes or more."""
    return ListOf(_Piece(low), "[ms, bytes]")


def _flag_field(about: str, used_by: str = "schemes", key: str = "") -> Any:
    return field(default=False, metadata=declare(Flag(), about, used_by=used_by, key=key))


def _time_field(about: str, used_by: str) -> Any:
    return field(default=0, metadata=declare(DELAY, about, used_by=used_by))


class Level(enum.Enum):
    """Chrome's priority levels, by their names in DevTools."""

    VERY_HIGH = "VeryHigh"
    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"
    VERY_LOW = "VeryLow"


class Group(enum.Enum):
    """Firefox's classes of service: the groups of its dependency tree."""

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
    """A recorded priority of a resource: that of its request, or a later one at trigger *when*.

    Raises:
        PageError: if it has no value, or a weight or flag without a position in the tree.
    """

    browser: RecordedFrom | None = field(
        default=None, metadata=declare(Choice(RecordedFrom), "the browser")
    )
    level: Level | None = field(
        default=None, metadata=declare(Choice(Level), "Chrome's level", is_premise=True)
    )
    group: Group | None = field(
        default=None,
        metadata=declare(Choice(Group), "Firefox's class", key="class", is_premise=True),
    )
    weight: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=1, high=MAX_WEIGHT), "the weight in that class or below that parent"
        ),
    )
    depends_on: str | None = field(
        default=None,
        metadata=declare(
            Text(),
            "the parent in a PRIORITY frame: the id of a resource, or one of recorded_groups; empty"
            " for the root of the tree",
            is_premise=True,
        ),
    )
    exclusive: bool | None = field(
        default=None,
        metadata=declare(Flag(), "whether it adopts all children of that parent"),
    )
    urgency: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=0, high=MAX_URGENCY), "u of the Priority field", is_premise=True
        ),
    )
    incremental: bool | None = field(
        default=None, metadata=declare(Flag(), "i of the Priority field", is_premise=True)
    )
    when: Discovery | None = field(
        default=None,
        metadata=declare(
            TRIGGER,
            "the trigger of a later change, as for `discovered`",
            stand_in=Discovery(at=TriggerEvent.TIME),
        ),
    )

    def __post_init__(self) -> None:
        validate(self, PageError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors between its values."""
        values = (self.level, self.group, self.urgency, self.incremental, self.depends_on)
        if all(value is None for value in values):
            names = "level, class, urgency, incremental and depends_on"
            yield ValidationIssue(key="", message=f"at least one of {names} is required")
        if self.weight is not None and self.group is None and self.depends_on is None:
            yield ValidationIssue(key="weight", message="is only allowed with class or depends_on")
        if self.exclusive is not None and self.depends_on is None:
            yield ValidationIssue(key="exclusive", message="is only allowed with depends_on")
        if self.group is not None and self.depends_on is not None:
            yield ValidationIssue(key="depends_on", message="conflicts with class: give only one")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityChange:
    """A change of a resource's state or priority at trigger *when*.

    Values that are left out stay unchanged. Before the request, the change is part of the request;
    afterwards the client may send a frame for the open stream (RFC 7540 § 6.3, RFC 9218 § 7).

    Raises:
        PageError: if it changes nothing.
    """

    when: Discovery = field(
        metadata=declare(
            TRIGGER,
            "the trigger, as for `discovered`",
            stand_in=Discovery(at=TriggerEvent.TIME),
        )
    )
    visible: bool | None = field(
        default=None, metadata=declare(Flag(), "layout places it in the viewport")
    )
    hidden: bool | None = field(
        default=None, metadata=declare(Flag(), "its tab moves to the background")
    )
    fetchpriority: FetchPriority | None = field(
        default=None,
        metadata=declare(Choice(FetchPriority), "the hint set by a script of the page"),
    )

    def __post_init__(self) -> None:
        validate(self, PageError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield an error if it changes nothing."""
        if all(value is None for value in (self.visible, self.hidden, self.fetchpriority)):
            message = "at least one of visible, hidden and fetchpriority is required"
            yield ValidationIssue(key="", message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a page; `docs/page-format.md` explains each field.

    Choices may be given by their names ("image").

    Raises:
        PageError: listing every value that is of another type or out of range.

    >>> Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=-1)
    Traceback (most recent call last):
    ...
    h3sim.values.errors.PageError: a.css: bytes: must not be negative, is -1
    """

    id: str = field(
        metadata=declare(Text(is_needed=True), "its unique name in the page", used_by="everything")
    )
    kind: Kind = field(metadata=declare(Choice(Kind), "its type in the browser", used_by="schemes"))
    mime: str = field(
        default="",
        metadata=declare(
            Text(),
            "its media type; other than the format of an image, only `kind` has an effect",
            used_by="`image_format`",
        ),
    )
    host: str = field(
        default="",
        metadata=declare(Text(), "its host (default: the root's)", used_by="[hosts](../hosts.md)"),
    )
    size_bytes: int = field(
        metadata=declare(
            _STREAM_SIZE,
            "the response body as transferred, 0 to 2^62 - 1",
            used_by="everything",
            key="bytes",
            stand_in=MAX_STREAM_BYTES,  # no offset is beyond its end
        )
    )
    header_bytes: int = field(
        default=0,
        metadata=declare(
            _STREAM_SIZE,
            "the response header, sent before the body; not counted by ByteIndex",
            used_by="the stream's length",
        ),
    )
    request_bytes: int = field(
        default=0,
        metadata=declare(
            _STREAM_SIZE,
            "the size of the request; if 0, its HPACK size over HTTP/2, and 100 otherwise",
            used_by="the uplink",
        ),
    )
    parse_ns: int = _time_field("parsing time once it is complete", "the trigger `executed`")
    execute_ns: int = _time_field("execution time after parsing", "the trigger `executed`")
    server_ns: int = _time_field("server think time before the response can be sent", "the server")
    body: tuple[tuple[int, int], ...] = field(
        default=(),
        metadata=declare(
            pieces_field(1),
            "the pieces of a body that takes time, `[[ms, bytes], ...]`: when each exists after"
            " the response could be sent first, and its size; by default all of it at once",
            used_by="the server",
        ),
    )
    response_offsets: tuple[int, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Integer(low=0), "whole numbers"),
            "offsets at which pieces of the response began in the recording, rising from 0",
            used_by="-",
        ),
    )
    in_head: bool = _flag_field("it is referenced from the head of the document")
    is_async: bool = _flag_field("a script that may run as soon as it is complete", key="async")
    is_defer: bool = _flag_field(
        "a script that runs after the document has been parsed", key="defer"
    )
    module: bool = _flag_field("a module script, or imported by one")
    other_media: bool = _flag_field(
        "a stylesheet whose media query does not match, such as `print`"
    )
    small: bool = _flag_field("an image whose tag declares at most 10,000 pixels")
    in_style: bool = _flag_field("it is referenced only by CSS inside the document")
    preload: bool = _flag_field("it is requested by a preload link")
    prefetch: bool = _flag_field(
        "it is requested only by a prefetch link, for a later page (its kind is `other`)",
        "the browser, when it [parses](../browsers.md)",
    )
    render_blocking: bool = _flag_field(
        "nothing is painted before it is complete", "the browser, when it [parses](../browsers.md)"
    )
    after_first_image: bool = _flag_field(
        "it was discovered after the first image in document order"
    )
    above_the_fold: bool = _flag_field(
        "it is needed for content that is visible without scrolling",
        "clairvoyant schemes, the second ByteIndex",
    )
    critical: bool = _flag_field("it is on the critical path of the page", "clairvoyant schemes")
    hero: bool = _flag_field("it is the main visible element", "the largest paint")
    is_lazy: bool = _flag_field(
        "it is requested only near the viewport (`loading=lazy`)",
        "the browser, when it [parses](../browsers.md)",
        key="lazy",
    )
    fetchpriority: FetchPriority = field(
        default=FetchPriority.AUTO,
        metadata=declare(
            Choice(FetchPriority),
            "the author's hint: `high`, `low` or `auto`",
            used_by="schemes of today's browsers; the browser's [tight mode](../browsers.md)",
        ),
    )
    font_display: FontDisplay = field(
        default=FontDisplay.AUTO,
        metadata=declare(
            Choice(FontDisplay),
            "the treatment of text until this font has arrived: `auto`, `block`, `swap`,"
            " `fallback` or `optional`",
            used_by="the largest paint",
        ),
    )
    image_format: ImageFormat | None = field(
        default=None,
        metadata=declare(
            Choice(ImageFormat),
            "the format of an image: `jpeg` (baseline), `progressive-jpeg`, `png`, `gif`, `webp`,"
            " `avif`, `svg` or `other`; by default that of `mime`, or else of the id's extension",
            used_by="[paint as it loads](../browsers.md#paint-as-it-loads)",
        ),
    )
    priority_changes: tuple[PriorityChange, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(PriorityChange, noun="an object", keeps_partial=True), "objects"),
            "later changes of its priority: see [Changes](../page-format.md#changes-of-priority)",
            used_by="schemes, by their rules",
        ),
    )
    recorded: tuple[RecordedPriority, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(RecordedPriority, noun="an object", keeps_partial=True), "objects"),
            "its [recorded priorities](../page-format.md#recorded-priorities) in browsers",
            used_by="the schemes `recorded`",
        ),
    )
    server_priorities: tuple[ServerPriority, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(ServerPriority, noun="an object", keeps_partial=True), "objects"),
            "priorities set by the origin: see"
            " [Priorities set by the server](../page-format.md#priorities-set-by-the-server)",
            used_by="servers with urgencies or buckets",
        ),
    )
    is_root: bool = _flag_field(
        "it is a navigated document, like the root: in a separate tab, window or frame, or after"
        " a redirect; see [Roots](../page-format.md#roots)",
        used_by="the browser, schemes",
        key="root",
    )
    viewport: float | None = field(
        default=None,
        metadata=declare(
            Number(low=0, high=1),
            "its visible share of the viewport's pixels, 0 to 1",
            used_by="the largest paint, SpeedIndex",
        ),
    )
    discovered: Discovery | None = field(
        default=None,
        metadata=declare(
            ALTERNATIVES,
            "its trigger, or a list of triggers, the first of which counts: see"
            " [Triggers](../page-format.md#triggers); only a root has none",
            used_by="the browser",
            stand_in=Discovery(at=TriggerEvent.TIME),
        ),
    )
    reference_offset_bytes: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=0),
            "the offset of its element in the document, if a preload or Early Hints request it:"
            " see [Preloads](../page-format.md#preloads-and-early-hints)",
            used_by="the browser, when it [parses](../browsers.md)",
        ),
    )

    def __post_init__(self) -> None:
        validate(self, PageError, self.id)

    @property
    def stream_bytes(self) -> int:
        """The bytes on its stream: response header and body."""
        return self.header_bytes + self.size_bytes

    @property
    def painted_format(self) -> ImageFormat:
        """The image format for painting: as given, or else by its media type, or by its name.

        >>> Resource(id="a.webp", kind=Kind.IMAGE, size_bytes=1).painted_format.value
        'webp'
        """
        return self.image_format or ImageFormat.of_name(self.mime or self.id)

    @property
    def has_element(self) -> bool:
        """True if the page uses it; False if it is only known from a preload."""
        return not self.preload or self.reference_offset_bytes is not None

    @property
    def is_prefetched(self) -> bool:
        """True if nothing of this page uses it: it is neither parsed, run nor painted."""
        return self.prefetch and self.kind is Kind.OTHER

    @property
    def is_module(self) -> bool:
        """True for a module script."""
        return self.module and self.kind is Kind.SCRIPT

    @property
    def is_deferred(self) -> bool:
        """True for a script that runs in order once the document is parsed.

        Module scripts do, too, unless they are async (HTML standard § 4.12.1).
        """
        return (self.is_defer or self.module) and not self.is_async

    @property
    def begins_page(self) -> bool:
        """True if it is a root: a navigated document."""
        return self.is_root or self.discovered is None

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors between its values."""
        offsets = self.response_offsets
        if any(b < a for a, b in zip((0, *offsets), offsets, strict=False)):
            yield ValidationIssue(key="response_offsets", message="must rise from 0")
        times = [at_ns for at_ns, _ in self.body]
        if times != sorted(times):
            yield ValidationIssue(key="body", message="must be in order of time")
        n_bytes = sum(size for _, size in self.body)
        if self.body and n_bytes != self.size_bytes:
            message = f"must be {self.size_bytes:,} bytes in all (bytes), is {n_bytes:,}"
            yield ValidationIssue(key="body", message=message)

    @property
    def availability(self) -> list[tuple[int, int]]:
        """The bytes of its stream that exist, by time in ns: its header at once, then each piece.

        >>> flushed = Resource(
        ...     id="/", kind=Kind.DOCUMENT, header_bytes=2, size_bytes=9, body=((0, 4), (10, 5))
        ... )
        >>> flushed.availability
        [(0, 2), (0, 6), (10, 11)]
        """
        sizes = itertools.accumulate((n for _, n in self.body), initial=self.header_bytes)
        return list(zip((0, *(at_ns for at_ns, _ in self.body)), sizes, strict=True))

    def resized(self, size_bytes: int, **changes: Any) -> Resource:
        """Return it with another size of its body, which changes its last pieces.

        >>> slow = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9, body=((0, 4), (10**9, 5)))
        >>> slow.resized(20).body, slow.resized(3).body
        (((0, 4), (1000000000, 16)), ((0, 3),))
        """
        pieces: list[tuple[int, int]] = []
        left = size_bytes
        for number, (at_ns, n_bytes) in enumerate(self.body, 1):
            size = left if number == len(self.body) else min(n_bytes, left)
            pieces += [(at_ns, size)] if size else []
            left -= size
        changes = {"response_offsets": ()} | changes
        return replace(self, size_bytes=size_bytes, body=tuple(pieces), **changes)


FLAGS = {
    entry.key: entry.attribute
    for entry in fields_of(Resource)
    if isinstance(entry.kind, Flag) and entry.attribute != "is_root"
}
"""The flags of a page file, each with the attribute of `Resource` that holds it.

`root` is not included: it describes the page, and no rule can test it.
"""


class ResourceState(NamedTuple):
    """Changed state of a resource; None for unchanged values.

    *visible*: layout placed it in the viewport; *hidden*: its tab is in the background;
    *fetchpriority*: set by a script of the page; *recorded*: later priorities of a recorded
    browser, newest first. As a change it has the new values only.

    >>> ResourceState(visible=True).after(ResourceState(hidden=True))[:2]
    (True, True)
    """

    visible: bool | None = None
    hidden: bool | None = None
    fetchpriority: FetchPriority | None = None
    recorded: tuple[RecordedPriority, ...] | None = None

    def after(self, change: ResourceState) -> ResourceState:
        """Return the state after *change*."""
        updates = {name: new for name, new in change._asdict().items() if new is not None}
        if change.recorded and self.recorded:
            updates["recorded"] = (*change.recorded, *self.recorded)
        return self._replace(**updates)

    def sets(self, names: Collection[str]) -> bool:
        """Return whether any of the values called *names* is set.

        >>> ResourceState(hidden=True).sets(["visible"])
        False
        >>> ResourceState(visible=False).sets(["visible"])
        True
        """
        values = zip(self._fields, self, strict=True)
        return any(value is not None and name in names for name, value in values)

    def applied_to(self, resource: Resource) -> Resource:
        """Return *resource* with the current hint."""
        hint = self.fetchpriority
        return resource if hint is None else replace(resource, fetchpriority=hint)


UNCHANGED = ResourceState()
"""The state in the page file: nothing has changed."""


def offsets_in(resource: Resource, parent: str) -> Iterator[int]:
    """Yield the offsets of the body of *parent* that can trigger a resource.

    >>> found = Discovery(by="/", at=TriggerEvent.OFFSET, offset_bytes=5)
    >>> image = Resource(id="a", kind=Kind.IMAGE, size_bytes=9, discovered=found)
    >>> list(offsets_in(image, "/")), list(offsets_in(image, "b"))
    ([5], [])
    """
    found = resource.discovered
    for when in () if found is None else found.alternatives:
        if when.at is TriggerEvent.OFFSET and when.by == parent:
            yield when.offset_bytes or 0
