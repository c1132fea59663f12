"""The search for the best scheme for pages over a network, and how robust the result is.

It is a race: arms (schemes and their parameters) are compared in paired rounds (bandits, F-Race).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim import rng
from h3sim._version import __version__
from h3sim.config import LoadConfig
from h3sim.config.load_config import (
    NETWORK_OPTIONS,
    config_for,
    over_networks,
    recorded_network,
)
from h3sim.config.options import LEVEL, refuse
from h3sim.errors import InputError, NothingToMeasureError, SchemeError, ValidationIssue
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.errors import RejectedValueError, plain_values
from h3sim.schema.output import COUNT, TEXT, VERSION, OutputSchema, Property, rows_of
from h3sim.schema.values import Integer, Number, OrNone, TableOf, ValueType
from h3sim.schemes import Scheme, scheme_from_dict, scheme_to_dict
from h3sim.study.compare import Subjects, check_names, resolve_compared
from h3sim.study.fidelity import FIDELITY, Fidelity, Grade, fidelities, gated
from h3sim.study.rows import CONFIGURATION, PAGE_DIGESTS, WHICH, ResultTable
from h3sim.study.run import PageLike, SchedulersLike, SchemeLike, add_schedulers
from h3sim.study.runner import LoadRunner, LoadTask, read_options, with_loads
from h3sim.study.statistics import ratio_end, student_interval
from h3sim.trace import Rows
from h3sim.transport import ConstantRate, LinkProfile, Network
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.page import Page
    from h3sim.results import Load, Which
    from h3sim.study.runner import Execution

    ConfigOfPage: TypeAlias = Callable[[Page], LoadConfig]


DEPLOYABLE = ("rr", "fifo", "chrome-eps", "firefox-eps", "safari-eps", "h3sim-1")
"""Schemes that can be deployed over HTTP/3: none knows more than a client does.

