"""Hints: edits of a page that make it faster, tried one by one and in pairs.

Each edit is loaded once; those that move a metric are loaded again with other seeds, next to the
page as it is, and so are pairs of the best. Every seed is one user: a network of the given ones,
its RTT and rate drawn. Intervals are of the mean logarithm of the ratio after / before (Student),
at 1 - level / n for n edits (Bonferroni), p-values are corrected after Holm (1979). The first load
of each edit only selects, and is not part of the evidence.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from h3sim._version import __version__
from h3sim.advice.applying import is_markup
from h3sim.advice.edits import EARLY_HINTS, Edit, edits_of, pair
from h3sim.advice.recommendation import subject_of
from h3sim.advice.search import (
    FIRST_RESULT,
    network_uncertainty,
    varied_network,
    with_drawn_network,
)
from h3sim.browser import BrowserMode
from h3sim.importers.crux import NetworkShare
from h3sim.load.options import LEVEL, NETWORK_NAMES
from h3sim.load.run import PageLike, SchemeLike, resolve, run_spec, scheme_or_pair
from h3sim.page.recording import ESTIMATED_WITHIN
from h3sim.schema.arguments import check_arguments
from h3sim.schema.output import TEXT, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, Integer, ListOf, Number, OrNone, ValueType
from h3sim.study.fidelity import FIDELITY, Fidelity, fidelity, gated
from h3sim.study.rows import COMMON, NETWORK_WITHIN, ResultTable
from h3sim.study.runner import LoadRunner, LoadTask, read_options, shows_loads
from h3sim.study.statistics.contrasts import holm
from h3sim.study.statistics.intervals import ratio_end, scipy_stats, student_interval
from h3sim.trace import Rows
from h3sim.transport import Network
from h3sim.values.errors import InputError, NothingToMeasureError
from h3sim.values.text import plural
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from h3sim import catalog
    from h3sim.engine import LoadSpec
    from h3sim.importers import ImportedPage
    from h3sim.load import Load
    from h3sim.load.load_config import LoadConfig
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study.study_keywords import StudyKeywords


METRICS = {
    "lcp": ("largest_paint_ms", "LCP"),
    "fcp": ("fcp_ms", "FCP"),
    "speed-index": ("speed_index_ms", "SpeedIndex"),
    "byte-index": ("byte_index_atf_ms", "ByteIndex above the fold"),
    "load": ("load_event_ms", "load event"),
}
"""The metrics by their names: attribute of a load, and title."""
UNKNOWN = (
    "the time that other hardware takes to parse, execute and paint (see cpu_slowdown)",
    "the cache of returning visitors (see `h3sim transform --cached`)",
    "layout shifts (CLS), and so width and height of images",
    "preload links for what leads to more requests, and Early Hints for it where the document does"
    " not name it: they are not tried",
    "whether the server can name files before it has made the document (Early Hints), and whether"
    " what is between it and its users passes 103 responses on",
    "whether a script may run later or in another order: test after defer or async",
    "whether text was sent compressed: sizes are those of the transfer",
    "how far these effects are from a browser's: too few hints were measured for intervals that are"
    " calibrated, so none is sure",
)
"""Facts that a page and a simulated load do not have."""
_MIN_SURE_CHANGE = 0.01
"""Smallest sure change of a metric, as a share of it, that counts as a gain or loss."""
_MAX_UNMENTIONED_CHANGE = 0.02
"""Largest change of a metric that its sentence does not mention."""
_MIN_LOG_CHANGE = 0.005
"""Smallest change of the first load, as a logarithm, that makes an edit a candidate."""
_MAX_HELPFUL, _MAX_HARMFUL = 12, 5
"""Most candidates that help, and that harm."""
_MAX_PAIRED = 4
"""Most edits that are tried in pairs."""
_THINK_TIMES_MS = (0, 50, 100, 200, 400, 800)
"""Server think times at which Early Hints are tried."""


class HintRow(NamedTuple):
    """Edit with its verdict, in the order of sure gains; *ratio* and its ends are of the metric.

    *harmed* names the clients of a mixture whose users the edit makes slower in the mean.
    """

    edit: str
    kind: str
    verdict: str
    sentence: str
    markup: str
    ratio: float
    low: float
    high: float
    harmed: str = ""


class ThinkTimeRow(NamedTuple):
    """Effect of an edit with Early Hints on a load whose document takes the server this long."""

    edit: str
    server_ms: float
    before_ms: float
    after_ms: float


class EffectRow(NamedTuple):
    """Effect of an edit on one metric: geometric means, and their ratio with its interval."""

    edit: str
    metric: str
    before_ms: float
    after_ms: float
    ratio: float
    low: float
    high: float
    p_holm: float


HELPS, TRADES, HARMS, NO_EFFECT = "helps", "helps and harms", "harms", "no clear effect"
HINTS = OutputSchema(
    "h3sim-hints/1",
    "Edits that make a page faster",
    *COMMON,
    Property("sentence", TEXT, "the best edit, as far as the replay fits", of="verdict"),
    Property("metric", Choice(METRICS), "the metric that ranks the edits"),
    Property("networks", ListOf(TEXT, "names"), "networks of the users, in turn"),
    NETWORK_WITHIN,
    Property("n_tried", Integer(low=0), "edits that were loaded once"),
    Property("n_seeds", Integer(low=0), "seeds of each edit that was compared"),
    Property("confidence", LEVEL, "joint level of all intervals of a metric"),
    Property("rows", rows_of(HintRow), "one per edit that was compared, best first"),
    Property("effects", rows_of(EffectRow), "one per edit and metric"),
    Property("think_times", rows_of(ThinkTimeRow), "the best Early Hints by server think time"),
    Property("fidelity", OrNone(FIDELITY, none=None), "how well its replay fits its recording"),
    Property("unknown", ListOf(TEXT, "sentences"), "what the model does not know"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Hints(ResultTable):
    """Result table of edits, best first, with their effects on all metrics."""

    format = HINTS
    displayed = ("rows", "effects")
    rows: Rows[HintRow]
    effects: Rows[EffectRow]
    think_times: Rows[ThinkTimeRow]
    page: Page
    metric: str
    networks: tuple[str, ...]
    network_within: float
    n_tried: int
    n_seeds: int
    confidence: float
    fidelity: Fidelity | None
    loads: tuple[Load, ...] = ()
    """Loads of one user before and after the best edit, if they were requested."""
    edits: tuple[Edit, ...] = ()
    """All edits that were tried, which `rows` and the parts of pairs name."""
    unknown: tuple[str, ...] = UNKNOWN

    @property
    def is_judged(self) -> bool:
        """True unless the replay of its recording supports no verdict."""
        return self.fidelity is None or self.fidelity.grade.supports_verdict

    @property
    def helpful(self) -> list[HintRow]:
        """Edits with a sure gain, best first."""
        return [row for row in self.rows if row.verdict == HELPS]

    @property
    def mixed(self) -> list[HintRow]:
        """Edits with a sure gain in one metric and a sure loss in another."""
        return [row for row in self.rows if row.verdict == TRADES]

    @property
    def harmful(self) -> list[HintRow]:
        """Edits with a sure loss and no gain, worst first."""
        return [row for row in self.rows if row.verdict == HARMS][::-1]

    @property
    def in_markup(self) -> list[list[Edit]]:
        """The hints that help and change only markup, best first: an edit, or two of a pair."""
        by_text = {each.text: each for each in self.edits}
        choices = []
        for row in self.helpful:
            texts = (row.edit,) if row.edit in by_text else tuple(row.edit.split(" and "))
            found = [by_text[text] for text in texts if text in by_text]
            if len(found) == len(texts) and all(map(is_markup, found)):
                choices.append(found)
        return choices

    @property
    def verdict(self) -> str:
        """The best edit, or that there is none, as far as the replay fits its recording."""
        best = next(iter(self.helpful), None)
        sentence = best.sentence if best else f"No edit of {self.page.name} helps in the model."
        return gated(sentence, [self.fidelity])

    def describe_think_times(self) -> str:
        """Describe from which server think time on Early Hints pay; empty if none were tried."""
        if not self.think_times:
            return ""
        page_ms = to_ms(self.page.resources[self.page.root].server_ns)
        edit = next(row.edit for row in self.think_times)
        _, title = METRICS[self.metric]
        changes = [(row.server_ms, row.after_ms / row.before_ms - 1) for row in self.think_times]
        gains = ", ".join(f"{100 * change:+.0f} % at {ms:g} ms" for ms, change in changes)
        first_ms = next((ms for ms, change in changes if change < -_MIN_SURE_CHANGE), None)
        times = "at none of these" if first_ms is None else f"from {first_ms:g} ms on"
        return (
            f"Early Hints pay {times}, by the server's think time for the document"
            f" ({page_ms:,.0f} ms on this page): {edit}: {title} {gains} (one load each)."
        )

    def describe(self) -> str:
        """Describe what was tried in words."""
        variation = varied_network(self.network_within)
        networks = ", ".join(filter(None, (*self.networks, variation)))
        return (
            f"{plural(self.n_tried, 'edit')} tried with one seed, {len(self.rows)} compared with"
            f" {plural(self.n_seeds, 'seed')} over {networks};"
            f" intervals at {100 * self.confidence:g} %, corrected for {len(self.rows)} edits;"
            f" {super().describe()}"
        )


_METRIC_TITLES = dict(METRICS.values())
"""Title of each metric by its attribute of a load, which names it below."""
_MetricValues = Mapping[str, Sequence[float]]
"""Values of each metric, one per load."""


def _measure_metrics(load: Load, _: str) -> dict[str, Any]:
    """Return the metrics of a load; the ByteIndex is None if it is not defined."""
    return {
        name: load.byte_index_or_none("atf") if name == "byte_index_atf_ms" else getattr(load, name)
        for name in _METRIC_TITLES
    }


class _Trial(NamedTuple):
    """Edit with the metrics of its loads."""

    edit: Edit
    values: _MetricValues
    """Values of each metric, by seed."""

    def log_ratios(self, before: _MetricValues, name: str) -> list[float]:
        """Return the logarithm of after / before for each seed."""
        pairs = zip(before[name], self.values[name], strict=True)
        return [math.log(after_ms / before_ms) for before_ms, after_ms in pairs]


def _metric_values(loads: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the values of each metric that all loads have."""
    columns = {name: [load[name] for load in loads] for name in _METRIC_TITLES}
    return {name: values for name, values in columns.items() if all(values)}


