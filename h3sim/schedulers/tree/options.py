"""Options in which servers differ in their use of the dependency tree."""

from __future__ import annotations

import enum

from h3sim.signals import DEFAULT_WEIGHT

DEFAULT_TURN_BYTES = 1400
"""The expected size of a quantum where no transport determines it: a packet."""


class Weights(enum.Enum):
    """The meaning of weights among siblings."""

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
        """The smallest and the largest weight."""
        return (1, 256) if self is Weights.SHARES else (0, 255)

    @property
    def default(self) -> int:
        """The weight of a node without a signal."""
        return DEFAULT_WEIGHT if self is Weights.SHARES else 0


class Orphans(enum.Enum):
    """The weights of a node's children after it leaves the tree."""

    KEEP = "keep"
    """Their own (Quicker, Apache Traffic Server)."""
    SHARE = "share"
    """A part of the node's weight for each, in proportion to its own (RFC 7540 § 5.3.4).

    Rounded to the nearest, halves up, and to 1 at least, by a factor of 16 bits (h2o)."""
    SHARE_DOWN = "share-down"
    """The same, rounded down, and to 1 at least (nghttp2)."""

    def weight(self, child: int, removed: int, total: int) -> int:
        """Return the new weight of a child; its siblings and it had weight *total*.

        >>> Orphans.SHARE.weight(12, 16, 28), Orphans.SHARE_DOWN.weight(12, 16, 28)
        (7, 6)
        """
        match self:
            case Orphans.KEEP:
                return child
            case Orphans.SHARE:
                # Rounded twice, as in h2o's integer arithmetic: first the factor, then the product.
                factor = (removed * 65_536 + total // 2) // total
                return max(1, (child * factor // 32_768 + 1) // 2)
            case Orphans.SHARE_DOWN:
                return max(1, child * removed // total)


class UnknownParent(enum.Enum):
    """The treatment of a dependency on a stream that is not in the tree."""

    DEFAULT = "default"
    """It gets the default priority: under the root, weight 16 (RFC 7540 § 5.3.1; h2o, Quicker)."""
    CREATE = "create"
    """The parent is created as an idle stream of default priority (RFC 7540 § 5.3.4; nghttp2)."""
    ANCESTOR = "ancestor"
    """It becomes a child of the nearest remaining ancestor of the parent, else of a placeholder for
    the parent; once in the tree it keeps its position (Apache Traffic Server)."""
    ORPHANS = "orphans"
    """The parent is created below the orphan placeholder, `h3sim.signals.ORPHANS`, which every tree
    with this option has: its descendants send only while nothing else can (HTTP/3 draft-22)."""


class TreeRules(enum.Enum):
    """The rules for changes of the tree."""

    RFC7540 = "rfc7540"
    """RFC 7540 § 5.3; ancestors of a moved node keep their quantum."""
    NGHTTP2 = "nghttp2"
    """Closed and idle streams are retained, 100 each; an idle stream is removed before it opens;
    siblings are relisted newest first."""
    NODE = "node"
    """Those of nghttp2, but closed streams are not retained: Node sets the option
    nghttp2_option_set_no_closed_streams."""
    H2O = "h2o"
    """A moved node leaves one list before it joins the other, also for a new weight alone."""


class Queueing(enum.Enum):
    """The queueing discipline among siblings with data."""

    EXACT = "exact"
    """Fair queueing in exact virtual time (Quicker): a quantum costs bytes * 256 / weight."""
    NGHTTP2 = "nghttp2"
    """The same in integer cycles with carried remainders (nghttp2 until 1.64)."""
    H2O = "h2o"
    """A calendar of 64 slots in which a quantum costs 63 / weight slots (h2o)."""
    ATS = "ats"
    """Points that only grow, starting with the stream's ID (Apache Traffic Server, Koshiba
    2016)."""

    @property
    def orphans(self) -> Orphans:
        """The orphans option of the server of that name; Quicker for "exact"."""
        return {Queueing.NGHTTP2: Orphans.SHARE_DOWN, Queueing.H2O: Orphans.SHARE}.get(
            self, Orphans.KEEP
        )

    @property
    def rules(self) -> TreeRules:
        """The tree rules of the server of that name."""
        return {Queueing.NGHTTP2: TreeRules.NGHTTP2, Queueing.H2O: TreeRules.H2O}.get(
            self, TreeRules.RFC7540
        )

    @property
    def unknown_parent(self) -> UnknownParent:
        """The unknown-parent option of the server of that name."""
        return {
            Queueing.NGHTTP2: UnknownParent.CREATE,
            Queueing.ATS: UnknownParent.ANCESTOR,
        }.get(self, UnknownParent.DEFAULT)
