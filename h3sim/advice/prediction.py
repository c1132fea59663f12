"""Prediction: the paints and the load event of a recorded page over other networks.

Intervals are calibrated, not modelled: sites of public packages were recorded without throttling
and measured in Chromium over links (docs/generated/recordings.md). Over each link, for
each metric and kind of recording, `calibration.json` has how far these sites were from their
prediction. An interval is a conformal one (Vovk et al. 2005; Lei et al. 2018) whose sides have
scales of their own: the root mean squares of the errors that were late, and that were early. It
reaches as many of these both ways as the ceil((n + 1) level)-th smallest of the n sites' errors.
The scales are of the same sites, so its coverage is checked by leaving out one site at a time.

Without layout, as in a HAR, the largest paint may be text or any of several images. LCP is then
predicted as that of text, which it most often is, and the interval extends from there to the last
image. Its errors are those beyond these ends (Romano et al. 2019).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import catalog
from h3sim._version import __version__
from h3sim.advice.hints import METRICS, check_networks
from h3sim.advice.recommendation import subject_of
from h3sim.headers.synthetic_headers import with_http2_requests
from h3sim.importers.crux import NetworkShare
from h3sim.load import LoadConfig, in_words, simulate
from h3sim.load.options import LEVEL
from h3sim.page import Kind
from h3sim.page.recording import PaintCause
from h3sim.schema.arguments import ErrorCollector, check_arguments
from h3sim.schema.output import TEXT, OutputSchema, Property, rows_of
from h3sim.schema.values import OrNone
from h3sim.study.rows import COMMON, ResultTable
from h3sim.trace import Rows
from h3sim.transport.link_profile import PACKET_BYTES
from h3sim.transport.tcp import TlsVersion
from h3sim.values.errors import InputError
from h3sim.values.text import plural
from h3sim.values.units import MS_PER_S, ms, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.importers import ImportedPage
    from h3sim.load import Load
    from h3sim.load.run import PageLike
    from h3sim.page import Page
    from h3sim.transport import LinkProfile, Network


SCHEME = "chrome-h2"
"""Chrome over HTTP/2, as on the sites of the calibration."""
_H2O_FROM_NS = ms(50)
"""Round-trip time from which h2o optimizes latency (http2-latency-optimization-min-rtt)."""
_COMMIT_MS = 19
"""Time from the first bytes of the document until a request leaves, as captured on the link."""
_CLIENT_HELLO_BYTES, _SERVER_FLIGHT_BYTES = 1950, 664
"""TLS between Chromium 156 (which offers X25519MLKEM768) and h2o, as captured on the link."""
NETWORKS = ("fast-3g", "4g", "cable")
PREDICTED = {key: METRICS[key] for key in ("fcp", "lcp", "speed-index", "load")}
"""The predicted metrics: attribute of a load, and title."""
_RECORDED = {
    "fcp": "fcp_ns",
    "lcp": "largest_paint_ns",
    "speed-index": "speed_index_ns",
    "load": "load_event_ns",
}
_LIKE = 3.0
"""Factor within which RTT and rate of a network must be those of a calibrated link."""
_ROUNDING = 1e-9
"""Error of a product of floats that must not count as a site."""
RECORD, HAR, TRACE = "record", "HAR", "trace"
"""The calibrated kinds of recording."""


class PredictionRow(NamedTuple):
    """A metric over a network, in s: predicted, its interval, and the recording's own value.

    Half of the *n_sites* that were measured for it were off by at most *median_error*, a share of
    the measured time. The interval is None where they are too few. *latest_s* differs from
    *predicted_s* if it is unknown which element is the largest: the time if it is the last image.
    """

    network: str
    metric: str
    predicted_s: float
    low_s: float | None
    high_s: float | None
    n_sites: int
    median_error: float | None
    latest_s: float
    recorded_s: float | None


PREDICTION = OutputSchema(
    "h3sim-prediction/1",
    "The paints and the load event of a recorded page over other networks",
    *COMMON,
    Property("kind", TEXT, "the kind of recording, which decides the errors"),
    Property("confidence", LEVEL, "the level of each interval"),
    Property("calibrated", OrNone(TEXT, none=None), "what the intervals rest on"),
    Property("rows", rows_of(PredictionRow), "one per network and metric"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Prediction(ResultTable):
    """Result table of predictions, by network and metric."""

    format = PREDICTION
    rows: Rows[PredictionRow]
    page: Page
    kind: str
    confidence: float
    calibrated: str | None
    """Description of what the intervals rest on; None where no network has any."""
    n_candidates: int | None = None
    """Number of images that may be the largest paint; None if the recording says what it was."""

    def describe(self) -> str:
        """Describe what the intervals rest on, which are missing, what is odd, and the settings."""
        return "; ".join((*self._basis(), super().describe()))

    def _basis(self) -> Iterator[str]:
        basis = self.calibrated or "none, as no site of this kind was measured over such a link"
        yield f"{100 * self.confidence:g} % intervals: {basis}"
        few = sorted({row.n_sites for row in self.rows if row.low_s is None and row.n_sites})
        if few:
            needed = math.ceil(self.confidence / (1 - self.confidence) - _ROUNDING)
            yield f"{' or '.join(map(str, few))} sites are too few for one (it takes {needed})"
        if self.n_candidates is not None:
            yield (
                "the recording has no layout: LCP is that of text, painted first, or of an image"
                f" above the fold ({plural(self.n_candidates, 'candidate')})"
            )
        early = [row for row in self.rows if row.predicted_s < (row.recorded_s or 0.0)]
        if early:
            named = ", ".join(f"{row.metric} over {row.network}" for row in early)
            yield (
                f"earlier than in the recording itself: {named}: right if the recording's network"
                " was slower, else work or waits that the page does not have"
            )


class Calibration(NamedTuple):
    """Errors of one kind of recording over one link, by metric, ascending.

    They are logarithms of factors: measured / predicted. A measured time between a prediction and
    its `latest_s` has no error here, but one in the median of shares.
    """

    link: str
    errors: Mapping[str, Sequence[float]]
    median_errors: Mapping[str, float]

    def reach(self, metric: str, confidence: float) -> tuple[float, float] | None:
        """Return the factors from a prediction to both ends of its interval; None for too few.

        >>> one = Calibration("4g", {"fcp": [n / 100 for n in range(-9, 10)]}, {})
        >>> [round(math.log(each), 2) for each in one.reach("fcp", 0.95)], one.reach("fcp", 0.96)
        ([-0.09, 0.09], None)
        """
        return conformal_reach(self.errors.get(metric, ()), confidence)


def conformal_reach(errors: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """Return the factors to both ends of an interval, by the errors of sites; None for too few.

    >>> [round(math.log(each), 2) for each in conformal_reach([-0.1, -0.1, 0.3, 0.3], 0.8)]
    [-0.1, 0.3]
    """
    rank = math.ceil((len(errors) + 1) * confidence - _ROUNDING)
    if rank > len(errors):
        return None
    early, late = (_scale(each for each in errors if is_late == (each > 0)) for is_late in (0, 1))
    # A side without errors has the scale of the other.
    early, late = early or late, late or early
    if not late:
        return 1.0, 1.0
    scores = sorted(each / late if each > 0 else -each / early for each in errors)
    return math.exp(-scores[rank - 1] * early), math.exp(scores[rank - 1] * late)


def _scale(errors: Iterable[float]) -> float:
    """Return the root mean square; 0 for none."""
    squares = [each * each for each in errors]
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else 0.0


@cache
def calibration() -> dict[str, Any]:
    """Return what `calibration.json` has."""
    text = files("h3sim.advice").joinpath("calibration.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def calibration_for(network: Network, kind: str) -> Calibration | None:
    """Return the errors over the calibrated link that is most like *network*, if any is.

    >>> calibration_for(catalog.load_network("marx-2019"), RECORD) is None
    True
    """
    rate_bps = None if network.down is None else network.down.mean_rate_bps
    if rate_bps is None:
        return None
    path = (to_ms(network.rtt_ns), to_mbps(round(rate_bps)))
    distances = {
        name: [abs(math.log(own / other)) for own, other in zip(path, link, strict=True)]
        for name, link in calibration()["links"].items()
    }
    nearest = min(distances, key=lambda name: sum(distances[name]))
    errors = calibration()["errors"].get(kind, {}).get(nearest)
    if errors is None or max(distances[nearest]) > math.log(_LIKE):
        return None
    return Calibration(nearest, errors, calibration()["median_errors"][kind][nearest])


def kind_of(page: Page, imported: ImportedPage | None) -> str:
    """Return the kind of recording that a page is from.

    >>> kind_of(catalog.load_page("creative"), None)
    'record'
    """
    if imported is None and " record," in page.provenance.get("tool", ""):
        return RECORD
    dialect = page.provenance.get("dialect", "") if imported is None else imported.dialect
    if dialect == "har" or dialect.startswith("har-"):
        return HAR
    return TRACE if dialect == "chrome-trace" else dialect or "unknown"


def predict(
    page: PageLike | ImportedPage,
    *,
    networks: Sequence[str | Network | NetworkShare] = NETWORKS,
    confidence: float = 0.95,
) -> Prediction:
    """Predict FCP, LCP, SpeedIndex and load event of *page* over *networks*.

    The page is a page or a recording; networks are names, objects, or the shares of `read_crux`.
    The load is Chrome's, over HTTP/2 and Linux' TCP from the server of the calibration, h2o, on the
    machine of the recording. Metrics that the page does not have are left out.

    Raises:
        InputError: listing every error in the arguments, or in the recording.
        UnknownNameError: if the only error is an unknown name.

    >>> [row.metric for row in predict("creative", networks=["4g"]).rows]
    ['FCP', 'LCP', 'SpeedIndex', 'load event']
    """
    check_networks(networks)
    if not networks:
        raise InputError.at("networks", "at least one is needed")
    check_arguments(InputError, confidence=(LEVEL, confidence))
    with ErrorCollector() as errors:
        subject, imported = errors.collect("page", partial(subject_of, page), default=(None, None))
        paths = [errors.collect("networks", partial(_network, each)) for each in networks]
    kind = kind_of(subject, imported)
    loaded = prepared(subject)
    loads = [
        simulate(loaded, scheme=SCHEME, config=settings_for(path), network=serializing(path))
        for path in paths
    ]
    calibrations = [calibration_for(path, kind) for path in paths]
    rows = [
        row
        for each, load, known in zip(networks, loads, calibrations, strict=True)
        for row in _rows(_title(each), load, known, subject, confidence)
    ]
    is_known = all(load.largest_paint_ms is not None or load.fcp_ms is None for load in loads)
    links = dict.fromkeys(known.link for known in calibrations if known is not None)
    return Prediction(
        rows=Rows(PredictionRow, rows),
        page=subject,
        kind=kind,
        confidence=confidence,
        calibrated=_describe_links(links, kind) if links else None,
        n_candidates=None if is_known else len(loads[0].largest_candidates),
        version=__version__,
        configuration=_common([load.configuration for load in loads]),
        words=_common([in_words(load.spec) for load in loads]),
        page_digests={subject.name: subject.digest},
    )


def settings_for(network: Network) -> LoadConfig:
    """Return the settings of the calibration, so that its intervals hold: a load from h2o.

    It begins with records of one segment. From 50 ms on it leaves nothing unsent in the socket (h2o
    2.2, `prepare_for_latency_optimized_write` in lib/common/socket.c); else it is any Linux server.
    """
    name = "linux-tcp" if network.rtt_ns < _H2O_FROM_NS else "linux-tcp-h2o"
    profile = catalog.load_profile(name)
    client, server = (
        replace(
            end,
            tls=TlsVersion.TLS_1_3,
            client_hello_bytes=_CLIENT_HELLO_BYTES,
            server_flight_bytes=_SERVER_FLIGHT_BYTES,
        )
        for end in (profile.tcp_client, profile.tcp)
    )
    server = replace(server, has_dynamic_records=True)
    return LoadConfig(
        browser="parse",
        commit_ms=_COMMIT_MS,
        transport_profile=replace(profile, tcp=server, tcp_client=client),
    )


def serializing(network: Network) -> Network:
    """Return *network* with links that serialize, as the measured ones, unless it has bursts.

    >>> serializing(catalog.load_network("4g")).down.burst_bytes
    0
    """
    return replace(network, down=_serializing(network.down), up=_serializing(network.up))


def _serializing(link: LinkProfile | None) -> LinkProfile | None:
    if link is None or link.rate_bps is None or link.burst_bytes > PACKET_BYTES:
        return link
    return replace(link, burst_bytes=0)


def prepared(page: Page) -> Page:
    """Return *page* with requests as HTTP/2 sends them, and with work of the main thread.

    A HAR has none, so each script and stylesheet takes the time per byte, and the first paint the
    time, that is the median of the sites of the calibration.
    """
    page = with_http2_requests(page)
    if any(each.parse_ns or each.execute_ns for each in page.resources):
        return page
    work = calibration()["work"]
    cause = replace(
        page.first_paint or PaintCause(),
        work_ns=ms(work["first_paint_work_ms"]),
        delay_ns=ms(work["first_paint_delay_ms"]),
    )
    resources = (
        replace(each, parse_ns=round(each.size_bytes * work[f"{each.kind.value}_ns_per_byte"]))
        if each.kind in (Kind.SCRIPT, Kind.STYLESHEET)
        else each
        for each in page.resources
    )
    return replace(page.with_resources(resources), first_paint=cause)


def _network(given: str | Network | NetworkShare) -> Network:
    if isinstance(given, str):
        return catalog.load_network(given)
    return given.network if isinstance(given, NetworkShare) else given


def _title(given: str | Network | NetworkShare) -> str:
    if isinstance(given, str):
        return given
    return given.title if isinstance(given, NetworkShare) else given.name


def _common(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings that all loads have."""
    first, *others = settings
    return {key: first[key] for key in first if all(o.get(key) == first[key] for o in others)}


