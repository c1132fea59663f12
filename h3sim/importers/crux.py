"""Connections of users in the Chrome UX Report (CrUX), as networks with shares.

CrUX has either a histogram of round-trip times (since 2025: the metric `round_trip_time`, the
columns `low_rtt`, `medium_rtt` and `high_rtt`) or shares of effective connection types (before:
columns such as `_4GDensity`). It has no rates: these are those of Lighthouse's throttling presets,
whose round-trip times are in the three classes of CrUX (`core/config/constants.js`), and for 2G the
limits of the Network Information API.

The formats are those of developer.chrome.com/docs/crux/api, /history-api and /bigquery.
"""

from __future__ import annotations

import contextlib
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.schema import format_value, is_quantity, parse_json, read_text, shown_path
from h3sim.transport.link_profile import LinkProfile
from h3sim.transport.network import Network
from h3sim.values.errors import NetworkError, ValidationIssue
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


class NetworkShare(NamedTuple):
    """Network with the share of the users who have it."""

    network: Network
    share: float

    @property
    def title(self) -> str:
        """The network's name with the share, for tables."""
        return f"{self.network.name} ({100 * self.share:.0f} %)"


class _ConnectionClass(NamedTuple):
    """Class of round-trip times: its name, upper bound, typical value and rates."""

    name: str
    end_ms: float
    rtt_ms: float
    down_mbps: float
    up_mbps: float


_RTT_CLASSES = (
    _ConnectionClass("crux-low-rtt", 75, 40, 10.24, 10.24),
    _ConnectionClass("crux-medium-rtt", 275, 150, 1.6384, 0.75),
    _ConnectionClass("crux-high-rtt", math.inf, 300, 0.7, 0.7),
)
"""CrUX's classes, with Lighthouse's desktopDense4G, mobileSlow4G and mobileRegular3G."""
_RTT_COLUMNS = ("low_rtt", "medium_rtt", "high_rtt")
_CLASS_BY_TYPE_COLUMN = {
    "_4GDensity": _ConnectionClass("crux-4g", 270, 150, 1.6384, 0.75),
    "_3GDensity": _ConnectionClass("crux-3g", 1400, 300, 0.7, 0.7),
    "_2GDensity": _ConnectionClass("crux-2g", 2000, 1400, 0.07, 0.07),
    "slow2GDensity": _ConnectionClass("crux-slow-2g", math.inf, 2000, 0.05, 0.05),
}
"""Effective connection types, but offline: those users load nothing."""
CRUX_COLUMNS = (*_RTT_COLUMNS, *_CLASS_BY_TYPE_COLUMN)
"""Columns of BigQuery's tables with shares of connections."""
_MONTH_COLUMNS = ("yyyymm", "yyyymmdd", "date")
"""Columns with the period of a row; each table of BigQuery has one of them."""
_QUEUE_BYTES = 65_536
"""Queue of the networks, of which CrUX says nothing."""
_MAX_SIGMA = 2.0
"""The widest log-normal distribution that is fitted: the middle two thirds of its round-trip times
differ by a factor of e^4 = 55. Shares that need a wider one have two groups of users."""
_MAX_SHARE = 1.01
"""Shares are rounded, so that those of all classes may add up to more than 1."""
_NO_DATA_DENSITIES = (None, "NaN")
"""Density of a bin without users, and of a period in which the page had too few."""


class NotCruxError(NetworkError):
    """A file has no connections of CrUX."""


