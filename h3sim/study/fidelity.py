"""How well the replay of a recording fits it: what a verdict over that recording is worth.

A recording is replayed once over its estimated network, as its browser asked for things; what was
recorded stands beside what the replay makes of it. The load event is where the replay has the last
resource that the recorded one waited for, and after that the time that the browser went on by
itself.
"""

from __future__ import annotations

import enum
import statistics
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from h3sim.config.load_config import recorded_network
from h3sim.importers.result import IMPORT
from h3sim.schema.output import TEXT, ObjectType, Property, rows_of
from h3sim.schema.values import Choice, Number, OrNone
from h3sim.study.run import simulate
from h3sim.trace import Rows
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.page import Page, RecordedLoad
    from h3sim.results.load import Load
    from h3sim.transport import Network


_RECORDED, _USUAL = "recorded", "chrome-eps"
_QUIC = ("h3", "http/3", "hq", "quic")
_MULTIPLEXED = ("h2", "http/2", "spdy", *_QUIC)
GOOD_FACTOR, FAIR_FACTOR = 1.25, 1.5
"""By which factor a milestone may be off, either way."""
GOOD_RANKS, FAIR_RANKS = 0.8, 0.5
"""What Spearman's rho of the order of completions is at least."""
GOOD_BYTES, FAIR_BYTES = 0.9, 0.75
"""Which share of the recorded bytes the page has at least."""
_ALL = "all resources"
_FEW_RANKS = 5
"""Of fewer completions an order says nothing: of four, one in 24 is the same by chance."""


class Grade(enum.Enum):
    """What a replay is good for."""

    GOOD = "good"
    """A verdict."""
    FAIR = "fair"
    """A verdict, with how far off it is."""
    POOR = "poor"
    """No verdict."""


class Milestone(NamedTuple):
    """A milestone: when the recording has it, and when the replay does."""

    milestone: str
    recorded_ms: float
    replayed_ms: float

    @property
    def factor(self) -> float:
        """By which factor the two differ, whichever comes first; 1 or more."""
        least, most = sorted((self.recorded_ms, self.replayed_ms))
        return most / least if least > 0 else float("inf")

    def __str__(self) -> str:
        times = f"recorded {self.recorded_ms:,.0f} ms, replayed {self.replayed_ms:,.0f} ms"
        return f"{self.milestone}: {times}"


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """How well a replay fits its recording.

    A grade is the lowest that any of its parts earns: milestones within a factor of 1.25 are good,
    within 1.5 fair; Spearman's rho of the order of completions from 0.8 on is good, from 0.5 on
    fair; of the recorded bytes the page has 90 % where it is good, 75 % where it is fair. What the
    recording does not tell is not judged, but without any milestone the replay is poor.

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
    """Which share of the recorded bytes the page has."""
    lacks: tuple[str, ...] = ()
    """What the recording does not tell, and how it is recorded better."""

    @property
    def off_by(self) -> float | None:
        """The largest factor by which a milestone differs; None where none is known."""
        return max((row.factor for row in self.milestones), default=None)

    @property
    def grade(self) -> Grade:
        """What the replay is good for."""
        factor = float("inf") if self.off_by is None else self.off_by
        if self._is_within(factor, GOOD_FACTOR, GOOD_RANKS, GOOD_BYTES):
            return Grade.GOOD
        is_fair = self._is_within(factor, FAIR_FACTOR, FAIR_RANKS, FAIR_BYTES)
        return Grade.FAIR if is_fair else Grade.POOR

    def _is_within(self, factor: float, most: float, ranks: float, share: float) -> bool:
        rho, has = self.rank_correlation, self.bytes_share
        in_order, is_whole = rho is None or rho >= ranks, has is None or has >= share
        return factor <= most and in_order and is_whole

    @property
    def sentence(self) -> str:
        """How well the replay fits, in one sentence."""
        if self.off_by is None:
            return "The replay cannot be held against the recording, which tells too little."
        worst = max(self.milestones, key=lambda row: row.factor)
        off = 100 * (worst.factor - 1)
        how = "early" if worst.replayed_ms < worst.recorded_ms else "late"
        far = f"{off:.0f} %" if worst.factor < 2 else f"{worst.factor:.1f} times"
        parts = [f"{worst.milestone} {far} too {how}"]
        if self.rank_correlation is not None:
            parts.append(f"order of completions {self.rank_correlation:.2f} (Spearman's rho)")
        if self.bytes_share is not None and self.bytes_share < GOOD_BYTES:
            parts.append(f"{100 * self.bytes_share:.0f} % of the recorded bytes")
        return f"The replay fits the recording {_ADVERBS[self.grade]}: {', '.join(parts)}."

    def lines(self) -> list[str]:
        """Return the sentence, the milestones, and what a poor recording lacks, as lines."""
        lines = [self.sentence, *map(str, self.milestones)]
        if self.grade is Grade.POOR:
            lines.append(f"No verdict: {self.missing_reason}")
        return lines

    @property
    def missing_reason(self) -> str:
        """What the recording lacks, and how to record better, for one that is no ground."""
        lacks = "; ".join(self.lacks) or "nothing that can be named"
        return f"the recording lacks {lacks}. {_BETTER}"


_ADVERBS = {Grade.GOOD: "well", Grade.FAIR: "fairly", Grade.POOR: "poorly"}
_BETTER = (
    "Record the page alone, with the cache disabled, over HTTP/2 or HTTP/3, until it is at rest,"
    " and save it with content"
)

FIDELITY = ObjectType(
    Property("grade", Choice(Grade), "what the replay is good for: good and fair for a verdict"),
    Property("sentence", TEXT, "how well the replay fits"),
    Property("off_by", OrNone(Number(low=1), none=None), "the largest factor between milestones"),
    Property("milestones", rows_of(Milestone), "what was recorded, beside what its replay takes"),
    Property(
        "rank_correlation", OrNone(Number(low=-1, high=1), none=None), "of the order of completions"
    ),
    Property(
        "bytes_share", OrNone(Number(low=0), none=None), "the part of recorded bytes in the page"
    ),
)
IMPORT_REPORT = IMPORT.with_keys(
    Property("fidelity", OrNone(FIDELITY, none=None), "as `h3sim import` adds it", is_optional=True)
)
"""How a page was made of a recording, and how well its replay fits that."""


def fidelity(page: Page) -> Fidelity | None:
    """Return how well the replay of *page* fits its recording; None where it is not of one.

    The load says what the recorded browser said of priorities, where the page has it, else what
    Chrome says; over QUIC where the recording was of HTTP/3, else over TCP; from the recorded
    hosts.

    >>> import h3sim
    >>> fidelity(h3sim.load_page("davies-meenan")) is None
    True
    """
    known = page.recorded_load
    if known is None or (known.n_bytes is None and recorded_network(page) is None):
        return None
    return _fidelity(page, known)


def gated(verdict: str, judged: Iterable[Fidelity | None]) -> str:
    """Return *verdict* as far as the replays that it rests on bear it.

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


