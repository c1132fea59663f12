"""Loads of real pages over the cells of Sander 2022, Table I, and what of each is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import h3sim
from h3sim import catalog, engine
from h3sim.load import LoadConfig
from h3sim.load.network_path import resolve_path
from h3sim.load.run import run_spec
from h3sim.metrics import frames_by_number, loss_bursts, sander_count
from h3sim.page import Kind, Page
from h3sim.values.errors import StalledError
from h3sim.values.ranges import Ranges
from h3sim.values.units import NS_PER_S
from validation.data import PAGES
from validation.fact_table import page_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.load import Load

__all__ = [
    "BASELINE",
    "CELLS",
    "PARALLEL",
    "SCHEMES",
    "DesignPoint",
    "Job",
    "Outcome",
    "Run",
    "pages",
    "run",
]

BASELINE = "sander-chrome"
PARALLEL = ("sander-rr", "sander-wrr", "sander-firefox", "sander-firefox-eps")
SCHEMES = (BASELINE, *PARALLEL, "sander-batched-rr")

_HEADER_BYTES = 135
"""A response header as QPACK sends it, about. Recorded sizes are of text, or not there at all."""
_TEXT_SHARE = 0.5
"""How much of what is seen is the document's text, where there are images."""
_REDIRECT_BYTES = 500
"""A root with fewer bytes that leads to another document is taken for a redirect."""
_LIMIT_S = 300
_SLOW_LIMIT_S = 900
"""After so long the paper gave a run up and repeated it; the second is for less than 2 Mbit/s."""
_TRIES = 10
_SEEDS_APART = 10_000


class DesignPoint(NamedTuple):
    """A cell of Table I: how tables call it, its network, whether losses are drawn."""

    title: str
    network: str
    is_lossy: bool


CELLS = {
    cell.network: cell
    for cell in (
        DesignPoint("1 Mbit/s", "sander-1mbps-100ms", is_lossy=False),
        DesignPoint("2 Mbit/s", "sander-2mbps-100ms", is_lossy=False),
        DesignPoint("5 Mbit/s", "sander-5mbps-100ms", is_lossy=False),
        DesignPoint("10 Mbit/s", "sander-10mbps-100ms", is_lossy=False),
        DesignPoint("50 Mbit/s", "sander-50mbps-100ms", is_lossy=False),
        DesignPoint("1 %", "sander-2mbps-100ms-1pct", is_lossy=True),
        DesignPoint("2 %", "sander-2mbps-100ms-2pct", is_lossy=True),
        DesignPoint("5 %", "sander-2mbps-100ms-5pct", is_lossy=True),
        DesignPoint("10 ms", "sander-2mbps-10ms-2pct", is_lossy=True),
        DesignPoint("50 ms", "sander-2mbps-50ms-2pct", is_lossy=True),
        DesignPoint("burst 5", "sander-2mbps-100ms-2pct-burst5", is_lossy=True),
        DesignPoint("burst 10", "sander-2mbps-100ms-2pct-burst10", is_lossy=True),
        DesignPoint("burst 15", "sander-2mbps-100ms-2pct-burst15", is_lossy=True),
    )
}


class Job(NamedTuple):
    """One page over one cell with one seed, to be loaded with every scheme."""

    network: str
    page: int
    seed: int


class Outcome(NamedTuple):
    """What is kept of one load: bytes blocked (Sander's count), indexes, losses."""

    hol_bytes: int
    speed_index_ms: float
    byte_index_ms: float
    sent: int
    lost: int
    bursts: Mapping[int, int]
    """How many runs of so many lost packets in a row there were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The outcomes of a job, by scheme, and how often it was repeated as one did not finish."""

    job: Job
    outcomes: Mapping[str, Outcome]
    repeated: int


@cache
def pages() -> tuple[Page, ...]:
    """Return the recorded pages of validation/data."""
    return tuple(_alike(page_of(path)) for path in PAGES)


def run(job: Job) -> Run:
    """Load a page with every scheme and equal losses; again with others if one does not finish."""
    page = pages()[job.page]
    for attempt in range(_TRIES):
        try:
            outcomes = {
                scheme: _outcome(
                    _load(page, scheme, job.network, job.seed + attempt * _SEEDS_APART)
                )
                for scheme in SCHEMES
            }
        except StalledError:
            continue
        return Run(job=job, outcomes=outcomes, repeated=attempt)
    return Run(job=job, outcomes={}, repeated=_TRIES)


