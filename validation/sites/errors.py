"""Errors of predictions: what `h3sim.predict` says of a recording, beside what was measured."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import math
import re
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scipy.stats import spearmanr

import h3sim
from h3sim.advice.prediction import HAR, PREDICTED, RECORD, TRACE, calibration, conformal_reach
from h3sim.page import Kind
from h3sim.values.errors import H3SimError
from h3sim.values.units import MS_PER_S, to_mbps, to_ms
from validation.sites.link import LINKS
from validation.sites.measuring import N_LOADS, measurements
from validation.sites.packages import DATA, all_sites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.advice.prediction import PredictionRow
    from validation.sites.packages import Site

CALIBRATION = Path(h3sim.__file__).parent / "advice" / "calibration.json"
_USES = DATA / "uses.csv"
_FILES = {RECORD: "record.json", HAR: "load.har", TRACE: "trace.json.gz"}
_MEASURED = {"fcp": "fcp_ms", "lcp": "lcp_ms", "load": "load_ms", "speed-index": "speed_index_ms"}
_LIGHTHOUSE = "Lighthouse"
"""What is in the place of a recording where Lighthouse's simulated throttling predicts."""
_OF_LIGHTHOUSE = {"fcp": "firstContentfulPaint", "lcp": "largestContentfulPaint"}
_MIN_LOADS = 2
"""Fewest loads of a site over a link that are compared."""
_MAX_SPREAD, _MAX_SPREAD_MS = 0.1, 34
"""Loads that are further apart, as a share and by more than two frames, were disturbed."""
_CONFIDENCE = 0.95


class Times(NamedTuple):
    """Measured times of a metric of a site over a link: the median, and the spread as a share.

    The spread of a single load is unknown.
    """

    median_ms: float
    spread: float | None


class Cell(NamedTuple):
    """A metric of a site over a link, predicted from one kind of recording."""

    kind: str
    metric: str
    link: str
    site: str
    measured: Times
    predicted_ms: float
    latest_ms: float
    interval_ms: tuple[float, float] | None

    @property
    def error(self) -> float:
        """The error as a share of the measured time."""
        return abs(self.predicted_ms / self.measured.median_ms - 1)

    @property
    def log_ratio(self) -> float:
        """Natural logarithm of measured / predicted; 0 between the prediction and its latest."""
        time_ms = self.measured.median_ms
        nearest_ms = min(max(time_ms, self.predicted_ms), self.latest_ms)
        return math.log(time_ms / nearest_ms)


def measured_times() -> dict[tuple[str, str, str], Times]:
    """Return the measured times by site, link and metric (SpeedIndex: of the one load with it).

    Times that were disturbed are left out.
    """
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for each in measurements():
        for metric, name in _MEASURED.items():
            # A load that takes screenshots is slower, so it counts for nothing else.
            text = getattr(each, name)
            if text and (each.load == N_LOADS) == (metric == "speed-index"):
                values[each.site, each.link, metric].append(float(text))
    return {
        key: Times(statistics.median(times), _spread(times))
        for key, times in values.items()
        if min(times) > 0
        and (len(times) >= _MIN_LOADS or key[2] == "speed-index")
        and is_steady(times)
    }


def is_steady(times: Sequence[float]) -> bool:
    """Return whether the times of several loads are so close that nothing disturbed them.

    >>> is_steady([300, 334]), is_steady([900, 990]), is_steady([808, 1012, 816])
    (True, True, False)
    """
    return max(times) - min(times) <= _MAX_SPREAD_MS or (_spread(times) or 0) <= _MAX_SPREAD


def _spread(times: Sequence[float]) -> float | None:
    """Return the range as a share of the median.

    >>> _spread([90, 100, 110])
    0.2
    """
    return (max(times) - min(times)) / statistics.median(times) if len(times) > 1 else None


def cells(sites: Iterable[Site]) -> Iterator[Cell]:
    """Yield what is predicted for *sites* from each of their recordings, beside what was measured.

    A recording that cannot be imported or loaded is named, and left out.
    """
    measured = measured_times()
    for site in sites:
        if any(key[0] == site.name for key in measured):
            files = {kind: site.recordings / name for kind, name in _FILES.items()}
            yield from _cells(site.name, files, measured)


