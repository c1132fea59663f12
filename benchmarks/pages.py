"""The pages that are timed."""

from __future__ import annotations

from h3sim.page import Discovery, Kind, Page, Resource, TriggerEvent

_AT_START = Discovery(at=TriggerEvent.TIME)


def reference_page() -> Page:
    """Return 46 resources of 2,000,000 bytes in all: 1458 packets of up to 1400 bytes."""
    parts = [(Kind.STYLESHEET, 5, 40_000), (Kind.SCRIPT, 10, 60_000), (Kind.IMAGE, 30, 38_000)]
    resources = [Resource(id="document", kind=Kind.DOCUMENT, size_bytes=60_000)]
    resources += [
        Resource(id=f"{kind.value}-{n}", kind=kind, size_bytes=size, discovered=_AT_START)
        for kind, count, size in parts
        for n in range(count)
    ]
    return Page(name="46 resources, 2 MB", resources=tuple(resources))


def concurrent_page(n_streams: int, *, n_packets: int) -> Page:
    """Return a page of *n_streams* equal resources of every kind in turn, all asked for at once."""
    kinds = list(Kind)
    size = n_packets // n_streams * 1400
    resources = [Resource(id="0", kind=Kind.DOCUMENT, size_bytes=size)]
    resources += [
        Resource(
            id=str(n),
            kind=kinds[n % len(kinds)],
            size_bytes=size,
            in_head=n % 3 == 0,
            above_the_fold=n % 5 == 0,
            discovered=_AT_START,
        )
        for n in range(1, n_streams)
    ]
    return Page(name=f"{n_streams} streams", resources=tuple(resources))