def read_crux(path: str | Path) -> tuple[NetworkShare, ...]:
    """Return the networks of the users in the CrUX file at *path*, the best first.

    The file is a response of the CrUX API or of its history, of which the last period counts, or
    rows of BigQuery's tables as a JSON array or JSON Lines. Of several rows those of the last month
    count, added up. The round-trip time of a class is its median in the log-normal distribution
    that has the classes' shares, if all three have users and the distribution is no wider than
    those of round-trip times are; else it is that of the preset.

    Raises:
        NotCruxError: if it has no connections.
        NetworkError: if it cannot be read, or listing every error in it.
    """
    source = shown_path(path)
    rows = [row for row in _rows(read_text(path, NetworkError), source) if _has_connections(row)]
    if not rows:
        message = "has neither round_trip_time nor shares of effective connection types of CrUX"
        raise NotCruxError.at("", message, source)
    reader = _ShareReader()
    last_month = max(map(_month, rows))
    found: dict[_ConnectionClass, float] = {}
    for number, row in enumerate(rows):
        if _month(row) == last_month:
            for each, share in reader.shares(row, f"[{number}]" if len(rows) > 1 else ""):
                found[each] = found.get(each, 0.0) + share
    total = sum(found.values())
    if not reader.problems and not total > 0:
        reader.wrong("", "its shares add up to 0")
    if reader.problems:
        raise NetworkError(reader.problems, source)
    return _networks({each: share / total for each, share in found.items()}, source)


def _rows(text: str, source: str) -> list[Mapping[str, Any]]:
    """Return the objects of a file: one, a list of them, or one per line."""
    try:
        document = parse_json(text, NotCruxError, source=source)
    except NotCruxError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        document = [parse_json(line, NotCruxError, source=source) for line in lines]
    found = document if isinstance(document, list) else [document]
    return [row for row in found if isinstance(row, dict)]


