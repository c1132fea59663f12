"""The search for the best scheme for pages over a network, and the robustness of the result.

It is a race: arms (schemes and their parameters) are compared in paired rounds (bandits, F-Race).

Where it was guessed which images of a recorded page are above the fold, each load is also measured
by the other guesses (`h3sim.browser.above_the_fold.guesses`). Intervals cover all of them, and
there is no verdict if another guess would reverse it. Loads are those with the marks of the page:
what a browser or a clairvoyant server does about a guess is not varied.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Unpack

from h3sim._version import __version__
from h3sim.browser.above_the_fold import GUESSES, guesses
from h3sim.load.network_path import recorded_network
from h3sim.load.options import LEVEL, NETWORK_NAMES, refuse
from h3sim.load.run import PageLike, SchemeLike, resolve
from h3sim.load.selection import HalvesLike, SchedulersLike, add_schedulers
from h3sim.metrics import byte_index_ns, timings
from h3sim.page.recording import ESTIMATED_WITHIN, RECORDED_NETWORK
from h3sim.schema import format_value
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.errors import RejectedValueError, plain_values
from h3sim.schema.output import COUNT, TEXT, VERSION, OutputSchema, Property, rows_of
from h3sim.schema.values import Integer, Number, OrNone, TableOf, ValueType
from h3sim.schemes import Scheme, scheme_from_dict, scheme_to_dict
from h3sim.study.fidelity import FIDELITY, Fidelity, fidelities, gated
from h3sim.study.rows import CONFIGURATION, NETWORK_WITHIN, PAGE_DIGESTS, WHICH, ResultTable
from h3sim.study.runner import LoadRunner, LoadTask, read_options, shows_loads
from h3sim.study.statistics.intervals import ratio_end, student_interval
from h3sim.study.subjects import Subjects, check_names, resolve_compared, without_marks
from h3sim.trace import Rows
from h3sim.transport import ConstantRate, LinkProfile, Network
from h3sim.values import rng
from h3sim.values.errors import InputError, NothingToMeasureError, SchemeError, ValidationIssue
from h3sim.values.units import NS_PER_MS, to_ms

if TYPE_CHECKING:
    from h3sim.engine import LoadSpec
    from h3sim.load import Load, LoadConfig, Which
    from h3sim.page import Page
    from h3sim.study.study_keywords import StudyKeywords

    Arms: TypeAlias = Sequence[LoadSpec]
    """The loads of one page with each arm."""


DEPLOYABLE = ("rr", "fifo", "chrome-eps", "firefox-eps", "safari-eps", "h3sim-1")
"""Schemes that can be deployed over HTTP/3: none knows more than a client does.