def replay(page: Page, known: RecordedLoad, network: Network) -> Load:
    """Return the load of *page* over *network* that comes closest to how it was recorded."""
    has_priorities = any(resource.recorded for resource in page.resources)
    return simulate(
        page,
        scheme=_RECORDED if has_priorities else _USUAL,
        network=network,
        transport="quic" if known.protocol.startswith(_QUIC) else "tcp",
    )


def _fidelity(page: Page, known: RecordedLoad) -> Fidelity:
    lacks, network = tuple(_lacks(page, known)), recorded_network(page)
    if network is None:
        return Fidelity(milestones=Rows(Milestone, ()), lacks=lacks)
    load = replay(page, known, network)
    replayed = {row.id: row.finished_ms for row in load.timings}
    recorded = {id_: to_ms(at) for id_, at in known.completed_ns.items() if id_ in replayed}
    milestones = [*_milestones(page, known, recorded, replayed)]
    if not recorded and known.finished_ns is not None:
        last = Milestone(_ALL, to_ms(known.finished_ns), load.page_load_ms)
        milestones.append(last)
    return Fidelity(
        milestones=Rows(Milestone, milestones),
        rank_correlation=_rank_correlation(recorded, replayed),
        bytes_share=min(1.0, sum(page.stream_bytes) / known.n_bytes) if known.n_bytes else None,
        lacks=lacks,
    )


def _milestones(
    page: Page, known: RecordedLoad, recorded: Mapping[str, float], replayed: Mapping[str, float]
) -> Iterable[Milestone]:
    if known.load_event_ns is not None:
        at_ms = to_ms(known.load_event_ns)
        waited = [id_ for id_, ended_ms in recorded.items() if ended_ms <= at_ms]
        if waited:
            rest_ms = at_ms - max(recorded[id_] for id_ in waited)
            replayed_ms = max(replayed[id_] for id_ in waited) + rest_ms
            yield Milestone("load event", at_ms, replayed_ms)
    seen = [each.id for each in page.resources if each.above_the_fold and each.id in recorded]
    for name, ids in (("last above the fold", seen), (_ALL, list(recorded))):
        if ids:
            last = max(recorded[id_] for id_ in ids), max(replayed[id_] for id_ in ids)
            yield Milestone(name, *last)


def _rank_correlation(recorded: Mapping[str, float], replayed: Mapping[str, float]) -> float | None:
    if len(recorded) < _FEW_RANKS:
        return None
    pairs = [(at_ms, replayed[id_]) for id_, at_ms in recorded.items()]
    one, other = zip(*pairs, strict=True)
    if len(set(one)) == 1 or len(set(other)) == 1:
        return None
    return statistics.correlation(_ranks(one), _ranks(other))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, of equal ones the mean of theirs.

    >>> _ranks([30, 10, 10])
    [3.0, 1.5, 1.5]
    """
    in_order = sorted(values)
    return [(bisect_left(in_order, v) + bisect_right(in_order, v) + 1) / 2 for v in values]


def _lacks(page: Page, known: RecordedLoad) -> Iterable[str]:
    """Yield what the recording does not tell that a replay needs."""
    if known.rtt_ns is None:
        yield "times of connections and transfers, so that its network is not known"
    if known.load_event_ns is None:
        yield "the load event"
    if known.protocol and not known.protocol.startswith(_MULTIPLEXED):
        yield f"HTTP/2 and HTTP/3: over {known.protocol} requests wait for free connections"
    if not any(resource.recorded for resource in page.resources):
        yield "what the browser said of priorities"
    n_unsized = sum(not resource.size_bytes for resource in page.resources)
    if n_unsized * 10 > len(page.resources):
        yield f"the sizes of {n_unsized:,} bodies"
