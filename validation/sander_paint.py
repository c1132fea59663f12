"""`make validate-sander-paint`: what makes up the changes of SpeedIndex in Sander 2022's study.

The pages of the quick variant of `sander-2022-fig-5` are loaded with Chromium 95's client. The
study's SpeedIndex counts an image once it is complete, and text at the first paint. The table also
has the one of what browsers paint as they load: as Chrome, which paints an image at most once a
second, and as a browser that paints all bytes that have arrived.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.browser import PaintMode
from h3sim.page import Page
from h3sim.papers import load_experiment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.load import Load

NETWORKS = ("sander-1mbps-100ms", "sander-2mbps-100ms", "sander-5mbps-100ms")
BASELINE = "sander-chrome"
SCHEMES = ("sander-rr", "sander-wrr", "sander-firefox", "sander-firefox-eps")
_CLEAR = 0.05
"""From there on the paper counts a site as better or worse."""


class Painted(NamedTuple):
    """When a page is seen, in ms: three indices, and first paint."""

    speed_index: float
    as_chrome_paints: float
    as_bytes_arrive: float
    first_paint: float


TITLES = ("SpeedIndex", "painted as by Chrome", "painted as bytes arrive", "first paint")
_MODES: tuple[dict[str, Any], ...] = (
    {"paint": PaintMode.COMPLETE},
    {"paint": PaintMode.PROGRESSIVE},
    {"paint": PaintMode.PROGRESSIVE, "image_update_ms": 0.0},
)


def painted(load: Load) -> Painted | None:
    """Return when a page is seen, None where nothing in sight is known."""
    # The same packets: only what counts as painted differs.
    spec = load.spec
    indices = [
        replace(load, spec=replace(spec, browser=replace(spec.browser, **mode))).speed_index_ms
        for mode in _MODES
    ]
    known = [index for index in indices if index is not None]
    if len(known) < len(_MODES) or load.first_paint_ms is None:
        return None
    return Painted(known[0], known[1], known[2], load.first_paint_ms)


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