rr and fifo stand for servers that ignore clients' priorities.
"""
ROBUSTNESS_NETWORKS = ("cable", "4g", "dsl")
"""Networks over which the choice is tried as well, by default."""
_MISJUDGED_FACTOR = 2
"""Factor by which RTT and sizes differ in the tests of robustness."""
_LOSS_OF_ROBUSTNESS = 0.02
"""Loss rate in the tests of robustness."""


def with_drawn_network(spec: LoadSpec, within: float) -> LoadSpec:
    """Return *spec* over a network whose RTT and rates are drawn by its seed.

    Each is multiplied by a factor between 1 / *within* and *within*, uniform in the logarithm, the
    rates of both directions by the same one. All loads of one seed have the same network.
    """
    source = rng.substream(spec.seed, "network")
    # The order of the draws must not change: it decides the network of each seed.
    rtt_factor, rate_factor = (within ** source.uniform(-1, 1) for _ in range(2))
    network = spec.network
    drawn = replace(
        network,
        rtt_ns=round(network.rtt_ns * rtt_factor),
        constant_rate=_scaled_rate(network.constant_rate, rate_factor),
        down=_scaled_rate(network.down, rate_factor),
        up=_scaled_rate(network.up, rate_factor),
    )
    return replace(spec, network=drawn)


def _scaled_rate(link: Any, factor: float) -> Any:
    """Return a link or constant rate with *factor* times its rate, or as it is if it has none."""
    if isinstance(link, ConstantRate):
        rate_bps = max(1, round(link.rate_bps * factor))
        return ConstantRate.at_rate(packet_bytes=link.packet_bytes, rate_bps=rate_bps)
    if isinstance(link, LinkProfile) and link.rate_bps is not None:
        return replace(link, rate_bps=max(1, round(link.rate_bps * factor)))
    return link


class _Condition(NamedTuple):
    """Circumstances under which the choice is tried again."""

    name: str
    pages: Sequence[Page]
    configs: Sequence[LoadConfig]
    """One per page."""


def other_conditions(
    loads: Sequence[LoadSpec], config: LoadConfig, networks: Iterable[str]
) -> Iterator[_Condition]:
    """Yield conditions under which the choice is tried again; *loads* are one per page.

    Those of the search itself are left out: its own network, and loss if it has as much.
    """
    pages, own_networks = [spec.page for spec in loads], [spec.network for spec in loads]

    def everywhere(name: str, **changes: Any) -> _Condition:
        return _Condition(name, pages, [replace(config, **changes)] * len(pages))

    def with_rtt(name: str, factor: float) -> _Condition:
        rtts_ms = (factor * to_ms(network.rtt_ns) for network in own_networks)
        return _Condition(name, pages, [replace(config, rtt_ms=rtt_ms) for rtt_ms in rtts_ms])

    for name in networks:
        if any(network.name != name for network in own_networks):
            yield everywhere(f"network {name}", network=name)
    if all(network.rtt_ns for network in own_networks):
        yield with_rtt("half the RTT", 1 / _MISJUDGED_FACTOR)
        yield with_rtt("twice the RTT", _MISJUDGED_FACTOR)
    loss = _LOSS_OF_ROBUSTNESS
    if any(network.constant_rate is None and _loss(network) < loss for network in own_networks):
        yield everywhere(f"loss of {loss:.0%}", loss=loss)
    resized = [_with_wrong_sizes(page) for page in pages]
    yield _Condition("sizes wrong by up to 2", resized, [config] * len(pages))


def _loss(network: Network) -> float:
    return max((link.loss for link in (network.down, network.up) if link is not None), default=0)


def _with_wrong_sizes(page: Page) -> Page:
    """Return *page* with each body between half and twice as large, at random by page name."""
    source = rng.substream(0, f"sizes of {page.name}")
    resources = []
    for resource in page.resources:
        factor = _MISJUDGED_FACTOR ** source.uniform(-1, 1)
        # The body must still contain all bytes that trigger something.
        size_bytes = max(_last_trigger(page, resource.id), round(resource.size_bytes * factor))
        resources.append(replace(resource, size_bytes=size_bytes))
    return replace(page, resources=tuple(resources))


def _last_trigger(page: Page, id_: str) -> int:
    """Return the last offset of a resource that triggers a request or a change of priority."""
    found = (resource.discovered for resource in page.resources)
    triggers = [when for each in found if each is not None for when in each.alternatives]
    triggers += [change.when for resource in page.resources for change in resource.priority_changes]
    return max(
        (
            trigger.offset_bytes or 0
            for trigger in triggers
            if trigger is not None and id_ in trigger.parents
        ),
        default=0,
    )


_ROBUSTNESS_SEEDS = 3
"""Seeds in each test of robustness."""
_BYTE_INDEX_WORDS = {"atf": "ByteIndex above the fold", "all": "ByteIndex of all resources"}
_MIN_PAGES_TO_SPLIT = 4
"""Fewest pages of which one half is tried with the best scheme of the other."""


class SearchRow(NamedTuple):
    """Ratio of a scheme's ByteIndex to that of the best, a geometric mean over pairs.

    If parameters are varied, *scheme* names them as well: "rr turn_packets=16". *low* to *high* is
    the interval, None if there are too few pairs for one; *is_worse* marks schemes that are
    significantly behind. *needs_server_knowledge* marks those that use knowledge that no client has
    (`Scheme.knows`).
    """

    scheme: str
    pairs: int
    ratio: float
    low: float | None
    high: float | None
    is_worse: bool
    needs_server_knowledge: bool = False


class RobustnessRow(NamedTuple):
    """Distance of the choice from the best scheme under another condition or guess, as a share.

    *low* to *high* is its interval over pages, or over seeds of a single page; None if there are
    too few, or if the choice itself is the best.
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
    NETWORK_WITHIN,
    Property("n_loads", COUNT, "how many loads it took"),
    CONFIGURATION,
    PAGE_DIGESTS,
    Property("fidelity", TableOf(FIDELITY), "by page, how well the replay of a recording fits"),
    Property(
        "rows", rows_of(SearchRow), "one a scheme, the best first: its ByteIndex by the best's"
    ),
    Property("robustness", rows_of(RobustnessRow), "what the choice loses where it is otherwise"),
    Property(
        "guesses",
        rows_of(RobustnessRow),
        "what the choice loses if others of the images are above the fold than was guessed",
    ),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchResult(ResultTable):
    """Result of `search`."""

    format = FOUND
    displayed = ("rows", "guesses", "robustness")
    best: str
    which: Which
    baseline: str
    confidence: float
    rows: Rows[SearchRow]
    """The best first, then those that may be as good, then those that are worse."""
    robustness: Rows[RobustnessRow]
    guesses: Rows[RobustnessRow]
    """One per other guess of what is above the fold; none if nothing was guessed."""
    n_seeds: int
    """The maximum number of seeds; fewer run if no seed matters, or once the result is certain."""
    is_random: bool
    """True if loads depend on the seed."""
    network_within: float
    """Largest factor by which RTT and rate were varied."""
    n_loads: int
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict, hash=False)
    """Fit of the replay to its recording, by page, for pages that were recorded."""

    @property
    def level_with_best(self) -> tuple[str, ...]:
        """The other schemes that may be as good as the best."""
        return tuple(row.scheme for row in self.rows[1:] if not row.is_worse)

    @property
    def is_judged(self) -> bool:
        """True if each replay of a recording supports a verdict."""
        return all(each.grade.supports_verdict for each in self.fidelity.values())

    def status(self, row: SearchRow) -> str:
        """Return "best", "tied" with the best, or "worse", and whether it needs server knowledge.

        If a replay supports no verdict, all are "not judged"; if a guess reverses the verdict, all
        that are not worse by every guess.
        """
        if not self.is_judged or (self.reversed_by and not row.is_worse):
            return "not judged"
        is_best = row.scheme == self.best and not self.level_with_best
        status = "worse" if row.is_worse else "best" if is_best else "tied"
        return f"{status}, {_KNOWLEDGE_NOTE}" if row.needs_server_knowledge else status

    @property
    def reversed_by(self) -> tuple[RobustnessRow, ...]:
        """The guesses of what is above the fold under which another scheme is surely better."""
        return tuple(row for row in self.guesses if row.low is not None and row.low > 0)

    @property
    def gain(self) -> float:
        """Ratio of the baseline's ByteIndex to that of the best."""
        return next(row.ratio for row in self.rows if row.scheme == self.baseline)

    @property
    def verdict(self) -> str:
        """The result, its uncertainty and its reason; limited by the fit of replays."""
        return gated(self._ungated_verdict, self.fidelity.values())

    @property
    def _ungated_verdict(self) -> str:
        best, *others = self.rows
        if not others:
            return f"Nothing was compared: {best.scheme} is the only scheme."
        if self.reversed_by:
            return self._reversed_verdict
        tied = [row for row in others if not row.is_worse]
        behind = [row for row in others if row.is_worse]
        names = _join_names([_name_with_note(row) for row in (best, *tied)])
        if not tied:
            result = f"{names} is the best scheme for {self._subject}"
        elif all(row.low == row.high == 1 for row in tied):
            result = f"{names} are equal for {self._subject}"
        else:
            result = f"{names} are statistically tied for {self._subject}"
        if not behind:
            return f"{result} ({self._byte_index}; {self._basis(best)})."
        rival = next((row for row in behind if row.scheme == self.baseline), behind[0])
        lead = f"{_percent_less(rival.ratio)} less {self._byte_index} than {rival.scheme}"
        subject = f"{best.scheme} has " if tied else ""
        certainty = ", ".join(filter(None, (_interval_of_lead(rival), self._basis(rival))))
        close = [row.scheme for row in behind if row.ratio < _CLOSE_RATIO and row is not rival]
        note = f"; {_join_names(close)} within {_CLOSE_RATIO - 1:.0%}" if close else ""
        sentence = f"{result}: {subject}{lead} ({certainty}){note}."
        return f"{sentence}{self._best_without_server_knowledge()}"

    @property
    def _reversed_verdict(self) -> str:
        """Sentences for a result whose sign depends on a guess."""
        worst = max(self.reversed_by, key=lambda row: row.loss)
        percent = _percent_less(1 + worst.loss)
        behind = [row.scheme for row in self.rows if row.is_worse]
        surely = f" Worse than {self.best} by any guess: {_join_names(behind)}." if behind else ""
        return (
            f"No verdict: which scheme is best for {self._subject} depends on which images are"
            f" above the fold, and that was guessed. It is {self.best} by the guess, but"
            f" {worst.best_there} with {worst.changed} ({percent} less {self._byte_index} than"
            f" {self.best}).{surely} {_MARKING_ADVICE}"
        )

    def _best_without_server_knowledge(self) -> str:
        """Return a sentence on the best scheme that a client can use, unless that is the best."""
        best = self.rows[0]
        usable = next((row for row in self.rows if not row.needs_server_knowledge), None)
        if not best.needs_server_knowledge:
            return ""
        if usable is None:
            return " No scheme that a client can use was compared."
        if not usable.is_worse:
            return f" {usable.scheme}, which a client can use, is tied with it."
        interval = _interval_of_lead(usable)
        lead = f"{_percent_less(usable.ratio)} less{interval and f' ({interval})'}"
        closest = f"{usable.scheme} comes closest: {best.scheme} has {lead}"
        return f" Of the schemes that a client can use, {closest}."

    @property
    def _subject(self) -> str:
        first, *others = self.page_digests
        return f"{1 + len(others)} pages" if others else first

    @property
    def _byte_index(self) -> str:
        return _BYTE_INDEX_WORDS[self.which]

    def _basis(self, row: SearchRow) -> str:
        """Return the basis of the uncertainty: confidence and pairs, or that nothing is random."""
        if row.pairs == 1:
            reason = "one load per scheme, no interval" if self.is_random else "no seed changes it"
            return f"{reason}, {_ANY_GUESS}" if self.guesses else reason
        varied = f", {varied}" if (varied := varied_network(self.network_within)) else ""
        guessed = f", {_ANY_GUESS}" if self.guesses else ""
        pairs = f"{row.pairs} pairs of loads{varied}{guessed}"
        return f"{100 * self.confidence:g} % confidence, {pairs}"

    @property
    def _sentences(self) -> tuple[str, ...]:
        return self.verdict, self.describe()


