"""Fidelity of replays: how well a simulated load reproduces its recording.

A recording is replayed over its estimated network, with its browser's requests, and the recorded
milestones are compared with those of the replay. The replayed load event is the completion
of the last resource that the recorded one waited for, plus the browser's own time after it.
Where a study's browser computes its loads, this one does, too, with a load event of its own.

A replay has all recorded delays: of servers, of scripts, of a user who waits. They fit by
themselves, so that a load of mostly idle time fits however wrong its network is. Hence the page is
also replayed with nothing but these delays, over a network that takes no time, and the replay is
judged by the rest of the time, which depends on the network. Where that is too little, or the
responses are too few, the fit cannot be judged.
"""

from __future__ import annotations

import enum
import math
import statistics
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.browser import BrowserMode, BrowserModel
from h3sim.importers.result import IMPORT
from h3sim.load.load_config import LoadConfig
from h3sim.load.network_path import recorded_network
from h3sim.load.run import resolve, resolve_scheme
from h3sim.schema.output import TEXT, ObjectType, Property, rows_of
from h3sim.schema.values import Choice, Number, OrNone
from h3sim.study.runner import Execution, LoadRunner, LoadTask
from h3sim.trace import Rows
from h3sim.transport import ConstantRate, Network
from h3sim.values.text import plural
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.load.load import Load
    from h3sim.page import Page, RecordedLoad


_RECORDED_SCHEME, _DEFAULT_SCHEME = "recorded", "chrome-eps"
"""Schemes of replays, with and without recorded priorities."""
_SCHEMES_WITHOUT_PRIORITIES = ("rr", "fifo")
"""Schemes of servers that ignore priorities."""
_QUIC_PROTOCOLS = ("h3", "http/3", "hq", "quic")
_MULTIPLEXED_PROTOCOLS = ("h2", "http/2", "spdy", *_QUIC_PROTOCOLS)
"""Beginnings of the recorded names of protocols."""
GOOD_FACTOR, FAIR_FACTOR = 1.25, 1.5
"""Largest factor by which a milestone may differ."""
GOOD_RANKS, FAIR_RANKS = 0.8, 0.5
"""Lowest Spearman's rho of the order of completions."""
GOOD_BYTES, FAIR_BYTES = 0.9, 0.75
"""Lowest share of the recorded bytes in the page."""
_ALL_RESOURCES = "all resources"
"""Milestone of the last completion."""
_MIN_COMPLETIONS = 5
"""Fewest completions with a meaningful order: four agree by chance once in 24. They are also the
fewest by which a network can be judged that was estimated from them."""
_MIN_NETWORK_SHARE = 0.1
"""Least share of a milestone's time that must depend on the network: a factor of 1.25 on less is
within the errors of a browser's own times."""
_MAX_FACTOR = 1000.0
"""Factors are cut at this: the replayed or recorded time is all delays."""
_RECORDED_DELAYS = Network(
    name="recorded-delays",
    title="no time passes but the recorded delays",
    constant_rate=ConstantRate.at_rate(packet_bytes=1500, rate_bps=10**12),
)
"""Network of a replay with nothing but recorded delays."""


class Grade(enum.Enum):
    """Quality grade of a replay, which limits what may be concluded from it."""

    GOOD = "good"
    """Supports a verdict."""
    FAIR = "fair"
    """Supports a verdict that states the deviation."""
    POOR = "poor"
    """Supports no verdict."""
    UNJUDGED = "cannot be judged"
    """Supports no verdict: too little of the recorded time depends on the network."""

    @property
    def supports_verdict(self) -> bool:
        """True if a verdict may be drawn from the replay."""
        return self in (Grade.GOOD, Grade.FAIR)


