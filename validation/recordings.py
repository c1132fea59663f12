"""`make validate-recordings`: pages in a real Chromium over a link, beside their loads in h3sim.

Each page is served over HTTP/2 through an emulated link (`validation.http2_site`) and loaded in
Chromium; so one knows when each resource was asked for, and when the last one was there. Beside it
stand loads in h3sim at the same rate and round-trip time with fifo: that of the shipped page,
which was recorded without the link, as it was recorded and as a browser computes it that holds
requests back like Chromium (`--browser parse`); and that of the page that this very load shows.
Pages come from the registries, by way of tools/corpus.toml; where Chromium, the server's library or
the packages are missing, the command says so and ends. With `--measured FILE` no Chromium is
needed: the times of an earlier run are read from there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tabulate import tabulate

import h3sim
from h3sim.importers.chromium.browser import ChromiumError, find_chromium, running_chromium
from h3sim.importers.chromium.navigation import Timeouts, visit
from h3sim.importers.chromium.recording import recorded_of
from h3sim.importers.chromium.web_server import Site, address_of
from h3sim.values.errors import H3SimError
from tools.registries import FetchError
from tools.sites import PageSource, build, read_sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.importers.chromium import Recorded
    from h3sim.load import Load
    from h3sim.page import Page

CHECKOUT = Path(__file__).resolve().parents[1]
PAGES = (
    "admin-lte-forms",
    "admin-lte-index",
    "apache-rewrite-tech",
    "argon-dashboard-index",
    "dygraphs-index",
    "gentelella-form",
    "kicad-gerbview",
    "landing-page",
    "mathjax-sample",
    "owl-carousel-index",
    "python-turtle",
    "semantic-ui-homepage",
    "sklearn-index",
    "tabler-gallery",
)
"""Small, medium and large ones; with many images, many scripts, and late discoveries."""
_RATE_MBPS = 4.0
_RTT_MS = 100.0
_MS = 1000
_FRAMING = 1.02
"""What frames and TLS records add to bodies on the link, where a simulated rate carries bodies."""


class Row(NamedTuple):
    """One page: when its last resource was there, and how alike the order of the requests is."""

    page: str
    resources: int
    kilobytes: float
    measured_ms: float
    shipped_ms: float
    computed_ms: float
    same_load_ms: float
    shipped_order: float
    computed_order: float
    same_load_order: float


def measure(
    source: PageSource, root: Path, program: str, rate_mbps: float, rtt_ms: float
) -> Recorded:
    """Return one load of a page over the link.

    Raises:
        ChromiumError: if the page does not load.
    """
    from validation.http2_site import served_over_link  # its library need not be there

    site = Site(root)
    for resource in h3sim.load_page(source.name).resources:
        site.answer(f"/{quote(resource.id)}")  # compressed ahead, not while the clock runs
    link = served_over_link(site, rate_bps=round(rate_mbps * 1e6), rtt_s=rtt_ms / _MS)
    flags = ("--ignore-certificate-errors",)
    with link as base, running_chromium(program, local_only=True, flags=flags) as address:
        seen = visit(address, address_of(base, source.path), Timeouts(late_s=8.0))
    return recorded_of(seen, source.name)


def compare(load: Recorded, shipped: Page, rate_mbps: float, rtt_ms: float) -> Row:
    """Return the load in Chromium beside both loads in h3sim."""
    requested = {timing.id: timing.requested_ms for timing in load.timings}
    simulated = [replay(page, rate_mbps, rtt_ms) for page in (shipped, load.page)]
    simulated.append(computed(shipped, rate_mbps, rtt_ms))
    orders = [
        order_alike(requested, {timing.id: timing.requested_ms for timing in one.timings})
        for one in simulated
    ]
    return Row(
        page=shipped.name,
        resources=len(load.page.resources),
        kilobytes=load.page.total_bytes / 1000,
        measured_ms=max(timing.finished_ms for timing in load.timings),
        shipped_ms=simulated[0].page_load_ms,
        computed_ms=simulated[2].page_load_ms,
        same_load_ms=simulated[1].page_load_ms,
        shipped_order=orders[0],
        computed_order=orders[2],
        same_load_order=orders[1],
    )


def replay(page: Page, rate_mbps: float, rtt_ms: float) -> Load:
    """Return the load of a page as it was recorded, over the link."""
    over: dict[str, Any] = {"network": "marx-2019", "rate_mbps": rate_mbps, "rtt_ms": rtt_ms}
    return h3sim.simulate(page, scheme="fifo", transport="tcp", **over)


def computed(page: Page, rate_mbps: float, rtt_ms: float) -> Load:
    """Return the load as Chromium computes it, with what frames take of the link."""
    return h3sim.simulate(
        page,
        scheme="fifo",
        transport="tcp",
        network="marx-2019",
        rate_mbps=rate_mbps / _FRAMING,
        rtt_ms=rtt_ms,
        browser="parse",
    )


def hold_against(path: Path, rate_mbps: float, rtt_ms: float) -> None:
    """Print what the model makes of pages whose times were measured before."""
    measured = tomllib.loads(path.read_text(encoding="utf-8"))["measured_ms"]
    rows = []
    for name, measured_ms in measured.items():
        page = h3sim.load_page(name)
        loads = [make(page, rate_mbps, rtt_ms).page_load_ms for make in (replay, computed)]
        rows.append((name, measured_ms, *loads))
    body = [(name, *(f"{time_ms:,.0f}" for time_ms in times)) for name, *times in rows]
    heads = ("page", "Chromium ms", "replay ms", "computed ms")
    print(tabulate(body, heads, "github", disable_numparse=True, colalign=["left"] + ["right"] * 3))
    times = [row[1] for row in rows]
    for title, column in (("replay", 2), ("computed", 3)):
        found = [row[column] for row in rows]
        print(
            f"\n{title}: Spearman's rho {spearman(times, found):.2f},"
            f" mean absolute percentage error {error_share(times, found):.1f} %"
        )


def order_alike(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """Return Spearman's rho of the times of the keys that both have."""
    keys = [key for key in left if key in right]
    return spearman([left[key] for key in keys], [right[key] for key in keys])


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Spearman's rho: the correlation of ranks; equal values share their mean rank.

    >>> round(spearman([1, 2, 3, 4], [10, 30, 20, 40]), 2)
    0.8
    """
    return statistics.correlation(_ranks(left), _ranks(right))


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: position for position, value in reversed([*enumerate(ordered)])}
    count = {value: ordered.count(value) for value in first}
    return [first[value] + (count[value] - 1) / 2 for value in values]


def error_share(measured: Sequence[float], simulated: Sequence[float]) -> float:
    """Return the mean absolute percentage error.

    >>> error_share([100, 200], [110, 180])
    10.0
    """
    shares = (abs(s - m) / m for m, s in zip(measured, simulated, strict=True))
    return 100 * statistics.fmean(shares)


def main(argv: list[str]) -> int:
    """Measure and compare; print a table and what it comes to."""
    parser = argparse.ArgumentParser(prog="validate-recordings", description=__doc__)
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".corpus-cache")
    parser.add_argument("--rate-mbps", type=float, default=_RATE_MBPS)
    parser.add_argument("--rtt-ms", type=float, default=_RTT_MS)
    parser.add_argument("--loads", type=int, default=3, help="of which the middle one counts")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="times of an earlier run")
    options = parser.parse_args(argv)
    if options.measured is not None:
        hold_against(options.measured, options.rate_mbps, options.rtt_ms)
        return 0
    try:
        import h2  # noqa: F401 - asked for ahead of minutes of work
    except ImportError:
        print("validate-recordings: skipped: the h2 library is not installed")
        return 0
    try:
        program = find_chromium()
    except ChromiumError as error:
        print(f"validate-recordings: skipped: {error}")
        return 0
    rows = [*_rows(options, program)]
    if len(rows) > 1:
        _show(rows)
    return 0 if rows else 1


def _rows(options: argparse.Namespace, program: str) -> list[Row]:
    sources = {source.name: source for source in read_sources()}
    rows = []
    for name in options.pages:
        try:
            root, _ = build(sources[name], options.cache)
            loads = [
                measure(sources[name], root, program, options.rate_mbps, options.rtt_ms)
                for _ in range(options.loads)
            ]
        except (FetchError, H3SimError, OSError) as error:
            print(f"validate-recordings: {name} is left out: {error}", file=sys.stderr)
            continue
        loads.sort(key=lambda load: max(timing.finished_ms for timing in load.timings))
        middle = loads[len(loads) // 2]
        rows.append(compare(middle, h3sim.load_page(name), options.rate_mbps, options.rtt_ms))
        print(f"validate-recordings: {name} done", file=sys.stderr)
    return rows


def _show(rows: list[Row]) -> None:
    body = [
        (
            row.page,
            row.resources,
            f"{row.kilobytes:,.0f}",
            f"{row.measured_ms:,.0f}",
            f"{row.shipped_ms:,.0f}",
            f"{row.computed_ms:,.0f}",
            f"{row.same_load_ms:,.0f}",
            f"{row.shipped_order:.2f}",
            f"{row.same_load_order:.2f}",
        )
        for row in rows
    ]
    heads = (
        "page",
        "resources",
        "kB",
        "Chromium ms",
        "h3sim ms",
        "computed ms",
        "same load",
        "order",
        "same load",
    )
    print(tabulate(body, heads, "github", disable_numparse=True, colalign=["left"] + ["right"] * 8))
    measured = [row.measured_ms for row in rows]
    for title, simulated, orders in (
        ("shipped page", [r.shipped_ms for r in rows], [r.shipped_order for r in rows]),
        (
            "shipped page, computed as Chromium does",
            [r.computed_ms for r in rows],
            [r.computed_order for r in rows],
        ),
        (
            "page of the same load",
            [r.same_load_ms for r in rows],
            [r.same_load_order for r in rows],
        ),
    ):
        print(
            f"\n{title}: page load: Spearman's rho {spearman(measured, simulated):.2f},"
            f" mean absolute percentage error {error_share(measured, simulated):.0f} %;"
            f" order of requests: mean rho {statistics.fmean(orders):.2f}"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
