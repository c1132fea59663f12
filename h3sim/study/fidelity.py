"""Fidelity of replays: how well a simulated load reproduces its recording.

A recording is replayed over its estimated network, with its browser's requests, and the recorded
milestones are compared with those of the replay. The replayed load event is the completion
of the last resource that the recorded one waited for, plus the browser's own time after it.
Where a study's browser computes its loads, this one does, too, with a load event of its own.
"""

from __future__ import annotations

import enum
import math
import statistics
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.browser import BrowserMode, BrowserModel
from h3sim.config.load_config import LoadConfig, recorded_network
from h3sim.importers.result import IMPORT
from h3sim.schema.output import TEXT, ObjectType, Property, rows_of
from h3sim.schema.values import Choice, Number, OrNone
from h3sim.study.run import resolve_scheme
from h3sim.study.runner import Execution, LoadRunner, LoadTask
from h3sim.trace import Rows
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.page import Page, RecordedLoad
    from h3sim.results.load import Load
    from h3sim.transport import Network


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
"""Fewest completions with a meaningful order: four agree by chance once in 24."""


class Grade(enum.Enum):
    """Quality grade of a replay, which limits what may be concluded from it."""

    GOOD = "good"
    """Supports a verdict."""
    FAIR = "fair"
    """Supports a verdict that states the deviation."""
    POOR = "poor"
    """Supports no verdict."""


class Milestone(NamedTuple):
    """Milestone of a load, with its recorded and its replayed or computed times."""

    milestone: str
    recorded_ms: float
    replayed_ms: float

    @property
    def factor(self) -> float:
        """Ratio of the later to the earlier time; 1 or more."""
        least, most = sorted((self.recorded_ms, self.replayed_ms))
        return most / least if least > 0 else float("inf")

    def describe(self, verb: str) -> str:
        """Describe both times; *verb*, "replayed" or "computed", tells where the second is from."""
        times = f"recorded {self.recorded_ms:,.0f} ms, {verb} {self.replayed_ms:,.0f} ms"
        return f"{self.milestone}: {times}"


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Comparison of a replay with its recording.

    The grade is the lowest of its parts. Milestones within a factor of 1.25 are good, within 1.5
    fair; Spearman's rho of the order of completions is good from 0.8, fair from 0.5; a page with
    90 % of the recorded bytes is good, with 75 % fair. Values missing from the recording are not
    judged, but without any milestone the replay is poor.

    >>> close = Milestone("load event", 1000, 1100)
    >>> Fidelity(milestones=Rows(Milestone, [close]), rank_correlation=0.95).grade
    <Grade.GOOD: 'good'>
    >>> far = Fidelity(milestones=Rows(Milestone, [close._replace(replayed_ms=500)]))
    >>> far.grade, far.off_by
    (<Grade.POOR: 'poor'>, 2.0)
    """

    milestones: Rows[Milestone]
    """The load event, the last resource above the fold, and the last of all, as far as known."""
    rank_correlation: float | None = None
    """Spearman's rho of the order of completions; None for fewer than five."""
    bytes_share: float | None = None
    """Share of the recorded bytes in the page."""
    lacks: tuple[str, ...] = ()
    """Data missing from the recording."""
    server: str = ""
    """Scheme of a server without priorities, if completions were in its order; else ""."""
    is_computed: bool = False
    """True if the browser computed the load (`browser="parse"`) instead of replaying it."""

    @property
    def off_by(self) -> float | None:
        """Largest factor by which a milestone differs; None if no milestone is known."""
        return max((row.factor for row in self.milestones), default=None)

    @property
    def grade(self) -> Grade:
        """Lowest grade of all parts."""
        factor = float("inf") if self.off_by is None else self.off_by
        rho = 1.0 if self.rank_correlation is None else self.rank_correlation
        share = 1.0 if self.bytes_share is None else self.bytes_share
        if factor <= GOOD_FACTOR and rho >= GOOD_RANKS and share >= GOOD_BYTES:
            return Grade.GOOD
        is_fair = factor <= FAIR_FACTOR and rho >= FAIR_RANKS and share >= FAIR_BYTES
        return Grade.FAIR if is_fair else Grade.POOR

    @property
    def sentence(self) -> str:
        """One-sentence description of the fit."""
        subject = "computed load" if self.is_computed else "replay"
        if self.off_by is None:
            reason = "which lacks the necessary data"
            return f"The {subject} cannot be compared with the recording, {reason}."
        worst = max(self.milestones, key=lambda row: row.factor)
        percent = 100 * (worst.factor - 1)
        deviation = f"{percent:.0f} %" if worst.factor < 2 else f"{worst.factor:.1f} times"
        direction = "early" if worst.replayed_ms < worst.recorded_ms else "late"
        parts = [f"{worst.milestone} {deviation} too {direction}"]
        if self.rank_correlation is not None:
            server = f", with a server that sends as {self.server}" if self.server else ""
            rho = f"{self.rank_correlation:.2f} (Spearman's rho{server})"
            parts.append(f"order of completions {rho}")
        if self.bytes_share is not None and self.bytes_share < GOOD_BYTES:
            parts.append(f"{100 * self.bytes_share:.0f} % of the recorded bytes")
        adverb = _GRADE_ADVERBS[self.grade]
        return f"The {subject} fits the recording {adverb}: {', '.join(parts)}."

    def lines(self) -> list[str]:
        """Return the sentence, the milestones and, for a poor replay, missing data, as lines."""
        verb = "computed" if self.is_computed else "replayed"
        lines = [self.sentence, *(row.describe(verb) for row in self.milestones)]
        if self.grade is Grade.POOR:
            lines.append(f"No verdict. Missing: {self.missing_reason}")
        return lines

    @property
    def missing_reason(self) -> str:
        """Data missing from a poor recording, and how to record it better."""
        if not self.lacks:
            return f"nothing that could be identified. {_RECORDING_ADVICE}"
        return f"the recording lacks {'; '.join(self.lacks)}. {_RECORDING_ADVICE}"


