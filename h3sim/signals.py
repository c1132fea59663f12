"""Priority signals of a client for its streams.

A *signal* carries the client's priority; a scheduler acts on it. Streams have ids of 0 and above.
Placeholders (nodes that carry no data and only group others) have ids below 0, so that the two
cannot be confused: see `placeholder_id`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "DEFAULT_STRICT",
    "DEFAULT_URGENCY",
    "DEFAULT_WEIGHT",
    "MAX_STRICT",
    "MAX_URGENCY",
    "MAX_WEIGHT",
    "ORPHANS",
    "BucketPriority",
    "Eps",
    "H2Priority",
    "Rank",
    "Signal",
    "SignalChange",
    "Signalling",
    "StrictPriority",
    "WithoutSignal",
    "placeholder_id",
]

DEFAULT_WEIGHT = 16
"""The default weight of a stream (RFC 7540 § 5.3.5)."""

DEFAULT_URGENCY = 3
"""The default urgency of a response (RFC 9218 § 4.1)."""
MAX_URGENCY = 7
"""The lowest urgency (RFC 9218 § 4.1)."""

DEFAULT_STRICT = 16
"""The default strict priority of an element (base-drafts PR 2700)."""
MAX_STRICT = 255
"""The highest strict priority, served before all others."""

MAX_WEIGHT = 256
"""The largest weight in a dependency tree (RFC 7540 § 5.3.2)."""
_MAX_BUCKET = 63
"""The bucket that is served first, of those that six bits can name (`BucketPriority`)."""
_BUCKET_LEVELS = (1, 2, 3)
"""The concurrency levels within a bucket (`BucketPriority`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class H2Priority:
    """A position in the dependency tree (RFC 7540 § 5.3): below *depends_on*, with a *weight*.

    *depends_on* is a stream's or placeholder's id, or None for the root. Weights are effective ones
    (wire value + 1), 1 to 256; trees with zero weights (base-drafts PR 2723) use 0 to 255.

    Raises:
        ValueError: if the weight is outside 0 to 256.

    >>> H2Priority(weight=256).depends_on is None
    True
    """

    weight: int = DEFAULT_WEIGHT
    depends_on: int | None = None
    exclusive: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= MAX_WEIGHT:
            raise ValueError(f"weight must be 0 to {MAX_WEIGHT}, is {self.weight}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPriority:
    """A strict bucket, 63 first, and a concurrency level in it (Marx 2019, Fig. 7).

    Level 3 goes first and sequentially, then levels 2 (sequential) and 1 (round robin) each get
    half of the rest. One byte on the wire encodes both: bucket * 4 + level.

    Raises:
        ValueError: if the bucket is outside 0 to 63 or the level outside 1 to 3.

    >>> BucketPriority(bucket=63, level=3)
    BucketPriority(bucket=63, level=3)
    """

    bucket: int
    level: int

    def __post_init__(self) -> None:
        if not 0 <= self.bucket <= _MAX_BUCKET:
            raise ValueError(f"bucket must be 0 to {_MAX_BUCKET}, is {self.bucket}")
        if self.level not in _BUCKET_LEVELS:
            raise ValueError(f"level must be 1, 2 or 3, is {self.level}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Eps:
    """The two parameters of the extensible priority scheme (RFC 9218 § 4).

    *urgency* is 0 to 7, 0 the most urgent; the default is 3 (§ 4.1). An *incremental* response is
    useful before it is complete, so it may share bandwidth (§ 4.2).

    Raises:
        ValueError: if the urgency is outside 0 to 7.

    >>> Eps(), Eps(urgency=0, incremental=True)
    (Eps(urgency=3, incremental=False), Eps(urgency=0, incremental=True))
    """

    urgency: int = DEFAULT_URGENCY
    incremental: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.urgency <= MAX_URGENCY:
            raise ValueError(f"urgency must be 0 to {MAX_URGENCY}, is {self.urgency}")

    @property
    def field_value(self) -> str:
        """The value of the Priority field (RFC 9218 § 5), without default parameters.

        >>> Eps(urgency=0, incremental=True).field_value, Eps().field_value
        ('u=0, i', '')
        """
        parts = [] if self.urgency == DEFAULT_URGENCY else [f"u={self.urgency}"]
        return ", ".join([*parts, "i"] if self.incremental else parts)


class WithoutSignal(enum.Enum):
    """The priority of a request without a Priority field (RFC 9218 § 4 gives a default).

    Servers that used round robin before they supported priorities keep it for clients that send
    none.
    """

    NOT_INCREMENTAL = "not-incremental"
    """Urgency 3 and not incremental, as in RFC 9218 § 4."""
    INCREMENTAL = "incremental"
    """Urgency 3 and incremental (mvfst)."""
    INCREMENTAL_UNTIL_SIGNAL = "incremental-until-signal"
    """Urgency 3, and incremental until the client has sent any priority (quic-go, Go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictPriority:
    """A position below a placeholder or the root, by strict priority and weight (PR 2700).

    Among siblings the highest *strict* goes first, 0 to 255; equal ones share by *weight*, 1 to 256
    (wire value + 1). *depends_on* is a placeholder's id, or None for the root: nothing depends on a
    stream. Source: base-drafts PR 2700.

    Raises:
        ValueError: if a number is out of range, or *depends_on* is a stream.

    >>> StrictPriority(strict=255).weight
    16
    """

    weight: int = DEFAULT_WEIGHT
    strict: int = DEFAULT_STRICT
    depends_on: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.weight <= MAX_WEIGHT:
            raise ValueError(f"weight must be 1 to {MAX_WEIGHT}, is {self.weight}")
        if not 0 <= self.strict <= MAX_STRICT:
            raise ValueError(f"strict must be 0 to {MAX_STRICT}, is {self.strict}")
        if self.depends_on is not None and self.depends_on >= 0:
            raise ValueError(f"depends_on must be a placeholder, is stream {self.depends_on}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A rank in an order derived from the page; lower goes first."""

    value: int


Signal: TypeAlias = H2Priority | BucketPriority | Eps | StrictPriority | Rank
"""The priority of one stream or placeholder, of the kind that its scheduler uses."""
SignalChange: TypeAlias = tuple[int, Signal]
"""A stream's or placeholder's id, and its new signal."""


def placeholder_id(index: int) -> int:
    """Return the id of the placeholder declared as number *index*, counting from 0.

    >>> placeholder_id(0), placeholder_id(4)
    (-1, -5)
    """
    return -1 - index


ORPHANS = -(2**61)
"""The orphan placeholder of HTTP/3 draft-22, which no client can name (base-drafts PR 2690)."""


class Signalling(enum.Enum):
    """The way a server learns the client's priorities.

    `H2` to `EPS` send signals on the uplink, where they may be delayed or reordered. Signals on the
    control stream arrive in the order sent.
    """

    NONE = "none"
    """There are no signals."""
    SERVER = "server"
    """The server knows the priority on arrival of the request, as in Marx 2019."""
    H2 = "h2"
    """PRIORITY in HEADERS; signals for other streams in frames on the same connection."""
    DRAFT_20 = "draft-20"
    """HTTP/3 before July 2019: first on the request stream, later on the control stream.

    It has no exclusive dependencies.
    """
    DRAFT_20_CONTROL = "draft-20-control"
    """The same, but the first signal is on the control stream, too, as that draft allows.

    Until it arrives, a request depends on the root, with the default weight (Marx 2019 § 3.1).
    """
    DRAFT_22 = "draft-22"
    """HTTP/3 from July 2019: all on the control stream, exclusive dependencies again.

    Until its signal arrives, a request depends on the orphan placeholder.
    """
    DRAFT_22_ROOT = "draft-22-root"
    """The same before the orphan placeholder was added (base-drafts PR 2761 without PR 2690).

    Until its signal arrives, a request depends on the root, with the default weight (Marx 2019
    § 3.2).
    """
    EPS = "eps"
    """RFC 9218: the Priority field of the request, later PRIORITY_UPDATE on the control stream."""
    METADATA = "metadata"
    """The client sends its scheme at connection setup, and metadata with each request.

    The server derives the priorities. Later changes of state go on the control stream.
    """

    @property
    def is_sent(self) -> bool:
        """True if priorities are sent on the uplink."""
        return self not in (Signalling.NONE, Signalling.SERVER, Signalling.METADATA)

    @property
    def goes_with_request(self) -> bool:
        """True if a request carries its own priority."""
        control = (Signalling.DRAFT_20_CONTROL, Signalling.DRAFT_22, Signalling.DRAFT_22_ROOT)
        return self not in control

    @property
    def has_exclusive(self) -> bool:
        """True if dependencies can be exclusive."""
        return self not in (Signalling.DRAFT_20, Signalling.DRAFT_20_CONTROL)

    def message_bytes(self, *, is_http2: bool) -> int:
        """Return the size of a frame about another stream: PRIORITY, or PRIORITY_UPDATE.

        RFC 7540 § 6.3; HTTP/3 drafts 20 and 22, with ids of two bytes; RFC 9218 §§ 7.1 and 7.2. No
        document defines a frame for metadata: 5 bytes are a type, a length, an id of two bytes, and
        flags. With *is_http2* a frame has a header of 9 bytes and an id of 4, so all frames except
        PRIORITY_UPDATE have the size of PRIORITY.

        >>> [Signalling.EPS.message_bytes(is_http2=is_http2) for is_http2 in (True, False)]
        [19, 13]
        """
        if is_http2:
            return 19 if self is Signalling.EPS else 14
        priority_of_drafts = 8
        sizes = {Signalling.H2: 14, Signalling.EPS: 13, Signalling.METADATA: 5}
        return sizes.get(self, priority_of_drafts)