class Milestone(NamedTuple):
    """Milestone of a load, with its recorded and its replayed or computed times.

    *delays_ms* is its time in a load of nothing but the recorded delays.

    >>> idle = Milestone("load event", 22_000, 22_150, delays_ms=21_700)
    >>> idle.network_ms, idle.factor, idle.is_judged
    (300, 1.5, False)
    """

    milestone: str
    recorded_ms: float
    replayed_ms: float
    delays_ms: float = 0.0

    @property
    def network_ms(self) -> float:
        """Recorded time that depends on the network."""
        return self.recorded_ms - self.delays_ms

    @property
    def is_judged(self) -> bool:
        """True if enough of the recorded time depends on the network."""
        return self.network_ms >= _MIN_NETWORK_SHARE * self.recorded_ms

    @property
    def factor(self) -> float:
        """Ratio of the longer to the shorter of both times that depend on the network; at least 1.

        A replay that is no closer to the recording than the delays alone differs by a factor of 2
        or more.
        """
        return _ratio(self.network_ms, self.replayed_ms - self.delays_ms)

    @property
    def factor_of_all(self) -> float:
        """Ratio of the later to the earlier time, delays included."""
        return _ratio(self.recorded_ms, self.replayed_ms)

    def describe(self, verb: str) -> str:
        """Describe the times; *verb*, "replayed" or "computed", tells where the second is from."""
        times = f"recorded {self.recorded_ms:,.0f} ms, {verb} {self.replayed_ms:,.0f} ms"
        alone = f", recorded delays alone {self.delays_ms:,.0f} ms" if self.delays_ms else ""
        return f"{self.milestone}: {times}{alone}"