class _FirstChange(NamedTuple):
    """Change of the first load with an edit, as logarithms of after / before."""

    edit: Edit
    of_ranking: float
    """Change of the metric that ranks the edits."""
    least: float
    """Lowest change of any metric."""
    greatest: float
    """Highest change of any metric."""


def _first_changes(
    trials: Sequence[_Trial], before: _MetricValues, ranking: str
) -> Iterator[_FirstChange]:
    """Yield the change by each edit whose load has the metric *ranking*."""
    for trial in trials:
        if ranking in trial.values:
            changes = {}
            for name in before:
                if name in trial.values:
                    (changes[name],) = trial.log_ratios(before, name)
            lowest, highest = min(changes.values()), max(changes.values())
            yield _FirstChange(trial.edit, changes[ranking], lowest, highest)


def _candidates(trials: Sequence[_Trial], before: _MetricValues, ranking: str) -> list[Edit]:
    """Return the edits to compare: the most helpful, the most harmful, and pairs of the best."""
    changes = list(_first_changes(trials, before, ranking))
    helpful = [change for change in changes if change.least < -_MIN_LOG_CHANGE]
    helpful.sort(key=lambda change: (change.of_ranking, change.least))
    chosen = [change.edit for change in helpful[:_MAX_HELPFUL]]
    harmful = [
        change
        for change in changes
        if change.greatest > _MIN_LOG_CHANGE and change.edit not in chosen
    ]
    harmful.sort(key=lambda change: (-change.of_ranking, -change.greatest))
    best = [change.edit for change in helpful if change.of_ranking < -_MIN_LOG_CHANGE]
    pairs = (pair(one, other) for one, other in itertools.combinations(best[:_MAX_PAIRED], 2))
    return [
        *chosen,
        *(change.edit for change in harmful[:_MAX_HARMFUL]),
        *(edit for edit in pairs if edit is not None),
    ]


