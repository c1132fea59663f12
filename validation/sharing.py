"""Where images that share the link are seen sooner than one after the other: the incremental flag.

Galleries of random sizes are loaded with h3sim-1, and with h3sim-1 whose images are incremental,
for each format, size, number, layout and network. A rule is read off these, and then held to
galleries with other sizes, numbers and networks, and to shipped pages with the format replaced.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.browser import PaintMode
from h3sim.catalog import read_scheme
from h3sim.catalog.resources import root
from h3sim.cli.command import progress_bar
from h3sim.page import ImageFormat, Kind, page_from_dict
from h3sim.reporting.output import save_figure, set_alt_text
from validation.estimates import Estimate, estimate
from validation.h3sim_1 import halves

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from h3sim.load import Load
    from h3sim.page import Page

FORMATS = ("jpeg", "progressive-jpeg", "avif")
"""Rows (baseline JPEG, PNG and WebP are painted alike), scans, and only once complete."""
LAYOUTS = ("all seen", "hero", "half seen")
_KB, _COUNTS = (10, 40, 160), (3, 6, 12)
_NETWORKS = ("cable", "4g", "wifi-lossy", "fast-3g")
_TEST_KB, _TEST_COUNTS, _TEST_NETWORKS = (20, 80, 320), (4, 9), ("fibre", "lte", "dsl")
_N_DRAWS = 16
_SPREAD = 0.5
"""Standard deviation of the logarithm of the sizes within a gallery."""
_SEEN_SHARE, _HERO_SHARE = 0.9, 0.5
INDICES = ("SpeedIndex in Chrome", "SpeedIndex as bytes arrive", "LCP", "ByteIndex above the fold")


class Gallery(NamedTuple):
    """What kind of gallery is loaded, and over which network."""

    layout: str
    n_images: int
    mean_kb: int
    network: str


def gallery(kind: Gallery, seed: int) -> Page:
    """Return a page with a stylesheet and images, whose sizes are log-normal.

    >>> page = gallery(Gallery("half seen", 4, 10, "cable"), 1)
    >>> len(page.resources), sum(bool(each.viewport) for each in page.resources)
    (6, 2)
    """
    name = f"{kind.layout}-{kind.n_images}-{kind.mean_kb}-{seed}"
    source = random.Random(name)  # noqa: S311 - pages, no secrets
    n_seen = (kind.n_images + 1) // 2 if kind.layout == "half seen" else kind.n_images
    resources: list[dict[str, Any]] = [
        {"id": "/", "kind": "document", "bytes": 20_000, "above_the_fold": True},
        {
            "id": "css",
            "kind": "stylesheet",
            "bytes": 10_000,
            "in_head": True,
            "render_blocking": True,
            "above_the_fold": True,
            "discovered": {"by": "/", "at": "offset", "offset_bytes": 500},
        },
    ]
    for number in range(kind.n_images):
        image: dict[str, Any] = {
            "id": f"{number}",
            "kind": "image",
            "bytes": round(
                1000 * kind.mean_kb * math.exp(source.gauss(-(_SPREAD**2) / 2, _SPREAD))
            ),
            "discovered": {
                "by": "/",
                "at": "offset",
                "offset_bytes": 2000 + 17_000 * number // kind.n_images,
            },
        }
        if number < n_seen:
            image |= {"above_the_fold": True, "viewport": round(_share(kind, number, n_seen), 4)}
        resources.append(image)
    return page_from_dict({"format": "h3sim-page/1", "name": name, "resources": resources})


def _share(kind: Gallery, number: int, n_seen: int) -> float:
    if kind.layout != "hero":
        return _SEEN_SHARE / n_seen
    return _HERO_SHARE if not number else (_SEEN_SHARE - _HERO_SHARE) / (n_seen - 1)


def with_format(load: Load, image_format: str) -> Load:
    """Return the same packets with all images of the page in a format, which changes paint only."""
    page, coded = load.page, ImageFormat(image_format)
    resources = tuple(
        replace(each, image_format=coded) if each.kind is Kind.IMAGE else each
        for each in page.resources
    )
    return replace(load, spec=replace(load.spec, page=replace(page, resources=resources)))


def indices(load: Load) -> tuple[float | None, ...]:
    """Return what `INDICES` names, in ms."""
    spec = load.spec
    mode = {"paint": PaintMode.PROGRESSIVE, "image_update_ms": 0.0}
    at_once = replace(load, spec=replace(spec, browser=replace(spec.browser, **mode)))  # type: ignore[arg-type]
    return (
        load.speed_index_ms,
        at_once.speed_index_ms,
        load.largest_paint_ms,
        load.byte_index_or_none("atf"),
    )


class Contrast(NamedTuple):
    """The log ratios of sharing to one after the other, by what `INDICES` names."""

    image_format: str
    logs: tuple[float | None, ...]


def contrasts(page: Page, network: str, seed: int = 0) -> Iterator[Contrast]:
    """Yield for each format what sharing changes; both schemes meet the same losses."""
    loads = [
        h3sim.simulate(
            page,
            scheme=scheme,
            network=network,
            seed=seed,
            browser="parse",
            tight_mode="chrome-118",
            transport_profile="quiche-chrome",
        )
        for scheme in (read_scheme(str(_SHARING)), "h3sim-1")
    ]
    for image_format in FORMATS:
        ours, theirs = (indices(with_format(load, image_format)) for load in loads)
        yield Contrast(
            image_format,
            tuple(
                math.log(one / two) if one and two else None
                for one, two in zip(ours, theirs, strict=True)
            ),
        )


_SHARING = root("models") / "studies" / "results" / "schemes" / "h3sim-1-images-share.toml"


# The map

_MAPS: tuple[tuple[str, str, int], ...] = (
    *((f"SpeedIndex, {image_format}", image_format, 0) for image_format in FORMATS),
    ("LCP, any format", FORMATS[0], 2),
    ("ByteIndex above the fold, any format", FORMATS[0], 3),
)
"""What is drawn, with the format and the index; complete images are the same in all formats."""


class Observation(NamedTuple):
    """One page over one network, with what sharing changes in each format."""

    kind: Gallery
    cluster: str
    """The draw, or the site: what counts once."""
    image_s: float
    """How long all images take at the rate of the link."""
    changes: dict[str, tuple[float | None, ...]]


def observe(page: Page, kind: Gallery, cluster: str, seed: int) -> Observation:
    """Load a page with both schemes."""
    down = h3sim.load_network(kind.network).down
    rate_bps = None if down is None else down.rate_bps
    if rate_bps is None:
        raise AssertionError(f"{kind.network} has no rate")
    n_bytes = sum(each.size_bytes for each in page.resources if each.kind is Kind.IMAGE)
    changes = {each.image_format: each.logs for each in contrasts(page, kind.network, seed)}
    return Observation(kind, cluster, 8 * n_bytes / rate_bps, changes)


def of_galleries(
    sizes_kb: Sequence[int], counts: Sequence[int], networks: Sequence[str], seeds: Sequence[int]
) -> list[Observation]:
    """Load galleries of all kinds, a page per seed."""
    kinds = [
        Gallery(layout, n_images, mean_kb, network)
        for layout in LAYOUTS
        for n_images in counts
        for mean_kb in sizes_kb
        for network in networks
    ]
    found = []
    with progress_bar("galleries") as progress:
        for n_done, kind in enumerate(kinds):
            found += [observe(gallery(kind, seed), kind, str(seed), seed) for seed in seeds]
            if progress is not None:
                progress(n_done + 1, len(kinds))
    return found


def by_cluster(observations: Iterable[Observation], image_format: str, index: int) -> list[float]:
    """Return the mean log ratio of each draw or site."""
    found: dict[str, list[float]] = defaultdict(list)
    for each in observations:
        log = each.changes[image_format][index]
        if log is not None:
            found[each.cluster].append(log)
    return [statistics.fmean(values) for values in found.values()]


Cell = tuple[str, int, str]
"""Layout, mean size in kB, network."""


def map_of(observations: Sequence[Observation]) -> dict[str, dict[Cell, Estimate]]:
    """Return what sharing changes by cell, for each of `_MAPS`; the intervals hold together."""
    cells: dict[Cell, list[Observation]] = defaultdict(list)
    for each in observations:
        cells[each.kind.layout, each.kind.mean_kb, each.kind.network].append(each)
    family = len(_MAPS) * len(cells)
    return {
        title: {
            cell: estimate(by_cluster(some, image_format, index), family=family)
            for cell, some in cells.items()
        }
        for title, image_format, index in _MAPS
    }


# The rule


class SharingRule(NamedTuple):
    """Images share if they are of one of these formats and take *least_s* of the link together."""

    formats: frozenset[str]
    least_s: float

    def applies(self, observation: Observation, image_format: str) -> bool:
        """Return whether images share."""
        return image_format in self.formats and observation.image_s >= self.least_s


_LEAST_S = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


def derived(observations: Sequence[Observation]) -> SharingRule:
    """Return the formats and the least time with the least SpeedIndex in Chrome."""
    best: dict[str, tuple[float, float]] = {}
    for image_format in FORMATS:
        costs = []
        for least_s in _LEAST_S:
            rule = SharingRule(frozenset({image_format}), least_s)
            costs.append(
                (statistics.fmean(changes_of(rule, observations, image_format, 0)), least_s)
            )
        best[image_format] = min(costs)
    formats = frozenset(each for each, (cost, _) in best.items() if cost < 0)
    return SharingRule(formats, max((best[each][1] for each in formats), default=0.0))


def changes_of(
    rule: SharingRule, observations: Iterable[Observation], image_format: str, index: int
) -> list[float]:
    """Return by cluster what the rule changes; 0 where it lets nothing share."""
    found: dict[str, list[float]] = defaultdict(list)
    for each in observations:
        log = each.changes[image_format][index]
        if log is not None:
            found[each.cluster].append(log if rule.applies(each, image_format) else 0.0)
    return [statistics.fmean(values) for values in found.values()]


def share(options: argparse.Namespace) -> None:
    """Print and draw where sharing wins, the rule that follows, and what it is worth elsewhere."""
    observations = of_galleries(_KB, _COUNTS, _NETWORKS, range(_N_DRAWS))
    found = map_of(observations)
    print("images that share relative to one after the other: cells of 36\n")
    body = []
    for title, cells in found.items():
        sooner = sum(each.is_sure and each.mean < 0 for each in cells.values())
        later = sum(each.is_sure and each.mean > 0 for each in cells.values())
        means = sorted(each.mean for each in cells.values())
        middle = statistics.median(means)
        body.append(
            (title, sooner, later, len(cells) - sooner - later, means[0], middle, means[-1])
        )
    heads = ("", "surely better", "surely worse", "not known", "best %", "median %", "worst %")
    print(tabulate(body, heads, floatfmt="+.1f", intfmt="d"), end="\n\n")
    rule = derived(observations)
    formats = ", ".join(sorted(rule.formats)) or "no format"
    print(f"the rule: images share if they are {formats} and take {rule.least_s:g} s or more\n")
    tests = {
        "other galleries": of_galleries(
            _TEST_KB, _TEST_COUNTS, _TEST_NETWORKS, range(100, 100 + _N_DRAWS)
        ),
        "shipped pages": _of_shipped_pages(),
    }
    for title, some in tests.items():
        print(f"{title}, on which nothing was chosen: {len({each.cluster for each in some})}\n")
        print(tabulate(_tested(rule, some), ("format", "images", *INDICES)), end="\n\n")
    _draw_map(found, options.figures / "results-sharing.png")


def _tested(rule: SharingRule, some: Sequence[Observation]) -> list[tuple[str, ...]]:
    always = SharingRule(frozenset(FORMATS), 0.0)
    family = 2 * len(FORMATS) * len(INDICES)
    return [
        (
            image_format,
            title,
            *(
                str(estimate(changes_of(each, some, image_format, index), family=family))
                for index in range(len(INDICES))
            ),
        )
        for image_format in FORMATS
        for title, each in (("share", always), ("by the rule", rule))
    ]


def _of_shipped_pages() -> list[Observation]:
    """Return what sharing changes on pages of sites with images that are seen."""
    _, kept = halves([h3sim.load_page(row.name) for row in h3sim.list_pages()])
    found = []
    with progress_bar("shipped pages") as progress:
        for n_done, site in enumerate(kept):
            page = min(site.pages, key=lambda page: page.name)
            if any(each.viewport and each.kind is Kind.IMAGE for each in page.resources):
                for network in (*_NETWORKS, *_TEST_NETWORKS):
                    kind = Gallery(page.name, 0, 0, network)
                    found.append(observe(page, kind, site.name, 0))
            if progress is not None:
                progress(n_done + 1, len(kept))
    return found


def _draw_map(found: Mapping[str, Mapping[Cell, Estimate]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 10), layout="constrained")
    axes = figure.subplots(len(found), len(LAYOUTS), sharex=True, sharey=True)
    for axis, layout in zip(axes[0], LAYOUTS, strict=True):
        axis.set_title(layout, fontsize=10)
    for line, (title, cells) in zip(axes, found.items(), strict=True):
        for axis, layout in zip(line, LAYOUTS, strict=True):
            table = [[cells[layout, kb, network] for network in _NETWORKS] for kb in _KB]
            values = [[each.mean for each in row] for row in table]
            picture = axis.imshow(
                values, cmap="RdBu_r", vmin=-50, vmax=50, origin="lower", aspect="auto"
            )
            for y, row in enumerate(table):
                for x, each in enumerate(row):
                    face = "bold" if each.is_sure else "normal"
                    colour = "black" if abs(each.mean) < 32 else "white"
                    text = f"{each.mean:+.0f}" if each.is_sure else f"({each.mean:+.0f})"
                    how = {"fontweight": face, "color": colour, "fontsize": 9}
                    axis.text(x, y, text, ha="center", va="center", **how)
            flat = [value for row in values for value in row]
            set_alt_text(axis, f"{title}, {layout}: {min(flat):+.0f} to {max(flat):+.0f} %.")
            axis.set_xticks(range(len(_NETWORKS)), _NETWORKS, fontsize=8)
            axis.set_yticks(range(len(_KB)), [f"{kb} kB" for kb in _KB], fontsize=8)
        line[0].set_ylabel(title.replace(", ", "\n"), fontsize=9)
    figure.colorbar(
        picture, ax=axes, label="images that share: later (+) or sooner (-), %", shrink=0.5
    )
    save_figure(figure, path)