def _ratio(one_ms: float, other_ms: float) -> float:
    """Return the ratio of the longer to the shorter time."""
    least, most = sorted((one_ms, other_ms))
    return min(most / least, _MAX_FACTOR) if least > 0 else _MAX_FACTOR


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Comparison of a replay with its recording.

    The grade is the lowest of its parts. Milestones whose times that depend on the network are
    within a factor of 1.25 are good, within 1.5 fair; Spearman's rho of the order of completions is
    good from 0.8, fair from 0.5; a page with 90 % of the recorded bytes is good, with 75 % fair.
    Values missing from the recording are not judged, but without any milestone the replay is poor.
    If less than a tenth of each milestone depends on the network, or fewer than five responses
    were recorded, a replay that is not poor cannot be judged.

    >>> close = Milestone("load event", 1000, 1100)
    >>> Fidelity(milestones=Rows(Milestone, [close]), rank_correlation=0.95).grade
    <Grade.GOOD: 'good'>
    >>> far = Fidelity(milestones=Rows(Milestone, [close._replace(replayed_ms=500)]))
    >>> far.grade, far.off_by
    (<Grade.POOR: 'poor'>, 2.0)
    >>> idle = close._replace(delays_ms=950)
    >>> Fidelity(milestones=Rows(Milestone, [idle])).grade
    <Grade.UNJUDGED: 'cannot be judged'>
    """

    milestones: Rows[Milestone]
    """The load event, the last resource above the fold, and the last of all, as far as known."""
    rank_correlation: float | None = None
    """Spearman's rho of the order of completions; None for fewer than five."""
    delays_rank_correlation: float | None = None
    """The same of a load of nothing but the recorded delays."""
    n_completions: int | None = None
    """Number of responses whose completion was recorded; None if no completion was."""
    bytes_share: float | None = None
    """Share of the recorded bytes in the page."""
    lacks: tuple[str, ...] = ()
    """Data missing from the recording."""
    server: str = ""
    """Scheme of a server without priorities, if completions were in its order; else ""."""
    is_computed: bool = False
    """True if the browser computed the load (`browser="parse"`) instead of replaying it."""

    @property
    def judged(self) -> list[Milestone]:
        """Milestones of which enough depends on the network."""
        return [row for row in self.milestones if row.is_judged]

    @property
    def off_by(self) -> float | None:
        """Largest factor by which a milestone's time that depends on the network differs.

        None if no milestone is known, or none can be judged.
        """
        return max((row.factor for row in self.judged), default=None)

    @property
    def grade(self) -> Grade:
        """Lowest grade of all parts."""
        factors = [row.factor if row.is_judged else row.factor_of_all for row in self.milestones]
        factor = max(factors, default=math.inf)
        rho = 1.0 if self.rank_correlation is None else self.rank_correlation
        share = 1.0 if self.bytes_share is None else self.bytes_share
        if factor > FAIR_FACTOR or rho < FAIR_RANKS or share < FAIR_BYTES:
            return Grade.POOR
        if not self.judged or self._has_few_completions:
            return Grade.UNJUDGED
        if factor <= GOOD_FACTOR and rho >= GOOD_RANKS and share >= GOOD_BYTES:
            return Grade.GOOD
        return Grade.FAIR

    @property
    def _has_few_completions(self) -> bool:
        return self.n_completions is not None and self.n_completions < _MIN_COMPLETIONS

    @property
    def sentence(self) -> str:
        """One-sentence description of the fit."""
        subject = "computed load" if self.is_computed else "replay"
        if not self.milestones:
            reason = "which lacks the necessary data"
            return f"The {subject} cannot be compared with the recording, {reason}."
        if self.grade is Grade.UNJUDGED:
            reason = self._unjudged_reason
            return f"Whether the {subject} fits the recording cannot be judged: {reason}."
        # Those that cannot be judged by the network are only named if they are what is wrong.
        worst = max(self.judged or self.milestones, key=lambda row: row.factor)
        wrong = max(self.milestones, key=lambda row: (not row.is_judged, row.factor_of_all))
        if not wrong.is_judged and wrong.factor_of_all > FAIR_FACTOR:
            worst = wrong
        parts = [_deviation(worst)]
        if self.rank_correlation is not None:
            server = f", with a server that sends as {self.server}" if self.server else ""
            alone = self.delays_rank_correlation
            delays = "" if alone is None else f", {alone:.2f} by recorded delays alone"
            rho = f"{self.rank_correlation:.2f} (Spearman's rho{delays}{server})"
            parts.append(f"order of completions {rho}")
        if self.bytes_share is not None and self.bytes_share < GOOD_BYTES:
            parts.append(f"{100 * self.bytes_share:.0f} % of the recorded bytes")
        adverb = _GRADE_ADVERBS[self.grade]
        return f"The {subject} fits the recording {adverb}: {', '.join(parts)}."

    @property
    def _unjudged_reason(self) -> str:
        if self._has_few_completions:
            responses = plural(self.n_completions or 0, "response")
            return (
                f"it has {responses}, and of fewer than {_MIN_COMPLETIONS} any estimate of the"
                " network fits"
            )
        most = max(self.milestones, key=lambda row: row.network_ms / row.recorded_ms)
        network = f"{max(0.0, most.network_ms):,.0f} of {most.recorded_ms:,.0f} ms"
        return (
            f"only {network} ({most.milestone}) depend on the network, the others are recorded"
            " delays, which fit by themselves"
        )

    def lines(self) -> list[str]:
        """Return the sentence, the milestones and, without a verdict, missing data, as lines."""
        verb = "computed" if self.is_computed else "replayed"
        lines = [self.sentence, *(row.describe(verb) for row in self.milestones)]
        if self.grade is Grade.POOR:
            lines.append(f"No verdict. Missing: {self.missing_reason}")
        elif self.grade is Grade.UNJUDGED:
            lines.append(f"No verdict. {_RECORDING_ADVICE}")
        return lines

    @property
    def missing_reason(self) -> str:
        """Data missing from a poor recording, and how to record it better."""
        if not self.lacks:
            return f"nothing that could be identified. {_RECORDING_ADVICE}"
        return f"the recording lacks {'; '.join(self.lacks)}. {_RECORDING_ADVICE}"


def _deviation(row: Milestone) -> str:
    """Describe how far a milestone is off, and of how much time."""
    factor = row.factor if row.is_judged else row.factor_of_all
    deviation = f"{100 * (factor - 1):.0f} %" if factor < 2 else f"{factor:.1f} times"
    direction = "early" if row.replayed_ms < row.recorded_ms else "late"
    is_part = row.is_judged and row.delays_ms > 0
    part = f" of the {row.network_ms:,.0f} ms that depend on the network" if is_part else ""
    return f"{row.milestone} {deviation}{part} too {direction}"


_GRADE_ADVERBS = {Grade.GOOD: "well", Grade.FAIR: "fairly", Grade.POOR: "poorly"}
_RECORDING_ADVICE = (
    "Record the page alone, with the cache disabled, over HTTP/2 or HTTP/3, until the network is"
    " idle, and save the HAR with content"
)

