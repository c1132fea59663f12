"""`python -m validation.two_orders`: what turns cost, in Chromium and in h3sim, site by site.

Sites of packages (validation/sites, the part to develop on) come from a server that follows
Chrome's priorities and from one that sends all responses in turns, over the same link. What turns
change in h3sim's load of the recorded site is compared with what they change in Chromium.
`--measure` loads what has not been loaded; it needs recordings, Chromium and real-time priority.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy.stats import spearmanr

import h3sim
from h3sim.cli.command import Parser
from h3sim.importers.chromium.web_server import Site as Served
from h3sim.values.table import Column, Table
from validation.sites.packages import DATA, Part, all_sites

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from validation.sites.packages import Site

MEASURED = DATA / "orders.csv"
METRICS = {"fcp_ms": "FCP", "speed_index_ms": "SpeedIndex"}
_FIELDS = ("site", "order", "load", *METRICS)
RATE_MBPS, RTT_MS = 2.0, 50.0
_FRAMING = 1.03
"""Bytes of the relay's link to bytes of h3sim's: TLS records and frames of 1,400 bytes."""
_SCHEMES = {"priority": "chrome-eps", "turns": "rr"}
_WITHIN = 5.0
"""Points by which h3sim's change may differ from Chromium's."""

Times = dict[str, dict[str, float]]
"""Medians by order and metric."""


def measure(sites: Iterable[Site], n_loads: int) -> None:
    """Load each site *n_loads* times per order, the orders in turns; append to `MEASURED`."""
    from validation.http2_site import Order, flag_of_certificate, served_over_link

    done = {(row["site"], row["order"], int(row["load"])) for row in rows_measured()}
    for site in sites:
        for n in range(n_loads):
            for order in map(Order, _SCHEMES):
                if (site.name, order.value, n) in done:
                    continue
                link = served_over_link(
                    Served(site.folder),
                    rate_bps=round(RATE_MBPS * 1e6),
                    rtt_s=RTT_MS / 1e3,
                    order=order,
                )
                with link as base, tempfile.TemporaryDirectory() as folder:
                    out = Path(folder) / "load.json"
                    program = (sys.executable, "-m", "validation.sites.load")
                    words = (f"{base}/{site.page}", flag_of_certificate(), str(out), "frames")
                    subprocess.run(("chrt", "-r", "5", *program, *words), check=False)  # noqa: S603, S607
                    found = json.loads(out.read_text("utf-8")) if out.exists() else {}
                _append((site.name, order.value, n, *(found.get(metric) for metric in METRICS)))


def _append(row: Sequence[Any]) -> None:
    is_new = not MEASURED.exists()
    with MEASURED.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(_FIELDS)
        writer.writerow(row)
    print(*row, flush=True)


def rows_measured() -> list[dict[str, str]]:
    """Return the loads in Chromium so far."""
    if not MEASURED.exists():
        return []
    with MEASURED.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def measured() -> dict[str, Times]:
    """Return the medians over the loads of each site."""
    loads: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows_measured():
        for metric in METRICS:
            if row[metric]:
                loads[row["site"]][row["order"]][metric].append(float(row[metric]))
    return {
        site: {
            order: {metric: statistics.median(each) for metric, each in by_metric.items()}
            for order, by_metric in orders.items()
        }
        for site, orders in loads.items()
    }


def simulated(site: Site, paint: str) -> Times:
    """Return the times of h3sim's loads of the recorded site."""
    page = h3sim.load_page(site.recordings / "record.json")
    times: Times = {}
    for order, scheme in _SCHEMES.items():
        load = h3sim.simulate(
            page, scheme=scheme, browser="parse", paint=paint, transport="tcp",
            network="marx-2019", rtt_ms=RTT_MS, rate_mbps=RATE_MBPS / _FRAMING,
        )  # fmt: skip
        values = {metric: getattr(load, metric) for metric in METRICS}
        times[order] = {metric: value for metric, value in values.items() if value is not None}
    return times


def change(times: Mapping[str, Mapping[str, float]], metric: str) -> float:
    """Return by how many per cent turns change a metric."""
    return 100 * (times["turns"][metric] / times["priority"][metric] - 1)


def _is_complete(times: Mapping[str, Mapping[str, float]]) -> bool:
    return all(metric in times.get(order, {}) for order in _SCHEMES for metric in METRICS)


def main(argv: list[str] | None = None) -> int:
    """Measure, or print a row per site and the quantiles over sites."""
    parser = Parser(prog="python -m validation.two_orders", description=__doc__)
    parser.add_argument("sites", nargs="*", metavar="SITE", help="names (default: all)")
    parser.add_argument("--measure", type=int, metavar="N", help="load each site N times per order")
    parser.add_argument("--paint", default="progressive", help="progressive or complete")
    options: argparse.Namespace = parser.parse_args(argv)
    sites = [
        site
        for site in all_sites()
        if site.part == Part.DEVELOP and (not options.sites or site.name in options.sites)
    ]
    if options.measure:
        measure(sites, options.measure)
        return 0
    seen = measured()
    pairs = {
        site.name: (seen[site.name], simulated(site, options.paint))
        for site in sites
        if site.name in seen
    }
    pairs = {name: pair for name, pair in pairs.items() if all(map(_is_complete, pair))}
    _print(pairs)
    return 0


def _print(pairs: Mapping[str, tuple[Times, Times]]) -> None:
    rows = [
        (
            name,
            *(
                f"{each['priority'][metric]:,.0f}: {change(each, metric):+.1f}"
                for metric in METRICS
                for each in pair
            ),
        )
        for name, pair in pairs.items()
    ]
    by = ("Chromium", "h3sim")
    heads = ("site", *(f"{title}, {who}" for title in METRICS.values() for who in by))
    print(Table([Column(head) for head in heads], rows))
    print("\nin order of priority, ms: change by turns, per cent\n")
    summary = []
    for metric, title in METRICS.items():
        changes = [[change(pair[n], metric) for pair in pairs.values()] for n in range(2)]
        quartiles = [statistics.quantiles(each, n=4) for each in changes]
        n_close = sum(abs(a - b) <= _WITHIN for a, b in zip(*changes, strict=True))
        summary.append((
            title, *(f"{q[1]:+.1f} ({q[0]:+.1f} to {q[2]:+.1f})" for q in quartiles),
            f"{spearmanr(*changes).statistic:.2f}", f"{n_close} of {len(pairs)}",
        ))  # fmt: skip
    heads = ("changes", *(f"{who}, median (quartiles)" for who in by), "rho", "within 5 points")
    print(Table([Column(head) for head in heads], summary))


if __name__ == "__main__":
    sys.exit(main())
