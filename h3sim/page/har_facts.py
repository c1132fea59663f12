"""Facts of a page that HAR has no field for, as members called `_h3sim` of its entries and pages.

HAR 1.2 leaves names that begin with an underscore to the tools. An entry's `_h3sim` has keys of a
resource in a page file: all that a HAR can neither say nor show by sizes and times. A page's has
what belongs to no resource.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from h3sim.page.hosts import Host
from h3sim.page.model import MarksFrom
from h3sim.page.recording import Layout
from h3sim.page.resource import MAX_STREAM_BYTES, Resource
from h3sim.schema.fields import Named, Record, declare, read_table, validate, write_table
from h3sim.schema.values import Choice
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from h3sim.page.model import Page
    from h3sim.page.resource import Discovery, PriorityChange


FACTS = "_h3sim"
"""Name of the member."""
_SHOWN = ("bytes", "header_bytes", "request_bytes", "mime", "recorded", "response_offsets")
"""Keys of a resource whose values the other members of an entry have, or measure."""


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """Facts of a page that belong to no resource.

    Raises:
        InputError: listing every value that is wrong.
    """

    above_the_fold_from: MarksFrom = field(
        default=MarksFrom.PAGE,
        metadata=declare(Choice(MarksFrom), "the source of the above-the-fold labels"),
    )
    layout: Layout | None = field(
        default=None, metadata=declare(Record(Layout, noun="an object"), "the recorded viewport")
    )
    hosts: tuple[Host, ...] = field(
        default=(), metadata=declare(Named(Host), "known facts of hosts with their connections")
    )

    def __post_init__(self) -> None:
        validate(self, InputError)


def write_page_facts(page: Page, *, has_connections_per_host: bool) -> dict[str, Any]:
    """Return the facts of *page*; its hosts if they had connections of their own.

    >>> import h3sim
    >>> page = h3sim.load_page("davies-meenan")
    >>> write_page_facts(page, has_connections_per_host=False)
    {}
    """
    facts = PageFacts(
        above_the_fold_from=page.above_the_fold_from,
        layout=page.layout,
        hosts=page.hosts if has_connections_per_host else (),
    )
    return write_table(facts)


def read_page_facts(table: object) -> PageFacts:
    """Return the facts of a page in a HAR.

    Raises:
        RejectedValueError: listing every error in it.
    """
    return read_table(PageFacts, table, noun="an object")


def write_facts(
    resource: Resource, *, has_triggers: bool, has_connections_per_host: bool
) -> dict[str, Any]:
    """Return the facts of *resource* that an entry has no member for.

    Its trigger is one if *has_triggers*: a browser that computes its load requests resources by
    other rules. Its host is one if hosts had connections of their own.

    >>> import h3sim
    >>> hero = h3sim.load_page("davies-meenan").resources[7]
    >>> facts = write_facts(hero, has_triggers=True, has_connections_per_host=False)
    >>> facts["above_the_fold"], facts["hero"], facts["discovered"]
    (True, True, {'by': 'top.js', 'at': 'executed'})
    """
    left_out = [*_SHOWN]
    if not has_triggers:
        left_out.append("discovered")
    if not has_connections_per_host:
        left_out.append("host")
    return {key: value for key, value in write_table(resource).items() if key not in left_out}


def read_facts(table: object) -> Resource:
    """Return the facts in an entry as a resource, whose size is not among them.

    Raises:
        RejectedValueError: listing every error in it.
    """
    if not isinstance(table, dict):
        return read_table(Resource, table, noun="an object")
    facts = {key: value for key, value in table.items() if key not in _SHOWN}
    return read_table(Resource, {**facts, "bytes": MAX_STREAM_BYTES}, noun="an object")


def with_known_triggers(facts: Resource, sizes: Mapping[str, int]) -> Resource:
    """Return *facts* without triggers by resources that a recording lacks.

    *sizes* are those of the recorded bodies by id; a trigger's offset is at most the size.
    """
    changes = _known_changes(facts.priority_changes, sizes)
    return replace(
        facts, discovered=_known_trigger(facts.discovered, sizes), priority_changes=changes
    )


def _known_trigger(when: Discovery | None, sizes: Mapping[str, int]) -> Discovery | None:
    """Return those alternatives of a trigger whose parents are all in *sizes*, None without any."""
    if when is None:
        return None
    known = [
        _within_bodies(each, sizes)
        for each in when.alternatives
        if all(parent in sizes for parent in each.parents)
    ]
    return replace(known[0], or_else=tuple(known[1:])) if known else None


def _within_bodies(when: Discovery, sizes: Mapping[str, int]) -> Discovery:
    """Return a trigger whose offset is within the bodies of its parents."""
    if when.offset_bytes is None:
        return when
    least_bytes = min(sizes[parent] for parent in when.parents)
    return replace(when, offset_bytes=min(when.offset_bytes, least_bytes))


def _known_changes(
    changes: Iterable[PriorityChange], sizes: Mapping[str, int]
) -> tuple[PriorityChange, ...]:
    """Return the changes whose trigger is known."""
    return tuple(
        replace(change, when=when)
        for change in changes
        if (when := _known_trigger(change.when, sizes)) is not None
    )
