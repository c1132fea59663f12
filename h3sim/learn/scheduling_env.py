"""An environment of Gymnasium whose steps are the decisions of a server's scheduler."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete

from h3sim.engine import SteppedLoad
from h3sim.load import Load
from h3sim.load.load_config import LoadConfig, changed_config
from h3sim.load.options import refuse
from h3sim.load.run import resolve, resolve_scheme, run_spec
from h3sim.load.selection import resolve_pages
from h3sim.page import Kind
from h3sim.schema import format_value
from h3sim.schema.arguments import check_arguments
from h3sim.schema.values import Choice, Integer
from h3sim.schemes import SchedulerKind
from h3sim.signals import DEFAULT_URGENCY, MAX_URGENCY, Eps
from h3sim.transport import Protocol
from h3sim.values.errors import InputError, NothingToMeasureError, ValidationIssue
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from h3sim.engine.load_spec import LoadSpec
    from h3sim.load.load import Which
    from h3sim.load.run import PageLike, SchemeLike
    from h3sim.page import Page, Resource

Objective = Literal["byte_index_atf", "byte_index_all", "first_paint", "largest_paint"]
ActionOf = Literal["streams", "classes"]

_WHICH: dict[str, Which] = {"byte_index_atf": "atf", "byte_index_all": "all"}
_OBJECTIVES = (*_WHICH, "first_paint", "largest_paint")
CLASSES = tuple(kind.value for kind in Kind)
"""The classes of responses: types of resources, which a server knows from the request."""
FEATURES = (
    "waits",
    *CLASSES,
    "size",
    "share_left",
    "bytes_left",
    "time_waited",
    "urgency",
    "incremental",
)
"""What is observed of a stream, each from 0 to 1: sizes, and times in ms, as logarithms."""
_N_CLASSES = len(CLASSES)
_SIZE, _SHARE_LEFT, _LEFT, _WAITED, _URGENCY, _INCREMENTAL = range(1 + _N_CLASSES, len(FEATURES))
_LOG2_OF_LARGEST = 40
"""Logarithm of the largest size in bytes, and time in ms, that features distinguish."""
_MAX_SEED = 2**31


def _log(value: float) -> float:
    return min(1.0, math.log2(1 + value) / _LOG2_OF_LARGEST)


@dataclass(frozen=True)
class _Subject:
    """A page to load: its spec, and what all of its loads have in common."""

    spec: LoadSpec
    weights: dict[str, float]
    """Share of each resource's bytes in the ByteIndex, by id."""
    features: NDArray[np.float32]
    """Class and size of the response to each resource, as a row of features."""
    classes: list[int]
    """Index of each resource's class."""
    bound_ms: float
    """The lower bound by which rewards are divided."""
    is_proven: bool
    """True if the bound is one for every scheduler, and not for requests of one load."""


