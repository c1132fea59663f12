"""A page as what a link must send: parts of responses, and what each waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import At

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from h3sim.page import Discovery, Page, Resource

__all__ = ["Part", "Path", "parts_of"]


class Path(NamedTuple):
    """What a constant rate costs: a packet each *interval_ns*, and the ways up and down.

    *begins_at_ns* is when the root is asked for.
    """

    packet_bytes: int
    interval_ns: Fraction
    down_ns: int
    up_ns: int
    begins_at_ns: int = 0


class Part(NamedTuple):
    """Packets of one response that are all sent before something follows from them.

    Its first packet leaves at the earliest at tick *first_tick*, and *lag_ticks* after the last
    packet of the part *after* (an index in the list), if there is one. *weight* counts when its
    last packet is there.
    """

    after: int | None
    lag_ticks: int
    first_tick: int
    n_packets: int
    weight: int


class _Asked(NamedTuple):
    """When a resource is asked for: *ns* after part *after* was delivered, or in all."""

    after: int | None
    ns: int


def parts_of(page: Page, path: Path, *, weighs: Callable[[Resource], bool]) -> list[Part]:
    """Return the parts of *page*, each behind the one that it waits for.

    A response is cut where the browser asks for something, at as few packets as bring that many
    bytes. Whatever *weighs* is true of counts with its body's bytes, once it is there.

    >>> from fractions import Fraction
    >>> from h3sim.page import Kind, Page, Resource
    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=2800),))
    >>> parts_of(page, Path(1400, Fraction(10), 0, 0), weighs=lambda resource: True)
    [Part(after=None, lag_ticks=1, first_tick=1, n_packets=2, weight=2800)]
    """
    parts: list[Part] = []
    asked: dict[int, _Asked] = {}
    ends: dict[tuple[int, int], int] = {}
    for index in _parents_first(page):
        resource = page.resources[index]
        asked[index] = _asked(page, index, path, asked, ends)
        weight = resource.size_bytes if weighs(resource) else 0
        cuts = _cuts(page, index, path.packet_bytes)
        for begin, end in zip([0, *cuts], cuts, strict=False):
            after, lag_ticks, first_tick = _release(asked[index], resource, path, parts)
            # What is behind a cut waits for what is before it, and for nothing else.
            if begin:
                after, lag_ticks = len(parts) - 1, 1
                first_tick = _last_tick(parts[-1]) + 1
            is_last = end == cuts[-1]
            # A response counts once it is whole, so its weight lies on the last part.
            parts.append(Part(after, lag_ticks, first_tick, end - begin, weight * is_last))
            ends[index, end] = len(parts) - 1
    return parts


def _parents_first(page: Page) -> list[int]:
    """Return the resources so that each stands behind its parent."""
    order, on_stack = [], [i for i, r in enumerate(page.resources) if _parent(page, r) is None]
    children: Mapping[int, tuple[int, ...]] = page.children
    while on_stack:
        index = on_stack.pop()
        order.append(index)
        on_stack += children.get(index, ())
    return order


def _parent(page: Page, resource: Resource) -> int | None:
    discovery = resource.discovered
    if discovery is None or discovery.by is None or discovery.at is At.TIME:
        return None
    return page.index[discovery.by]


def _asked(
    page: Page,
    index: int,
    path: Path,
    asked: Mapping[int, _Asked],
    ends: Mapping[tuple[int, int], int],
) -> _Asked:
    """Return when a resource is asked for, from its parent's, which is known."""
    resource = page.resources[index]
    discovery, parent = resource.discovered, _parent(page, resource)
    if discovery is None:
        return _Asked(None, path.begins_at_ns)
    if parent is None:
        return _Asked(None, max(path.begins_at_ns, discovery.delay_ns))
    if discovery.at is At.REQUEST:
        after, ns = asked[parent]
        return _Asked(after, ns + discovery.delay_ns)
    of = page.resources[parent]
    ns = discovery.delay_ns
    if discovery.at is At.EXECUTED:
        ns += of.parse_ns + of.execute_ns
    return _Asked(ends[parent, _n_packets_until(of, discovery, path.packet_bytes)], ns)


def _n_packets_until(parent: Resource, discovery: Discovery, packet_bytes: int) -> int:
    """Return how many packets of *parent* are there, at least, when *discovery* happens."""
    n_bytes = parent.stream_bytes
    if discovery.at is At.OFFSET:
        n_bytes = parent.header_bytes + (discovery.offset_bytes or 0)
    return max(1, -(-n_bytes // packet_bytes))


def _cuts(page: Page, index: int, packet_bytes: int) -> list[int]:
    """Return after how many packets something follows from a response; its end is the last."""
    resource = page.resources[index]
    # A response without bytes takes a packet as well, which brings its end.
    cuts = {max(1, -(-resource.stream_bytes // packet_bytes))}
    for child in page.children.get(index, ()):
        discovery = page.resources[child].discovered
        if discovery is not None and discovery.at is not At.REQUEST:
            cuts.add(_n_packets_until(resource, discovery, packet_bytes))
    return sorted(cuts)


def _release(
    asked: _Asked, resource: Resource, path: Path, parts: list[Part]
) -> tuple[int | None, int, int]:
    """Return what the first packet of a response waits for, how long, and its first tick."""
    ns = asked.ns + path.up_ns + resource.server_ns
    if asked.after is None:
        return None, 1, max(1, -(-ns // path.interval_ns))
    # A tick falls at a whole nanosecond, so up to one before its multiple of the interval.
    cut_ns = int(path.interval_ns.denominator > 1)
    lag_ticks = max(1, -(-(ns + path.down_ns - cut_ns) // path.interval_ns))
    return asked.after, lag_ticks, _last_tick(parts[asked.after]) + lag_ticks


def _last_tick(part: Part) -> int:
    return part.first_tick + part.n_packets - 1
