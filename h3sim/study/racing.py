"""Racing: arms (schemes and their parameters), compared in paired rounds (bandits, F-Race)."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.config.options import LEVEL, refuse
from h3sim.errors import InputError, SchemeError, ValidationIssue
from h3sim.schema import format_value
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.errors import RejectedValueError, plain_values
from h3sim.schema.values import Integer, Number, OrNone, ValueType
from h3sim.schemes import Scheme, scheme_from_dict, scheme_to_dict
from h3sim.study.statistics import student_interval

if TYPE_CHECKING:
    from h3sim.config.load_config import LoadConfig


OF_SERVER = ("send_buffer_kb", "send_buffer_refill", "retransmission_order", "cc")
"""The options of a load that a server chooses: what else a load has is not up to a scheme."""


class _Varied(ValueType):
    """Lists of values by key, which may be arrays."""

    stand_in: Any = MappingProxyType({})

    def accept(self, value: Any) -> dict[str, list[Any]]:
        found = {} if value is None else value
        if isinstance(found, Mapping):
            lists = {key: plain_values(values) for key, values in found.items()}
            if all(isinstance(key, str) and _is_list(lists[key]) for key in lists):
                return {key: list(map(plain_values, values)) for key, values in lists.items()}
        raise RejectedValueError(f"must be lists of values by key, is {format_value(value)}")


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_VARY = _Varied()
"""The values that are tried, by what they are values of."""
_MOST_ARMS = 1000
_MOST_SEEDS = 10_000
FIRST_RESULT = Predicate("a callable or None", lambda value: value is None or callable(value))
"""Receiver of a sentence, before all loads have run."""
_TAKEN: dict[str, ValueType] = {
    "which": Predicate("'all' or 'atf'", lambda value: value in ("all", "atf", None)),
    "n_seeds": Integer(low=1, high=_MOST_SEEDS),
    "confidence": LEVEL,
    "network_within": OrNone(Number(low=1, high=100)),
    "vary": _VARY,
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
            doubted = [
                arm for arm in doubted if arm != best and not self._arm_row(arm, best).is_worse
            ]
            if not doubted:
                break
            doubted = self._measured([*doubted, best], n_instances)
            best = doubted[0]
        return self._finish(best)

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

    def _finish(self, best: int) -> Race:
        rows = [self._arm_row(arm, best) for arm in range(len(self.values))]
        rows.sort(key=lambda row: (row.arm != best, row.is_worse, row.mean, row.arm))
        return Race(best, tuple(rows), sum(map(len, self.values)))

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
