"""The arms of a race: schemes, each as it is or with parameters that are tried."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from h3sim.documents import shown
from h3sim.documents.arguments import GatheredMistakes, Only, check_arguments
from h3sim.documents.refused import RefusedError
from h3sim.documents.shown import plain_values
from h3sim.documents.values import Number, ValueType, Whole
from h3sim.errors import InputError, Problem, SchemeError
from h3sim.schemes import scheme_from_dict, scheme_to_dict
from h3sim.study.arguments import LEVEL, check_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.schemes import Scheme
    from h3sim.study.config import LoadConfig

__all__ = ["OF_SERVER", "Arm", "arms_of", "check_race"]

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
        raise RefusedError(f"must be lists of values by key, is {shown(value)}")


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_VARY = _Varied()
"""The values that are tried, by what they are values of."""
_MOST_ARMS = 1000
_MOST_SEEDS = 10_000
_TAKEN: dict[str, ValueType] = {
    "which": Only("'all' or 'atf'", lambda value: value in ("all", "atf")),
    "n_seeds": Whole(low=1, high=_MOST_SEEDS),
    "confidence": LEVEL,
    "network_within": Number(low=1, high=100),
    "vary": _VARY,
}


def check_race(*, progress: object, **given: object) -> dict[str, Any]:
    """Return what is *given* of the arguments of `find`, as it takes them.

    Raises:
        InputError: listing every one of them.
    """
    taken = {key: (_TAKEN[key], value) for key, value in given.items()}
    with GatheredMistakes() as mistakes:
        known = mistakes.of("", lambda: check_arguments(InputError, **taken))
        mistakes.of("", lambda: check_progress(progress))
    return known


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
    _check(schemes, vary)
    arms = [arm for scheme in schemes for arm in _arms(scheme, vary)]
    if len(arms) > _MOST_ARMS:
        message = f"makes {len(arms):,} arms, and may make {_MOST_ARMS:,}"
        raise InputError([Problem(key="vary", message=message)])
    return arms


def _check(schemes: Sequence[Scheme], vary: Mapping[str, Sequence[Any]]) -> None:
    problems = []
    for key, values in vary.items():
        if not values:
            problems.append(Problem(key=f"vary.{key}", message="at least one value is needed"))
        elif key not in OF_SERVER:
            problems += _problems(schemes, key, values)
    if problems:
        raise InputError(problems)


def _problems(schemes: Sequence[Scheme], key: str, values: Sequence[Any]) -> Iterator[Problem]:
    """Yield what is wrong with the values of a key of schemes: some of them for all, or all."""
    takers = [scheme for scheme in schemes if _takes(scheme, key, values)]
    if not takers:
        first = next(filter(None, (_refusal(scheme, key, values[0]) for scheme in schemes)), "")
        yield Problem(key=f"vary.{key}", message=f"no scheme has it{first and f': {first}'}")
    for scheme, value in itertools.product(takers, values):
        refusal = _refusal(scheme, key, value)
        if refusal:
            yield Problem(key=f"vary.{key}", message=f"{scheme.name}: {refusal}")


def _takes(scheme: Scheme, key: str, values: Sequence[Any]) -> bool:
    return any(_refusal(scheme, key, value) is None for value in values)


def _refusal(scheme: Scheme, key: str, value: Any) -> str | None:
    """Return why *scheme* cannot have *value* for *key*, or None if it can."""
    try:
        _changed(scheme, {key: value})
    except SchemeError as error:
        return "; ".join(problem.message for problem in error.problems)
    return None


def _arms(scheme: Scheme, vary: Mapping[str, Sequence[Any]]) -> Iterator[Arm]:
    known = {
        key: values
        for key, values in vary.items()
        if key in OF_SERVER or _takes(scheme, key, values)
    }
    for chosen in itertools.product(*known.values()):
        given = dict(zip(known, chosen, strict=True))
        options = {key: value for key, value in given.items() if key in OF_SERVER}
        told = "".join(f" {key}={value}" for key, value in given.items())
        of_scheme = {key: value for key, value in given.items() if key not in OF_SERVER}
        named = replace(_changed(scheme, of_scheme), name=f"{scheme.name}{told}")
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
        raise SchemeError([Problem(key="", message=f"{scheme.name} is code, and has no keys")])
    for key, value in given.items():
        *tables, last = key.split(".")
        table: Any = document
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            message = f"there is no table {shown('.'.join(tables))}"
            raise SchemeError([Problem(key=key, message=message)])
        table[last] = value
    return scheme_from_dict(document)