def first_paint_ns(page: Page, finished_at_ns: Mapping[int, int], document_at_ns: int) -> int:
    """Return when something can be seen: first bytes of the document, and all that blocks it."""
    blocking = (
        finished_at_ns[position]
        for position, resource in enumerate(page.resources)
        if resource.render_blocking or (resource.in_head and resource.kind is Kind.STYLESHEET)
    )
    return max(document_at_ns, *blocking, 0)


def speed_index_ms(load: Load) -> float:
    """Return a stand-in for SpeedIndex: the mean time at which what can be seen is painted.

    Text is half of it, the images the other half, each by its bytes; every byte is painted when it
    is delivered, and not before first paint. Nobody knows which images are in sight.
    """
    page = load.page
    weights = _visual_weights(page)
    resource_of = {request.stream_id: request.resource for request in load.trace.requests}
    finished: dict[int, int] = {}
    painted: dict[int, list[tuple[int, int]]] = {}
    got: dict[int, Ranges] = {}
    for row in load.trace.packet_rows:
        at_ns = row[6]
        if at_ns is None:
            continue
        position = resource_of[row[2]]
        finished[position] = max(finished.get(position, 0), at_ns)
        if position in weights:
            new = got.setdefault(position, Ranges()).add(row[3], row[3] + row[4])
            painted.setdefault(position, []).append((at_ns, new))
    document = document_of(page)
    document_at_ns = min(at_ns for at_ns, _ in painted[document])
    paint_ns = first_paint_ns(page, finished, document_at_ns)
    index = 0.0
    for position, rows in painted.items():
        total = sum(n_bytes for _, n_bytes in rows)
        mean = sum(max(at_ns, paint_ns) * n_bytes for at_ns, n_bytes in rows) / max(total, 1)
        index += weights[position] * mean
    return index / 1e6


def document_of(page: Page) -> int:
    """Return the place of the document that is seen: where the redirects of the root lead."""
    position = page.root
    while page.resources[position].size_bytes < _REDIRECT_BYTES and page.children.get(position):
        child = page.children[position][0]
        if page.resources[child].kind not in (Kind.DOCUMENT, Kind.OTHER):
            break
        position = child
    return position


def _visual_weights(page: Page) -> dict[int, float]:
    images = {
        position: resource.size_bytes
        for position, resource in enumerate(page.resources)
        if resource.kind is Kind.IMAGE and resource.size_bytes
    }
    total = sum(images.values())
    if not total:
        return {document_of(page): 1.0}
    seen = {position: (1 - _TEXT_SHARE) * size / total for position, size in images.items()}
    return {document_of(page): _TEXT_SHARE} | seen


def _alike(page: Page) -> Page:
    """Return *page* with headers as HTTP/3 sends them: recordings differ in whether they tell."""
    resources = tuple(
        replace(resource, header_bytes=_HEADER_BYTES, request_bytes=0)
        for resource in page.resources
    )
    return replace(page, resources=resources)


def _load(page: Page, scheme: str, network: str, seed: int) -> Load:
    path = resolve_path(page, _setting(network))
    link = path.network
    is_slow = link.down is not None and (link.down.rate_bps or 0) < 2_000_000
    return run_spec(
        engine.LoadSpec(
            page,
            scheme=_scheme(scheme),
            network=link,
            profile=path.profile,
            seed=seed,
            limit_ns=(_SLOW_LIMIT_S if is_slow else _LIMIT_S) * NS_PER_S,
        )
    )


@cache
def _scheme(name: str) -> h3sim.Scheme:
    return catalog.load_scheme(name)


@cache
def _setting(network: str) -> LoadConfig:
    return LoadConfig(network=network)


def _outcome(load: Load) -> Outcome:
    sent, lost, *_ = load.packets
    return Outcome(
        hol_bytes=sander_count(frames_by_number(load.trace)).stream_bytes,
        speed_index_ms=speed_index_ms(load),
        byte_index_ms=load.byte_index("all"),
        sent=sent,
        lost=lost,
        bursts=loss_bursts(load.trace.packet_rows),
    )