FIDELITY = ObjectType(
    Property("grade", Choice(Grade), "quality of the replay: good and fair support a verdict"),
    Property("sentence", TEXT, "the fit in one sentence"),
    Property(
        "off_by",
        OrNone(Number(low=1), none=None),
        "largest factor by which the time of a milestone that depends on the network differs",
    ),
    Property(
        "milestones",
        rows_of(Milestone),
        "recorded and replayed times, and those of recorded delays alone",
    ),
    Property(
        "rank_correlation",
        OrNone(Number(low=-1, high=1), none=None),
        "Spearman's rho of the order of completions",
    ),
    Property(
        "delays_rank_correlation",
        OrNone(Number(low=-1, high=1), none=None),
        "the same of recorded delays alone",
        is_optional=True,
    ),
    Property(
        "server",
        TEXT,
        "scheme of a server without priorities, if completions were in its order; else empty",
        is_optional=True,
    ),
    Property(
        "bytes_share", OrNone(Number(low=0), none=None), "share of the recorded bytes in the page"
    ),
)
IMPORT_REPORT = IMPORT.with_keys(
    Property(
        "fidelity",
        OrNone(FIDELITY, none=None),
        "as in the report of `h3sim import`",
        is_optional=True,
    )
)
"""Properties for the import report of a page and the fidelity of its replay."""


def fidelity(page: Page, browser: BrowserModel | None = None) -> Fidelity | None:
    """Compare the replay of *page* with its recording; return None if it was not recorded.

    The replay sends the recorded priorities if the page has them, else Chrome's; it uses QUIC if
    HTTP/3 was recorded, else TCP; and it connects to the recorded hosts. A recording does not tell
    whether its server heeded the priorities. If the order of completions does not fit well, the
    page is also replayed with "rr" and "fifo", as by servers that ignore priorities, and the
    replay with the best order is taken. If *browser* computes loads, this one is computed, too.

    >>> import h3sim
    >>> fidelity(h3sim.load_page("davies-meenan")) is None
    True
    """
    return fidelities([page], browser=browser).get(page.name)


def fidelities(
    pages: Iterable[Page],
    execution: Execution | None = None,
    *,
    browser: BrowserModel | None = None,
) -> dict[str, Fidelity]:
    """Return the fidelity of each page that was recorded, by its name."""
    model = browser or BrowserModel()
    recordings = {
        page.name: recording
        for page in pages
        if (recording := _Recording.of_page(page, model)) is not None
    }
    replayable = [each for each in recordings.values() if each.network is not None]
    replays = _best_replays(replayable, execution or Execution(progress=False))
    return {
        name: _build_fidelity(recording, *replays.get(name, (None, None)))
        for name, recording in recordings.items()
    }


def _best_replays(
    recordings: Sequence[_Recording], execution: Execution
) -> dict[str, tuple[_Replay, _Replay]]:
    """Return, by page name, the best replay, and that of nothing but the recorded delays.

    The best is that whose order of completions is closest to the recorded one. Servers that ignore
    priorities are tried only if the order is not good otherwise.
    """
    if not recordings:
        return {}
    with LoadRunner(execution, _measure_replay) as runner:
        replays = dict(_replay(recordings, "", runner))
        of_delays = dict(_replay(recordings, "", runner, network=_RECORDED_DELAYS))
        doubtful = [each for each in recordings if replays[each.page.name].is_doubtful]
        for server in _SCHEMES_WITHOUT_PRIORITIES:
            for name, other in _replay(doubtful, server, runner):
                # Of equals, max takes the first.
                replays[name] = max(replays[name], other, key=_Replay.rank)
    return {name: (replay, of_delays[name]) for name, replay in replays.items()}


