"""Policies to compare with: a linear one, and the search for its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from h3sim.signals import MAX_URGENCY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from h3sim.learn.scheduling_env import SchedulingEnv

Policy: TypeAlias = "Callable[[NDArray[np.float32]], NDArray[np.int64]]"
"""A function from an observation to an action."""
_ELITE_SHARE = 0.25
_LEAST_SPREAD = 0.05
"""Standard deviation that is added in each round, so that a search does not get stuck."""


def ranked(scores: NDArray[Any]) -> NDArray[np.int64]:
    """Return urgencies by *scores*: 0 for the highest, and 7 from the eighth on.

    >>> ranked(np.array([0.2, 0.9, 0.5])).tolist()
    [2, 0, 1]
    """
    urgencies = np.empty(len(scores), np.int64)
    urgencies[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return urgencies.clip(max=MAX_URGENCY)


@dataclass(frozen=True)
class LinearPolicy:
    """Policy that sends streams in the order of a weighted sum of their `FEATURES`.

    >>> from h3sim.learn.scheduling_env import FEATURES
    >>> weights = np.array([name == "bytes_left" for name in FEATURES]) * -1.0
    >>> observation = np.ones((3, len(FEATURES)), np.float32)
    >>> observation[:, FEATURES.index("bytes_left")] = [0.3, 0.9, 0.5]
    >>> LinearPolicy(weights)(observation).tolist()  # the shortest first
    [0, 2, 1]
    """

    weights: NDArray[np.float64]

    def __call__(self, observation: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the urgency of each stream."""
        scores = observation @ self.weights
        scores[observation[:, 0] == 0] = -np.inf  # rows without a stream
        return ranked(scores)


def evaluate(
    env: SchedulingEnv, policy: Policy, pages: Iterable[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return what `info` has at the end of the load of each of *pages* (default: all)."""
    ends: dict[str, dict[str, Any]] = {}
    for page in env.pages if pages is None else pages:
        observation, _ = env.reset(seed=0, options={"page": page})
        is_over = False
        while not is_over:
            observation, _, is_over, _, ends[page] = env.step(policy(observation))
    return ends


def cross_entropy(
    loss: Callable[[NDArray[np.float64]], float],
    n_parameters: int,
    *,
    rounds: int = 10,
    population: int = 32,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Return the parameters with the least *loss* that the cross-entropy method finds.

    Each round draws a *population* from a normal distribution, and fits that to the best quarter
    (Rubinstein 1999). The same seed gives the same parameters.

    >>> best = cross_entropy(lambda x: float(((x - 1) ** 2).sum()), 2)
    >>> bool(abs(best - 1).max() < 0.1)
    True
    """
    source = np.random.default_rng(seed)
    mean, spread = np.zeros(n_parameters), np.ones(n_parameters)
    best, least = mean, loss(mean)
    for _ in range(rounds):
        drawn = mean + spread * source.standard_normal((population, n_parameters))
        losses = np.array([loss(one) for one in drawn])
        elite = drawn[np.argsort(losses, kind="stable")[: max(2, round(_ELITE_SHARE * population))]]
        mean, spread = elite.mean(axis=0), elite.std(axis=0) + _LEAST_SPREAD
        if losses.min() < least:
            best, least = drawn[losses.argmin()], float(losses.min())
    return best