rr and fifo stand for servers that ignore clients' priorities.
"""
ROBUSTNESS_NETWORKS = ("cable", "4g", "dsl")
ESTIMATED_WITHIN = 2.0
"""By which factor RTT and rate may be wrong where they were estimated from a recording."""
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
    done: dict[str, Any] = dict.fromkeys(NETWORK_OPTIONS)
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
    return _loss(config.path.network) > 0


def elsewhere(
    pages: Sequence[Page], config: LoadConfig, networks: Iterable[str]
) -> Iterator[tuple[str, ConfigOfPage, Sequence[Page]]]:
    """Yield each setting that may turn out to be true instead: in words, its config, its pages.

    What the search is over anyway is left out: its own network, and loss where it has as much.
    """
    here = [config_for(page, config).path.network for page in pages]
    for name in networks:
        if any(network.name != name for network in here):
            yield f"network {name}", partial(_over, replace(config, network=name)), pages
    if all(network.rtt_ns for network in here):
        yield "half the RTT", partial(_with_rtt, config, 1 / _MISJUDGED), pages
        yield "twice the RTT", partial(_with_rtt, config, _MISJUDGED), pages
    if any(network.constant_rate is None and _loss(network) < _SOME_LOSS for network in here):
        yield f"loss of {_SOME_LOSS:.0%}", partial(_over, replace(config, loss=_SOME_LOSS)), pages
    yield "sizes wrong by up to 2", partial(_over, config), [_misjudged(page) for page in pages]


def _over(config: LoadConfig, _: Page) -> LoadConfig:
    return config


def _with_rtt(config: LoadConfig, factor: float, page: Page) -> LoadConfig:
    """Return *config* with so many times the RTT that it has for *page*."""
    return replace(config, rtt_ms=factor * to_ms(config_for(page, config).path.network.rtt_ns))


def _loss(network: Network) -> float:
    return max((link.loss for link in (network.down, network.up) if link is not None), default=0)


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


_ROBUST_SEEDS = 3
_BYTE_INDEX = {"atf": "ByteIndex above the fold", "all": "ByteIndex of all resources"}
_LEAST_PAGES_TO_SPLIT = 4


class SearchRow(NamedTuple):
    """A scheme beside the best: the ratio of their ByteIndexes, a geometric mean over pairs.

    Where parameters are tried, *scheme* names them as well: "rr turn_packets=16".
    *low* to *high* is the interval, None where there are too few pairs for one; *is_worse*
    marks schemes that are surely behind. *needs_server_knowledge* marks those that use what no
    client knows (`Scheme.knows`).
    """

    scheme: str
    pairs: int
    ratio: float
    low: float | None
    high: float | None
    is_worse: bool
    needs_server_knowledge: bool = False


class RobustnessRow(NamedTuple):
    """Distance of the choice from the best scheme under another condition, as a share.

    *low* to *high* is its interval over pages, over seeds of a single page; None where there are
    too few, and where the choice itself is the best.
    """

    changed: str
    best_there: str
    loss: float
    low: float | None = None
    high: float | None = None


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
    """Result of `search`."""

    format = FOUND
    displayed = ("rows", "robustness")
    best: str
    which: Which
    baseline: str
    confidence: float
    rows: Rows[SearchRow]
    """The best first, then those that may be as good, then those that are worse."""
    robustness: Rows[RobustnessRow]
    n_seeds: int
    """The most seeds; fewer ran where nothing is random, or where all was sure."""
    is_random: bool
    """True if another seed makes another load."""
    network_within: float
    n_loads: int
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict, hash=False)
    """By page, how well the replay of its recording fits that; only of those that are of one."""

    @property
    def level_with_best(self) -> tuple[str, ...]:
        """The other schemes that may be as good as the best."""
        return tuple(row.scheme for row in self.rows[1:] if not row.is_worse)

    def status(self, row: SearchRow) -> str:
        """Return "best", "tied" with the best, or "worse", and whether it can be deployed.

        Where a replay fits poorly, all are "not judged".
        """
        if any(each.grade is Grade.POOR for each in self.fidelity.values()):
            return "not judged"
        is_best = row.scheme == self.best and not self.level_with_best
        status = "worse" if row.is_worse else "best" if is_best else "tied"
        return f"{status}, {_KNOWING}" if row.needs_server_knowledge else status

    @property
    def gain(self) -> float:
        """Ratio of the baseline's ByteIndex to that of the best."""
        return next(row.ratio for row in self.rows if row.scheme == self.baseline)

    @property
    def verdict(self) -> str:
        """The result, its uncertainty and its reason; for recordings as far as replays fit."""
        return gated(self._verdict, self.fidelity.values())

    @property
    def _verdict(self) -> str:
        best, *others = self.rows
        if not others:
            return f"Nothing was compared: {best.scheme} is the only scheme."
        tied = [best, *(row for row in others if not row.is_worse)]
        behind = [row for row in others if row.is_worse]
        names = _listed([_named(row) for row in tied])
        if len(tied) == 1:
            head = f"{names} is the best scheme for {self._subject}"
        elif all(row.low == row.high == 1 for row in tied[1:]):
            head = f"{names} are equal for {self._subject}"
        else:
            head = f"{names} are statistically tied for {self._subject}"
        if not behind:
            return f"{head} ({self._byte_index}; {self._basis(best)})."
        other = next((row for row in behind if row.scheme == self.baseline), behind[0])
        lead = f"{_less(other.ratio)} less {self._byte_index} than {other.scheme}"
        close = [row.scheme for row in behind if row.ratio < _NEAR and row is not other]
        near = f"; {_listed(close)} within {_NEAR - 1:.0%}" if close else ""
        who = "" if len(tied) == 1 else f"{best.scheme} has "
        sure = ", ".join(filter(None, (_reach(other), self._basis(other))))
        return f"{head}: {who}{lead} ({sure}){near}.{self._without_server_knowledge()}"

    def _without_server_knowledge(self) -> str:
        """Return which scheme a client could use is closest, where the best is none of those."""
        best = self.rows[0]
        usable = next((row for row in self.rows if not row.needs_server_knowledge), None)
        if not best.needs_server_knowledge:
            return ""
        if usable is None:
            return " No scheme that a client can use was compared."
        if not usable.is_worse:
            return f" {usable.scheme}, which a client can use, is tied with it."
        sure = _reach(usable)
        more = f"{best.scheme} has {_less(usable.ratio)} less{sure and f' ({sure})'}"
        return f" Of the schemes that a client can use, {usable.scheme} comes closest: {more}."

    @property
    def _subject(self) -> str:
        first, *others = self.page_digests
        return f"{1 + len(others)} pages" if others else first

    @property
    def _byte_index(self) -> str:
        return _BYTE_INDEX[self.which]

    def _basis(self, row: SearchRow) -> str:
        """Return what the uncertainty is about: confidence and pairs, or that nothing is random."""
        if row.pairs == 1:
            return "one load per scheme, no interval" if self.is_random else "no seed changes it"
        varied = f", {varied}" if (varied := varied_network(self.network_within)) else ""
        return f"{100 * self.confidence:g} % confidence, {row.pairs} pairs of loads{varied}"

    @property
    def _sentences(self) -> tuple[str, ...]:
        return self.verdict, self.describe()


_KNOWING = "needs server knowledge"
_NEAR = 1.01
"""Schemes that are surely behind by less are named: nobody changes a server for that."""


