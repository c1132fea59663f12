"""Two pages over one connection: tabs of one site, or users of one proxy."""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.documents.arguments import Only, check_arguments
from h3sim.documents.values import Choice, Number, Text
from h3sim.errors import InputError
from h3sim.page.discovery import MAX_TIME_NS, At, Discovery
from h3sim.page.recorded_load import RecordedLoad
from h3sim.page.resource import PriorityChange
from h3sim.page.variants import retriggered
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.page.hosts import Host
    from h3sim.page.model import Page
    from h3sim.page.resource import Resource

__all__ = ["Opened", "beside"]

_PAGE = Only("a page", lambda value: hasattr(value, "resources") and hasattr(value, "root"))
_AFTER = Number(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


class Opened(enum.Enum):
    """Where another page is opened, and what that does to the one that is there."""

    BESIDE = "beside"
    """Both are seen: windows side by side, or two users."""
    BACKGROUND = "background"
    """In a tab in the background."""
    FRONT = "front"
    """In a tab in front, so that the first goes to the background."""


def beside(
    page: Page,
    other: Page,
    *,
    after_ms: float = 0,
    opened: Opened | str = Opened.BESIDE,
    name: str | None = None,
) -> Page:
    """Return *page* with *other* as another root, which is asked for *after_ms*.

    Ids of the other begin with the name of its page. Nothing is cached: what both ask for is sent
    twice, as to two users of a proxy. A page that names no host is taken to be of the same. Of what
    a recording says the network of *page* is kept. The page is called *name*; without it a part of
    its digest is added to the name it had.

    Raises:
        InputError: if an argument is none of these.

    >>> from h3sim.page import Kind, Page, Resource
    >>> one = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> both = beside(one, replace(one, name="two"), after_ms=500)
    >>> [(resource.id, resource.is_root) for resource in both.resources]
    [('/', False), ('two:/', True)]
    """
    arguments: dict[str, Any] = {"page": (_PAGE, page), "other": (_PAGE, other)}
    arguments |= {"after_ms": (_AFTER, after_ms), "opened": (Choice(Opened), opened)}
    check_arguments(InputError, **arguments, **({} if name is None else {"name": (Text(), name)}))
    opened_at = Discovery(at=At.TIME, delay_ns=ms(after_ms))
    kept, moved = list(page.resources), _moved(other, _prefix(page, other), opened_at)
    if Opened(opened) is Opened.BACKGROUND:
        moved = _hidden(moved, Discovery(at=At.TIME))
    elif Opened(opened) is Opened.FRONT:
        kept = _hidden(kept, opened_at)
    both = page.with_resources((*kept, *moved), name=name)
    marks_from = (page if page.above_the_fold_from.is_inferred else other).above_the_fold_from
    return replace(
        both,
        hosts=_hosts(page, other),
        above_the_fold_from=marks_from,
        provenance={**page.provenance, "beside": f"{other.name} after {after_ms:g} ms"},
        recorded_load=_network_of(page.recorded_load),
    )


def _prefix(page: Page, other: Page) -> str:
    """Return what ids of *other* begin with, so that each stands once."""
    number, prefix = 1, f"{other.name}:"
    # Of two copies of a page, or of a page that stands beside others already.
    while any(f"{prefix}{resource.id}" in page.index for resource in other.resources):
        number += 1
        prefix = f"{other.name} ({number}):"
    return prefix


def _moved(other: Page, prefix: str, opened_at: Discovery) -> list[Resource]:
    """Return the resources of a page that is opened later; its clock starts with its root."""
    root = other.resources[other.root]

    def later(when: Discovery) -> Discovery:
        # Navigation start is when its own root is asked for.
        if when.at is At.TIME:
            return Discovery(by=f"{prefix}{root.id}", at=At.REQUEST, delay_ns=when.delay_ns)
        return replace(when, by=f"{prefix}{when.by}")

    found = []
    for resource in other.resources:
        host = resource.host or root.host
        named = replace(resource, id=f"{prefix}{resource.id}", host=host)
        found.append(retriggered(named, later))
    found[other.root] = replace(found[other.root], is_root=True, discovered=opened_at)
    return found


def _hosts(page: Page, other: Page) -> tuple[Host, ...]:
    """Return the hosts of both; where both know something of one, the first page says it."""
    known = {host.name: host for host in page.hosts}
    rtt_of = {host.shared: host.rtt_ns for host in page.hosts if host.shared is not None}
    for host in other.hosts:
        # Hosts of one server are equally far away, and each recording has its own estimate.
        rtt_ns = rtt_of.get(host.shared, host.rtt_ns) if host.shared is not None else host.rtt_ns
        known.setdefault(host.name, replace(host, rtt_ns=rtt_ns))
    return tuple(known.values())


def _hidden(resources: Iterable[Resource], when: Discovery) -> list[Resource]:
    change = PriorityChange(when=when, hidden=True)
    return [
        replace(resource, priority_changes=(*resource.priority_changes, change))
        for resource in resources
    ]


def _network_of(recorded: RecordedLoad | None) -> RecordedLoad | None:
    """Return what holds of a recording once something else is loaded beside it."""
    if recorded is None or recorded.rtt_ns is None:
        return None
    return RecordedLoad(
        rtt_ns=recorded.rtt_ns,
        rtt_from=recorded.rtt_from,
        rate_bps=recorded.rate_bps,
        rate_from=recorded.rate_from,
        protocol=recorded.protocol,
    )