class SchedulingEnv(gymnasium.Env["NDArray[np.float32]", "NDArray[np.int64]"]):
    """A server's scheduler: each episode is a load, each step a decision among waiting streams.

    A decision is due whenever a stream becomes ready to send, or gets another signal from the
    client, and at least two wait. The *action* is an urgency, 0 (first) to 7, for each stream in
    the order of requests ("streams": of the first *n_streams*; the others get 7), or for each of
    `CLASSES` ("classes"). It is what a server may decide by RFC 9218 § 8, and holds until the next
    decision; streams of equal urgency are sent one after the other.

    An observation has a row of `FEATURES` for each of the first *n_streams* streams that wait: what
    a server can know. It knows neither what is above the fold nor what depends on what.

    The rewards of an episode add up to minus the *objective*, divided by a lower bound: -1 is
    optimal. During an episode, a reward is minus the time passed, times the share of the bytes that
    have not arrived (for ByteIndexes; those of paints, which take `browser="parse"`, come at the
    end). The bound is proven for every scheduler at a constant rate with a replaying browser, and
    for paints; else it is that of the page's load with *scheme*, for its requests. At the end,
    `info` has the value in ms, the bound of this load (`bound_ms`), and their `ratio`.

    *scheme* gives the client's signals, and must have the scheduler "eps": by default it is Chrome
    before Cloudflare's quiche. A reset draws one of *pages*, or takes `options={"page": name}`. The
    other arguments are fields of `LoadConfig`, which override *config*; hosts share a connection.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.

    >>> env = SchedulingEnv(["davies-meenan", "creative"])
    >>> observation, info = env.reset(seed=1, options={"page": "davies-meenan"})
    >>> observation.shape, int(observation[:, 0].sum())
    ((32, 15), 5)
    >>> is_over = False
    >>> while not is_over:  # in the order of requests
    ...     _, reward, is_over, _, info = env.step(np.arange(32).clip(max=7))
    >>> round(info["byte_index_atf_ms"]), round(info["ratio"], 2)
    (2709, 3.0)
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - declared by Gymnasium

    def __init__(
        self,
        pages: PageLike | Iterable[PageLike] = "sites",
        *,
        objective: Objective = "byte_index_atf",
        action: ActionOf = "streams",
        n_streams: int = 32,
        scheme: SchemeLike = "chrome before quiche",
        config: LoadConfig | None = None,
        **options: Any,
    ) -> None:
        check_arguments(
            InputError,
            objective=(Choice(_OBJECTIVES), objective),
            action=(Choice(("streams", "classes")), action),
            n_streams=(Integer(low=2), n_streams),
        )
        self._objective, self._n_streams = objective, n_streams
        self._which = _WHICH.get(objective)
        self._of_classes = action == "classes"
        self._scheme = resolve_scheme(scheme)
        if self._scheme.mechanism is not SchedulerKind.EPS:
            message = f"must have the scheduler 'eps', {self._scheme.name} has another"
            raise InputError.at("scheme", message)
        self._config = changed_config(config, options)
        self._pages = {page.name: page for page in resolve_pages(pages)}
        if not self._pages:
            raise InputError.at("pages", "at least one is needed")
        refuse(self._issues())
        self._subjects: dict[str, _Subject] = {}
        shape = (n_streams, len(FEATURES))
        self.observation_space = Box(0.0, 1.0, shape, np.float32)
        n_urgencies = _N_CLASSES if self._of_classes else n_streams
        self.action_space = MultiDiscrete([MAX_URGENCY + 1] * n_urgencies)
        self._is_over = True

    def _issues(self) -> Iterable[ValidationIssue]:
        """Yield an issue for each page without the objective."""
        for page in self._pages.values():
            if self._which == "atf" and (reason := page.nothing_visible_reason):
                message = f"{page.name} has nothing above the fold ({reason})"
                yield ValidationIssue(key="pages", message=message)

    @property
    def pages(self) -> list[str]:
        """The names of the pages."""
        return list(self._pages)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin the load of a page, and return the observation at the first decision."""
        super().reset(seed=seed)
        names = self.pages
        drawn, seed_of_load = (
            self.np_random.integers(len(names)),
            self.np_random.integers(_MAX_SEED),
        )
        self._page = (options or {}).get("page", names[drawn])
        if self._page not in self._pages:
            raise InputError.at("page", f"must be one of the pages, is {self._page!r}")
        self._subject = self._subject_of(self._page)
        spec = self._subject.spec
        if spec.network.is_random:
            spec = replace(spec, seed=int(seed_of_load))
        self._load = SteppedLoad(spec)
        self._ready_at_ns: dict[int, int] = {}
        self._signals: dict[int, Eps] = {}
        self._n_signals = 0
        self._last_ns, self._sum = 0, 0.0
        self._goes_on, self._is_over = self._run_to_decision(), False
        return self._observation(), {"page": self._page}

    def step(
        self, action: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Send by these urgencies until the next decision, or the end of the load.

        Raises:
            InputError: if *action* is not in `action_space`.
            gymnasium.error.ResetNeeded: before `reset`, and after the end of a load.
        """
        if self._is_over:
            raise gymnasium.error.ResetNeeded("no load is under way: call reset()")
        if not self.action_space.contains(action):
            message = f"must be whole numbers in {self.action_space}, is {format_value(action)}"
            raise InputError.at("action", message)
        if self._goes_on:
            self._load.set_urgencies(self._urgencies(action))
            self._goes_on = self._run_to_decision()
        info: dict[str, Any] = {"page": self._page}
        if self._goes_on:
            reward = self._waiting_reward()
        else:
            load, subject = Load(**self._load.result()._asdict()), self._subject
            value_ms = self._value(load)
            bound_ms = subject.bound_ms if subject.is_proven else self._bound(load)[0]
            info |= {"bound_ms": bound_ms, "ratio": value_ms / bound_ms}
            info[f"{self._objective}_ms"] = value_ms
            reward = -value_ms / subject.bound_ms - self._sum
        self._sum += reward
        self._is_over = not self._goes_on
        return self._observation(), reward, not self._goes_on, False, info

    def _urgencies(self, action: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Return the urgencies of the waiting streams."""
        chosen: list[int] = np.asarray(action).tolist()
        streams = (stream for stream, _ in self._waiting)
        if self._of_classes:
            classes = self._subject.classes
            return [(one, chosen[classes[self._load.resource_of(one)]]) for one in streams]
        chosen += [MAX_URGENCY] * (len(self._waiting) - len(chosen))
        return list(zip(streams, chosen, strict=False))

    def _run_to_decision(self) -> bool:
        """Run until a decision is due; return False at the end of the load."""
        load = self._load
        while load.advance():
            self._waiting = load.waiting()
            for stream, _ in self._waiting:
                self._ready_at_ns.setdefault(stream, load.now_ns)
            if len(self._waiting) > 1:
                return True
        self._waiting = []
        return False

    def _waiting_reward(self) -> float:
        """Return the reward for the time since the last one, for bytes that are missing."""
        passed_ns, self._last_ns = self._load.now_ns - self._last_ns, self._load.now_ns
        weights = self._subject.weights
        missing = sum(weights.get(id_, 0.0) for id_ in self._load.missing) if weights else 0.0
        return -missing * to_ms(passed_ns) / self._subject.bound_ms

    def _observation(self) -> NDArray[np.float32]:
        """Return the features of the streams that wait."""
        observed = np.zeros((self._n_streams, len(FEATURES)), np.float32)
        load, features = self._load, self._subject.features
        record = load.signals()
        for _, stream, received in record[self._n_signals :]:
            if isinstance(received, Eps):
                self._signals[stream] = received
        self._n_signals = len(record)
        sizes = self._subject.spec.page.stream_bytes
        for row, (stream, left) in zip(observed, self._waiting, strict=False):
            resource = load.resource_of(stream)
            signal = self._signals.get(stream)
            row[:] = features[resource]
            row[_SHARE_LEFT:] = (
                left / max(1, sizes[resource]),
                _log(left),
                _log(to_ms(load.now_ns - self._ready_at_ns[stream])),
                (DEFAULT_URGENCY if signal is None else signal.urgency) / MAX_URGENCY,
                signal is not None and signal.incremental,
            )
        return observed

    def _subject_of(self, name: str) -> _Subject:
        """Return the page of that name, with its bound, which is computed once."""
        if name not in self._subjects:
            page = self._pages[name]
            spec = replace(resolve(page, self._scheme, self._config), hosts=None)
            if spec.link_protocol is Protocol.HTTP1:
                raise InputError.at(
                    "transport", "must not be http1, whose responses do not compete"
                )
            bound_ms, is_proven = self._bound(run_spec(spec))
            weights = {}
            if self._which is not None:
                weighed = [one for one in page.resources if self._is_in_byte_index(one)]
                total = sum(one.size_bytes for one in weighed)
                weights = {one.id: one.size_bytes / total for one in weighed}
            classes = [CLASSES.index(resource.kind.value) for resource in page.resources]
            self._subjects[name] = _Subject(
                spec, weights, _features_of(page, classes), classes, bound_ms, is_proven
            )
        return self._subjects[name]

    def _is_in_byte_index(self, resource: Resource) -> bool:
        return self._which == "all" or resource.above_the_fold

    def _value(self, load: Load) -> float:
        """Return the objective of a load in ms."""
        paint_ms: float = getattr(load, f"{self._objective}_ms", 0.0)
        return paint_ms if self._which is None else load.byte_index(self._which)

    def _bound(self, load: Load) -> tuple[float, bool]:
        """Return a lower bound on the objective in ms, and whether no scheduler can beat it."""
        if self._which is not None:
            try:
                return load.lower_bound(self._which, given="page"), True
            except NothingToMeasureError:
                return load.lower_bound(self._which, given="requests"), False
        bounds = load.paint_bounds
        bound_ms = None if bounds is None else getattr(bounds, f"{self._objective}_ms")
        if not bound_ms:
            message = f"{load.page.name} has no {self._objective}: use browser='parse'"
            raise NothingToMeasureError(message)
        return bound_ms, True


def _features_of(page: Page, classes: list[int]) -> NDArray[np.float32]:
    """Return the features of each resource that do not change in a load."""
    features = np.zeros((len(page.resources), len(FEATURES)), np.float32)
    features[:, 0] = 1.0
    for row, index, n_bytes in zip(features, classes, page.stream_bytes, strict=True):
        row[1 + index] = 1.0
        row[_SIZE] = _log(n_bytes)
    return features
