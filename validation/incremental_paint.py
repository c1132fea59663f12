"""`make validate-incremental-paint`: the worth of EPS's incremental flag, by how images paint.

The loads are those of the quick variant of the study `incremental-flag`. Each is made once, and its
SpeedIndex computed three times: with images counted once complete, painted at most once a second as
by Chrome, and painted as bytes arrive. A second table is of a page of six pictures, all visible.
"""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

import h3sim
from h3sim.page import Page, page_from_dict
from h3sim.papers import load_experiment
from h3sim.study.statistics.intervals import mean_interval
from validation.sander_paint import TITLES, painted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validation.sander_paint import Painted

_INDICES = TITLES[:3]
_FORMATS = ("jpeg", "progressive-jpeg", "avif")
_N_PICTURES = 6
_AS_SENT = "chrome-eps"
_PAIR = ("rr", "fifo")


def gallery(image_format: str) -> Page:
    """Return a page of six pictures of 100 kB that fill the viewport but for a tenth."""
    picture = {
        "kind": "image",
        "bytes": 100_000,
        "viewport": 0.15,
        "above_the_fold": True,
        "image_format": image_format,
        "discovered": {"by": "/", "at": "request"},
    }
    root = {"id": "/", "kind": "document", "bytes": 10_000, "above_the_fold": True}
    pictures = [{"id": str(number), **picture} for number in range(_N_PICTURES)]
    document = {"format": "h3sim-page/1", "name": image_format, "resources": [root, *pictures]}
    return page_from_dict(document)


def _index_changes() -> list[tuple[str, ...]]:
    """Return a row per variant of the flag: the mean changes relative to what Chrome sends."""
    indices: dict[tuple[str, str, int], dict[str, Painted]] = {}
    for point in load_experiment("incremental-flag").study().design:
        if not isinstance(point.page, Page):
            continue
        load = h3sim.simulate(point.page, scheme=point.scheme, seed=point.seed, **point.options)
        seen = painted(load)
        if seen is not None:
            key = (point.page.name, point.options["network"], point.seed)
            indices.setdefault(key, {})[point.scheme.name] = seen
    schemes = dict.fromkeys(name for cell in indices.values() for name in cell)
    rows = []
    for scheme in schemes:
        if scheme == _AS_SENT:
            continue
        changes: dict[str, list[Sequence[float]]] = {}
        for (page, _, _), cell in indices.items():
            pairs = zip(cell[scheme][:3], cell[_AS_SENT][:3], strict=True)
            changes.setdefault(page, []).append([100 * (ours / sent - 1) for ours, sent in pairs])
        means = [
            [statistics.fmean(each) for each in zip(*of, strict=True)] for of in changes.values()
        ]
        shown = [_format_mean(column) for column in zip(*means, strict=True)]
        rows.append((scheme.removeprefix(f"{_AS_SENT}-"), *shown, str(len(means))))
    return rows


def _format_mean(values: Sequence[float]) -> str:
    low, high = mean_interval(values)
    return f"{statistics.fmean(values):.1f} ({low:.1f} to {high:.1f})"


def _gallery_rows() -> list[tuple[str, ...]]:
    """Return a row per format: the SpeedIndexes with pictures that share, and one by one."""
    rows = []
    for image_format in _FORMATS:
        how: dict[str, Any] = {"network": "fast-3g", "browser": "parse"}
        pair = [
            painted(h3sim.simulate(gallery(image_format), scheme=scheme, **how)) for scheme in _PAIR
        ]
        shown = [f"{seen[index]:,.0f}" for index in range(3) for seen in pair if seen is not None]
        rows.append((image_format, *shown))
    return rows


def main() -> int:
    """Print both tables."""
    heads = ("incremental", *(f"{title}, %" for title in _INDICES), "pages")
    print("mean changes relative to what Chrome sends: documents, images, media and fetches\n")
    print(tabulate(_index_changes(), heads, disable_numparse=True))
    print("\nSpeedIndex of six pictures over fast-3g, in ms\n")
    ways = ("share", "one by one")
    heads = ("format", *(f"{title}: {way}" for title in _INDICES for way in ways))
    print(tabulate(_gallery_rows(), heads, disable_numparse=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
