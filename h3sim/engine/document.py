"""A load as a document of format `h3sim-load/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h3sim.engine.load import Load

__all__ = ["FORMAT", "load_to_dict"]

FORMAT = "h3sim-load/1"


def load_to_dict(load: Load, *, order: bool = False) -> dict[str, Any]:
    """Return *load* as a document; *order* adds the stream id of each packet in the order sent.

    Times are ms since navigation start. What is not modelled or not defined for the page is None.
    """
    hol = load.hol._asdict()
    hol["stack_histogram"] = {str(height): n for height, n in load.hol.stack_histogram.items()}
    keys = ("id", "stream_id", "requested_ms", "first_byte_ms", "finished_ms", "bytes")
    document: dict[str, Any] = {
        "format": FORMAT,
        "page": load.page.name,
        "scheme": load.scheme.name,
        "network": load.network.name,
        "transport": load.protocol.value,
        "seed": load.seed,
        "byte_index_ms": _both(load, sampled=True),
        "byte_index_exact_ms": _both(load, sampled=False),
        "page_load_ms": load.page_load_ms,
        "first_paint_ms": None,
        "speed_index_ms": None,
        "hol": hol,
        "packets": load.packets._asdict(),
        "resources": [{key: getattr(row, key) for key in keys} for row in load.timings],
    }
    if order:
        document["order"] = load.trace.order
    return document


def _both(load: Load, *, sampled: bool) -> dict[str, float | None]:
    if sampled:
        return {which: load.byte_index_or_none(which) for which in ("all", "atf")}
    return {which: load.byte_index_or_none(which, sample_ms=None) for which in ("all", "atf")}