_KNOWLEDGE_NOTE = "needs server knowledge"
_ANY_GUESS = "by any guess of the images above the fold"
_MARKING_ADVICE = "Mark them with `h3sim annotate`, or list them for --above-the-fold."
_CLOSE_RATIO = 1.01
"""Ratio below which worse schemes are named as close: such a gain is not worth a change."""


def varied_network(within: float) -> str:
    """Return words for the variation of the network; "" if there was none."""
    return f"RTT and rate varied by up to {within:g} times" if within > 1 else ""


def _name_with_note(row: SearchRow) -> str:
    return f"{row.scheme} ({_KNOWLEDGE_NOTE})" if row.needs_server_knowledge else row.scheme


def _join_names(names: Sequence[str]) -> str:
    """Join names for a sentence.

    >>> _join_names(["a"]), _join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _interval_of_lead(row: SearchRow) -> str:
    """Return the interval of the best's lead over *row*; "" without an interval of any width."""
    if row.low is None or row.high is None or row.low == row.high:
        return ""
    return f"{_percent_less(row.low).removesuffix(' %')} to {_percent_less(row.high)}"


def _percent_less(ratio: float) -> str:
    """Return how much less 1 is than *ratio*, in per cent of *ratio*.

    >>> _percent_less(1.25), _percent_less(1.00004)
    ('20.0 %', '0.004 %')
    """
    percent = 100 * (1 - 1 / ratio)
    # With one decimal, unless that would be 0.0.
    return f"{percent:.1f} %" if abs(percent) >= 0.05 or not percent else f"{percent:.1g} %"


@shows_loads
def search(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    client: HalvesLike = None,
    server: HalvesLike = None,
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
    **options: Unpack[StudyKeywords],
) -> SearchResult:
    """Find which of *schemes* and *baseline* has the least ByteIndex, and with which certainty.

    The schemes are the arms of a race (`race` of this module) over the same pages and seeds, from
    *seed* on. They are compared by the logarithm of the ByteIndex, *which* "atf" or "all"; by
    default above the fold, or of all resources if no page has any marked as above it. If no seed
    changes a load, one seed is run. Pages count as a sample; a single page represents only itself.
    Each *client* before each *server*, names or paths, or "all", joins the schemes.
    Each *scheduler* of your own joins the schemes, with the client signals of *signals*.

    RTT and rate that were estimated from a recording may be wrong: each seed multiplies them by
    factors between 1 / *network_within* and *network_within*, by default as far as the recording's
    estimates are apart (`network_uncertainty`), and 1 for a network that is named. *options* are
    fields of `LoadConfig`, which change *config*, and of `Execution`.

    With *vary* the arms are the schemes with every combination of those values that they can have:
    of a key of their file, with dots between tables ("turn_packets", "classes.script.weight"), or
    of an option of a load that the server chooses ("send_buffer_kb", "send_buffer_refill",
    "retransmission_order", "cc").

    `robustness` then has the loss of the choice, at a few seeds, over each of *networks*, and with
    a misjudged network or misjudged pages: half or twice the RTT, 2 % loss, sizes that are wrong by
    up to a factor of 2; and, with four pages or more, on one half of them if chosen by the other.
    If *networks* is None, nothing of that is tried. *first_result* is called with a sentence about
    which scheme is ahead after one load of each.

    Raises:
        InputError: listing every error in the arguments.
        NothingToMeasureError: if no page has bytes that count.
        UnknownNameError: if the only error is an unknown name.

    >>> found = search("davies-meenan", schemes=["fifo", "bucket-html"], networks=[])
    >>> found.best, round(found.gain, 2), found.level_with_best
    ('bucket-html', 3.24, ())
    """
    race_options: dict[str, Any] = {"which": which, "n_seeds": n_seeds, "confidence": confidence}
    race_options |= {"network_within": network_within, "vary": vary, "first_result": first_result}
    if schemes is None and client is None and server is None:
        schemes = DEPLOYABLE
    race_options = check_race(**race_options)
    if networks is not None:
        check_arguments(InputError, networks=(NETWORK_NAMES, networks))
    execution, changed = read_options(search, options, config)
    requested = add_schedulers(schemes, scheduler, signals, client=client, server=server)
    subjects, base = resolve_compared(pages, requested, baseline)
    with LoadRunner(execution, _measured) as runner:
        loads = _make_loads(subjects, base, changed, race_options, runner)
        result = loads.search(
            changed, race_options["n_seeds"], race_options["confidence"], networks
        )
    quiet = replace(execution, progress=False)
    fits = fidelities(loads.pages, quiet, browser=changed.browser_model)
    return replace(result, fidelity=fits)