def _p_value(logs: Sequence[float]) -> float:
    """Return the two-sided p of Student's test that the mean of the logarithms is 0."""
    distinct = set(logs)
    if len(distinct) == 1:
        return float(distinct == {0})
    stats = scipy_stats()
    standard_error = statistics.stdev(logs) / math.sqrt(len(logs))
    t = abs(statistics.fmean(logs)) / standard_error
    return float(2 * stats.t.sf(t, len(logs) - 1))


def _effects(trials: Sequence[_Trial], before: _MetricValues, alpha: float) -> Iterator[EffectRow]:
    """Yield the effect of each edit on each metric.

    The probability that any interval of a metric misses is at most *alpha*.
    """
    for name, title in _METRIC_TITLES.items():
        with_metric = [trial for trial in trials if name in before and name in trial.values]
        p_values = holm([_p_value(trial.log_ratios(before, name)) for trial in with_metric])
        for trial, p in zip(with_metric, p_values, strict=True):
            logs = trial.log_ratios(before, name)
            low, high = map(ratio_end, student_interval(logs, 1 - alpha / len(trials)))
            before_ms = statistics.geometric_mean(before[name])
            after_ms = statistics.geometric_mean(trial.values[name])
            yield EffectRow(
                trial.edit.text, title, before_ms, after_ms, after_ms / before_ms, low, high, p
            )