def varied_network(within: float) -> str:
    """Return in words by how much the network was varied; nothing where it was not."""
    return f"RTT and rate varied by up to {within:g} times" if within > 1 else ""


def _named(row: SearchRow) -> str:
    return f"{row.scheme} ({_KNOWING})" if row.needs_server_knowledge else row.scheme


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _reach(row: SearchRow) -> str:
    """Return the interval of how much less the best has than *row*; nothing where none is."""
    if row.low is None or row.high is None or row.low == row.high:
        return ""
    return f"{_less(row.low).removesuffix(' %')} to {_less(row.high)}"


def _less(ratio: float) -> str:
    """Return by how many per cent 1 is less than *ratio*.

    >>> _less(1.25), _less(1.00004)
    ('20.0 %', '0.004 %')
    """
    share = 100 * (1 - 1 / ratio)
    return f"{share:.1f} %" if abs(share) >= _LEAST_SHOWN or not share else f"{share:.1g} %"


_LEAST_SHOWN = 0.05


@with_loads
def search(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = DEPLOYABLE,
    scheduler: SchedulersLike | None = None,
    signals: SchemeLike | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    which: Which | None = None,
    baseline: SchemeLike = "chrome-eps",
    n_seeds: int = 30,
    confidence: float = 0.95,
    networks: Sequence[str] | None = ROBUSTNESS_NETWORKS,
    network_within: float | None = None,
    first_result: Callable[[str], None] | None = None,
    config: LoadConfig | None = None,
    **options: Any,
) -> SearchResult:
    """Return which of *schemes*, and *baseline*, has the least ByteIndex, and how sure that is.

    The arms of a race (`race` of this module) are the schemes, which meet the same pages and seeds,
    from *seed* on. They are compared by the logarithm of the ByteIndex, *which* "atf" or "all"; by
    default above the fold, of all resources where no page has any marked as above it. If no seed
    changes a load, one seed is run. Pages count as a sample; a single page stands for itself.
    Each *scheduler* of your own joins the schemes, with the client signals of *signals*.

    RTT and rate that were estimated from a recording may be wrong: each seed multiplies them by
    factors between 1 / *network_within* and *network_within*, by default 2 for such a network and
    1 for one that is named. *options* are fields of `LoadConfig`, which change *config*, and of
    `Execution`.

    With *vary* the arms are the schemes with every combination of those values that they can have:
    of a key of their file, with dots between tables ("turn_packets", "classes.script.weight"), or
    of what a server chooses for a load ("send_buffer_kb", "send_buffer_refill",
    "retransmission_order", "cc").

    `robustness` then says what the choice loses, at a few seeds, over each of *networks*, and where
    the network or the pages were misjudged: half or twice the RTT, 2 % loss, sizes that are wrong
    by up to a factor of 2; and, of four pages or more, on one half of them if chosen by the other.
    Where *networks* is None, nothing of that is tried. *first_result* is called with a sentence
    about which scheme is ahead after one load of each.

    Raises:
        InputError: listing every mistake in what was given.
        NothingToMeasureError: if no page has bytes that count.
        UnknownNameError: if only a name is not known.

    >>> found = search("davies-meenan", schemes=["fifo", "bucket-html"], networks=[])
    >>> found.best, round(found.gain, 2), found.level_with_best
    ('bucket-html', 3.24, ())
    """
    racing: dict[str, Any] = {"which": which, "n_seeds": n_seeds, "confidence": confidence}
    racing |= {"network_within": network_within, "vary": vary, "first_result": first_result}
    read = partial(read_options, search, options, config)
    with ErrorCollector() as errors:
        taken = errors.collect("", lambda: check_race(**racing))
        execution, given = errors.collect(
            "", lambda: options_over(read, networks), default=(None, None)
        )
        requested = errors.collect(
            "", lambda: add_schedulers(schemes, scheduler, signals), default=["rr"]
        )
        found = errors.collect("", lambda: resolve_compared(pages, requested, baseline))
    with LoadRunner(execution, _measured) as runner:
        ground = _ground(*found, given, taken, runner)
        result = ground.found(given, taken["n_seeds"], taken["confidence"], networks)
    quiet = replace(execution, progress=False)
    fits = fidelities(ground.pages, quiet, browser=given.browser_model)
    return replace(result, fidelity=fits)


def options_over(
    read: Callable[[], tuple[Execution, LoadConfig]], networks: Sequence[str] | None
) -> tuple[Execution, LoadConfig]:
    """Return what is *read*; the config is checked over each of *networks* before any load."""
    with ErrorCollector() as errors:
        execution, config = errors.collect("", read, default=(None, LoadConfig()))
        errors.collect(
            "networks", lambda: over_networks(config, () if networks is None else networks)
        )
    return execution, config


