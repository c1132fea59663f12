"""The search for the best scheme for pages over a network, and how robust the result is."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import rng
from h3sim._version import __version__
from h3sim.config.arguments import LEVEL
from h3sim.config.load_config import (
    OF_NETWORK,
    LoadConfig,
    config_for,
    config_of,
    over_networks,
    with_options,
)
from h3sim.errors import NothingToMeasureError
from h3sim.results import in_words
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.output import COUNT, TEXT, VERSION, OutputSchema, Property, rows_of
from h3sim.schema.values import Number, TableOf
from h3sim.study.compare import Subjects, check_names, resolve_compared
from h3sim.study.fidelity import FIDELITY, Fidelity, fidelity, gated
from h3sim.study.racing import Arm, arms_of, check_race, race
from h3sim.study.run import run_config
from h3sim.study.statistics import ratio_end
from h3sim.study.table import CONFIGURATION, PAGE_DIGESTS, WHICH, ResultTable
from h3sim.trace import Rows
from h3sim.transport import ConstantRate, LinkProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.results.load import Which
    from h3sim.schemes import Scheme
    from h3sim.study.racing import ArmRow, Race
    from h3sim.study.run import PageLike, SchemeLike


_MISJUDGED = 2
"""RTT and sizes are guessed wrong by such a factor."""
_SOME_LOSS = 0.02


def with_drawn_network(config: LoadConfig, within: float) -> LoadConfig:
    """Return *config* over a network whose RTT and rates are drawn by its seed.

    Each is multiplied by a factor between 1 / *within* and *within*, even in the logarithm; rates
    down and up by the same one. All loads of one seed meet the same network.
    """
    source = rng.substream(config.seed, "network")
    # In this order: what a seed draws is part of what results mean.
    rtt, rate = (within ** source.uniform(-1, 1) for _ in range(2))
    network = config.path.network
    drawn = replace(
        network,
        rtt_ns=round(network.rtt_ns * rtt),
        constant_rate=_faster(network.constant_rate, rate),
        down=_faster(network.down, rate),
        up=_faster(network.up, rate),
    )
    # What the options say is in the network by now, and would be done to it a second time.
    done: dict[str, Any] = dict.fromkeys(OF_NETWORK)
    return replace(config, network=drawn, **done)


def _faster(part: Any, rate: float) -> Any:
    """Return a constant rate or a link of so many times the rate, what has none as it is."""
    if isinstance(part, ConstantRate):
        rate_bps = max(1, round(part.rate_bps * rate))
        return ConstantRate.at_rate(packet_bytes=part.packet_bytes, rate_bps=rate_bps)
    if isinstance(part, LinkProfile) and part.rate_bps is not None:
        return replace(part, rate_bps=max(1, round(part.rate_bps * rate)))
    return part


def may_lose(config: LoadConfig) -> bool:
    """Return whether packets are lost at random."""
    network = config.path.network
    return any(link is not None and link.loss > 0 for link in (network.down, network.up))


def elsewhere(
    pages: Sequence[Page], config: LoadConfig, networks: Iterable[str]
) -> Iterator[tuple[str, LoadConfig, Sequence[Page]]]:
    """Yield each setting that may turn out to be true instead, in words and as it is loaded."""
    here = config_for(pages[0], config).path.network
    for name in networks:
        yield f"network {name}", replace(config, network=name), pages
    if here.rtt_ns:
        rtt_ms = here.rtt_ns / 10**6
        yield "half the RTT", replace(config, rtt_ms=rtt_ms / _MISJUDGED), pages
        yield "twice the RTT", replace(config, rtt_ms=rtt_ms * _MISJUDGED), pages
    if here.constant_rate is None:
        yield f"loss of {_SOME_LOSS:.0%}", replace(config, loss=_SOME_LOSS), pages
    yield "sizes wrong by up to 2", config, [_misjudged(page) for page in pages]


def _misjudged(page: Page) -> Page:
    """Return *page* with each body between half and twice as large, drawn by its name."""
    source = rng.substream(0, f"sizes of {page.name}")
    resources = []
    for resource in page.resources:
        factor = _MISJUDGED ** source.uniform(-1, 1)
        # Smaller than that, something would be found at a byte that never comes.
        size_bytes = max(_least_bytes(page, resource.id), round(resource.size_bytes * factor))
        resources.append(replace(resource, size_bytes=size_bytes))
    return replace(page, resources=tuple(resources))


def _least_bytes(page: Page, id_: str) -> int:
    """Return the farthest byte of a resource at which something is found."""
    triggers = [resource.discovered for resource in page.resources]
    triggers += [change.when for resource in page.resources for change in resource.priority_changes]
    return max((d.offset_bytes or 0 for d in triggers if d is not None and d.by == id_), default=0)


_ARGUMENTS = (
    *("schemes", "vary", "which", "baseline", "n_seeds", "confidence", "networks"),
    *("network_within", "config", "progress"),
)
_ROBUST_SEEDS = 3
_LEAST_PAGES_TO_SPLIT = 4


class SearchRow(NamedTuple):
    """A scheme beside the best: how many times the best's ByteIndex its own is, by pairs.

    Where parameters are tried, *scheme* names them as well: "rr turn_packets=16".
    *low* to *high* is the interval, None where there are too few pairs for one; *is_worse* says
    that it is surely behind.
    """

    scheme: str
    pairs: int
    ratio: float
    low: float | None
    high: float | None
    is_worse: bool


class RobustnessRow(NamedTuple):
    """How much longer the choice takes than the best where something is otherwise, as a share."""

    changed: str
    best_there: str
    loss: float


FOUND = OutputSchema(
    "h3sim-found/1",
    "Which scheme is best, and how sure that is",
    VERSION,
    Property("best", TEXT, "the scheme that came in first"),
    Property("verdict", TEXT, "what was found, in a sentence or two"),
    Property("which", WHICH, "of which ByteIndex: of all resources, or above the fold"),
    Property("baseline", TEXT, "the scheme that the verdict compares with"),
    Property("confidence", LEVEL, "that of the intervals"),
    Property("n_seeds", COUNT, "how many seeds there were at most"),
    Property("network_within", Number(low=1), "by which factor RTT and rate may be wrong"),
    Property("n_loads", COUNT, "how many loads it took"),
    CONFIGURATION,
    PAGE_DIGESTS,
    Property("fidelity", TableOf(FIDELITY), "by page, how well the replay of a recording fits"),
    Property(
        "rows", rows_of(SearchRow), "one a scheme, the best first: its ByteIndex by the best's"
    ),
    Property("robustness", rows_of(RobustnessRow), "what the choice loses where it is otherwise"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchResult(ResultTable):
    """What `find` found."""

    format = FOUND
    best: str
    which: Which
    baseline: str
    confidence: float
    rows: Rows[SearchRow]
    """The best first, then those that may be as good, then those that are worse."""
    robustness: Rows[RobustnessRow]
    n_seeds: int
    """How many there were at most; fewer ran where nothing is random, or all was sure."""
    network_within: float
    n_loads: int
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict, hash=False)
    """By page, how well the replay of its recording fits that; only of those that are of one."""

    @property
    def level_with_best(self) -> tuple[str, ...]:
        """The other schemes that may be as good as the best."""
        return tuple(row.scheme for row in self.rows[1:] if not row.is_worse)

    def standing(self, row: SearchRow) -> str:
        """Return whether a row is "best", "level" with that, or "worse"."""
        if row.is_worse:
            return "worse"
        return "best" if row.scheme == self.best and not self.level_with_best else "level"

    @property
    def gain(self) -> float:
        """How many times as fast as the baseline the best is."""
        return next(row.ratio for row in self.rows if row.scheme == self.baseline)

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or two; over recordings as far as their replays fit."""
        return gated(self._verdict, self.fidelity.values())

    @property
    def _verdict(self) -> str:
        where = "above the fold" if self.which == "atf" else "on all"
        level = self.level_with_best
        is_drawn = self.rows[0].pairs > 1
        sure = f"sure at {100 * self.confidence:g} %" if is_drawn else "nothing of it is random"
        if level:
            names = f"{', '.join((self.best, *level[:-1]))} and {level[-1]}"
            head = f"Cannot tell which is best: {names} are level {where}."
        else:
            head = f"{self.best} is best {where} ({sure})."
        row = next(row for row in self.rows if row.scheme == self.baseline)
        if row.scheme == self.best:
            return head
        longer = f"{round(100 * (row.ratio - 1))} % longer than {self.best}{_percents(row)}"
        tail = f"{self.baseline} takes {longer}."
        return f"{head} {tail}"

    def _repr_html_(self) -> str:
        verdict = f"<p>{html.escape(self.verdict)}</p><p>{html.escape(self.told())}</p>"
        return verdict + self.rows._repr_html_() + self.robustness._repr_html_()


