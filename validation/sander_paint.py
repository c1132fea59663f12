"""`make validate-sander-paint`: what makes up the changes of SpeedIndex in Sander 2022's study.

The pages of the quick variant of `sander-2022-fig-5` are loaded with Chromium 95's client. The
SpeedIndex counts an image once it is complete; beside it stands one that counts each of its bytes
when it arrives, but not before first paint, as a browser shows baseline JPEGs.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.browser.model import BrowserModel
from h3sim.page import Kind, Page
from h3sim.papers import load_experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.results import Load

NETWORKS = ("sander-1mbps-100ms", "sander-2mbps-100ms", "sander-5mbps-100ms")
BASELINE = "sander-chrome"
SCHEMES = ("sander-rr", "sander-wrr", "sander-firefox", "sander-firefox-eps")
_FRAME_MS = BrowserModel().paint_ms
"""What has arrived is seen with the next frame."""
_CLEAR = 0.05
"""From there on the paper counts a site as better or worse."""


class Painted(NamedTuple):
    """When a page is seen, in ms: two indices, and first paint."""

    speed_index: float
    as_images_load: float
    first_paint: float


TITLES = ("SpeedIndex", "with images as they load", "first paint")


def painted(load: Load) -> Painted | None:
    """Return when a page is seen, None where nothing in sight is known."""
    index, paint = load.speed_index_ms, load.first_paint_ms
    if index is None or paint is None:
        return None
    shares = [resource.viewport or 0.0 for resource in load.page.resources]
    scale = max(1.0, math.fsum(shares))
    resource_of = {request.stream_id: request.resource for request in load.trace.requests}
    arrivals: dict[int, list[tuple[float, int]]] = {}
    for row in load.trace.packet_rows:
        if row[6] is not None:
            arrivals.setdefault(resource_of[row[2]], []).append((row[6] / 1e6, row[4]))
    earlier = 0.0
    for position, resource in enumerate(load.page.resources):
        if resource.kind is Kind.IMAGE and position in arrivals:
            seen = [
                (max(paint, at_ms + _FRAME_MS), n_bytes) for at_ms, n_bytes in arrivals[position]
            ]
            mean_ms = sum(at_ms * n_bytes for at_ms, n_bytes in seen) / sum(n for _, n in seen)
            earlier += shares[position] / scale * (max(at_ms for at_ms, _ in seen) - mean_ms)
    return Painted(index, index - earlier, paint)


def _loaded(page: Page, scheme: str, network: str) -> Painted | None:
    return painted(
        h3sim.simulate(
            page, scheme=scheme, network=network, browser="parse", tight_mode="chrome-95"
        )
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print by network and scheme what changes, relative to Chrome's scheme."""
    parser = argparse.ArgumentParser(prog="sander-paint", description=__doc__)
    parser.add_argument("network", nargs="*", default=NETWORKS, help="default: %(default)s")
    networks = parser.parse_args(argv).network
    design = load_experiment("sander-2022-fig-5").study().design
    pages = [page for page in design.pages if isinstance(page, Page)]
    rows = []
    for network in networks:
        base = {page.name: _loaded(page, BASELINE, network) for page in pages}
        for scheme in SCHEMES:
            pairs = [
                (ours, theirs)
                for page in pages
                if (theirs := base[page.name]) and (ours := _loaded(page, scheme, network))
            ]
            rows += [_row(network, scheme, pairs, position) for position in range(len(TITLES))]
    headers = ("network", "scheme", "", "median, %", "mean, ms", "worse", "better", "pages")
    print(tabulate(rows, headers, disable_numparse=True))
    return 0


def _row(
    network: str, scheme: str, pairs: Sequence[tuple[Painted, Painted]], position: int
) -> tuple[str, ...]:
    moved = [ours[position] - theirs[position] for ours, theirs in pairs]
    changes = [ours[position] / theirs[position] - 1 for ours, theirs in pairs]
    return (
        network.removeprefix("sander-"),
        scheme.removeprefix("sander-"),
        TITLES[position],
        f"{100 * statistics.median(changes):.1f}",
        f"{statistics.fmean(moved):.0f}",
        str(sum(change > _CLEAR for change in changes)),
        str(sum(change < -_CLEAR for change in changes)),
        str(len(changes)),
    )


if __name__ == "__main__":
    sys.exit(main())
