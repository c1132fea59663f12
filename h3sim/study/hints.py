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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.browser import BrowserMode
from h3sim.config.load_config import LoadConfig, config_for, over_networks
from h3sim.config.options import LEVEL
from h3sim.errors import InputError, NothingToMeasureError
from h3sim.importers.crux import NetworkShare
from h3sim.schema.arguments import ErrorCollector, check_arguments
from h3sim.schema.output import TEXT, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, Integer, ListOf, Number, OrNone, ValueType
from h3sim.study.edits import EARLY_HINTS, Edit, edits_of, pair
from h3sim.study.fidelity import FIDELITY, Fidelity, fidelity, gated
from h3sim.study.recommendation import subject_of
from h3sim.study.rows import COMMON, ResultTable
from h3sim.study.run import PageLike, SchemeLike, resolve_scheme, run_config
from h3sim.study.runner import LoadRunner, LoadTask, read_options, with_loads
from h3sim.study.search import ESTIMATED_WITHIN, FIRST_RESULT, varied_network, with_drawn_network
from h3sim.study.statistics import holm, ratio_end, scipy_stats, student_interval
from h3sim.text import plural
from h3sim.trace import Rows
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.importers import ImportedPage
    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.transport import Network


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
    "the first paint that Chromium holds back for a preloaded font",
    "preload links for what leads to more requests, and Early Hints for it where the document does"
    " not name it: they are not tried",
    "whether the server can name files before it has made the document (Early Hints), and whether"
    " what is between it and its users passes 103 responses on",
    "whether a script may run later or in another order: test after defer or async",
    "whether text was sent compressed: sizes are those of the transfer",
)
"""Facts that a page and a simulated load do not have."""
_LEAST = 0.01
"""Smallest sure change that matters."""
_LITTLE = 0.02
"""Largest change of a metric that goes without mention."""
_MOVES = 0.005
"""Smallest change of the first load that makes an edit a candidate."""
_MOST_HELPFUL, _MOST_HARMFUL, _IN_PAIRS = 12, 5, 4
_THINK_TIMES_MS = (0, 50, 100, 200, 400, 800)
"""Server think times at which Early Hints are tried."""


class HintRow(NamedTuple):
    """Edit with its verdict, in the order of sure gains; *ratio* and its ends are of the metric."""

    edit: str
    kind: str
    verdict: str
    sentence: str
    markup: str
    ratio: float
    low: float
    high: float


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