def _hint_row(edit: Edit, effects: Sequence[EffectRow], ranking_title: str) -> HintRow:
    """Return the verdict about an edit from its effects.

    An edit that makes some metrics earlier and others later helps only if the gain in the ranking
    metric is larger than every loss.
    """
    ordered = sorted(effects, key=lambda row: (row.metric != ranking_title, row.ratio))
    ranking, *_ = ordered
    gains = [row for row in ordered if row.high < 1 - _MIN_SURE_CHANGE]
    losses = [row for row in ordered if row.low > 1 + _MIN_SURE_CHANGE]
    largest_loss = max((row.low - 1 for row in losses), default=0.0)
    if not gains:
        verdict = HARMS if losses else NO_EFFECT
    else:
        is_worth_it = not losses or (ranking in gains and 1 - ranking.high > largest_loss)
        verdict = HELPS if is_worth_it else TRADES
    return HintRow(
        edit=edit.text,
        kind=edit.kind,
        verdict=verdict,
        sentence=_describe_effects(edit.text, ordered, [*gains, *losses]),
        markup=edit.markup,
        ratio=ranking.ratio,
        low=ranking.low,
        high=ranking.high,
    )


def _describe_effects(text: str, effects: Sequence[EffectRow], sure: Sequence[EffectRow]) -> str:
    """Return the sentence about an edit: its *sure* effects, and those that are unclear."""
    parts = [f"{row.metric} {_describe_change(row)}" for row in effects if row in sure]
    others = [row for row in effects if row not in sure]
    unclear = [row for row in others if max(1 - row.low, row.high - 1) > _MAX_UNMENTIONED_CHANGE]
    parts += [
        f"{row.metric} unclear ({100 * (row.low - 1):+.0f} to {100 * (row.high - 1):+.0f} %)"
        for row in unclear
    ]
    if len(others) > len(unclear):
        clause = "nothing else changes" if parts else "nothing changes"
        parts.append(f"{clause} by more than {100 * _MAX_UNMENTIONED_CHANGE:.0f} %")
    return f"{text}: {'; '.join(parts)}"


def _describe_change(row: EffectRow) -> str:
    """Describe a sure change.

    >>> _describe_change(EffectRow("x", "LCP", 1230.0, 870.0, 0.707, 0.67, 0.72, 0.0))
    '1,230 -> 870 ms, 28 to 33 % sooner'
    """
    ends = sorted(100 * abs(1 - ratio) for ratio in (row.low, row.high))
    low, high = (f"{end:.0f}" for end in ends)
    span = high if low == high else f"{low} to {high}"
    direction = "sooner" if row.high < 1 else "later"
    return f"{row.before_ms:,.0f} -> {row.after_ms:,.0f} ms, {span} % {direction}"