def _percents(row: SearchRow) -> str:
    if row.low is None or row.high is None or row.low == row.high:
        return ""
    return f" ({round(100 * (row.low - 1))} to {round(100 * (row.high - 1))} %)"


@with_options
def search(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = "marx-2019",
    vary: Mapping[str, Sequence[Any]] | None = None,
    which: Which = "atf",
    baseline: SchemeLike = "chrome-eps",
    n_seeds: int = 30,
    confidence: float = 0.95,
    networks: Sequence[str] | None = ("cable", "4g", "dsl"),
    network_within: float = 1,
    config: LoadConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> SearchResult:
    """Return which of *schemes*, and *baseline*, has the least ByteIndex, and how sure that is.

    The arms of a race (`h3sim.study.racing`) are the schemes, which meet the same pages and seeds,
    from *seed* on; what is compared is the logarithm of the ByteIndex, *which* "atf" or
    "all". Where seeds make no difference there is one. Pages count as draws of those that are
    meant: of a single page and seed what comes out is so. With *network_within*, say 2, each seed
    draws RTT and rate anew, half to twice what is said. *progress* is told loads done and at most.

    With *vary* the arms are the schemes with every combination of those values that they can have:
    of a key of their file, with dots between tables ("turn_packets", "classes.script.weight"), or
    of what a server chooses for a load ("send_buffer_kb", "send_buffer_refill",
    "retransmission_order", "cc").

    `robustness` then says what the choice loses, at a few seeds, over each of *networks*, and where
    the network or the pages were misjudged: half or twice the RTT, 2 % loss, sizes that are wrong
    by up to a factor of 2; and, of four pages or more, on one half of them if chosen by the other.
    Where *networks* is None, nothing of that is tried.

    Raises:
        InputError: listing every mistake in what was given.
        NothingToMeasureError: if no page has bytes that count.
        UnknownNameError: if only a name is not known.

    >>> found = search("davies-meenan", schemes=["fifo", "bucket-html"], networks=[])
    >>> found.best, round(found.gain, 2), found.level_with_best
    ('bucket-html', 3.22, ())
    """
    racing: dict[str, Any] = {"which": which, "n_seeds": n_seeds, "confidence": confidence}
    racing |= {"network_within": network_within, "vary": vary, "progress": progress}
    read = partial(config_of, options, known=_ARGUMENTS, changed=config)
    with ErrorCollector() as mistakes:
        taken = mistakes.of("", lambda: check_race(**racing))
        given = mistakes.of("", lambda: _config(read, networks))
        found = mistakes.of("", lambda: resolve_compared(pages, schemes, baseline))
    ground = _ground(*found, taken, progress)
    return ground.found(given, taken["n_seeds"], taken["confidence"], networks)


def _config(given: Callable[[], LoadConfig], networks: Sequence[str] | None) -> LoadConfig:
    """Return the config; that it goes with each of *networks* is seen before anything is loaded."""
    with ErrorCollector() as mistakes:
        config = mistakes.of("", given, instead=LoadConfig())
        mistakes.of("networks", lambda: over_networks(config, () if networks is None else networks))
    return config


def _ground(
    given: Subjects,
    base: Scheme,
    racing: Mapping[str, Any],
    progress: Callable[[int, int], None] | None,
) -> _Ground:
    """Return what is compared, checked before anything is loaded; *racing* is as `check_race`'s."""
    which, within = racing["which"], float(racing["network_within"])
    known = [page for page in given.pages if _has_bytes(page, which)]
    if not known:
        raise NothingToMeasureError(f"no page has bytes that count for {which!r}")
    arms = arms_of(given.schemes, racing["vary"])
    if base not in (arm.scheme for arm in arms):
        arms.append(Arm(base.name, base))  # as it is, whatever is tried
    check_names(pages=known, schemes=[arm.scheme for arm in arms])
    return _Ground(known, arms, base.name, which, progress, within=within)


def _found_row(arm: Arm, row: ArmRow) -> SearchRow:
    low, high = (None if end is None else ratio_end(end) for end in (row.low, row.high))
    return SearchRow(arm.name, row.n, math.exp(row.mean), low, high, row.is_worse)


def _seeded(config: LoadConfig, number: int) -> LoadConfig:
    """Return *config* with the seed of that number, from its own on."""
    return replace(config, seed=config.seed + number)


def _has_bytes(page: Page, which: Which) -> bool:
    return page.total_bytes > 0 if which == "all" else not page.nothing_visible_reason


class _Ground:
    """Where schemes are compared: loads, which are not made twice."""

    def __init__(
        self,
        pages: Sequence[Page],
        arms: Sequence[Arm],
        baseline: str,
        which: Which,
        progress: Callable[[int, int], None] | None,
        *,
        within: float,
    ) -> None:
        self._pages = pages
        self._arms = arms
        self._baseline = baseline
        self._which = which
        self._progress = progress
        self.within = within
        """How far the network of a seed may be from what is said, as a factor."""
        self.n_loads = 0
        self._n_most = 0

    def found(
        self,
        config: LoadConfig,
        n_seeds: int,
        confidence: float,
        networks: Iterable[str] | None,
    ) -> SearchResult:
        """Return what comes of a race, and what the choice loses elsewhere."""
        ended = self._race(config, n_seeds, confidence)
        changes: tuple[RobustnessRow, ...] = ()
        if networks is not None:
            changes = tuple(self._robustness(ended.best, config, networks))
        best = self._arms[ended.best]
        load = run_config(self._pages[0], best.scheme, best.config(config))
        rows = (_found_row(self._arms[row.arm], row) for row in ended.rows)
        return SearchResult(
            best=best.name,
            which=self._which,
            baseline=self._baseline,
            confidence=confidence,
            rows=Rows(SearchRow, rows),
            robustness=Rows(RobustnessRow, changes),
            n_seeds=n_seeds,
            network_within=self.within,
            n_loads=self.n_loads,
            version=__version__,
            configuration=load.configuration,
            words=in_words(load),
            page_digests={page.name: page.digest for page in self._pages},
            fidelity={
                page.name: judged for page in self._pages if (judged := fidelity(page)) is not None
            },
        )

    def _race(self, config: LoadConfig, n_seeds: int, confidence: float) -> Race:
        """Return how the schemes come in: pages stand side by side in each seed."""
        pages = self._pages

        def log_index(arm: int, instance: int) -> float:
            seed, page = divmod(instance, len(pages))
            seeded = _seeded(config, seed)
            if self.within > 1:
                seeded = with_drawn_network(config_for(pages[page], seeded), self.within)
            return self._log_index(pages[page], arm, seeded)

        n = n_seeds if self.within > 1 or self._varies(pages, config, n_seeds) else 1
        self._n_most = self.n_loads + len(self._arms) * n * len(pages)
        return race(len(self._arms), log_index, n * len(pages), confidence=confidence)

    def _varies(self, pages: Sequence[Page], config: LoadConfig, n_seeds: int) -> bool:
        """Return whether another of so many seeds makes another load of one of *pages*."""
        for number, page in enumerate(pages):
            is_lossy = may_lose(config_for(page, config))
            if number and not is_lossy:
                continue
            # Two seeds say it but where little is lost: then both may have met no loss at all.
            seeds = range(1, max(2, n_seeds) if is_lossy else 2)
            first = self._digest(page, config, 0)
            if any(first != self._digest(page, config, seed) for seed in seeds):
                return True
        return False

    def _digest(self, page: Page, config: LoadConfig, seed: int) -> str:
        # Of all that happened: a page of one packet may come out alike over a lossy link.
        return self._load(page, 0, _seeded(config, seed)).trace.digest()

    def _log_index(self, page: Page, arm: int, config: LoadConfig) -> float:
        """Return the logarithm of the ByteIndex of a load."""
        return math.log(self._load(page, arm, config).byte_index(self._which))

    def _robustness(
        self, chosen: int, config: LoadConfig, networks: Iterable[str]
    ) -> Iterator[RobustnessRow]:
        """Yield what the choice loses elsewhere."""
        for name, setting, there in elsewhere(self._pages, config, networks):
            totals = self._totals(there, setting)
            # `min` takes the first of equals.
            best = min(range(len(totals)), key=totals.__getitem__)
            loss = math.exp((totals[chosen] - totals[best]) / len(there)) - 1
            yield RobustnessRow(name, self._arms[best].name, loss)
        if len(self._pages) >= _LEAST_PAGES_TO_SPLIT:
            yield self._other_half(config)

    def _other_half(self, config: LoadConfig) -> RobustnessRow:
        # By digest, which has nothing to do with the order given, nor with sizes or names.
        drawn = sorted(self._pages, key=lambda page: page.digest)
        halves = drawn[0::2], drawn[1::2]
        one, other = (self._totals(half, config) for half in halves)
        chosen = min(range(len(one)), key=one.__getitem__)
        best = min(range(len(other)), key=other.__getitem__)
        loss = math.exp((other[chosen] - other[best]) / len(halves[1])) - 1
        return RobustnessRow("chosen by other pages", self._arms[best].name, loss)

    def _totals(self, pages: Sequence[Page], config: LoadConfig) -> list[float]:
        """Return the sum over pages of the mean logarithm over a few seeds, of each scheme."""
        n_seeds = _ROBUST_SEEDS if self._varies(pages, config, _ROBUST_SEEDS) else 1
        return [
            math.fsum(
                self._log_index(page, arm, _seeded(config, seed)) / n_seeds
                for page in pages
                for seed in range(n_seeds)
            )
            for arm in range(len(self._arms))
        ]

    def _load(self, page: Page, arm: int, config: LoadConfig) -> Load:
        self.n_loads += 1
        if self._progress is not None:
            self._progress(self.n_loads, max(self.n_loads, self._n_most))
        chosen = self._arms[arm]
        return run_config(page, chosen.scheme, chosen.config(config))