def _rows(
    network: str, load: Load, known: Calibration | None, page: Page, confidence: float
) -> Iterator[PredictionRow]:
    for key, (attribute, title) in PREDICTED.items():
        predicted_ms: float | None = getattr(load, attribute)
        latest_ms = predicted_ms
        if key == "lcp" and load.largest_paint_range_ms is not None:
            predicted_ms, latest_ms = load.largest_paint_range_ms
        if predicted_ms is None or latest_ms is None:
            continue
        reach = None if known is None else known.reach(key, confidence)
        recorded_ns = getattr(page.recorded_load, _RECORDED[key], None)
        seconds, latest_s = predicted_ms / MS_PER_S, latest_ms / MS_PER_S
        yield PredictionRow(
            network=network,
            metric=title,
            predicted_s=seconds,
            low_s=None if reach is None else seconds * reach[0],
            high_s=None if reach is None else latest_s * reach[1],
            n_sites=0 if known is None else len(known.errors.get(key, ())),
            median_error=None if known is None else known.median_errors.get(key),
            latest_s=latest_s,
            recorded_s=None if recorded_ns is None else to_ms(recorded_ns) / MS_PER_S,
        )


def _describe_links(links: Mapping[str, None], kind: str) -> str:
    own = calibration()
    paths = ", ".join(
        f"{own['links'][name][1]:g} Mbit/s and {own['links'][name][0]:g} ms" for name in links
    )
    return (
        f"from the errors of {own['n_sites']} sites of {own['n_packages']} packages, each recorded"
        f" once ({kind}) and measured in {own['browser']} over {paths}; sites that are unlike them"
        " may miss more often"
    )
