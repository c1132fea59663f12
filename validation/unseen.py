"""Predicted paints and load events of sites that nothing here was developed on.

`python -m validation.unseen FOLDER` reads two files for each site of a folder: `rec/NAME.json.gz`,
what `h3sim record` wrote of a load without throttling, and `sites/NAME.json.gz`, the medians of
loads of the same site in Chromium over three links. Each page is loaded over these links, and the
errors are printed beside those of Lighthouse's simulation (Lantern), if the files have it. The
recording and what is predicted are different loads, over different links.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scipy.stats import spearmanr
from tabulate import tabulate

import h3sim
from h3sim.page import Page, read_page
from h3sim.transport import LinkProfile, Network
from h3sim.values.units import mbps, ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_QUEUE_BYTES = 64 * 1024


def _link_of_20_mbps() -> Network:
    """Return the fastest of the three links: 20 Mbit/s down, 5 up, 20 ms."""
    down, up = (
        LinkProfile(rate_bps=mbps(rate_mbps), queue_bytes=_QUEUE_BYTES) for rate_mbps in (20, 5)
    )
    return Network(name="20 Mbit/s, 20 ms", rtt_ns=ms(20), down=down, up=up)


LINKS: dict[str, Network] = {
    "3g": h3sim.load_network("fast-3g"),
    "4g": h3sim.load_network("4g"),
    "20m": _link_of_20_mbps(),
}
"""The links by their names in the files."""
METRICS = {
    "FCP": ("fcp", "fcp_ms", "firstContentfulPaint"),
    "LCP": ("lcp", "largest_paint_ms", "largestContentfulPaint"),
    "load event": ("load", "load_event_ms", ""),
}
"""Names of a metric: in the files, of a load, and of Lighthouse."""


class Prediction(NamedTuple):
    """A metric of a site over a link, in ms; None where a tool gave none."""

    site: str
    link: str
    metric: str
    measured_ms: float
    h3sim_ms: float | None
    lighthouse_ms: float | None


def predictions(folder: Path) -> Iterator[Prediction]:
    """Yield each metric of each site of *folder* over each link."""
    for path in sorted((folder / "sites").glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        site = _read(path)
        page = _recorded_page(folder / "rec" / path.name)
        lantern: Mapping[str, Any] = next(
            (site[key] for key in site if key.startswith("lighthouse")), {}
        )
        for link, network in LINKS.items():
            load = h3sim.simulate(
                page,
                scheme="chrome-h2",
                network=network,
                browser="parse",
                transport_profile="linux-tcp",
            )
            for metric, (key, attribute, of_lighthouse) in METRICS.items():
                yield Prediction(
                    name,
                    link,
                    metric,
                    site["measured"][link]["median"][key],
                    getattr(load, attribute),
                    lantern.get(link, {}).get(of_lighthouse),
                )


def summary(found: Sequence[Prediction], tool: str) -> Iterator[list[Any]]:
    """Yield a row per metric and link: median and 90th percentile of the error, and rho.

    *tool* is "h3sim" or "lighthouse". Errors are shares of the measured time, in per cent.

    >>> ms = {"a": (100, 110), "b": (200, 180)}
    >>> rows = [Prediction(site, "3g", "FCP", *ms[site], None) for site in ms]
    >>> list(summary(rows, "h3sim"))
    [['FCP', '3g', 2, '10 / 10 %', '1.00']]
    """
    for metric in METRICS:
        for link in LINKS:
            pairs = [
                (one.measured_ms, predicted_ms)
                for one in found
                if (one.metric, one.link) == (metric, link)
                and (predicted_ms := getattr(one, f"{tool}_ms")) is not None
            ]
            if not pairs:
                continue
            errors = sorted(abs(guess / true - 1) * 100 for true, guess in pairs)
            worst = errors[round(0.9 * (len(errors) - 1))]
            rho = spearmanr(*zip(*pairs, strict=True)).statistic if len(pairs) > 1 else float("nan")
            shown = f"{statistics.median(errors):.0f} / {worst:.0f} %"
            yield [metric, link, len(pairs), shown, f"{rho:.2f}"]


def _read(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def _recorded_page(path: Path) -> Page:
    """Return the page in a file of `h3sim record`, which is packed here."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.name.removesuffix(".gz")
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return read_page(plain)


def main() -> None:
    """Print the errors over all sites of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with sites/ and rec/")
    found = list(predictions(parser.parse_args().folder))
    headers = ["metric", "link", "sites", "error: median / 90 %", "rho over sites"]
    for tool, title in (("h3sim", "h3sim"), ("lighthouse", "Lighthouse, simulated")):
        print(f"\n{title}\n")
        print(tabulate(list(summary(found, tool)), headers, disable_numparse=True))


if __name__ == "__main__":
    main()
