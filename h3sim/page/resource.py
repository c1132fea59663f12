"""A resource of a page, and what makes the browser ask for it, as frozen values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.errors import PageError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FLAGS", "At", "Discovery", "FetchPriority", "Kind", "Resource"]

MAX_STREAM_BYTES = 2**62 - 1
"""The largest final size of a stream (RFC 9000 § 4.5)."""
MAX_TIME_NS = 86_400 * 10**9
"""A day: longer delays are mistakes."""

FLAGS = {
    "in_head": "in_head",
    "async": "is_async",
    "defer": "is_defer",
    "preload": "preload",
    "render_blocking": "render_blocking",
    "after_first_image": "after_first_image",
    "above_the_fold": "above_the_fold",
    "critical": "critical",
    "hero": "hero",
    "lazy": "is_lazy",
}
"""The flags of a page file, each with the attribute of `Resource` that holds it."""


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


class At(enum.Enum):
    """The event that makes the browser ask for a resource."""

    TIME = "time"
    """Navigation start."""
    REQUEST = "request"
    """The parent is requested."""
    OFFSET = "offset"
    """So many contiguous bytes of the parent were delivered."""
    COMPLETE = "complete"
    """All bytes of the parent were delivered."""
    EXECUTED = "executed"
    """The parent was delivered, parsed and executed."""


class FetchPriority(enum.Enum):
    """The page author's hint."""

    HIGH = "high"
    LOW = "low"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Why and when a resource is asked for: *delay_ns* after event *at* of resource *by*."""

    at: At
    by: str | None = None
    offset_bytes: int | None = None
    delay_ns: int = 0

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with it, keys relative to it."""
        if self.at is not At.TIME and self.by is None:
            yield Problem(key="by", message=f"is needed where at is {self.at.value!r}")
        if self.at is At.OFFSET and self.offset_bytes is None:
            yield Problem(key="offset_bytes", message="is needed where at is 'offset'")
        if self.at is not At.OFFSET and self.offset_bytes is not None:
            yield Problem(key="offset_bytes", message="goes only with at = 'offset'")
        if self.offset_bytes is not None and self.offset_bytes < 0:
            yield Problem(
                key="offset_bytes", message=f"must not be negative, is {self.offset_bytes}"
            )
        yield from _time_problems("delay_ms", self.delay_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a page; `docs/page-format.md` explains each field.

    Raises:
        PageError: listing every value that is out of range.

    >>> Resource(id="a.css", kind=Kind.STYLESHEET, size_bytes=-1)
    Traceback (most recent call last):
    ...
    h3sim.errors.PageError: a.css: bytes: must not be negative, is -1
    """

    id: str
    kind: Kind
    size_bytes: int
    mime: str = ""
    header_bytes: int = 0
    request_bytes: int = 0
    discovered: Discovery | None = None
    in_head: bool = False
    is_async: bool = False
    is_defer: bool = False
    preload: bool = False
    render_blocking: bool = False
    after_first_image: bool = False
    above_the_fold: bool = False
    critical: bool = False
    hero: bool = False
    is_lazy: bool = False
    fetchpriority: FetchPriority = FetchPriority.AUTO
    parse_ns: int = 0
    execute_ns: int = 0
    server_ns: int = 0
    viewport: float | None = None
    response_offsets: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise PageError(problems, self.id)

    @property
    def stream_bytes(self) -> int:
        """What its stream carries: response header and body."""
        return self.header_bytes + self.size_bytes

    def _problems(self) -> Iterator[Problem]:
        if not self.id:
            yield Problem(key="id", message="must not be empty")
        for key, size in (
            ("bytes", self.size_bytes),
            ("header_bytes", self.header_bytes),
            ("request_bytes", self.request_bytes),
        ):
            if size < 0:
                yield Problem(key=key, message=f"must not be negative, is {size}")
            elif size > MAX_STREAM_BYTES:
                yield Problem(
                    key=key, message=f"is more than a stream can carry (2^62 - 1): {size}"
                )
        for key, time_ns in (
            ("parse_ms", self.parse_ns),
            ("execute_ms", self.execute_ns),
            ("server_ms", self.server_ns),
        ):
            yield from _time_problems(key, time_ns)
        if self.viewport is not None and not 0 <= self.viewport <= 1:
            yield Problem(key="viewport", message=f"must be 0 to 1, is {self.viewport}")
        offsets = self.response_offsets
        if any(b < a for a, b in zip((0, *offsets), offsets, strict=False)):
            yield Problem(key="response_offsets", message="must rise from 0 on")
        if self.discovered is not None:
            for problem in self.discovered.problems():
                yield Problem(key=f"discovered.{problem.key}", message=problem.message)


def _time_problems(key: str, time_ns: int) -> Iterator[Problem]:
    if time_ns < 0:
        yield Problem(key=key, message=f"must not be negative, is {time_ns / 1e6}")
    elif time_ns > MAX_TIME_NS:
        yield Problem(key=key, message=f"is more than a day: {time_ns / 1e6} ms")