def _metric(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the round-trip times of a response of the API."""
    found: Any = row
    for key in ("record", "metrics", "round_trip_time"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _has_connections(row: Mapping[str, Any]) -> bool:
    return _metric(row) is not None or any(name in row for name in CRUX_COLUMNS)


def _month(row: Mapping[str, Any]) -> str:
    return next((str(row[name]) for name in _MONTH_COLUMNS if row.get(name) is not None), "")


class _ShareReader:
    """Reader of the shares in rows, which collects the problems."""

    def __init__(self) -> None:
        self.problems: list[ValidationIssue] = []

    def wrong(self, key: str, message: str) -> None:
        self.problems.append(ValidationIssue(key=key, message=message))

    def shares(
        self, row: Mapping[str, Any], where: str
    ) -> Iterator[tuple[_ConnectionClass, float]]:
        """Yield each class with its share in a row."""
        metric = _metric(row)
        if metric is not None:
            yield from self._histogram(metric, f"{where}record.metrics.round_trip_time")
            return
        columns: Mapping[str, _ConnectionClass] = dict(zip(_RTT_COLUMNS, _RTT_CLASSES, strict=True))
        if not any(row.get(name) is not None for name in _RTT_COLUMNS):
            columns = _CLASS_BY_TYPE_COLUMN
        for name, each in columns.items():
            if row.get(name) is not None:
                yield each, self._share(row[name], f"{where}{name}")

    def _histogram(
        self, metric: Mapping[str, Any], where: str
    ) -> Iterator[tuple[_ConnectionClass, float]]:
        """Yield the classes with the shares of a histogram, or of the last one of a history."""
        is_history = "histogram" not in metric and "histogramTimeseries" in metric
        name = "histogramTimeseries" if is_history else "histogram"
        key, bins = f"{where}.{name}", metric.get(name)
        if bins is None:
            self.wrong(key, "is missing; percentiles alone do not give shares")
            return
        if not isinstance(bins, list) or not bins:
            self.wrong(key, f"must be a list of bins, is {format_value(bins)}")
            return
        for number, entry in enumerate(self._last_period(bins, key) if is_history else bins):
            name = f"{key}[{number}]"
            start: Any = entry.get("start") if isinstance(entry, dict) else None
            if not is_quantity(start) or start < 0:
                self.wrong(f"{name}.start", f"must be at least 0, is {format_value(start)}")
                continue
            each = next(each for each in _RTT_CLASSES if start < each.end_ms)
            end = math.inf if entry.get("end") is None else entry["end"]
            if (end != math.inf and not is_quantity(end)) or end > each.end_ms:
                shown = format_value(entry.get("end"))
                self.wrong(f"{name}.end", f"must be at most {each.end_ms:g}, is {shown}")
            density = entry.get("density")
            yield (
                each,
                0.0 if density in _NO_DATA_DENSITIES else self._share(density, f"{name}.density"),
            )

    def _last_period(self, bins: Sequence[Any], key: str) -> list[dict[str, Any]]:
        """Return the bins of a history with their densities of the last period that has any."""
        histories: list[Sequence[Any]] = []
        for number, entry in enumerate(bins):
            densities = entry.get("densities") if isinstance(entry, dict) else None
            if not isinstance(densities, list):
                message = f"must be a list of shares, is {format_value(densities)}"
                self.wrong(f"{key}[{number}].densities", message)
                return []
            histories.append(densities)
        if len({*map(len, histories)}) > 1:
            self.wrong(key, "must have as many densities in each bin")
            return []
        periods = [
            each
            for each in zip(*histories, strict=True)
            if any(d not in _NO_DATA_DENSITIES for d in each)
        ]
        last = periods[-1] if periods else (None,) * len(bins)
        return [{**entry, "density": d} for entry, d in zip(bins, last, strict=True)]

    def _share(self, value: Any, key: str) -> float:
        """Return a share, which BigQuery may write as text."""
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = float(value)
        if is_quantity(value) and 0 <= value <= _MAX_SHARE:
            return float(value)
        self.wrong(key, f"must be 0 to 1, is {format_value(value)}")
        return 0.0


def _networks(shares: Mapping[_ConnectionClass, float], source: str) -> tuple[NetworkShare, ...]:
    ordered = sorted(shares, key=lambda each: each.end_ms)
    rtts_ms = _median_rtts_ms([(each, shares[each]) for each in ordered])
    found = []
    for each, rtt_ms in zip(ordered, rtts_ms, strict=True):
        if shares[each] <= 0:
            continue
        down, up = (
            LinkProfile(rate_bps=round(mbps * 1e6), queue_bytes=_QUEUE_BYTES)
            for mbps in (each.down_mbps, each.up_mbps)
        )
        network = Network(
            name=each.name,
            title=f"{100 * shares[each]:.1f} % of the users; RTT from CrUX, rates from presets",
            source=source,
            # A computed median is not longer than the longest preset.
            rtt_ns=ms(round(min(rtt_ms, _CLASS_BY_TYPE_COLUMN["slow2GDensity"].rtt_ms), 1)),
            down=down,
            up=up,
        )
        found.append(NetworkShare(network, shares[each]))
    return tuple(found)


def _median_rtts_ms(shares: Sequence[tuple[_ConnectionClass, float]]) -> list[float]:
    """Return the median round-trip time of each class, by `read_crux`'s rule.

    >>> [round(rtt_ms) for rtt_ms in _median_rtts_ms(list(zip(_RTT_CLASSES, (0.25, 0.5, 0.25))))]
    [47, 144, 435]
    >>> _median_rtts_ms([(_RTT_CLASSES[0], 0.4), (_RTT_CLASSES[1], 0.6)])
    [40, 150]
    >>> _median_rtts_ms(list(zip(_RTT_CLASSES, (0.9, 0.0005, 0.0995))))
    [40, 150, 300]
    """
    typical = [each.rtt_ms for each, _ in shares]
    names = [each.name for each, _ in shares]
    if names != [each.name for each in _RTT_CLASSES] or any(share <= 0 for _, share in shares):
        return typical
    normal = NormalDist()
    # Fit the distribution to the shares of users below the two bounds between the classes.
    (low, low_share), (medium, medium_share), _ = shares
    below = [low_share, low_share + medium_share]
    if not below[0] < below[1] < 1:  # a share that is lost in rounding
        return typical
    low_z, medium_z = map(normal.inv_cdf, below)
    least_distance = math.log(medium.end_ms / low.end_ms) / _MAX_SIGMA
    if medium_z - low_z < least_distance:
        return typical  # two groups of users, with hardly any in between
    sigma = math.log(medium.end_ms / low.end_ms) / (medium_z - low_z)
    mean = math.log(low.end_ms) - sigma * low_z
    medians = [below[0] / 2, sum(below) / 2, (below[1] + 1) / 2]  # as quantiles of all users
    return [math.exp(mean + sigma * normal.inv_cdf(quantile)) for quantile in medians]