def _without_useless_pairs(
    trials: Sequence[_Trial], before: _MetricValues, ranking: str
) -> Iterator[_Trial]:
    """Yield the trials except pairs that gain no more than one of their edits alone."""
    mean_logs = {
        trial.edit.text: statistics.fmean(trial.log_ratios(before, ranking))
        for trial in trials
        if ranking in trial.values
    }
    for trial in trials:
        alone = [mean_logs[text] for text in trial.edit.parts if text in mean_logs]
        if not alone or mean_logs.get(trial.edit.text, 0.0) < min(alone) - _MIN_SURE_CHANGE:
            yield trial


def _run_first_trials(
    runner: LoadRunner, task: LoadTask, edits: Sequence[Edit]
) -> tuple[dict[str, Any], list[_Trial]]:
    """Return the load of *task* without an edit, and a trial of each edit with one load."""
    first_load, *edited_loads = runner.run([task, *(edit.change(task) for edit in edits)])
    trials = [
        _Trial(edit, _metric_values([load])) for edit, load in zip(edits, edited_loads, strict=True)
    ]
    return first_load, trials


def _run_trials(
    runner: LoadRunner, users: Sequence[LoadTask], edits: Sequence[Edit]
) -> tuple[_MetricValues, list[_Trial]]:
    """Return the metrics of all *users* without an edit, and a trial of each edit by all users."""
    edited = (_with_edit(users, edit) for edit in edits)
    loads = runner.run(list(itertools.chain(users, *edited)))
    unedited, *values = (
        _metric_values(loads[start : start + len(users)])
        for start in range(0, len(loads), len(users))
    )
    return unedited, [_Trial(edit, each) for edit, each in zip(edits, values, strict=True)]


def _with_edit(users: Sequence[LoadTask], edit: Edit) -> Iterator[LoadTask]:
    """Yield the loads of the users with an edit; their page is edited once per client."""
    changes: dict[str, dict[str, Any]] = {}
    for user in users:
        name = user.spec.scheme.name
        if name not in changes:
            edited = edit.change(user)
            changes[name] = {
                entry.name: value
                for entry in fields(user.spec)
                if (value := getattr(edited.spec, entry.name)) is not getattr(user.spec, entry.name)
            }
        yield user._replace(spec=replace(user.spec, **changes[name]))


def _user_task(specs: Sequence[LoadSpec], within: float, n: int) -> LoadTask:
    """Return the load of user *n*: the spec of that user, its RTT and rate drawn by the seed.

    User 0, whose loads are not compared, has the network of user 1 as it is, without a draw.
    """
    spec = specs[max(0, n - 1)]
    spec = replace(spec, seed=spec.seed + n)
    is_drawn = n > 0 and within > 1
    return LoadTask(with_drawn_network(spec, within) if is_drawn else spec)


def _network_configs(
    page: Page, config: LoadConfig, networks: Sequence[str | Network]
) -> list[LoadConfig]:
    """Return the configuration over each network; the browser parses, over the page's protocol."""
    config = replace(config, browser=replace(config.browser_model, mode=BrowserMode.PARSE))
    if config.transport is None and config.transport_profile is None:
        config = replace(config, transport=_recorded_transport(page))
    return [replace(config, network=network) for network in networks] or [config]


def _user_networks(
    networks: Sequence[str] | Sequence[NetworkShare], n_seeds: int
) -> list[str | Network]:
    """Return the networks of the users: names as given, and shares as near as *n_seeds* allow.

    >>> from h3sim.transport import Network
    >>> from h3sim.transport.network import ConstantRate
    >>> rate = ConstantRate.at_rate(packet_bytes=1400, rate_bps=10**6)
    >>> a, b = (Network(name=name, constant_rate=rate) for name in "ab")
    >>> [each.name for each in _user_networks([NetworkShare(a, 0.3), NetworkShare(b, 0.7)], 4)]
    ['b', 'a', 'b', 'b']
    """
    shares = [each for each in networks if isinstance(each, NetworkShare)]
    if not shares:
        return [each for each in networks if isinstance(each, str)]
    return [shares[n].network for n in _by_shares([each.share for each in shares], n_seeds)]