def _ground(
    given: Subjects, base: Scheme, config: LoadConfig, racing: Mapping[str, Any], runner: LoadRunner
) -> _Ground:
    """Return what is compared, checked before anything is loaded; *racing* is as `check_race`'s."""
    which = racing["which"] or default_which(given.pages)
    known = [page for page in given.pages if _has_bytes(page, which)]
    if not known:
        raise NothingToMeasureError(f"no page has bytes that count for {which!r}")
    arms = arms_of(given.schemes, racing["vary"])
    if base not in (arm.scheme for arm in arms):
        arms.append(Arm(base.name, base))  # as it is, whatever is tried
    check_names(pages=known, schemes=[arm.scheme for arm in arms])
    within = racing["network_within"]
    if within is None:
        is_estimated = config.network == RECORDED_NETWORK and any(map(recorded_network, known))
        within = ESTIMATED_WITHIN if is_estimated else 1
    return _Ground(
        pages=known,
        arms=arms,
        baseline=base.name,
        which=which,
        runner=runner,
        within=float(within),
        first_result=racing["first_result"],
    )


def default_which(pages: Sequence[Page]) -> Which:
    """Return of which resources the ByteIndex is compared unless it is said."""
    return "atf" if any(_has_bytes(page, "atf") for page in pages) else "all"


def _found_row(arm: Arm, row: ArmRow) -> SearchRow:
    low, high = (None if end is None else ratio_end(end) for end in (row.low, row.high))
    knows = bool(arm.scheme.knows)
    return SearchRow(arm.name, row.n, math.exp(row.mean), low, high, row.is_worse, knows)


def _seeded(config: LoadConfig, number: int) -> LoadConfig:
    """Return *config* with the seed of that number, from its own on."""
    return replace(config, seed=config.seed + number)


def _has_bytes(page: Page, which: Which) -> bool:
    return page.total_bytes > 0 if which == "all" else not page.nothing_visible_reason


