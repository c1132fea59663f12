"""What servers do differently with the dependency tree."""

from __future__ import annotations

import enum

from h3sim.signals import DEFAULT_WEIGHT

DEFAULT_TURN_BYTES = 1400


class Weights(enum.Enum):
    """What weights mean among siblings."""

    SHARES = "shares"
    """1 to 256, each a share (RFC 7540 § 5.3.2)."""
    ZERO = "zero"
    """255 first and one at a time; 1 to 254 share; 0 last and one at a time (Marx 2019 § 3.3)."""
    ZERO_LAST = "zero-last"
    """1 to 255 share; 0 last and one at a time (base-drafts PR 2723, as it was proposed)."""
    QUICKER_ZERO = "quicker-zero"
    """As `ZERO`, in Quicker's arithmetic: a turn at weight 0 costs an infinite virtual time, after
    which siblings go in the order of a binary heap of equal keys (the code of Marx 2019)."""

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest weight."""
        return (1, 256) if self is Weights.SHARES else (0, 255)

    @property
    def default(self) -> int:
        """The weight of a node about which nothing was said."""
        return DEFAULT_WEIGHT if self is Weights.SHARES else 0


class Orphans(enum.Enum):
    """What weights the children of a node get when it leaves the tree."""

    KEEP = "keep"
    """Their own (Quicker, Apache Traffic Server)."""
    SHARE = "share"
    """A part each of the node's weight, by their own weights (RFC 7540 § 5.3.4).

    Rounded to the nearest, halves up, and to 1 at least, by a factor of 16 bits (h2o)."""
    SHARE_DOWN = "share-down"
    """The same, rounded down, and to 1 at least (nghttp2)."""

    def weight(self, child: int, removed: int, total: int) -> int:
        """Return the weight of a child where its siblings and it weigh *total*.

        >>> Orphans.SHARE.weight(12, 16, 28), Orphans.SHARE_DOWN.weight(12, 16, 28)
        (7, 6)
        """
        match self:
            case Orphans.KEEP:
                return child
            case Orphans.SHARE:
                # Twice rounded, as h2o does it in whole numbers: first the factor, then its
                # product.
                factor = (removed * 65_536 + total // 2) // total
                return max(1, (child * factor // 32_768 + 1) // 2)
            case Orphans.SHARE_DOWN:
                return max(1, child * removed // total)


class UnknownParent(enum.Enum):
    """What becomes of a stream that shall depend on one which is not in the tree."""

    DEFAULT = "default"
    """It gets the default priority: under the root, weight 16 (RFC 7540 § 5.3.1; h2o, Quicker)."""
    CREATE = "create"
    """The parent is put there as an idle stream of default priority (RFC 7540 § 5.3.4; nghttp2)."""
    ANCESTOR = "ancestor"
    """It goes under the nearest ancestor of the parent that is still there, else under a shadow of
    the parent; once it is in the tree it stays where it is (Apache Traffic Server)."""
    ORPHANS = "orphans"
    """The parent is put under the orphan placeholder, `h3sim.signals.ORPHANS`, which every tree
    with this option has: what is below it sends only while nothing else can (HTTP/3 draft-22)."""


class TreeRules(enum.Enum):
    """How the tree is kept, beside who goes next."""

    RFC7540 = "rfc7540"
    """As RFC 7540 § 5.3 says; who moves keeps the turn of the groups above it."""
    NGHTTP2 = "nghttp2"
    """Closed and idle streams are kept, 100 of each; a stream that was idle is taken out before it
    is opened; siblings are listed anew newest first."""
    H2O = "h2o"
    """Whoever moves leaves one list before it joins the other, and a new weight moves it too."""


class Queueing(enum.Enum):
    """Which of the siblings that have something to send goes next."""

    EXACT = "exact"
    """Fair queueing in exact virtual time (Quicker): a turn costs bytes * 256 / weight."""
    NGHTTP2 = "nghttp2"
    """The same in whole cycles, remainders carried on (nghttp2 until 1.64)."""
    H2O = "h2o"
    """A calendar of 64 slots in which a turn costs 63 / weight slots, whatever its bytes (h2o)."""
    ATS = "ats"
    """Points that only grow, from the stream's id on (Apache Traffic Server, Koshiba 2016)."""

    @property
    def orphans(self) -> Orphans:
        """What the server that it is named after does with orphans; Quicker for "exact"."""
        return {Queueing.NGHTTP2: Orphans.SHARE_DOWN, Queueing.H2O: Orphans.SHARE}.get(
            self, Orphans.KEEP
        )

    @property
    def rules(self) -> TreeRules:
        """How that server keeps its tree."""
        return {Queueing.NGHTTP2: TreeRules.NGHTTP2, Queueing.H2O: TreeRules.H2O}.get(
            self, TreeRules.RFC7540
        )

    @property
    def unknown_parent(self) -> UnknownParent:
        """What that server makes of a parent that is not in the tree."""
        return {
            Queueing.NGHTTP2: UnknownParent.CREATE,
            Queueing.ATS: UnknownParent.ANCESTOR,
        }.get(self, UnknownParent.DEFAULT)
