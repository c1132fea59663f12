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


_RECORDED, _USUAL = "recorded", "chrome-eps"
_WITHOUT_PRIORITIES = ("rr", "fifo")
_QUIC = ("h3", "http/3", "hq", "quic")
_MULTIPLEXED = ("h2", "http/2", "spdy", *_QUIC)
GOOD_FACTOR, FAIR_FACTOR = 1.25, 1.5
"""Largest factor by which a milestone may differ."""
GOOD_RANKS, FAIR_RANKS = 0.8, 0.5
"""Lowest Spearman's rho of the order of completions."""
GOOD_BYTES, FAIR_BYTES = 0.9, 0.75
"""Lowest share of the recorded bytes in the page."""
_ALL = "all resources"
_FEW_RANKS = 5
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
        """Describe both times; *verb* says how the second was found."""
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
            why = "which lacks the necessary data"
            return f"The {subject} cannot be compared with the recording, {why}."
        worst = max(self.milestones, key=lambda row: row.factor)
        off = 100 * (worst.factor - 1)
        how = "early" if worst.replayed_ms < worst.recorded_ms else "late"
        far = f"{off:.0f} %" if worst.factor < 2 else f"{worst.factor:.1f} times"
        parts = [f"{worst.milestone} {far} too {how}"]
        if self.rank_correlation is not None:
            server = f", with a server that sends as {self.server}" if self.server else ""
            rho = f"{self.rank_correlation:.2f} (Spearman's rho{server})"
            parts.append(f"order of completions {rho}")
        if self.bytes_share is not None and self.bytes_share < GOOD_BYTES:
            parts.append(f"{100 * self.bytes_share:.0f} % of the recorded bytes")
        return f"The {subject} fits the recording {_ADVERBS[self.grade]}: {', '.join(parts)}."

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
            return f"nothing that could be identified. {_BETTER}"
        return f"the recording lacks {'; '.join(self.lacks)}. {_BETTER}"