_GRADE_ADVERBS = {Grade.GOOD: "well", Grade.FAIR: "fairly", Grade.POOR: "poorly"}
_RECORDING_ADVICE = (
    "Record the page alone, with the cache disabled, over HTTP/2 or HTTP/3, until the network is"
    " idle, and save the HAR with content"
)

FIDELITY = ObjectType(
    Property("grade", Choice(Grade), "quality of the replay: good and fair support a verdict"),
    Property("sentence", TEXT, "the fit in one sentence"),
    Property(
        "off_by", OrNone(Number(low=1), none=None), "largest factor by which a milestone differs"
    ),
    Property("milestones", rows_of(Milestone), "recorded and replayed times"),
    Property(
        "rank_correlation",
        OrNone(Number(low=-1, high=1), none=None),
        "Spearman's rho of the order of completions",
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
        name: _build_fidelity(recording, replays.get(name))
        for name, recording in recordings.items()
    }


def _best_replays(recordings: Sequence[_Recording], execution: Execution) -> dict[str, _Replay]:
    """Return, by page name, the replay whose order of completions is closest to the recorded one.

    Servers that ignore priorities are tried only if the order is not good otherwise.
    """
    if not recordings:
        return {}
    with LoadRunner(execution, _measure_replay) as runner:
        replays = dict(_replay(recordings, "", runner))
        doubtful = [each for each in recordings if replays[each.page.name].is_doubtful]
        for server in _SCHEMES_WITHOUT_PRIORITIES:
            for name, other in _replay(doubtful, server, runner):
                # Of equals, max takes the first.
                replays[name] = max(replays[name], other, key=_Replay.rank)
    return replays


def _replay(
    recordings: Sequence[_Recording], server: str, runner: LoadRunner
) -> Iterator[tuple[str, _Replay]]:
    """Yield the name of each page and its replay; *server* is as in `_Recording.task`."""
    measured = runner.run([recording.task(server) for recording in recordings])
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

    def task(self, server: str) -> LoadTask:
        """Return the load with settings as close as possible to the recording.

        *server* is the scheme of a server that ignores priorities; "" is one that heeds them.
        """
        has_priorities = any(resource.recorded for resource in self.page.resources)
        client_scheme = _RECORDED_SCHEME if has_priorities else _DEFAULT_SCHEME
        transport = "quic" if self.load.protocol.startswith(_QUIC_PROTOCOLS) else "tcp"
        return LoadTask(
            self.page,
            resolve_scheme(server or client_scheme),
            LoadConfig(network=self.network or "", transport=transport, browser=self.browser),
        )


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
    poor = next((each for each in known if each.grade is Grade.POOR), None)
    if poor is not None:
        return f"No verdict: {poor.sentence} Missing: {poor.missing_reason}"
    fair = " ".join(each.sentence for each in known if each.grade is Grade.FAIR)
    return f"{verdict} {fair}".strip()


def _build_fidelity(recording: _Recording, replay: _Replay | None) -> Fidelity:
    """Return the comparison of a recording with its replay, if it could be replayed."""
    page, load = recording.page, recording.load
    lacks = tuple(_missing_data(page, load))
    is_computed = recording.browser.mode is BrowserMode.PARSE
    if replay is None:
        return Fidelity(milestones=Rows(Milestone, ()), lacks=lacks, is_computed=is_computed)
    return Fidelity(
        milestones=Rows(Milestone, _common_milestones(recording, replay)),
        rank_correlation=replay.rank_correlation,
        server=replay.server,
        bytes_share=min(1.0, sum(page.stream_bytes) / load.n_bytes) if load.n_bytes else None,
        lacks=lacks,
        is_computed=is_computed,
    )


def _common_milestones(recording: _Recording, replay: _Replay) -> Iterator[Milestone]:
    """Yield the milestones that recording and replay have in common."""
    page, load = recording.page, recording.load
    recorded, replayed = recording.completed_ms, replay.finished_ms
    awaited = page.awaited_by_load_event
    if load.load_event_ns is not None and awaited:
        recorded_ms = to_ms(load.load_event_ns)
        replayed_ms = replay.load_event_ms
        if replayed_ms is None:
            browser_ms = recorded_ms - max(recorded[id_] for id_ in awaited)
            replayed_ms = max(replayed[id_] for id_ in awaited) + browser_ms
        yield Milestone("load event", recorded_ms, replayed_ms)
    above_the_fold = [r.id for r in page.resources if r.above_the_fold and r.id in recorded]
    for name, ids in (("last above the fold", above_the_fold), (_ALL_RESOURCES, list(recorded))):
        if ids:
            last_recorded_ms = max(recorded[id_] for id_ in ids)
            last_replayed_ms = max(replayed[id_] for id_ in ids)
            yield Milestone(name, last_recorded_ms, last_replayed_ms)
    if not recorded and load.finished_ns is not None:
        yield Milestone(_ALL_RESOURCES, to_ms(load.finished_ns), replay.page_load_ms)


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
