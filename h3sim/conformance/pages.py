"""Random pages: dependency graphs in which everything hangs on something that comes before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from h3sim.conformance.histories import PACKET_BYTES
from h3sim.page import At, Kind, Page, page_from_dict
from h3sim.page.resource import FLAGS

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["DELAYS_MS", "pages"]

_SIZES: SearchStrategy[int] = st.one_of(
    st.integers(8000, 30_000),
    st.integers(0, 30_000),
    st.integers(1, 21).map(lambda n: n * PACKET_BYTES),
    st.just(0),
)
# Multiples of 2.5 ms fall on send ticks often enough for ties; beyond 500 ms streams have left.
DELAYS_MS: SearchStrategy[float] = st.one_of(
    st.just(0),
    st.just(0),
    st.integers(0, 24).map(lambda n: n * 2.5),
    st.integers(0, 80).map(lambda n: n * 10),
)
"""Delays that lead to ties, and some that are long."""
_FLAG_SETS = st.integers(0, 2 ** len(FLAGS) - 1)


@st.composite
def pages(
    draw: DrawFn,
    *,
    max_resources: int = 9,
    min_resources: int = 1,
    at: tuple[At, ...] = tuple(At),
    sizes: SearchStrategy[int] = _SIZES,
    bare: bool = False,
) -> Page:
    """Return a strategy of pages: each resource but the root hangs on one that was drawn before it.

    *at* are the triggers that occur, *sizes* the sizes of bodies in bytes. The resources of a
    *bare* page have no headers, and take no time to be made, parsed or run.
    """
    entries: list[dict[str, Any]] = []
    n_resources = draw(st.sampled_from(range(max_resources, min_resources - 1, -1)))
    for index in range(n_resources):
        entry = draw(_entries(index, sizes, bare=bare))
        if index:
            entry["discovered"] = draw(_discoveries(entries, at))
        entries.append(entry)
    document = {
        "format": "h3sim-page/1",
        "name": "random",
        "resources": draw(st.permutations(entries)),
    }
    return page_from_dict(document)


@st.composite
def _discoveries(draw: DrawFn, entries: list[dict[str, Any]], at: tuple[At, ...]) -> dict[str, Any]:
    """A trigger that hangs on one of *entries*, the resources before it."""
    event = draw(st.sampled_from(at))
    discovered: dict[str, Any] = {"at": event.value, "delay_ms": draw(DELAYS_MS)}
    if event is not At.TIME:
        parent = draw(st.sampled_from(entries))
        discovered["by"] = parent["id"]
        if event is At.OFFSET:
            discovered["offset_bytes"] = draw(st.integers(0, parent["bytes"]))
    return discovered


@st.composite
def _entries(draw: DrawFn, index: int, sizes: SearchStrategy[int], *, bare: bool) -> dict[str, Any]:
    """A resource as a page file has it, without a trigger; a bare one has only a body."""
    flags = draw(_FLAG_SETS)
    entry: dict[str, Any] = {
        "id": f"r{index}",
        "kind": draw(st.sampled_from(Kind)).value,
        "bytes": draw(sizes),
        **{flag: True for i, flag in enumerate(FLAGS) if flags >> i & 1},
    }
    if not bare and draw(st.booleans()):
        entry["header_bytes"] = draw(st.integers(0, 3000))
        entry["server_ms"] = draw(DELAYS_MS)
        entry["parse_ms"] = draw(DELAYS_MS)
        entry["execute_ms"] = draw(DELAYS_MS)
    return entry