def _cells(
    site: str, files: Mapping[str, Path], measured: Mapping[tuple[str, str, str], Times]
) -> Iterator[Cell]:
    titles = {title: key for key, (_, title) in PREDICTED.items()}
    links = {network.name: link for link, network in LINKS.items()}
    for kind, path in files.items():
        try:
            found = h3sim.predict(path, networks=list(LINKS.values()))
        except H3SimError as error:
            print(f"{site}: {kind}: {str(error).splitlines()[0]}")
            continue
        for row in found.rows:
            link, metric = links[row.network], titles[row.metric]
            if (site, link, metric) in measured:
                yield Cell(
                    kind,
                    metric,
                    link,
                    site,
                    measured[site, link, metric],
                    row.predicted_s * MS_PER_S,
                    row.latest_s * MS_PER_S,
                    _interval_ms(row),
                )


def _interval_ms(row: PredictionRow) -> tuple[float, float] | None:
    if row.low_s is None or row.high_s is None:
        return None
    return row.low_s * MS_PER_S, row.high_s * MS_PER_S


def folder_cells(folder: Path) -> Iterator[Cell]:
    """Yield the same for a folder of others: `sites/NAME.json.gz`, and `rec/`, `har/`, `trace/`.

    A file of `sites` has, by link, the medians of its loads, and what Lighthouse simulated.
    """
    with tempfile.TemporaryDirectory() as unpacked:
        for path in sorted((folder / "sites").glob("*.json.gz")):
            name = path.name.removesuffix(".json.gz")
            with gzip.open(path, "rt", encoding="utf-8") as file:
                site = json.load(file)
            measured = {
                (name, link, metric): Times(loads["median"][metric], None)
                for link, loads in site["measured"].items()
                for metric in ("fcp", "lcp", "load")
                if loads["median"][metric]
            }
            page = Path(unpacked) / f"{name}.json"
            page.write_bytes(gzip.decompress((folder / "rec" / path.name).read_bytes()))
            files = {RECORD: page, HAR: folder / "har" / f"{name}.har.gz"}
            yield from _cells(name, files | {TRACE: folder / "trace" / path.name}, measured)
            simulated: Mapping[str, Any] = next(
                (site[key] for key in site if key.startswith("lighthouse")), {}
            )
            for (_, link, metric), times in measured.items():
                predicted_ms = simulated.get(link, {}).get(_OF_LIGHTHOUSE.get(metric))
                if predicted_ms:
                    yield Cell(
                        _LIGHTHOUSE, metric, link, name, times, predicted_ms, predicted_ms, None
                    )


def without_own(found: Sequence[Cell]) -> list[Cell]:
    """Return cells of the develop part with the intervals that the other sites would give.

    >>> cells = [Cell("HAR", "fcp", "3g", str(n), Times(99, 0), 99, 99, None) for n in range(20)]
    >>> without_own(cells)[0].interval_ms, without_own(cells[1:])[0].interval_ms
    ((99.0, 99.0), None)
    """
    groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell in found:
        groups[cell.kind, cell.metric, cell.link].append(cell)
    changed = []
    for cell in found:
        others = groups[cell.kind, cell.metric, cell.link]
        errors = [each.log_ratio for each in others if each.site != cell.site]
        reach = conformal_reach(errors, _CONFIDENCE)
        ends_ms = cell.predicted_ms, cell.latest_ms
        ends = None if reach is None else (reach[0] * ends_ms[0], reach[1] * ends_ms[1])
        changed.append(cell._replace(interval_ms=ends))
    return changed


def summary(found: Sequence[Cell]) -> Iterator[list[Any]]:
    """Yield a row per kind, metric and link.

    Errors are shares of the measured time in per cent; the noise is the median over sites of the
    spread of the loads of each; covered are the intervals that have the measured time in them.

    >>> one = Cell("HAR", "fcp", "3g", "a", Times(100, 0.02), 110, 110, (80, 120))
    >>> list(summary([one, one._replace(site="b", measured=Times(200, 0), predicted_ms=180)]))
    [['HAR', 'FCP', '3g', 2, '10 / 10 %', '1.00', '1 %', '1 of 2']]
    """
    groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell in found:
        groups[cell.kind, cell.metric, cell.link].append(cell)
    for kind in (*_FILES, _LIGHTHOUSE):
        for metric, (_, title) in PREDICTED.items():
            for link in LINKS:
                own = groups[kind, metric, link]
                if own:
                    yield [kind, title, link, len(own), *_summed(own)]