def _by_shares(shares: Sequence[float], n_users: int) -> list[int]:
    """Return the index of a share for each user, as near to the shares as so many allow.

    >>> _by_shares([0.65, 0.25, 0.1], 8)
    [0, 1, 0, 0, 2, 0, 1, 0]
    """
    counts = [0] * len(shares)
    of_users = []
    for n in range(1, n_users + 1):
        # The one that is furthest behind its share is next; of equals, the first.
        behind = [share * n - count for share, count in zip(shares, counts, strict=True)]
        of_users.append(behind.index(max(behind)))
        counts[of_users[-1]] += 1
    return of_users


_ARGUMENT_TYPES: Mapping[str, ValueType] = {
    "metric": Choice(METRICS),
    "n_seeds": Integer(low=3, high=10_000),
    "confidence": LEVEL,
    "network_within": OrNone(Number(low=1, high=100)),
    "first_result": FIRST_RESULT,
}


def _check(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments as checked by their types."""
    typed = {key: (_ARGUMENT_TYPES[key], value) for key, value in arguments.items()}
    return check_arguments(InputError, **typed)


@shows_loads
def hints(
    page: PageLike | ImportedPage,
    *,
    scheme: SchemeLike | None = None,
    client: catalog.HalfLike | None = None,
    server: catalog.HalfLike | None = None,
    clients: Mapping[str, float] | None = None,
    metric: str = "lcp",
    networks: Sequence[str] | Sequence[NetworkShare] = (),
    network_within: float | None = None,
    n_seeds: int = 8,
    confidence: float = 0.95,
    edits: Sequence[Edit] | None = None,
    keep_loads: bool = False,
    first_result: Callable[[str], None] | None = None,
    config: LoadConfig | None = None,
    **options: Unpack[StudyKeywords],
) -> Hints:
    """Return the edits of *page*, a page or a recording, that help, and those that harm.

    The *scheme* is "chrome-eps", or a *client* before a *server*, or *clients* by their shares: an
    edit is then judged by all users, and names the clients that it harms. The browser computes each
    load (`browser="parse"`). Each seed is a user. Users have *networks* in turn (default: that of
    *config*, or of the recording), or by the shares of `read_crux`, with RTT and rate multiplied by
    1 / *network_within* to *network_within* (default: 2, or as far as estimates are apart). Edits,
    by default `edits_of`, are ranked by the sure gain in *metric*, or in FCP if the page lacks it.
    After a load of each, *first_result* is called with a sentence about the best.

    Raises:
        InputError: listing every error in the arguments.
        NothingToMeasureError: if the page paints nothing.

    >>> hints("davies-meenan", network="cable", n_seeds=3, network_within=1).rows[0].verdict
    'helps'
    """
    if config is None:
        options = {"browser": BrowserMode.PARSE.value, **options}
    given = {"metric": metric, "n_seeds": n_seeds, "confidence": confidence}
    checked = _check(given | {"network_within": network_within, "first_result": first_result})
    check_networks(networks)
    execution, base_config = read_options(hints, options, config)
    subject, _ = subject_of(page)
    shares = _client_shares(clients, scheme, client)
    schemes = _schemes_of(shares, scheme, client, server)
    configs = _network_configs(subject, base_config, _user_networks(networks, n_seeds))
    within = _network_within(checked["network_within"], subject, configs)
    (first_task, *users), names = _user_tasks(subject, shares, schemes, configs, within, n_seeds)
    tried = edits_of(first_task, schemes) if edits is None else list(edits)
    with LoadRunner(execution, _measure_metrics) as runner:
        runner.expect(1 + len(tried) + (1 + _MAX_HELPFUL) * n_seeds)
        first_load, first_trials = _run_first_trials(runner, first_task, tried)
        before = _metric_values([first_load])
        ranking = _ranking_metric(before, metric)
        if first_result is not None:
            first_result(_describe_first(first_trials, before, ranking))
        candidates = _candidates(first_trials, before, ranking)
        unedited, trials = _run_trials(runner, users, candidates)
        best = _best_early_hints(first_trials, ranking)
        think_times = _try_think_times(runner, first_task, best, ranking)
    rows, effects = _judge(trials, unedited, ranking, 1 - confidence)
    rows = [_with_harmed(row, trials, unedited, ranking, names) for row in rows]
    return Hints(
        rows=Rows(HintRow, rows),
        effects=Rows(EffectRow, effects),
        think_times=Rows(ThinkTimeRow, think_times),
        page=subject,
        metric=next(key for key, (name, _) in METRICS.items() if name == ranking),
        networks=_network_titles(networks) or (first_task.spec.network.name,),
        network_within=within,
        n_tried=len(tried),
        n_seeds=n_seeds,
        confidence=confidence,
        fidelity=fidelity(subject, first_task.spec.browser),
        loads=_example_loads(first_task, rows, candidates) if keep_loads else (),
        edits=tuple(tried),
        version=__version__,
        configuration=first_load["configuration"],
        words=first_load["words"],
        page_digests={subject.name: subject.digest},
    )


def _schemes_of(
    clients: Collection[str | None],
    scheme: SchemeLike | None,
    client: catalog.HalfLike | None,
    server: catalog.HalfLike | None,
) -> list[Scheme]:
    """Return the scheme of each of the *clients*, or of the *client* where None stands for it."""
    pair = partial(scheme_or_pair, scheme, server=server, default="chrome-eps")
    return [pair(name or client) for name in clients]


def _network_within(given: float | None, page: Page, configs: Sequence[LoadConfig]) -> float:
    """Return the factor by which networks of users differ, by default as far as it is unknown."""
    if given is not None:
        return float(given)
    return max(ESTIMATED_WITHIN, *(network_uncertainty([page], config) for config in configs))


def _network_titles(networks: Sequence[str] | Sequence[NetworkShare]) -> tuple[str, ...]:
    return tuple(each if isinstance(each, str) else each.title for each in networks)


def check_networks(networks: Sequence[str | Network | NetworkShare]) -> None:
    """Refuse networks that are neither names, objects nor shares."""
    names: Any = networks
    if isinstance(networks, list | tuple):
        names = [each for each in networks if not isinstance(each, Network | NetworkShare)]
    check_arguments(InputError, networks=(NETWORK_NAMES, names))


def _best_early_hints(trials: Sequence[_Trial], ranking: str) -> Edit | None:
    """Return the edit with Early Hints that helps most in one load."""
    with_hints = [t for t in trials if t.edit.kind == EARLY_HINTS and ranking in t.values]
    best = min(with_hints, key=lambda trial: min(trial.values[ranking]), default=None)
    return None if best is None else best.edit


def _try_think_times(
    runner: LoadRunner, task: LoadTask, edit: Edit | None, ranking: str
) -> list[ThinkTimeRow]:
    """Return the effect of *edit*, if any, by the server's think time for the document."""
    if edit is None:
        return []
    page = task.spec.page
    document = page.resources[page.root].id
    tasks = []
    for server_ms in _THINK_TIMES_MS:
        slower = page.with_(document, server_ms=server_ms)
        before = task._replace(spec=replace(task.spec, page=slower))
        tasks += [before, edit.change(before)]
    times_ms = [load[ranking] for load in runner.run(tasks)]
    pairs = zip(_THINK_TIMES_MS, times_ms[::2], times_ms[1::2], strict=True)
    return [
        ThinkTimeRow(edit.text, float(server_ms), before_ms, after_ms)
        for server_ms, before_ms, after_ms in pairs
        if before_ms and after_ms
    ]


def _judge(
    trials: Sequence[_Trial], before: _MetricValues, ranking: str, alpha: float
) -> tuple[list[HintRow], list[EffectRow]]:
    """Return the verdicts, best first, and the effects that they rest on."""
    effects = list(_effects(trials, before, alpha))
    rows = [
        _hint_row(
            trial.edit,
            [row for row in effects if row.edit == trial.edit.text],
            _METRIC_TITLES[ranking],
        )
        for trial in _without_useless_pairs(trials, before, ranking)
    ]
    rows.sort(key=lambda row: (_VERDICT_ORDER[row.verdict], row.high))
    texts = {row.edit for row in rows}
    return rows, [row for row in effects if row.edit in texts]


def _with_harmed(
    row: HintRow,
    trials: Sequence[_Trial],
    before: _MetricValues,
    ranking: str,
    client_of_user: Sequence[str | None],
) -> HintRow:
    """Return *row* with the clients that the edit harms; the verdict is mixed if it helps."""
    (trial,) = (each for each in trials if each.edit.text == row.edit)
    by_client: dict[str, list[float]] = {}
    for name, log_ratio in zip(client_of_user, trial.log_ratios(before, ranking), strict=True):
        if name is not None:
            by_client.setdefault(name, []).append(log_ratio)
    means = {name: statistics.fmean(logs) for name, logs in by_client.items()}
    harmed = {name: mean for name, mean in means.items() if mean > _MIN_SURE_CHANGE}
    if not harmed:
        return row
    listed = ", ".join(f"{name} {100 * math.expm1(mean):+.0f} %" for name, mean in harmed.items())
    title = _METRIC_TITLES[ranking]
    verdict = TRADES if row.verdict == HELPS else row.verdict
    sentence = f"{row.sentence}; harms {title} of {listed}"
    return row._replace(harmed=", ".join(harmed), verdict=verdict, sentence=sentence)


def _client_shares(
    clients: Mapping[str, float] | None, scheme: object, client: object
) -> dict[str | None, float]:
    """Return the shares of clients, of 1 in all; None is the only one of a scheme.

    >>> _client_shares({"chrome": 65, "safari": 35}, None, None)
    {'chrome': 0.65, 'safari': 0.35}
    """
    if clients is None:
        return {None: 1.0}
    if scheme is not None or client is not None:
        raise InputError.at("clients", "does not go with scheme= or client=")
    if not clients or not all(share > 0 for share in clients.values()):
        raise InputError.at("clients", "must be clients with positive shares")
    total = math.fsum(clients.values())
    return {name: share / total for name, share in clients.items()}


def _user_tasks(
    page: Page,
    shares: Mapping[str | None, float],
    schemes: Sequence[Scheme],
    configs: Sequence[LoadConfig],
    within: float,
    n_seeds: int,
) -> tuple[list[LoadTask], list[str | None]]:
    """Return the loads of user 0 and of the others, and the clients of the latter.

    The users of a client have the networks in turn.
    """
    resolved = cache(partial(resolve, page))  # several users share a network
    indices = _by_shares([*shares.values()], n_seeds)
    specs = [
        resolved(schemes[index], configs[indices[:n].count(index) % len(configs)])
        for n, index in enumerate(indices)
    ]
    tasks = [_user_task(specs, within, n) for n in range(1 + n_seeds)]
    return tasks, [[*shares][index] for index in indices]


_VERDICT_ORDER = {HELPS: 0, TRADES: 1, NO_EFFECT: 2, HARMS: 3}


def _recorded_transport(page: Page) -> str | None:
    """Return the transport of a recording over HTTP/2; None is the default, for all others."""
    protocol = "" if page.recorded_load is None else page.recorded_load.protocol
    return "tcp" if protocol.startswith(("h2", "http/2", "spdy")) else None


def _ranking_metric(before: _MetricValues, metric: str) -> str:
    """Return the requested metric, or that of the first paint if the page does not have it."""
    requested, _ = METRICS[metric]
    for name in (requested, "fcp_ms", "load_event_ms"):
        if name in before:
            return name
    raise NothingToMeasureError("the page has no paint and no load event")


def _describe_first(trials: Sequence[_Trial], before: _MetricValues, ranking: str) -> str:
    """Return the sentence about the best edit after one load of each."""
    changes = [
        (change.of_ranking, change.edit.text) for change in _first_changes(trials, before, ranking)
    ]
    log_ratio, text = min(changes, default=(0.0, "no edit"))
    percent = 100 * math.expm1(log_ratio)
    return f"after one load of each edit: {text}: {_METRIC_TITLES[ranking]} {percent:+.0f} %"


def _example_loads(
    task: LoadTask, rows: Sequence[HintRow], edits: Sequence[Edit]
) -> tuple[Load, ...]:
    """Return the load before and after the best edit, which is that of the first row, if any."""
    tasks = [task]
    if rows:
        best_text = next(iter(rows)).edit
        tasks.append(next(edit for edit in edits if edit.text == best_text).change(task))
    return tuple(run_spec(each.spec) for each in tasks)