def _replay(
    recordings: Sequence[_Recording],
    server: str,
    runner: LoadRunner,
    *,
    network: Network | None = None,
) -> Iterator[tuple[str, _Replay]]:
    """Yield the name of each page and its replay; *server* is as in `_Recording.task`.

    The loads are over *network*, by default over the recorded ones.
    """
    measured = runner.run([recording.task(server, network) for recording in recordings])
    for recording, row in zip(recordings, measured, strict=True):
        finished_ms = row["finished_ms"]
        yield (
            recording.page.name,
            _Replay(
                server,
                finished_ms,
                page_load_ms=row["page_load_ms"],
                load_event_ms=row["load_event_ms"],
                rank_correlation=_rank_correlation(recording.completed_ms, finished_ms),
            ),
        )


class _Replay(NamedTuple):
    """Measurements of a replay."""

    server: str
    """Scheme of a server that ignores priorities; "" for one that heeds them."""
    finished_ms: Mapping[str, float]
    """Completion of each resource, by its id."""
    page_load_ms: float
    load_event_ms: float | None
    """None if the browser replays: it has no load event of its own."""
    rank_correlation: float | None

    def rank(self) -> float:
        """Return the rank correlation, or -infinity if there is none."""
        return -math.inf if self.rank_correlation is None else self.rank_correlation

    @property
    def is_doubtful(self) -> bool:
        """True if the order of completions is not good."""
        return self.rank_correlation is not None and self.rank_correlation < GOOD_RANKS


class _Recording(NamedTuple):
    """Page with its recorded load, and what is needed to replay it."""

    page: Page
    load: RecordedLoad
    network: Network | None
    """Recorded network; None if it is unknown, and the page cannot be replayed."""
    browser: BrowserModel

    @classmethod
    def of_page(cls, page: Page, browser: BrowserModel) -> _Recording | None:
        """Return the recording of *page*; None if there is none to compare with."""
        load, network = page.recorded_load, recorded_network(page)
        if load is None or (load.n_bytes is None and network is None):
            return None
        return cls(page, load, network, browser)

    @property
    def completed_ms(self) -> dict[str, float]:
        """Recorded completions of the page's resources."""
        ids = {resource.id for resource in self.page.resources}
        completed = self.load.completed_ns
        return {id_: to_ms(completed[id_]) for id_ in completed if id_ in ids}

    def task(self, server: str, network: Network | None = None) -> LoadTask:
        """Return the load with settings as close as possible to the recording.

        *server* is the scheme of a server that ignores priorities; "" is one that heeds them.
        A *network* other than the recorded one is a constant rate, which takes no transport.
        """
        has_priorities = any(resource.recorded for resource in self.page.resources)
        client_scheme = _RECORDED_SCHEME if has_priorities else _DEFAULT_SCHEME
        transport = "quic" if self.load.protocol.startswith(_QUIC_PROTOCOLS) else "tcp"
        config = LoadConfig(network=self.network or "", transport=transport, browser=self.browser)
        if network is not None:
            config = LoadConfig(network=network, browser=self.browser)
        return LoadTask(resolve(self.page, resolve_scheme(server or client_scheme), config))


def _measure_replay(load: Load, _: str) -> dict[str, Any]:
    """Return when the resources and the page were complete, and the load event."""
    return {
        "finished_ms": {row.id: row.finished_ms for row in load.timings},
        "page_load_ms": load.page_load_ms,
        "load_event_ms": load.load_event_ms,
    }


def gated(verdict: str, fidelities: Iterable[Fidelity | None]) -> str:
    """Return *verdict*, qualified or withheld according to the fidelity of its replays.

    >>> gated("fifo is best.", [None])
    'fifo is best.'
    >>> gated("fifo is best.", [Fidelity(milestones=Rows(Milestone, ()))]).partition(":")[0]
    'No verdict'
    """
    known = [each for each in fidelities if each is not None]
    unjudged = next((each for each in known if each.grade is Grade.UNJUDGED), None)
    poor = next((each for each in known if each.grade is Grade.POOR), None)
    if poor is not None:
        return f"No verdict: {poor.sentence} Missing: {poor.missing_reason}"
    if unjudged is not None:
        return f"No verdict: {unjudged.sentence} {_RECORDING_ADVICE}"
    fair = " ".join(each.sentence for each in known if each.grade is Grade.FAIR)
    return f"{verdict} {fair}".strip()