HELPS, TRADES, HARMS, NO_EFFECT = "helps", "helps and harms", "harms", "no sure effect"
HINTS = OutputSchema(
    "h3sim-hints/1",
    "Edits that make a page faster",
    *COMMON,
    Property("sentence", TEXT, "the best edit, as far as the replay fits", of="verdict"),
    Property("metric", Choice(METRICS), "the metric that ranks the edits"),
    Property("networks", ListOf(TEXT, "names"), "networks of the users, in turn"),
    Property("network_within", Number(low=1), "by which factor RTT and rate vary"),
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
    unknown: tuple[str, ...] = UNKNOWN

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
    def verdict(self) -> str:
        """The best edit, or that there is none, as far as the replay fits its recording."""
        best = self.helpful[:1]
        found = best[0].sentence if best else f"No edit of {self.page.name} helps for sure."
        return gated(found, [self.fidelity])

    def describe_think_times(self) -> str:
        """Describe from which server think time on Early Hints pay; empty if none were tried."""
        if not self.think_times:
            return ""
        own_ms = self.page.resources[self.page.root].server_ns
        changes = [(row.server_ms, row.after_ms / row.before_ms - 1) for row in self.think_times]
        gains = ", ".join(f"{100 * change:+.0f} % at {ms:g} ms" for ms, change in changes)
        worth = next((ms for ms, change in changes if change < -_LEAST), None)
        pays = "at none of these" if worth is None else f"from {worth:g} ms on"
        return (
            f"Early Hints pay {pays}, by the server's think time for the document"
            f" ({to_ms(own_ms):,.0f} ms on this page): {self.think_times[0].edit}:"
            f" {METRICS[self.metric][1]} {gains} (one load each)."
        )

    def describe(self) -> str:
        """Describe what was tried in words."""
        varied = varied_network(self.network_within)
        varied = varied and f", {varied}"
        tried = f"{plural(self.n_tried, 'edit')} tried with one seed, {len(self.rows)} compared"
        return (
            f"{tried} with {plural(self.n_seeds, 'seed')} over {', '.join(self.networks)}{varied};"
            f" intervals at {100 * self.confidence:g} %, corrected for {len(self.rows)} edits;"
            f" {super().describe()}"
        )


def _measured(load: Load, _: str) -> dict[str, Any]:
    """Return the metrics of a load."""
    found = {name: getattr(load, name) for name, _ in METRICS.values() if name != _BYTES}
    return {**found, _BYTES: load.byte_index_or_none("atf")}


_BYTES = "byte_index_atf_ms"
_Values = Mapping[str, Sequence[float]]


class _Trial(NamedTuple):
    """Edit with the metrics of its loads, by seed."""

    edit: Edit
    values: _Values

    def logs(self, before: _Values, name: str) -> list[float]:
        return [math.log(b / a) for a, b in zip(before[name], self.values[name], strict=True)]


def _columns(loads: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the values of each metric that all loads have."""
    names = [name for name, _ in METRICS.values()]
    found = {name: [load[name] for load in loads] for name in names}
    return {name: values for name, values in found.items() if all(values)}


def _candidates(trials: Sequence[_Trial], before: _Values, first: str) -> list[Edit]:
    """Return the edits whose first load differs: the most helpful, and some that harm."""

    def moves(trial: _Trial) -> dict[str, float]:
        return {name: trial.logs(before, name)[0] for name in before if name in trial.values}

    found = [(t.edit, move) for t in trials if first in (move := moves(t))]
    helpful = [item for item in found if min(item[1].values()) < -_MOVES]
    helpful.sort(key=lambda item: (item[1][first], min(item[1].values())))
    chosen = [edit for edit, _ in helpful[:_MOST_HELPFUL]]
    harmful = [item for item in found if max(item[1].values()) > _MOVES and item[0] not in chosen]
    harmful.sort(key=lambda item: (-item[1][first], -max(item[1].values())))
    pairs = itertools.combinations(
        [edit for edit, move in helpful if move[first] < -_MOVES][:_IN_PAIRS], 2
    )
    made = (pair(one, other) for one, other in pairs)
    return chosen + [edit for edit, _ in harmful[:_MOST_HARMFUL]] + [each for each in made if each]


def _p_value(logs: Sequence[float]) -> float:
    """Return the two-sided p of Student's test that the mean is 0."""
    if len(set(logs)) == 1:
        return float(logs[0] == 0)
    stats = scipy_stats()
    spread = statistics.stdev(logs) / math.sqrt(len(logs))
    return float(2 * stats.t.sf(abs(statistics.fmean(logs)) / spread, len(logs) - 1))


def _effects(trials: Sequence[_Trial], before: _Values, level: float) -> Iterator[EffectRow]:
    for name, title in METRICS.values():
        of_metric = [trial for trial in trials if name in before and name in trial.values]
        p_values = holm([_p_value(trial.logs(before, name)) for trial in of_metric])
        for trial, p in zip(of_metric, p_values, strict=True):
            logs = trial.logs(before, name)
            low, high = map(ratio_end, student_interval(logs, 1 - level / len(trials)))
            base = statistics.geometric_mean(before[name])
            after = statistics.geometric_mean(trial.values[name])
            yield EffectRow(trial.edit.text, title, base, after, after / base, low, high, p)


def _row(edit: Edit, effects: Sequence[EffectRow], metric: str) -> HintRow:
    """Return the verdict about an edit from its effects."""
    ordered = sorted(effects, key=lambda row: (row.metric != metric, row.ratio))
    first = ordered[0]
    gains = [row for row in ordered if row.high < 1 - _LEAST]
    losses = [row for row in ordered if row.low > 1 + _LEAST]
    worst = max((row.low - 1 for row in losses), default=0.0)
    verdict = HARMS if losses else NO_EFFECT
    if gains:
        is_worth_it = not losses or (first in gains and 1 - first.high > worst)
        verdict = HELPS if is_worth_it else TRADES
    sentence = _sentence(edit.text, ordered, [*gains, *losses])
    return HintRow(
        edit.text, edit.kind, verdict, sentence, edit.markup, first.ratio, first.low, first.high
    )


def _sentence(text: str, effects: Sequence[EffectRow], sure: Sequence[EffectRow]) -> str:
    parts = [f"{row.metric} {_change(row)}" for row in effects if row in sure]
    others = [row for row in effects if row not in sure]
    unclear = [row for row in others if max(1 - row.low, row.high - 1) > _LITTLE]
    parts += [
        f"{row.metric} unclear ({100 * (row.low - 1):+.0f} to {100 * (row.high - 1):+.0f} %)"
        for row in unclear
    ]
    if len(others) > len(unclear):
        what = "nothing else changes" if parts else "nothing changes"
        parts.append(f"{what} by more than {_LITTLE:.0%}".replace("%", " %"))
    return f"{text}: {'; '.join(parts)}"


def _change(row: EffectRow) -> str:
    """Describe a sure change.

    >>> _change(EffectRow("x", "LCP", 1230.0, 870.0, 0.707, 0.67, 0.72, 0.0))
    '1,230 -> 870 ms, 28 to 33 % sooner'
    """
    ends = sorted(100 * abs(1 - ratio) for ratio in (row.low, row.high))
    low, high = (f"{end:.0f}" for end in ends)
    span = high if low == high else f"{low} to {high}"
    how = "sooner" if row.high < 1 else "later"
    return f"{row.before_ms:,.0f} -> {row.after_ms:,.0f} ms, {span} % {how}"


def _better_than_parts(trials: Sequence[_Trial], before: _Values, name: str) -> Iterator[_Trial]:
    """Yield the trials without the pairs that gain no more than one of their edits alone."""
    means = {
        t.edit.text: statistics.fmean(t.logs(before, name)) for t in trials if name in t.values
    }
    for trial in trials:
        parts = [means[text] for text in trial.edit.parts if text in means]
        if not parts or means.get(trial.edit.text, 0.0) < min(parts) - _LEAST:
            yield trial


def _compare(
    runner: LoadRunner, starts: Sequence[LoadTask], edits: Sequence[Edit]
) -> list[_Values]:
    """Return the metrics of *starts* as they are, and then with each of *edits*."""
    changed = (_changed(starts, edit.change) for edit in edits)
    loads = runner.run(list(itertools.chain(starts, *changed)))
    return [_columns(loads[n : n + len(starts)]) for n in range(0, len(loads), len(starts))]


def _changed(
    starts: Sequence[LoadTask], change: Callable[[LoadTask], LoadTask]
) -> Iterator[LoadTask]:
    """Return the tasks with an edit; all users have one page, which is edited once."""
    first = change(starts[0])
    if first.config is starts[0].config:
        return (task._replace(page=first.page, scheme=first.scheme) for task in starts)
    return map(change, starts)


def _user(start: LoadTask, configs: Sequence[LoadConfig], within: float, n: int) -> LoadTask:
    """Return the load of user *n*: one of *configs* in turn, its RTT and rate drawn by the seed.

    The first config comes twice, as user 0 has it as it is.
    """
    config = configs[max(0, n - 1) % len(configs)]
    config = config_for(start.page, replace(config, seed=config.seed + n))
    is_drawn = n > 0 and within > 1
    return start._replace(config=with_drawn_network(config, within) if is_drawn else config)


def _configs(page: Page, config: LoadConfig, networks: Sequence[str | Network]) -> list[LoadConfig]:
    """Return the configuration over each network, with the browser and the page's protocol."""
    config = replace(config, browser=replace(config.browser_model, mode=BrowserMode.PARSE))
    if config.transport is None and config.transport_profile is None:
        config = replace(config, transport=_recorded_protocol(page))
    return [replace(config, network=each) for each in networks] or [config]


def _in_turn(networks: Sequence[str] | Sequence[NetworkShare], n_seeds: int) -> list[str | Network]:
    """Return the networks of the users: names in turn, shares as near as *n_seeds* allow.

    >>> from h3sim.transport import Network
    >>> from h3sim.transport.network import ConstantRate
    >>> rate = ConstantRate.at_rate(packet_bytes=1400, rate_bps=10**6)
    >>> a, b = (Network(name=name, constant_rate=rate) for name in "ab")
    >>> [each.name for each in _in_turn([NetworkShare(a, 0.3), NetworkShare(b, 0.7)], 4)]
    ['b', 'a', 'b', 'b']
    """
    shares = [each for each in networks if isinstance(each, NetworkShare)]
    found: list[str | Network] = [each for each in networks if isinstance(each, str)]
    counts = [0] * len(shares)
    for n_users in range(1, n_seeds + 1 if shares else 1):
        # The one that is furthest behind its share comes next, of equals the first.
        behind = [each.share * n_users - n for each, n in zip(shares, counts, strict=True)]
        index = behind.index(max(behind))
        counts[index] += 1
        found.append(shares[index].network)
    return found


_KINDS: Mapping[str, ValueType] = {
    "metric": Choice(METRICS),
    "n_seeds": Integer(low=3, high=10_000),
    "confidence": LEVEL,
    "network_within": Number(low=1, high=100),
    "first_result": FIRST_RESULT,
}


def _checked(given: Mapping[str, object]) -> dict[str, Any]:
    return check_arguments(InputError, **{key: (_KINDS[key], given[key]) for key in given})


@with_loads
def hints(
    page: PageLike | ImportedPage,
    *,
    scheme: SchemeLike = "chrome-eps",
    metric: str = "lcp",
    networks: Sequence[str] | Sequence[NetworkShare] = (),
    network_within: float = ESTIMATED_WITHIN,
    n_seeds: int = 8,
    confidence: float = 0.95,
    edits: Sequence[Edit] | None = None,
    keep_loads: bool = False,
    first_result: Callable[[str], None] | None = None,
    config: LoadConfig | None = None,
    **options: Any,
) -> Hints:
    """Return the edits of *page*, a page or a recording, that help, and those that harm.

    The browser computes each load (`browser="parse"`). Seeds are users: they have *networks* in
    turn (a name given twice counts twice; default: that of *config*, or of the recording), or by
    the shares of `read_crux`, with RTT and rate multiplied by 1 / *network_within* to
    *network_within*. Edits, by default those of `edits_of`, are ranked by the sure gain in
    *metric*, one of `METRICS`, or FCP where the page has no such metric. *first_result* is called
    with a sentence about the best edit after one load of each.

    Raises:
        InputError: listing every error in the arguments.
        NothingToMeasureError: if the page paints nothing.

    >>> found = hints("davies-meenan", network="cable", n_seeds=3, network_within=1)
    >>> found.rows[0].verdict
    'helps'
    """
    if config is None:
        options = {"browser": BrowserMode.PARSE.value, **options}
    given: dict[str, object] = {"metric": metric, "n_seeds": n_seeds, "confidence": confidence}
    given |= {"network_within": network_within, "first_result": first_result}
    with ErrorCollector() as errors:
        subject = errors.collect("page", lambda: subject_of(page), default=(None, None))[0]
        taken = errors.collect("", lambda: _checked(given))
        base = errors.collect("scheme", lambda: resolve_scheme(scheme))
        execution, how = errors.collect(
            "", lambda: read_options(hints, options, config), default=(None, None)
        )
        errors.collect("networks", lambda: _check_networks(networks, how or LoadConfig()))
    configs = _configs(subject, how, _in_turn(networks, n_seeds))
    users = partial(_user, LoadTask(subject, base, how), configs, taken["network_within"])
    start = users(0)
    tried = edits_of(start) if edits is None else list(edits)
    with LoadRunner(execution, _measured) as runner:
        runner.expect(len(tried) + 1 + (_MOST_HELPFUL + 1) * n_seeds)
        loads = runner.run([start, *(edit.change(start) for edit in tried)])
        before = _columns(loads[:1])
        first = _first_metric(before, metric)
        once = [_Trial(e, _columns([found])) for e, found in zip(tried, loads[1:], strict=True)]
        if first_result is not None:
            first_result(_preview(once, before, first))
        chosen = _candidates(once, before, first)
        starts = [*map(users, range(1, n_seeds + 1))]
        values = _compare(runner, starts, chosen)
        think_times = _try_think_times(runner, start, _best_early_hints(once, first), first)
    titles = tuple(each if isinstance(each, str) else each.title for each in networks)
    rows, effects, best = _judged(chosen, values, first, 1 - confidence)
    return Hints(
        rows=Rows(HintRow, rows),
        effects=Rows(EffectRow, effects),
        think_times=Rows(ThinkTimeRow, think_times),
        page=subject,
        metric=next(key for key, (name, _) in METRICS.items() if name == first),
        networks=titles or (start.config.path.network.name,),
        network_within=float(network_within),
        n_tried=len(tried),
        n_seeds=n_seeds,
        confidence=confidence,
        fidelity=fidelity(subject, start.config.browser_model),
        loads=_example(start, best) if keep_loads else (),
        version=__version__,
        configuration=loads[0]["configuration"],
        words=loads[0]["words"],
        page_digests={subject.name: subject.digest},
    )


def _check_networks(networks: Sequence[str] | Sequence[NetworkShare], config: LoadConfig) -> None:
    """Refuse networks that are neither names that fit *config* nor shares."""
    names: Any = networks
    if isinstance(networks, list | tuple):
        names = [each for each in networks if not isinstance(each, NetworkShare)]
    over_networks(config, names)


def _best_early_hints(trials: Sequence[_Trial], first: str) -> Edit | None:
    """Return the Early Hints that help most in one load."""
    found = [t for t in trials if t.edit.kind == EARLY_HINTS and first in t.values]
    return min(found, key=lambda trial: trial.values[first][0]).edit if found else None


def _try_think_times(
    runner: LoadRunner, start: LoadTask, edit: Edit | None, first: str
) -> list[ThinkTimeRow]:
    """Load *start* before and after *edit*, by think time of the server for the document."""
    if edit is None:
        return []
    root = start.page.resources[start.page.root].id
    tasks = []
    for server_ms in _THINK_TIMES_MS:
        before = start._replace(page=start.page.with_(root, server_ms=server_ms))
        tasks += [before, edit.change(before)]
    times = [load[first] for load in runner.run(tasks)]
    pairs = zip(_THINK_TIMES_MS, times[::2], times[1::2], strict=True)
    return [
        ThinkTimeRow(edit.text, float(server_ms), before, after)
        for server_ms, before, after in pairs
        if before and after
    ]


def _judged(
    edits: Sequence[Edit], values: Sequence[_Values], first: str, level: float
) -> tuple[list[HintRow], list[EffectRow], Edit | None]:
    """Return the verdicts, best first, the effects that they rest on, and the best edit.

    *values* are those of the page as it is, and then with each of *edits*.
    """
    before = values[0]
    trials = [_Trial(edit, after) for edit, after in zip(edits, values[1:], strict=True)]
    effects = [*_effects(trials, before, level)]
    shown = [trial.edit for trial in _better_than_parts(trials, before, first)]
    title = dict(METRICS.values())[first]
    rows = [_row(e, [row for row in effects if row.edit == e.text], title) for e in shown]
    rows.sort(key=lambda row: (_RANKS[row.verdict], row.high))
    names = {row.edit for row in rows}
    best = next((e for e in shown if e.text == rows[0].edit), None)
    return rows, [row for row in effects if row.edit in names], best


_RANKS = {HELPS: 0, TRADES: 1, NO_EFFECT: 2, HARMS: 3}


def _recorded_protocol(page: Page) -> str | None:
    """Return the transport of the recording; None if it is unknown."""
    known = "" if page.recorded_load is None else page.recorded_load.protocol
    return "tcp" if known.startswith(("h2", "http/2", "spdy")) else None


def _first_metric(before: _Values, metric: str) -> str:
    """Return the requested metric, or that of the first paint if the page does not have it."""
    for name in (METRICS[metric][0], "fcp_ms", "load_event_ms"):
        if name in before:
            return name
    raise NothingToMeasureError("the page has no paint and no load event")


def _preview(trials: Sequence[_Trial], before: _Values, first: str) -> str:
    moved = [(t.logs(before, first)[0], t.edit.text) for t in trials if first in t.values]
    ratio, text = min(moved, default=(0.0, "no edit"))
    name = dict(METRICS.values())[first]
    return f"after one load of each edit: {text}: {name} {100 * math.expm1(ratio):+.0f} %"


def _example(start: LoadTask, best: Edit | None) -> tuple[Load, ...]:
    """Return the loads before and after the best edit."""
    tasks = [start] if best is None else [start, best.change(start)]
    return tuple(run_config(task.page, task.scheme, task.config) for task in tasks)
