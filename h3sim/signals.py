"""Priority signals of a client about its streams.

A *signal* names what the client wants; a scheduler acts on it. Streams have ids of 0 and above.
Placeholders (nodes that carry no data and only group others) have ids below 0, so that the two
can never be mistaken for one another: see `placeholder_id`.
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
"""The weight of a stream about which nothing was said (RFC 7540 § 5.3.5)."""

DEFAULT_URGENCY = 3
"""The urgency of a response about which nothing was said (RFC 9218 § 4.1)."""
MAX_URGENCY = 7
"""The least urgent there is (RFC 9218 § 4.1)."""

DEFAULT_STRICT = 16
"""The strict priority of an element about which nothing was said (base-drafts PR 2700)."""
MAX_STRICT = 255
"""The highest strict priority, which goes before all others."""

MAX_WEIGHT = 256
"""The largest share in a dependency tree (RFC 7540 § 5.3.2)."""
_MAX_BUCKET = 63
_LEVELS = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class H2Priority:
    """A place in the dependency tree (RFC 7540 § 5.3): under *depends_on*, sharing by *weight*.

    *depends_on* is a stream's or placeholder's id, or None for the root. Weights are effective
    ones (wire value + 1), 1 to 256; trees with zero weights (base-drafts PR 2723) use 0 to 255.

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

    Level 3 goes first and one at a time, then levels 2 (one at a time) and 1 (round robin) halve
    what is left. One byte on the wire holds both: bucket * 4 + level.

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
        if self.level not in _LEVELS:
            raise ValueError(f"level must be 1, 2 or 3, is {self.level}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Eps:
    """The extensible priority scheme's two parameters (RFC 9218 § 4).

    *urgency* is 0 to 7, 0 the most urgent; what is left out is 3 (§ 4.1). An *incremental*
    response is of use before all of it is there, so it may share (§ 4.2).

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
        """The text of a Priority field (RFC 9218 § 5); what has its default is left out.

        >>> Eps(urgency=0, incremental=True).field_value, Eps().field_value
        ('u=0, i', '')
        """
        parts = [] if self.urgency == DEFAULT_URGENCY else [f"u={self.urgency}"]
        return ", ".join([*parts, "i"] if self.incremental else parts)


class WithoutSignal(enum.Enum):
    """The priority of a request without a Priority field (RFC 9218 § 4 gives a default).

    Servers that took turns before they knew priorities go on to do so for clients that send none.
    """

    NOT_INCREMENTAL = "not-incremental"
    """Urgency 3 and not incremental, as RFC 9218 § 4 has it."""
    INCREMENTAL = "incremental"
    """Urgency 3 and incremental (mvfst)."""
    INCREMENTAL_UNTIL_SIGNAL = "incremental-until-signal"
    """Urgency 3, and incremental until the connection's client sent any priority (quic-go, Go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictPriority:
    """A place below a placeholder or the root, by strict priority and weight (base-drafts PR 2700).

    Of siblings those of the highest *strict* go first, 0 to 255; equal ones share by *weight*, 1 to
    256 (wire value + 1). *depends_on* is a placeholder's id, or None for the root: nothing depends
    on a stream.

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
    """A place in an order that was worked out from the page; lower goes first."""

    value: int


Signal: TypeAlias = H2Priority | BucketPriority | Eps | StrictPriority | Rank
SignalChange: TypeAlias = tuple[int, Signal]
"""A stream's or placeholder's id, and what is now wanted for it."""


def placeholder_id(index: int) -> int:
    """Return the id of the placeholder that was declared as number *index*, from 0 on.

    >>> placeholder_id(0), placeholder_id(4)
    (-1, -5)
    """
    return -1 - index


ORPHANS = -(2**61)
"""The orphan placeholder of HTTP/3 draft-22, which no client can name (base-drafts PR 2690)."""


class Signalling(enum.Enum):
    """The way by which a server learns the client's priorities.

    From `H2` to `EPS` it is sent: each signal takes the way up and can come late, or not in order.
    What goes on the control stream comes in the order in which it was sent.
    """

    NONE = "none"
    """Nothing is said."""
    SERVER = "server"
    """It knows by itself, when the request comes, as Marx 2019 ran it."""
    H2 = "h2"
    """PRIORITY in HEADERS; what is said of other streams, in frames on the same connection."""
    DRAFT_20 = "draft-20"
    """HTTP/3 before July 2019: first on the request stream, later on the control stream; nothing is
    exclusive."""
    DRAFT_22 = "draft-22"
    """HTTP/3 from July 2019: all on the control stream, exclusive again; until it is there, a
    request depends on the orphan placeholder."""
    EPS = "eps"
    """RFC 9218: the Priority field of the request, later PRIORITY_UPDATE on the control stream."""
    METADATA = "metadata"
    """The client announces its scheme when it connects, and says of each request what it is for;
    the server works the priorities out. What becomes known later goes on the control stream."""

    @property
    def is_sent(self) -> bool:
        """True if priorities take the way up."""
        return self not in (Signalling.NONE, Signalling.SERVER, Signalling.METADATA)

    @property
    def goes_with_request(self) -> bool:
        """True if a request carries what is wanted for it."""
        return self is not Signalling.DRAFT_22

    def message_bytes(self, *, is_http2: bool) -> int:
        """Return what a frame about another stream takes: PRIORITY, or PRIORITY_UPDATE.

        RFC 7540 § 6.3; HTTP/3 drafts 20 and 22, with ids of two bytes; RFC 9218 §§ 7.1 and 7.2. No
        document has a frame for metadata: 5 bytes are a type, a length, an id of two bytes, and
        flags. With *is_http2* a frame has a header of 9 bytes and an id of 4, whatever it says: so
        all but PRIORITY_UPDATE are as long as PRIORITY.

        >>> [Signalling.EPS.message_bytes(is_http2=is_http2) for is_http2 in (True, False)]
        [19, 13]
        """
        if is_http2:
            return 19 if self is Signalling.EPS else 14
        return {Signalling.H2: 14, Signalling.EPS: 13, Signalling.METADATA: 5}.get(self, 8)