_ADVERBS = {Grade.GOOD: "well", Grade.FAIR: "fairly", Grade.POOR: "poorly"}
_BETTER = (
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
    how its server used the priorities, which is no property of the page or the network: where
    completions are in another order, the replay is that with "rr" or "fifo", for servers that
    ignore priorities, if its order fits better. A *browser* that computes loads computes this one.

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
    """Return by name how well the loads of those *pages* that were recorded fit."""
    model = browser or BrowserModel()
    recorded = {
        page.name: each for page in pages if (each := _Recorded.of(page, model)) is not None
    }
    known = [each for each in recorded.values() if each.network is not None]
    replays = _replays(known, execution or Execution(progress=False)) if known else {}
    return {name: _build_fidelity(each, replays.get(name)) for name, each in recorded.items()}


def _replays(recorded: Sequence[_Recorded], execution: Execution) -> dict[str, _Replay]:
    """Return by name the replay of each page whose completions are closest to the recorded order.

    Servers that ignore priorities are tried only where the order is not good without.
    """
    with LoadRunner(execution, _measured) as runner:
        found = dict(_replayed(recorded, "", runner))
        doubtful = [each for each in recorded if found[each.page.name].is_doubtful]
        for server in _WITHOUT_PRIORITIES:
            for name, other in _replayed(doubtful, server, runner):
                found[name] = max(found[name], other, key=_Replay.order)  # the first of equals
    return found


def _replayed(
    recorded: Sequence[_Recorded], server: str, runner: LoadRunner
) -> Iterator[tuple[str, _Replay]]:
    """Yield name and replay of each page, with that scheme of a server."""
    measured = runner.run([each.task(server) for each in recorded])
    for each, row in zip(recorded, measured, strict=True):
        completed_ms, finished_ms = each.completed_ms, row["finished_ms"]
        rho = _rank_correlation(completed_ms, finished_ms)
        ends = row["page_load_ms"], row["load_event_ms"]
        yield each.page.name, _Replay(server, finished_ms, *ends, rho)


class _Replay(NamedTuple):
    """Replay with a scheme of the server, or with that of the client's priorities."""

    server: str
    finished_ms: Mapping[str, float]
    page_load_ms: float
    load_event_ms: float | None
    """None if the browser replays: it has no load event of its own."""
    rank_correlation: float | None

    def order(self) -> float:
        """Return the rank correlation, or less than any if there is none."""
        return -math.inf if self.rank_correlation is None else self.rank_correlation

    @property
    def is_doubtful(self) -> bool:
        """True if the order of completions is not good."""
        return self.rank_correlation is not None and self.rank_correlation < GOOD_RANKS


class _Recorded(NamedTuple):
    """Page with its recorded load, its network as far as it is known, and the browser."""

    page: Page
    load: RecordedLoad
    network: Network | None
    browser: BrowserModel

    @classmethod
    def of(cls, page: Page, browser: BrowserModel) -> _Recorded | None:
        known, network = page.recorded_load, recorded_network(page)
        if known is None or (known.n_bytes is None and network is None):
            return None
        return cls(page, known, network, browser)

    @property
    def completed_ms(self) -> dict[str, float]:
        """Recorded completions of the page's resources."""
        ids = {resource.id for resource in self.page.resources}
        completed = self.load.completed_ns
        return {id_: to_ms(completed[id_]) for id_ in completed if id_ in ids}

    def task(self, server: str) -> LoadTask:
        """Return the load with settings as close as possible to the recording.

        *server* is the scheme of one that ignores priorities; "" means the client's priorities.
        """
        has_priorities = any(resource.recorded for resource in self.page.resources)
        transport = "quic" if self.load.protocol.startswith(_QUIC) else "tcp"
        return LoadTask(
            self.page,
            resolve_scheme(server or (_RECORDED if has_priorities else _USUAL)),
            LoadConfig(network=self.network or "", transport=transport, browser=self.browser),
        )


def _measured(load: Load, _: str) -> dict[str, Any]:
    """Return when resources were complete, and the page."""
    return {
        "finished_ms": {row.id: row.finished_ms for row in load.timings},
        "page_load_ms": load.page_load_ms,
        "load_event_ms": load.load_event_ms,
    }


def gated(verdict: str, judged: Iterable[Fidelity | None]) -> str:
    """Return *verdict*, qualified or withheld according to the fidelity of its replays.

    >>> gated("fifo is best.", [None])
    'fifo is best.'
    >>> gated("fifo is best.", [Fidelity(milestones=Rows(Milestone, ()))]).partition(":")[0]
    'No verdict'
    """
    known = [each for each in judged if each is not None]
    poor = next((each for each in known if each.grade is Grade.POOR), None)
    if poor is not None:
        return f"No verdict: {poor.sentence} Missing: {poor.missing_reason}"
    fair = " ".join(each.sentence for each in known if each.grade is Grade.FAIR)
    return f"{verdict} {fair}".strip()


def _build_fidelity(of: _Recorded, replay: _Replay | None) -> Fidelity:
    """Return the comparison of a recording with its replay."""
    page, known = of.page, of.load
    lacks = tuple(_lacks(page, known))
    is_computed = of.browser.mode is BrowserMode.PARSE
    if replay is None:
        nothing = Rows(Milestone, ())
        return Fidelity(milestones=nothing, lacks=lacks, is_computed=is_computed)
    milestones = _common_milestones(page, known, of.completed_ms, replay)
    return Fidelity(
        milestones=Rows(Milestone, milestones),
        rank_correlation=replay.rank_correlation,
        server=replay.server,
        bytes_share=min(1.0, sum(page.stream_bytes) / known.n_bytes) if known.n_bytes else None,
        lacks=lacks,
        is_computed=is_computed,
    )


def _common_milestones(
    page: Page, known: RecordedLoad, recorded: Mapping[str, float], replay: _Replay
) -> Iterable[Milestone]:
    """Yield the milestones that recording and replay have in common."""
    replayed = replay.finished_ms
    if known.load_event_ns is not None:
        at_ms = to_ms(known.load_event_ns)
        waited = page.awaited_by_load_event
        if waited:
            rest_ms = at_ms - max(recorded[id_] for id_ in waited)
            replayed_ms = max(replayed[id_] for id_ in waited) + rest_ms
            if replay.load_event_ms is not None:
                replayed_ms = replay.load_event_ms
            yield Milestone("load event", at_ms, replayed_ms)
    seen = [each.id for each in page.resources if each.above_the_fold and each.id in recorded]
    for name, ids in (("last above the fold", seen), (_ALL, list(recorded))):
        if ids:
            last = max(recorded[id_] for id_ in ids), max(replayed[id_] for id_ in ids)
            yield Milestone(name, *last)
    if not recorded and known.finished_ns is not None:
        yield Milestone(_ALL, to_ms(known.finished_ns), replay.page_load_ms)


def _rank_correlation(recorded: Mapping[str, float], replayed: Mapping[str, float]) -> float | None:
    """Return Spearman's rho of the completion times; None for too few."""
    if len(recorded) < _FEW_RANKS:
        return None
    pairs = [(at_ms, replayed[id_]) for id_, at_ms in recorded.items()]
    one, other = zip(*pairs, strict=True)
    if len(set(one)) == 1 or len(set(other)) == 1:
        return None
    return statistics.correlation(_ranks(one), _ranks(other))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; ties get their mean rank.

    >>> _ranks([30, 10, 10])
    [3.0, 1.5, 1.5]
    """
    in_order = sorted(values)
    return [(bisect_left(in_order, v) + bisect_right(in_order, v) + 1) / 2 for v in values]


def _lacks(page: Page, known: RecordedLoad) -> Iterable[str]:
    """Yield the data that a replay needs and the recording lacks."""
    if known.rtt_ns is None:
        yield "connection and transfer times, so that its network is unknown"
    if known.load_event_ns is None:
        yield "the load event"
    if known.protocol and not known.protocol.startswith(_MULTIPLEXED):
        yield f"HTTP/2 or HTTP/3: over {known.protocol} requests queue for free connections"
    if not any(resource.recorded for resource in page.resources):
        yield "the browser's priorities"
    n_unsized = sum(not resource.size_bytes for resource in page.resources)
    if n_unsized * 10 > len(page.resources):
        yield f"the sizes of {n_unsized:,} bodies"