def _summed(own: Sequence[Cell]) -> Iterator[str]:
    errors = sorted(100 * each.error for each in own)
    yield f"{statistics.median(errors):.0f} / {errors[round(0.9 * (len(errors) - 1))]:.0f} %"
    pairs = [(each.measured.median_ms, each.predicted_ms) for each in own]
    rho = spearmanr(*zip(*pairs, strict=True)).statistic if len(pairs) > 1 else math.nan
    yield f"{rho:.2f}"
    spreads = [each.measured.spread for each in own if each.measured.spread is not None]
    yield f"{100 * statistics.median(spreads):.0f} %" if spreads else "-"
    known = [(each.measured.median_ms, each.interval_ms) for each in own if each.interval_ms]
    n_covered = sum(low_ms <= time_ms <= high_ms for time_ms, (low_ms, high_ms) in known)
    yield f"{n_covered} of {len(known)}" if known else "-"


def typical_work(sites: Iterable[Site]) -> dict[str, float]:
    """Return medians of the main thread's work in the recordings of *sites*.

    These are the time per byte of scripts and of stylesheets, and the work and the delay of the
    first paint.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for site in sites:
        page = h3sim.load_page(site.recordings / "record.json")
        for kind in (Kind.SCRIPT, Kind.STYLESHEET):
            own = [each for each in page.resources if each.kind is kind]
            if n_bytes := sum(each.size_bytes for each in own):
                work_ns = sum(each.parse_ns + each.execute_ns for each in own)
                found[f"{kind.value}_ns_per_byte"].append(work_ns / n_bytes)
        if page.first_paint is not None:
            found["first_paint_work_ms"].append(to_ms(page.first_paint.work_ns))
            found["first_paint_delay_ms"].append(to_ms(page.first_paint.delay_ns))
    return {name: round(statistics.median(values), 3) for name, values in found.items()}


def calibrate(sites: Sequence[Site]) -> None:
    """Write the calibration of `h3sim.predict` anew, from *sites* of the develop part."""
    document = json.loads(CALIBRATION.read_text(encoding="utf-8"))
    # The predictions that are compared rest on it.
    _write_calibration(document | {"work": typical_work(sites)})
    _write_calibration(_calibration_of(list(cells(sites)), sites))


def _calibration_of(found: Sequence[Cell], sites: Sequence[Site]) -> dict[str, Any]:
    errors: dict[str, dict[str, dict[str, list[float]]]] = {}
    medians: dict[str, dict[str, dict[str, float]]] = {}
    groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell in found:
        groups[cell.kind, cell.link, cell.metric].append(cell)
    for (kind, link, metric), own in sorted(groups.items()):
        values = sorted(round(cell.log_ratio, 3) for cell in own)
        errors.setdefault(kind, {}).setdefault(link, {})[metric] = values
        median = round(statistics.median(cell.error for cell in own), 3)
        medians.setdefault(kind, {}).setdefault(link, {})[metric] = median
    return {
        "format": "h3sim-calibration/1",
        "browser": "Chromium 156",
        "n_sites": len({cell.site for cell in found}),
        "n_packages": len({site.package for site in sites}),
        "links": {
            link: [to_ms(network.rtt_ns), to_mbps(network.down.rate_bps or 0)]
            for link, network in LINKS.items()
            if network.down is not None
        },
        "errors": errors,
        "median_errors": medians,
        "work": typical_work(sites),
    }


def _write_calibration(document: Mapping[str, Any]) -> None:
    # One line for each list.
    text = re.sub(
        r"\[[^\[\]]*\]", lambda found: " ".join(found[0].split()), json.dumps(document, indent=1)
    )
    CALIBRATION.write_text(text + "\n", encoding="utf-8")
    calibration.cache_clear()


def log_use(sites: Sequence[Site]) -> None:
    """Append to the log that the test part was used: date, commit and number of sites."""
    words = ("git", "describe", "--always", "--dirty")
    commit = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    is_new = not _USES.exists()
    with _USES.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(("date", "commit", "sites"))
        writer.writerow((today, commit, len(sites)))


def measured_sites(part: str) -> list[Site]:
    """Return the measured and recorded sites of a part."""
    names = {site for site, _, _ in measured_times()}
    return [
        site
        for site in all_sites()
        if site.part == part and site.name in names and site.recordings.exists()
    ]