def _build_fidelity(
    recording: _Recording, replay: _Replay | None, of_delays: _Replay | None
) -> Fidelity:
    """Return the comparison of a recording with its replay, if it could be replayed.

    *of_delays* is the replay of nothing but the recorded delays.
    """
    page, load = recording.page, recording.load
    lacks = tuple(_missing_data(page, load))
    is_computed = recording.browser.mode is BrowserMode.PARSE
    if replay is None or of_delays is None:
        return Fidelity(milestones=Rows(Milestone, ()), lacks=lacks, is_computed=is_computed)
    return Fidelity(
        milestones=Rows(Milestone, _common_milestones(recording, replay, of_delays)),
        rank_correlation=replay.rank_correlation,
        delays_rank_correlation=of_delays.rank_correlation,
        n_completions=len(recording.completed_ms) or None,
        server=replay.server,
        bytes_share=min(1.0, sum(page.stream_bytes) / load.n_bytes) if load.n_bytes else None,
        lacks=lacks,
        is_computed=is_computed,
    )


def _common_milestones(
    recording: _Recording, replay: _Replay, of_delays: _Replay
) -> Iterator[Milestone]:
    """Yield the milestones that the recording and its replays have in common."""
    page, load = recording.page, recording.load
    recorded = recording.completed_ms
    awaited = page.awaited_by_load_event
    if load.load_event_ns is not None and awaited:
        recorded_ms = to_ms(load.load_event_ns)
        browser_ms = recorded_ms - max(recorded[id_] for id_ in awaited)
        replayed_ms, delays_ms = (
            max(each.finished_ms[id_] for id_ in awaited) + browser_ms
            if each.load_event_ms is None
            else each.load_event_ms
            for each in (replay, of_delays)
        )
        yield Milestone("load event", recorded_ms, replayed_ms, delays_ms)
    above_the_fold = [r.id for r in page.resources if r.above_the_fold and r.id in recorded]
    for name, ids in (("last above the fold", above_the_fold), (_ALL_RESOURCES, list(recorded))):
        # A document alone shows nothing of how responses share the network.
        if len(ids) > 1 or (ids and name == _ALL_RESOURCES):
            last_ms = (
                max(finished_ms[id_] for id_ in ids)
                for finished_ms in (recorded, replay.finished_ms, of_delays.finished_ms)
            )
            yield Milestone(name, *last_ms)
    if not recorded and load.finished_ns is not None:
        finished_ms = to_ms(load.finished_ns)
        yield Milestone(_ALL_RESOURCES, finished_ms, replay.page_load_ms, of_delays.page_load_ms)


def _rank_correlation(recorded: Mapping[str, float], replayed: Mapping[str, float]) -> float | None:
    """Return Spearman's rho of the completion times; None for too few or equal times."""
    if len(recorded) < _MIN_COMPLETIONS:
        return None
    recorded_ms = list(recorded.values())
    replayed_ms = [replayed[id_] for id_ in recorded]
    if len(set(recorded_ms)) == 1 or len(set(replayed_ms)) == 1:
        return None
    return statistics.correlation(_ranks(recorded_ms), _ranks(replayed_ms))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; ties get their mean rank.

    >>> _ranks([30, 10, 10])
    [3.0, 1.5, 1.5]
    """
    in_order = sorted(values)
    return [(bisect_left(in_order, v) + bisect_right(in_order, v) + 1) / 2 for v in values]


def _missing_data(page: Page, load: RecordedLoad) -> Iterator[str]:
    """Yield the data that a replay needs and the recording lacks."""
    if load.rtt_ns is None:
        yield "connection and transfer times, so that its network is unknown"
    if load.load_event_ns is None:
        yield "the load event"
    if load.protocol and not load.protocol.startswith(_MULTIPLEXED_PROTOCOLS):
        yield f"HTTP/2 or HTTP/3: over {load.protocol} requests queue for free connections"
    if not any(resource.recorded for resource in page.resources):
        yield "the browser's priorities"
    n_unsized = sum(not resource.size_bytes for resource in page.resources)
    if n_unsized * 10 > len(page.resources):  # up to a tenth may well be empty
        yield f"the sizes of {n_unsized:,} bodies"