@dataclass(kw_only=True)
class _Ground:
    """Loads by which schemes are compared; none is made twice."""

    pages: Sequence[Page]
    arms: Sequence[Arm]
    baseline: str
    which: Which
    runner: LoadRunner
    within: float
    """Largest factor by which the network of a seed may differ from the named one."""
    is_random: bool = False
    n_loads: int = 0
    first_result: Callable[[str], None] | None = None

    def found(
        self, config: LoadConfig, n_seeds: int, confidence: float, networks: Iterable[str] | None
    ) -> SearchResult:
        """Run the race; return its result, and what the winner loses on other *networks*."""
        ended = self._race(config, n_seeds, confidence)
        changes: tuple[RobustnessRow, ...] = ()
        if networks is not None:
            changes = tuple(self._robustness(ended.best, config, networks, confidence))
        best = self.arms[ended.best]
        # One load that measures nothing, for the configuration of the winner in full. It is the
        # same for all pages.
        task = LoadTask(self.pages[0], best.scheme, best.config(config), _NO_METRIC)
        (described,) = self.runner.run([task])
        rows = [_found_row(self.arms[row.arm], row) for row in ended.rows]
        seeds_ran = -(-max(row.pairs for row in rows) // len(self.pages))
        return SearchResult(
            best=best.name,
            which=self.which,
            baseline=self.baseline,
            confidence=confidence,
            rows=Rows(SearchRow, rows),
            robustness=Rows(RobustnessRow, changes),
            n_seeds=n_seeds,
            is_random=self.is_random,
            network_within=self.within,
            n_loads=self.n_loads,
            version=__version__,
            configuration=described["configuration"],
            words=self._words(described["words"], config.seed, seeds_ran),
            page_digests={page.name: page.digest for page in self.pages},
        )

    def _words(self, words: dict[str, str], seed: int, seeds_ran: int) -> dict[str, str]:
        """Return what all loads have in common: of the seeds those that ran."""
        seeds = words.pop("seed") if seeds_ran == 1 else f"seeds {seed} to {seed + seeds_ran - 1}"
        varied = varied_network(self.within)
        return {**words, **({"varied": varied} if varied else {}), "seed": seeds}

    def _race(self, config: LoadConfig, n_seeds: int, confidence: float) -> Race:
        """Return how the schemes come in: pages stand side by side in each seed."""
        pages = self.pages

        def logs(pairs: Sequence[tuple[int, int]]) -> list[float]:
            found: dict[tuple[int, int], float] = {}
            first = [pair for pair in pairs if pair[1] == 0]
            for some in (first, [pair for pair in pairs if pair[1] > 0]):
                loads = ((pages[n % len(pages)], arm, drawn(n)) for arm, n in some)
                found |= zip(some, self._log_indexes(loads) if some else (), strict=True)
                if some and some is first and self.first_result is not None:
                    self.first_result(self._preview([found[pair] for pair in first]))
            return [found[pair] for pair in pairs]

        def drawn(instance: int) -> LoadConfig:
            seed, page = divmod(instance, len(pages))
            seeded = _seeded(config, seed)
            if self.within > 1:
                seeded = with_drawn_network(config_for(pages[page], seeded), self.within)
            return seeded

        self.is_random = self.within > 1 or self._varies(pages, partial(_over, config), n_seeds)
        n_arms, n_instances = len(self.arms), (n_seeds if self.is_random else 1) * len(pages)
        self.runner.expect(n_arms * n_instances)
        return race(n_arms, logs, n_instances, confidence=confidence, is_random=self.is_random)

    def _preview(self, logs: Sequence[float]) -> str:
        """Describe which arm is ahead of the baseline, or of the next, after one load of each."""
        in_order = sorted(range(len(logs)), key=lambda arm: logs[arm])
        names = [self.arms[arm].name for arm in in_order]
        rival = max(names.index(self.baseline), min(1, len(names) - 1))
        gap = logs[in_order[rival]] - logs[in_order[0]]
        found = f"{names[0]} has {_less(math.exp(gap))} less {_BYTE_INDEX[self.which]} than"
        found = f"{found} {names[rival]}" if gap else f"{names[0]} and {names[rival]} are equal"
        return f"after one load of each scheme: {found}"

    def _varies(self, pages: Sequence[Page], config: ConfigOfPage, n_seeds: int) -> bool:
        """Return whether another of so many seeds makes another load of one of *pages*."""
        for number, page in enumerate(pages):
            own = config(page)
            is_lossy = may_lose(config_for(page, own))
            if number and not is_lossy:
                continue
            # Two seeds say it but where little is lost: then both may have met no loss at all.
            seeds = range(2, max(2, n_seeds) if is_lossy else 2)
            first, second = self._digests(page, own, (0, 1))
            if first != second or any(self._digests(page, own, (n,)) != [first] for n in seeds):
                return True
        return False

    def _digests(self, page: Page, config: LoadConfig, seeds: Iterable[int]) -> list[str]:
        # Of all that happened: a page of one packet may come out alike over a lossy link.
        loads = [(page, 0, _seeded(config, seed)) for seed in seeds]
        return [found["digest"] for found in self._loaded(loads, _DIGEST)]

    def _log_indexes(self, loads: Iterable[tuple[Page, int, LoadConfig]]) -> list[float]:
        """Return the logarithms of the ByteIndexes of loads."""
        return [found["log"] for found in self._loaded(loads, self.which)]

    def _robustness(
        self, chosen: int, config: LoadConfig, networks: Iterable[str], confidence: float
    ) -> Iterator[RobustnessRow]:
        """Yield what the choice loses elsewhere."""
        for name, setting, there in elsewhere(self.pages, config, networks):
            yield self._lost(name, self._logs(there, setting), chosen, confidence)
        if len(self.pages) >= _LEAST_PAGES_TO_SPLIT:
            yield self._other_half(config, confidence)

    def _other_half(self, config: LoadConfig, confidence: float) -> RobustnessRow:
        # By digest, which has nothing to do with the order given, nor with sizes or names.
        drawn = sorted(self.pages, key=lambda page: page.digest)
        one, other = (
            self._logs(half, partial(_over, config)) for half in (drawn[0::2], drawn[1::2])
        )
        return self._lost("chosen by other pages", other, _least(one), confidence)

    def _lost(
        self, changed: str, logs: Sequence[Sequence[float]], chosen: int, confidence: float
    ) -> RobustnessRow:
        """Return how far *chosen* is behind the best by *logs*, one list per scheme."""
        best = _least(logs)
        apart = [own - least for own, least in zip(logs[chosen], logs[best], strict=True)]
        low = high = None
        if best != chosen:
            is_exact = len(set(apart)) == 1
            ends = (apart[0], apart[0]) if is_exact else interval_of(apart, 1 - confidence)
            low, high = (None if end is None else ratio_end(end) - 1 for end in ends)
        loss = math.exp(math.fsum(apart) / len(apart)) - 1
        return RobustnessRow(changed, self.arms[best].name, loss, low, high)

    def _logs(self, pages: Sequence[Page], config: ConfigOfPage) -> list[list[float]]:
        """Return logarithms at a few seeds, of each scheme: one per page, of one page per seed."""
        n_seeds = _ROBUST_SEEDS if self._varies(pages, config, _ROBUST_SEEDS) else 1
        cells = itertools.product(range(len(self.arms)), pages, range(n_seeds))
        found = self._log_indexes((page, arm, _seeded(config(page), n)) for arm, page, n in cells)
        if len(pages) > 1:
            found = [math.fsum(some) / n_seeds for some in _parts(found, n_seeds)]
        return _parts(found, len(found) // len(self.arms))

    def _loaded(
        self, loads: Iterable[tuple[Page, int, LoadConfig]], quantity: str
    ) -> list[dict[str, Any]]:
        """Run loads, each of a page with an arm; return *quantity* of each."""
        tasks = [
            LoadTask(page, self.arms[arm].scheme, self.arms[arm].config(config), quantity)
            for page, arm, config in loads
        ]
        self.n_loads += len(tasks)
        return self.runner.run(tasks)


def _parts(values: list[float], size: int) -> list[list[float]]:
    """Return *values* in lists of that size."""
    return [values[first : first + size] for first in range(0, len(values), size)]


_NO_METRIC, _DIGEST = "", "digest"


def _measured(load: Load, quantity: str) -> dict[str, Any]:
    """Return *quantity*: the digest of the trace, or the logarithm of a ByteIndex."""
    if quantity == _DIGEST:
        return {"digest": load.trace.digest()}
    if quantity == _NO_METRIC:
        return {}
    return {"log": math.log(load.byte_index("atf" if quantity == "atf" else "all"))}


def _least(logs: Sequence[Sequence[float]]) -> int:
    """Return the scheme with the least sum, the first of equals."""
    return min(range(len(logs)), key=lambda arm: math.fsum(logs[arm]))


OF_SERVER = ("send_buffer_kb", "send_buffer_refill", "retransmission_order", "cc")
"""The options of a load that a server chooses: what else a load has is not up to a scheme."""


class _Varied(ValueType):
    """Lists of values by key, which may be arrays."""

    stand_in: Any = MappingProxyType({})

    def accept(self, value: Any) -> dict[str, list[Any]]:
        found = {} if value is None else value
        if isinstance(found, Mapping):
            lists = {key: plain_values(values) for key, values in found.items()}
            are_lists = all(
                isinstance(values, Sequence) and not isinstance(values, str | bytes)
                for values in lists.values()
            )
            if are_lists and all(isinstance(key, str) for key in lists):
                return {key: list(map(plain_values, values)) for key, values in lists.items()}
        raise RejectedValueError(f"must be lists of values by key, is {format_value(value)}")


_MOST_ARMS = 1000
_MOST_SEEDS = 10_000
FIRST_RESULT = Predicate("a callable or None", lambda value: value is None or callable(value))
"""Receiver of a sentence, before all loads have run."""
_TAKEN: dict[str, ValueType] = {
    "which": Predicate("'all' or 'atf'", lambda value: value in ("all", "atf", None)),
    "n_seeds": Integer(low=1, high=_MOST_SEEDS),
    "confidence": LEVEL,
    "network_within": OrNone(Number(low=1, high=100)),
    "vary": _Varied(),
    "first_result": FIRST_RESULT,
}


def check_race(**given: object) -> dict[str, Any]:
    """Return what is *given* of the arguments of `search`, as it takes them.

    Raises:
        InputError: listing every one of them.
    """
    taken = {key: (_TAKEN[key], value) for key, value in given.items()}
    return check_arguments(InputError, **taken)


@dataclass(frozen=True)
class Arm:
    """A scheme with the options of a load that go with it."""

    name: str
    scheme: Scheme
    options: Mapping[str, Any] = field(default_factory=dict)

    def config(self, config: LoadConfig) -> LoadConfig:
        """Return *config* as this arm has it."""
        return replace(config, **self.options) if self.options else config


def arms_of(schemes: Sequence[Scheme], vary: Mapping[str, Sequence[Any]]) -> list[Arm]:
    """Return each of *schemes* with every combination of the values in *vary* that it can have.

    A key is one of a scheme's file, with dots between where tables are in tables
    ("turn_packets", "classes.script.weight", "classes.seen.urgency"), or one of the options of a
    load that servers choose: `OF_SERVER`. A scheme that has no such key, or on whose mechanism it
    has no say, goes without; one that has none at all is an arm as it is.

    Raises:
        InputError: listing the keys that no scheme has, and values that cannot be.

    >>> import h3sim
    >>> rr, fifo = h3sim.load_scheme("rr"), h3sim.load_scheme("fifo")
    >>> [arm.name for arm in arms_of([rr, fifo], {"turn_packets": [1, 16]})]
    ['rr turn_packets=1', 'rr turn_packets=16', 'fifo']
    """
    _check_values(schemes, vary)
    arms = [arm for scheme in schemes for arm in _make_arms(scheme, vary)]
    if len(arms) > _MOST_ARMS:
        raise InputError.at("vary", f"makes {len(arms):,} arms, and may make {_MOST_ARMS:,}")
    return arms


def _check_values(schemes: Sequence[Scheme], vary: Mapping[str, Sequence[Any]]) -> None:
    """Refuse values that no scheme can have."""
    issues: list[ValidationIssue] = []
    for key, values in vary.items():
        if not values:
            message = "at least one value is needed"
            issues.append(ValidationIssue(key=f"vary.{key}", message=message))
        elif key not in OF_SERVER:
            issues += _problems(schemes, key, values)
    refuse(issues)


def _problems(
    schemes: Sequence[Scheme], key: str, values: Sequence[Any]
) -> Iterator[ValidationIssue]:
    """Yield what is wrong with the values of a key of schemes: some of them for all, or all."""
    takers = [scheme for scheme in schemes if _takes(scheme, key, values)]
    if not takers:
        first = next(filter(None, (_refusal(scheme, key, values[0]) for scheme in schemes)), "")
        message = f"no scheme has it{first and f': {first}'}"
        yield ValidationIssue(key=f"vary.{key}", message=message)
    for scheme, value in itertools.product(takers, values):
        if refusal := _refusal(scheme, key, value):
            yield ValidationIssue(key=f"vary.{key}", message=f"{scheme.name}: {refusal}")


def _takes(scheme: Scheme, key: str, values: Sequence[Any]) -> bool:
    return any(_refusal(scheme, key, value) is None for value in values)


def _refusal(scheme: Scheme, key: str, value: Any) -> str | None:
    """Return why *scheme* cannot have *value* for *key*, or None if it can."""
    try:
        _changed(scheme, {key: value})
    except SchemeError as error:
        return "; ".join(problem.message for problem in error.problems)
    return None


def _make_arms(scheme: Scheme, vary: Mapping[str, Sequence[Any]]) -> Iterator[Arm]:
    """Yield the variants of a scheme, one per combination of values."""
    known = [key for key in vary if key in OF_SERVER or _takes(scheme, key, vary[key])]
    for chosen in itertools.product(*(vary[key] for key in known)):
        given = dict(zip(known, chosen, strict=True))
        options = {key: value for key, value in given.items() if key in OF_SERVER}
        texts = (f" {key}={getattr(value, '__name__', value)}" for key, value in given.items())
        of_scheme = {key: value for key, value in given.items() if key not in OF_SERVER}
        named = replace(_changed(scheme, of_scheme), name="".join((scheme.name, *texts)))
        yield Arm(named.name, named, options)


def _changed(scheme: Scheme, given: Mapping[str, Any]) -> Scheme:
    """Return *scheme* with other values for some keys of its file.

    Raises:
        SchemeError: if it has no such key, or cannot have such a value.
    """
    if not given:
        return scheme
    document = scheme_to_dict(scheme)
    if document is None:
        raise SchemeError.at("", f"{scheme.name} is code, and has no keys")
    for key, value in given.items():
        *tables, last = key.split(".")
        table: Any = document
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            raise SchemeError.at(key, f"there is no table {format_value('.'.join(tables))}")
        table[last] = value
    return scheme_from_dict(document)


_LEAST = 3
"""Least pairs that differ: the spread of fewer is practically unknown."""


class ArmRow(NamedTuple):
    """An arm against the best: the mean of paired differences, and its interval if there is one.

    *n* is how many pairs there are; *is_worse* whether it is surely behind the best.
    """

    arm: int
    n: int
    mean: float
    low: float | None
    high: float | None
    is_worse: bool


@dataclass(frozen=True)
class Race:
    """Outcome of a race: the arm with the least mean, and each arm against it, the best first."""

    best: int
    rows: tuple[ArmRow, ...]
    n_measured: int

    @property
    def level_with_best(self) -> tuple[int, ...]:
        """The arms that may be as good as the best, itself among them."""
        return tuple(row.arm for row in self.rows if row.arm == self.best or not row.is_worse)


def race(
    n_arms: int,
    measure: Callable[[Sequence[tuple[int, int]]], Sequence[float]],
    n_instances: int,
    *,
    confidence: float = 0.95,
    first_batch: int = 8,
    is_random: bool = False,
) -> Race:
    """Return which arm has the least mean over instances 0 to n - 1, as *measure* has them.

    It is called with all pairs of arm and instance that are needed at once.

    First comes successive halving (Karnin, Koren and Somekh 2013), on pairs: all arms run on the
    first batch of instances, the better half goes on, and the number of instances doubles. An arm
    is left early once it is surely behind. Then the arms that are not surely behind what came out
    go on beside it, while instances double again, until all are, or no instance is left; whichever
    has the least mean meanwhile is the best. All arms meet the same instances, so that what makes
    one hard is no noise.

    What is claimed rests on Student's intervals of the paired differences to the best on the
    instances that both had. Each is at a level that is divided by the number of the other arms and,
    since every round looks again, by the number of rounds (Bonferroni). So the arm that is best in
    truth is not called worse, with probability *confidence* or more, if differences are about
    normal: it is among those that may be as good (a selected subset, as Gupta 1965 has it). Of two
    others, both behind it, nothing is claimed. Where differences are all equal and not 0, nothing
    is random, and the sign decides; so it does for a single instance unless that *is_random*.

    >>> times = [[5, 6, 5, 7], [4, 5, 4, 6], [9, 9, 8, 9]]
    >>> found = race(3, lambda pairs: [times[arm][n] for arm, n in pairs], 4, first_batch=2)
    >>> found.best, found.level_with_best
    (1, (1,))
    """
    course = _Course(
        values=[[] for _ in range(n_arms)],
        measure=measure,
        n_instances=n_instances,
        is_random=is_random,
        batches=(batches := _batches(n_instances, first_batch)),
        # Twice the rounds: halving looks once in each, and so does what follows.
        chance=(1 - confidence) / (max(1, n_arms - 1) * 2 * len(batches)),
    )
    return course.run()


@dataclass(kw_only=True)
class _Course:
    """The state of a race."""

    values: list[list[float]]
    measure: Callable[[Sequence[tuple[int, int]]], Sequence[float]]
    n_instances: int
    is_random: bool
    batches: list[int]
    chance: float

    def run(self) -> Race:
        """Race in batches: arms that are clearly worse drop out."""
        best = self._halve()
        doubted = [arm for arm in range(len(self.values)) if arm != best]
        for n_instances in self.batches:
            doubted = [arm for arm in doubted if not self._arm_row(arm, best).is_worse]
            if not doubted:
                break
            best, *doubted = self._measured([*doubted, best], n_instances)
        rows = [self._arm_row(arm, best) for arm in range(len(self.values))]
        rows.sort(key=lambda row: (row.arm != best, row.is_worse, row.mean, row.arm))
        return Race(best, tuple(rows), sum(map(len, self.values)))

    def _halve(self) -> int:
        """Return the arm that is left when the better half of those that run goes on each time."""
        running = list(range(len(self.values)))
        for n_instances in self.batches:
            running = self._measured(running, n_instances)
            hopeful = [arm for arm in running if not self._arm_row(arm, running[0]).is_worse]
            running = hopeful[: max(1, len(running) // 2)]
            if len(running) == 1:
                break
        return running[0]

    def _measured(self, arms: list[int], n_instances: int) -> list[int]:
        """Return *arms*, the best first, once they have run on so many instances."""
        pairs = [(arm, i) for arm in arms for i in range(len(self.values[arm]), n_instances)]
        for (arm, _), value in zip(pairs, self.measure(pairs), strict=True):
            self.values[arm].append(value)
        # By number where means are equal: it is the order in which they were given.
        return sorted(arms, key=lambda arm: (statistics.fmean(self.values[arm][:n_instances]), arm))

    def _arm_row(self, arm: int, best: int) -> ArmRow:
        """Return the mean difference of an arm to the best, with its interval."""
        pairs = list(zip(self.values[arm], self.values[best], strict=False))
        differences = [own - least for own, least in pairs]
        mean = statistics.fmean(differences)
        # A single instance that is not drawn stands for itself.
        is_alone = self.n_instances == 1 and not self.is_random
        is_exact = is_alone or len(set(differences)) == 1 < len(differences)
        low, high = (mean, mean) if is_exact else interval_of(differences, self.chance)
        is_worse = arm != best and low is not None and low > 0
        return ArmRow(arm, len(pairs), mean, low, high, is_worse)


def interval_of(
    differences: Sequence[float], chance: float
) -> tuple[float, float] | tuple[None, None]:
    """Return Student's interval of the mean of paired *differences*; none of fewer than three.

    It misses with that *chance*.
    """
    if len(differences) < _LEAST:
        return None, None
    return student_interval(differences, 1 - chance)


def _batches(n_instances: int, first_batch: int) -> list[int]:
    """Return how many instances there have been after each round.

    >>> _batches(100, 8), _batches(5, 8)
    ([8, 16, 32, 64, 100], [5])
    """
    batches = [min(first_batch, n_instances)]
    while batches[-1] < n_instances:
        batches.append(min(2 * batches[-1], n_instances))
    return batches