def _make_loads(
    subjects: Subjects,
    base: Scheme,
    config: LoadConfig,
    race_options: Mapping[str, Any],
    runner: LoadRunner,
) -> _SearchLoads:
    """Return the loads of a search, after checking them; *race_options* are from `check_race`."""
    which = race_options["which"] or default_which(subjects.pages)
    pages = [page for page in subjects.pages if _has_bytes(page, which)]
    if not pages:
        raise NothingToMeasureError(f"no page has bytes that count for {which!r}")
    arms = arms_of(subjects.schemes, race_options["vary"])
    if base not in (arm.scheme for arm in arms):
        arms.append(Arm(base.name, base))  # with its own values, whatever is varied
    check_names(pages=pages, schemes=[arm.scheme for arm in arms])
    within = race_options["network_within"]
    if within is None:
        within = network_uncertainty(pages, config)
    return _SearchLoads(
        pages=pages,
        arms=arms,
        baseline=base.name,
        which=which,
        runner=runner,
        network_within=float(within),
        first_result=race_options["first_result"],
        left_out=without_marks(page for page in subjects.pages if page not in pages),
    )


def network_uncertainty(pages: Iterable[Page], config: LoadConfig) -> float:
    """Return the factor by which RTT and rate of the network may be wrong; 1 if it is named.

    It is that of the recording whose estimates are furthest apart.

    >>> import h3sim
    >>> from h3sim.load import LoadConfig
    >>> network_uncertainty([h3sim.load_page("davies-meenan")], LoadConfig())
    1.0
    """
    if config.network != RECORDED_NETWORK:
        return 1.0
    recordings = [page.recorded_load for page in pages if recorded_network(page) is not None]
    factors = [
        ESTIMATED_WITHIN if known is None or known.network_within is None else known.network_within
        for known in recordings
    ]
    return max(factors, default=1.0)


def default_which(pages: Sequence[Page]) -> Which:
    """Return the resources whose ByteIndex is compared by default."""
    return "atf" if any(_has_bytes(page, "atf") for page in pages) else "all"


def _covering_row(row: ArmRow, by_guesses: Sequence[ArmRow]) -> ArmRow:
    """Return *row* with an interval that covers those of all guesses."""
    low, high, is_worse = row.low, row.high, row.is_worse
    for other in by_guesses:
        low = None if low is None or other.low is None else min(low, other.low)
        high = None if high is None or other.high is None else max(high, other.high)
        is_worse = is_worse and other.is_worse
    return row._replace(low=low, high=high, is_worse=is_worse)


def _search_row(arm: Arm, row: ArmRow) -> SearchRow:
    """Return the row of an arm, with the ends of ratios instead of logarithms."""
    low, high = (None if end is None else ratio_end(end) for end in (row.low, row.high))
    needs_server_knowledge = bool(arm.scheme.knows)
    ratio = math.exp(row.mean)
    return SearchRow(arm.name, row.n, ratio, low, high, row.is_worse, needs_server_knowledge)


def _with_seed(spec: LoadSpec, number: int) -> LoadSpec:
    """Return *spec* with its seed increased by *number*."""
    return replace(spec, seed=spec.seed + number) if number else spec


def _has_bytes(page: Page, which: Which) -> bool:
    return page.total_bytes > 0 if which == "all" else not page.nothing_visible_reason


@dataclass(kw_only=True)
class _SearchLoads:
    """Loads by which schemes are compared; none runs twice."""

    pages: Sequence[Page]
    arms: Sequence[Arm]
    baseline: str
    which: Which
    runner: LoadRunner
    network_within: float
    """Largest factor by which the network of a seed may differ from the named one."""
    is_random: bool = False
    n_loads: int = 0
    guess_logs: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    """Logarithms of ByteIndexes by each guess of what is above the fold, by arm and instance."""
    first_result: Callable[[str], None] | None = None
    """Receiver of a sentence after one load of each scheme."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Words for the pages that have nothing to compare."""

    def search(
        self, config: LoadConfig, n_seeds: int, confidence: float, networks: Iterable[str] | None
    ) -> SearchResult:
        """Run the race; return its result, and what the winner loses on other *networks*."""
        loads = [self._arms_of(page, config) for page in self.pages]
        conditions: list[tuple[str, list[Arms]]] = []
        if networks is not None:  # resolved before anything runs: a mistake is found at once
            first_arms = [of_page[0] for of_page in loads]
            conditions = [
                (name, [*map(self._arms_of, pages, configs)])
                for name, pages, configs in other_conditions(
                    first_arms, config, dict.fromkeys(networks)
                )
            ]
        outcome = self._race(loads, n_seeds, confidence)
        robustness = [
            self._robustness_row(name, self._logs(of_condition), outcome.best, confidence)
            for name, of_condition in conditions
        ]
        if networks is not None and len(self.pages) >= _MIN_PAGES_TO_SPLIT:
            robustness.append(self._other_half(loads, confidence))
        best = self.arms[outcome.best]
        # A load that measures nothing, for the complete configuration of the winner, which is the
        # same for all pages.
        (described,) = self.runner.run([LoadTask(loads[0][outcome.best], _NO_QUANTITY)])
        of_guesses = self._guess_races(outcome)
        covering = sorted(
            (
                _covering_row(row, [rows[row.arm] for rows in of_guesses.values()])
                for row in outcome.rows
            ),
            # As in the race, except for arms that a guess saves.
            key=lambda row: (row.arm != outcome.best, row.is_worse),
        )
        rows = [_search_row(self.arms[row.arm], row) for row in covering]
        n_seeds_run = -(-max(row.pairs for row in rows) // len(self.pages))
        return SearchResult(
            best=best.name,
            which=self.which,
            baseline=self.baseline,
            confidence=confidence,
            rows=Rows(SearchRow, rows),
            robustness=Rows(RobustnessRow, robustness),
            guesses=Rows(RobustnessRow, self._guess_rows(outcome, of_guesses)),
            n_seeds=n_seeds,
            is_random=self.is_random,
            network_within=self.network_within,
            n_loads=self.n_loads,
            version=__version__,
            configuration=described["configuration"],
            words=self._words(described["words"], config.seed, n_seeds_run),
            page_digests={page.name: page.digest for page in self.pages},
        )

    def _words(self, words: dict[str, str], seed: int, n_seeds_run: int) -> dict[str, str]:
        """Return the common settings of all loads in words, with the seeds that ran."""
        last_seed = seed + n_seeds_run - 1
        seeds = words.pop("seed") if n_seeds_run == 1 else f"seeds {seed} to {last_seed}"
        varied = varied_network(self.network_within)
        return words | ({"varied": varied} if varied else {}) | {"seed": seeds, **self.left_out}

    def _arms_of(self, page: Page, config: LoadConfig) -> Arms:
        """Return the load of *page* with each arm, resolved once for arms of the same options."""
        loads: list[LoadSpec] = []
        for options, arms in itertools.groupby(self.arms, lambda arm: arm.options):
            first, *others = arms
            spec = resolve(page, first.scheme, replace(config, **options) if options else config)
            loads += (spec, *(spec.with_scheme(arm.scheme) for arm in others))
        return loads

    def _race(self, loads: Sequence[Arms], n_seeds: int, confidence: float) -> Race:
        """Return the outcome of the race; an instance is a page with a seed (pages vary faster)."""

        def logs(pairs: Sequence[tuple[int, int]]) -> list[float]:
            """Return the logarithms of ByteIndexes for pairs of arm and instance."""
            log_by_pair: dict[tuple[int, int], float] = {}
            first = [(arm, instance) for arm, instance in pairs if instance == 0]
            others = [(arm, instance) for arm, instance in pairs if instance > 0]
            # The first instance runs first, for the preview.
            for some in filter(None, (first, others)):
                specs = [load_of(arm, instance) for arm, instance in some]
                measured = self._measure_loads(specs, self.which)
                for pair, row in zip(some, measured, strict=True):
                    log_by_pair[pair] = row["log"]
                    self.guess_logs[pair] = row["guesses"] or [row["log"]] * len(GUESSES)
                if some is first and self.first_result is not None:
                    self.first_result(self._preview([log_by_pair[pair] for pair in first]))
            return [log_by_pair[pair] for pair in pairs]

        def load_of(arm: int, instance: int) -> LoadSpec:
            seed, page = divmod(instance, len(loads))
            spec = _with_seed(loads[page][arm], seed)
            return with_drawn_network(spec, self.network_within) if is_drawn else spec

        is_drawn = self.network_within > 1
        self.is_random = is_drawn or self._varies(loads, n_seeds)
        n_arms, n_instances = len(self.arms), (n_seeds if self.is_random else 1) * len(loads)
        self.runner.expect(n_arms * n_instances)
        return race(n_arms, logs, n_instances, confidence=confidence, is_random=self.is_random)

    def _guess_races(self, outcome: Race) -> dict[str, list[ArmRow]]:
        """Return the rows of the arms by each guess of what is above the fold, as far as it counts.

        They are compared with the best of the race, on the same instances and at the same level.
        """
        n_pairs = {row.arm: row.n for row in outcome.rows}
        races = {}
        for title, guess in self._other_guesses().items():
            values = {
                arm: [self.guess_logs[arm, instance][guess] for instance in range(n)]
                for arm, n in n_pairs.items()
            }
            least = values[outcome.best]
            races[title] = [outcome.compare(arm, values[arm], least) for arm in sorted(values)]
        return races

    def _other_guesses(self) -> dict[str, int]:
        """Return the position of each guess by which other resources are above the fold."""
        if self.which != "atf":
            return {}
        marked = [
            frozenset(i for i, resource in enumerate(page.resources) if resource.above_the_fold)
            for page in self.pages
        ]
        of_pages = [
            guesses(page) or [seen] * len(GUESSES)
            for page, seen in zip(self.pages, marked, strict=True)
        ]
        known, found = [marked], {}
        for guess, title in enumerate(GUESSES):
            seen_by_page = [of_page[guess] for of_page in of_pages]
            if seen_by_page not in known:
                known.append(seen_by_page)
                found[title] = guess
        return found

    def _guess_rows(
        self, outcome: Race, of_guesses: Mapping[str, Sequence[ArmRow]]
    ) -> Iterator[RobustnessRow]:
        """Yield for each guess how far the best of the race is from the best by that guess."""
        for title, rows in of_guesses.items():
            ahead = min(rows, key=lambda row: (row.mean, row.arm != outcome.best))
            low = high = None
            if ahead.low is not None and ahead.high is not None and ahead.arm != outcome.best:
                low, high = (ratio_end(-end) - 1 for end in (ahead.high, ahead.low))
            loss = math.exp(-ahead.mean) - 1
            yield RobustnessRow(title, self.arms[ahead.arm].name, loss, low, high)

    def _preview(self, logs: Sequence[float]) -> str:
        """Describe the lead over the baseline after one load of each arm.

        If the baseline itself leads, it is the lead over the second.
        """
        ranking = sorted(range(len(logs)), key=lambda arm: logs[arm])
        names = [self.arms[arm].name for arm in ranking]
        rival = max(names.index(self.baseline), min(1, len(names) - 1))
        gap = logs[ranking[rival]] - logs[ranking[0]]
        if gap:
            less = f"{_percent_less(math.exp(gap))} less {_BYTE_INDEX_WORDS[self.which]}"
            result = f"{names[0]} has {less} than {names[rival]}"
        else:
            result = f"{names[0]} and {names[rival]} are equal"
        return f"after one load of each scheme: {result}"

    def _varies(self, loads: Sequence[Arms], n_seeds: int) -> bool:
        """Return whether one of *n_seeds* seeds changes the load of one of the pages."""
        for number, (spec, *_) in enumerate(loads):
            is_lossy = _loss(spec.network) > 0
            if number and not is_lossy:  # without loss the first page tells it for all
                continue
            # Usually two seeds tell it; with little loss, both loads may have lost nothing.
            more_seeds = range(2, max(2, n_seeds) if is_lossy else 2)
            first, second = self._digests(spec, (0, 1))
            if first != second:
                return True
            if any(self._digests(spec, (seed,)) != [first] for seed in more_seeds):
                return True
        return False

    def _digests(self, spec: LoadSpec, seeds: Iterable[int]) -> list[str]:
        """Return the digests of traces: ByteIndexes may be equal although packets were lost."""
        specs = [_with_seed(spec, seed) for seed in seeds]
        return [measured["digest"] for measured in self._measure_loads(specs, _DIGEST)]

    def _log_indexes(self, specs: Iterable[LoadSpec]) -> list[float]:
        """Return the logarithms of the ByteIndexes of loads."""
        return [measured["log"] for measured in self._measure_loads(specs, self.which)]

    def _other_half(self, loads: Sequence[Arms], confidence: float) -> RobustnessRow:
        """Return the loss on half of the pages of the arm that is best for the other half."""
        # By digest, which is independent of the order, the sizes and the names of pages.
        shuffled = sorted(loads, key=lambda arms: arms[0].page.digest)
        one, other = self._logs(shuffled[0::2]), self._logs(shuffled[1::2])
        return self._robustness_row("chosen by other pages", other, _best_arm(one), confidence)

    def _robustness_row(
        self, changed: str, logs: Sequence[Sequence[float]], chosen: int, confidence: float
    ) -> RobustnessRow:
        """Return the distance of the arm *chosen* from the best by *logs*, one list per arm."""
        best = _best_arm(logs)
        differences = [own - least for own, least in zip(logs[chosen], logs[best], strict=True)]
        low = high = None
        if best != chosen:
            first = differences[0]
            is_exact = len(set(differences)) == 1
            ends = (first, first) if is_exact else interval_of(differences, 1 - confidence)
            low, high = (None if end is None else ratio_end(end) - 1 for end in ends)
        loss = math.exp(math.fsum(differences) / len(differences)) - 1
        return RobustnessRow(changed, self.arms[best].name, loss, low, high)

    def _logs(self, loads: Sequence[Arms]) -> list[list[float]]:
        """Return logarithms of ByteIndexes at a few seeds, one list per arm.

        A list has the mean over seeds of each page or, for a single page, each seed.
        """
        n_seeds = _ROBUSTNESS_SEEDS if self._varies(loads, _ROBUSTNESS_SEEDS) else 1
        cells = itertools.product(range(len(self.arms)), loads, range(n_seeds))
        logs = self._log_indexes(_with_seed(arms[arm], n) for arm, arms, n in cells)
        if len(loads) > 1:
            logs = [math.fsum(some) / n_seeds for some in _parts(logs, n_seeds)]
        return _parts(logs, len(logs) // len(self.arms))

    def _measure_loads(self, specs: Iterable[LoadSpec], quantity: str) -> list[dict[str, Any]]:
        """Run loads, and return *quantity* of each."""
        tasks = [LoadTask(spec, quantity) for spec in specs]
        self.n_loads += len(tasks)
        return self.runner.run(tasks)


def _parts(values: list[float], size: int) -> list[list[float]]:
    """Return *values* in lists of *size* values."""
    return [values[first : first + size] for first in range(0, len(values), size)]


_NO_QUANTITY, _DIGEST = "", "digest"


def _measured(load: Load, quantity: str) -> dict[str, Any]:
    """Return *quantity*: the digest of the trace, or the logarithm of a ByteIndex."""
    if quantity == _DIGEST:
        return {"digest": load.trace.digest()}
    if quantity == _NO_QUANTITY:
        return {}
    log = math.log(load.byte_index("atf" if quantity == "atf" else "all"))
    return {"log": log, "guesses": list(_guess_logs(load)) if quantity == "atf" else []}


def _guess_logs(load: Load) -> Iterator[float]:
    """Yield the logarithm of the ByteIndex above the fold by each guess of what is above it.

    Nothing is yielded for a page of which nothing was guessed.
    """
    origin_ns = load.trace.requests[0].requested_at_ns
    finished = {row.resource: row.finished_at_ns for row in timings(load.trace)}
    for guess in guesses(load.page) or ():
        sizes = ((load.page.resources[i].size_bytes, finished[i]) for i in guess if i in finished)
        index_ns = byte_index_ns(sizes, origin_ns=origin_ns)
        yield math.log(index_ns / NS_PER_MS if index_ns else load.byte_index("atf"))


def _best_arm(logs: Sequence[Sequence[float]]) -> int:
    """Return the arm with the least sum, the first of equals."""
    return min(range(len(logs)), key=lambda arm: math.fsum(logs[arm]))


OF_SERVER = ("send_buffer_kb", "send_buffer_refill", "retransmission_order", "cc")
"""The options of a load that a server chooses, and which may therefore be varied."""


class _ValuesByKey(ValueType):
    """Field type: lists or arrays of values by key."""

    stand_in: Any = MappingProxyType({})

    def accept(self, value: Any) -> dict[str, list[Any]]:
        table = {} if value is None else value
        if isinstance(table, Mapping):
            lists = {key: plain_values(values) for key, values in table.items()}
            are_lists = all(
                isinstance(values, Sequence) and not isinstance(values, str | bytes)
                for values in lists.values()
            )
            if are_lists and all(isinstance(key, str) for key in lists):
                return {key: list(map(plain_values, values)) for key, values in lists.items()}
        raise RejectedValueError(f"must be lists of values by key, is {format_value(value)}")


_MAX_ARMS = 1000
"""Configurations that may compete in a search."""
_MAX_SEEDS = 10_000
"""Seeds that a search may use."""
FIRST_RESULT = Predicate("a callable or None", lambda value: value is None or callable(value))
"""Receiver of a sentence, before all loads have run."""
_ARGUMENT_TYPES: dict[str, ValueType] = {
    "which": Predicate("'all' or 'atf'", lambda value: value in ("all", "atf", None)),
    "n_seeds": Integer(low=1, high=_MAX_SEEDS),
    "confidence": LEVEL,
    "network_within": OrNone(Number(low=1, high=100)),
    "vary": _ValuesByKey(),
    "first_result": FIRST_RESULT,
}
"""Field types of arguments of `search`."""


def check_race(**given: object) -> dict[str, Any]:
    """Validate some arguments of `search`, and return them.

    Raises:
        InputError: listing every invalid argument.
    """
    typed = {key: (_ARGUMENT_TYPES[key], value) for key, value in given.items()}
    return check_arguments(InputError, **typed)


@dataclass(frozen=True)
class Arm:
    """A scheme with values of some options of a load."""

    name: str
    scheme: Scheme
    options: Mapping[str, Any] = field(default_factory=dict)


def arms_of(schemes: Sequence[Scheme], vary: Mapping[str, Sequence[Any]]) -> list[Arm]:
    """Return each of *schemes* with every combination of the values in *vary* that it can have.

    A key is one of a scheme's file, with dots between where tables are in tables
    ("turn_packets", "classes.script.weight", "classes.seen.urgency"), or one of the options of a
    load that servers choose: `OF_SERVER`. Keys that a scheme lacks, or that do not apply to its
    mechanism, are skipped for it; a scheme with none of the keys is a single arm.

    Raises:
        InputError: listing keys that no scheme has, and invalid values.

    >>> import h3sim
    >>> rr, fifo = h3sim.load_scheme("rr"), h3sim.load_scheme("fifo")
    >>> [arm.name for arm in arms_of([rr, fifo], {"turn_packets": [1, 16]})]
    ['rr turn_packets=1', 'rr turn_packets=16', 'fifo']
    """
    _check_values(schemes, vary)
    arms = [arm for scheme in schemes for arm in _make_arms(scheme, vary)]
    if len(arms) > _MAX_ARMS:
        raise InputError.at("vary", f"makes {len(arms):,} arms, and may make {_MAX_ARMS:,}")
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
    """Yield issues of the values of a key: if no scheme has it, or a scheme accepts only some."""
    with_key = [scheme for scheme in schemes if _takes(scheme, key, values)]
    if not with_key:
        reason = next(filter(None, (_refusal(scheme, key, values[0]) for scheme in schemes)), "")
        message = f"no scheme has it{reason and f': {reason}'}"
        yield ValidationIssue(key=f"vary.{key}", message=message)
    for scheme, value in itertools.product(with_key, values):
        if refusal := _refusal(scheme, key, value):
            yield ValidationIssue(key=f"vary.{key}", message=f"{scheme.name}: {refusal}")


def _takes(scheme: Scheme, key: str, values: Sequence[Any]) -> bool:
    """Return whether *scheme* accepts one of *values* for *key*, and so has the key."""
    return any(_refusal(scheme, key, value) is None for value in values)


def _refusal(scheme: Scheme, key: str, value: Any) -> str | None:
    """Return why *scheme* cannot have *value* for *key*, or None if it can."""
    try:
        _with_values(scheme, {key: value})
    except SchemeError as error:
        return "; ".join(problem.message for problem in error.problems)
    return None


def _make_arms(scheme: Scheme, vary: Mapping[str, Sequence[Any]]) -> Iterator[Arm]:
    """Yield the variants of a scheme, one per combination of values."""
    keys = [key for key in vary if key in OF_SERVER or _takes(scheme, key, vary[key])]
    for combination in itertools.product(*(vary[key] for key in keys)):
        values = dict(zip(keys, combination, strict=True))
        options = {key: value for key, value in values.items() if key in OF_SERVER}
        of_scheme = {key: value for key, value in values.items() if key not in OF_SERVER}
        texts = (f" {key}={getattr(value, '__name__', value)}" for key, value in values.items())
        name = "".join((scheme.name, *texts))
        yield Arm(name, replace(_with_values(scheme, of_scheme), name=name), options)


def _with_values(scheme: Scheme, values: Mapping[str, Any]) -> Scheme:
    """Return *scheme* with other *values* for some keys of its file.

    Raises:
        SchemeError: if it has no such key, or the value is invalid.
    """
    if not values:
        return scheme
    document = scheme_to_dict(scheme)
    if document is None:
        raise SchemeError.at("", f"{scheme.name} is code, and has no keys")
    for key, value in values.items():
        *tables, last = key.split(".")
        table: Any = document
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            raise SchemeError.at(key, f"there is no table {format_value('.'.join(tables))}")
        table[last] = value
    return scheme_from_dict(document)


_MIN_PAIRS = 3
"""Fewest pairs for an interval: the spread of fewer is practically unknown."""


class ArmRow(NamedTuple):
    """Mean paired difference of an arm to the best, and its interval if there is one."""

    arm: int
    n: int
    """The number of pairs."""
    mean: float
    low: float | None
    high: float | None
    is_worse: bool
    """True if it is significantly behind the best."""


@dataclass(frozen=True)
class Race:
    """Outcome of a race: the arm with the least mean, and a row per arm, the best first."""

    best: int
    rows: tuple[ArmRow, ...]
    n_measured: int
    """The number of pairs of arm and instance that were measured."""
    error_probability: float
    """Error probability of each interval."""
    is_only_one: bool
    """True if there was a single instance, which is not random."""

    def compare(self, arm: int, own: Sequence[float], least: Sequence[float]) -> ArmRow:
        """Return the mean difference of *own* values of an arm to those of the best."""
        differences = [a - b for a, b in zip(own, least, strict=False)]
        mean = statistics.fmean(differences)
        # A single instance that is not random has no uncertainty.
        is_exact = self.is_only_one or len(set(differences)) == 1 < len(differences)
        low, high = (mean, mean) if is_exact else interval_of(differences, self.error_probability)
        is_worse = arm != self.best and low is not None and low > 0
        return ArmRow(arm, len(differences), mean, low, high, is_worse)

    @property
    def level_with_best(self) -> tuple[int, ...]:
        """The arms that may be as good as the best, including itself."""
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
    """Find the arm with the least mean of *measure* over the instances 0 to *n_instances* - 1.

    *measure* is called with lists of pairs of arm and instance, which can run in parallel.

    First comes successive halving (Karnin, Koren and Somekh 2013), on pairs: all arms run on the
    first batch of instances, the better half continues, and the number of instances doubles. An arm
    drops out early once it is significantly behind. Then all arms that are not significantly behind
    the remaining one continue beside it, while instances double again, until all are, or no
    instance is left; whichever has the least mean meanwhile is the best. All arms have the same
    instances, so that hard instances are no noise.

    The claims rest on Student's intervals of the paired differences to the best on the instances
    that both had. The level of each is divided by the number of other arms and, since each round
    tests again, by the number of rounds (Bonferroni). So the truly best arm is not called worse,
    with probability *confidence* or more, if differences are about normal: it is among those that
    may be as good (subset selection, Gupta 1965). Nothing is claimed about two other arms that are
    both behind it. If all differences are equal and not 0, nothing is random, and the sign decides;
    so it does for a single instance unless that *is_random*.

    >>> times = [[5, 6, 5, 7], [4, 5, 4, 6], [9, 9, 8, 9]]
    >>> found = race(3, lambda pairs: [times[arm][n] for arm, n in pairs], 4, first_batch=2)
    >>> found.best, found.level_with_best
    (1, (1,))
    """
    rounds = _instances_by_round(n_instances, first_batch)
    state = _RaceState(
        values=[[] for _ in range(n_arms)],
        measure=measure,
        n_instances=n_instances,
        is_random=is_random,
        rounds=rounds,
        # Twice the rounds: halving tests once in each, and so does what follows.
        error_probability=(1 - confidence) / (max(1, n_arms - 1) * 2 * len(rounds)),
    )
    return state.run()


@dataclass(kw_only=True)
class _RaceState:
    """The state of a race."""

    values: list[list[float]]
    """The values of each arm, by instance."""
    measure: Callable[[Sequence[tuple[int, int]]], Sequence[float]]
    n_instances: int
    is_random: bool
    rounds: list[int]
    """Numbers of instances after each round."""
    error_probability: float
    """Error probability of each interval."""

    def run(self) -> Race:
        """Run the halving, and then all arms that may be as good as its winner."""
        best = self._halve()
        candidates = [arm for arm in range(len(self.values)) if arm != best]
        for n_instances in self.rounds:
            candidates = [arm for arm in candidates if not self._arm_row(arm, best).is_worse]
            if not candidates:
                break
            best, *candidates = self._ranked([*candidates, best], n_instances)
        found = self._race(best)
        rows = [self._arm_row(arm, best) for arm in range(len(self.values))]
        rows.sort(key=lambda row: (row.arm != best, row.is_worse, row.mean, row.arm))
        return replace(found, rows=tuple(rows))

    def _race(self, best: int) -> Race:
        """Return the race so far, without its rows."""
        n_measured = sum(map(len, self.values))
        is_only_one = self.n_instances == 1 and not self.is_random
        return Race(best, (), n_measured, self.error_probability, is_only_one)

    def _halve(self) -> int:
        """Return the arm that remains if the better half continues in each round."""
        running = list(range(len(self.values)))
        for n_instances in self.rounds:
            running = self._ranked(running, n_instances)
            leader = running[0]
            not_worse = [arm for arm in running if not self._arm_row(arm, leader).is_worse]
            running = not_worse[: max(1, len(running) // 2)]
            if len(running) == 1:
                break
        return running[0]

    def _ranked(self, arms: list[int], n_instances: int) -> list[int]:
        """Measure *arms* up to *n_instances* instances each, and return them, the best first."""
        pairs = [(arm, i) for arm in arms for i in range(len(self.values[arm]), n_instances)]
        for (arm, _), value in zip(pairs, self.measure(pairs), strict=True):
            self.values[arm].append(value)
        # Of equal means, the arm that was given first.
        return sorted(arms, key=lambda arm: (statistics.fmean(self.values[arm][:n_instances]), arm))

    def _arm_row(self, arm: int, best: int) -> ArmRow:
        """Return the mean difference of an arm to the best, with its interval."""
        return self._race(best).compare(arm, self.values[arm], self.values[best])


def interval_of(
    differences: Sequence[float], error_probability: float
) -> tuple[float, float] | tuple[None, None]:
    """Return Student's interval of the mean of paired *differences*; None for fewer than three."""
    if len(differences) < _MIN_PAIRS:
        return None, None
    return student_interval(differences, 1 - error_probability)


def _instances_by_round(n_instances: int, first_batch: int) -> list[int]:
    """Return the number of instances after each round, which doubles.

    >>> _instances_by_round(100, 8), _instances_by_round(5, 8)
    ([8, 16, 32, 64, 100], [5])
    """
    rounds = [min(first_batch, n_instances)]
    while rounds[-1] < n_instances:
        rounds.append(min(2 * rounds[-1], n_instances))
    return rounds
