"""Schedulers against one another, and ranges against a set."""

from __future__ import annotations

import itertools
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.ranges import Ranges
from h3sim.schedulers import (
    EpsScheduler,
    FifoScheduler,
    Mixed,
    RankScheduler,
    RoundRobinScheduler,
    TreeScheduler,
    Turn,
)
from h3sim.signals import Eps, H2Priority, Rank
from tests.property import scheduler_laws
from tests.property.scheduler_laws import Step
from tests.property.strategies import law

_STREAM_ID_STEP = 4


@st.composite
def scripts(draw, *, max_steps=60):
    """Calls as a server makes them: ids rise, and what is closed or unknown is never called."""
    n_steps = draw(st.integers(1, max_steps))
    open_ids, script = [], []
    next_ids = itertools.count(0, _STREAM_ID_STEP)
    for _ in range(n_steps):
        calls = ["serve", "serve", "activate", "open", "deactivate", "close"]
        call = draw(st.sampled_from(calls if open_ids else ["open"]))
        if call == "open":
            behind = open_ids[-1] if open_ids else None
            open_ids.append(next(next_ids))
            script.append(Step("open", open_ids[-1], behind=behind))
            script.append(Step("activate", open_ids[-1]))
        elif call == "serve":
            script.append(Step("serve", n_bytes=draw(st.sampled_from([1400, 1400, 1400, 600, 0]))))
        else:
            stream_id = draw(st.sampled_from(open_ids))
            script.append(Step(call, stream_id))
            if call == "close":
                open_ids.remove(stream_id)
    return script


def behind_the_last(step):
    """Return a place in one chain, with a weight that must not matter."""
    return H2Priority(depends_on=step.behind, weight=1 + step.stream_id % 256)


@law(250)
@given(scripts())
def test_fifo_is_a_tree_that_is_one_chain(script):
    scheduler_laws.check_schedulers_agree(
        FifoScheduler(), TreeScheduler(), script, signal=behind_the_last
    )


@law(250)
@given(scripts())
def test_round_robin_is_a_flat_tree_of_equal_weights(script):
    scheduler_laws.check_schedulers_agree(
        RoundRobinScheduler(), TreeScheduler(), script, signal=lambda _: H2Priority(weight=16)
    )


SCHEDULERS = {
    **{f"eps {m.value}": partial(EpsScheduler, mixed=m, turn=Turn(packets=3)) for m in Mixed},
    "eps by bytes": partial(EpsScheduler, mixed=Mixed.HALVES, turn=Turn(size_bytes=5000)),
    "round robin by bytes": partial(RoundRobinScheduler, turn=Turn(size_bytes=5000)),
    "ranks": RankScheduler,
}


@pytest.mark.parametrize("make", SCHEDULERS.values(), ids=SCHEDULERS)
def test_two_hundred_streams_with_random_updates_go_on_as_long_as_one_has_data(make):
    scheduler, source = make(), Random(9218)
    has_data = {4 * n: False for n in range(200)}
    for stream_id in has_data:
        scheduler.open(stream_id, any_signal(source))
    for _ in range(1000):
        stream_id = source.choice(list(has_data))
        scheduler.update(stream_id, any_signal(source))
        has_data[stream_id] = not has_data[stream_id]
        (scheduler.activate if has_data[stream_id] else scheduler.deactivate)(stream_id)
        picked = scheduler.pick()
        assert (picked is None) == (not any(has_data.values()))
        if picked is not None:
            assert has_data[picked]
            scheduler.charge(picked, source.choice([0, 600, 1400, 16_384]))
    for stream_id in has_data:
        scheduler.close(stream_id)
    assert scheduler.pick() is None


def any_signal(source):
    if source.random() < 0.2:
        return Rank(value=source.randint(-3, 3))
    return Eps(urgency=source.randint(0, 7), incremental=source.random() < 0.5)


spans = st.tuples(st.integers(0, 60), st.integers(0, 15)).map(lambda s: (s[0], s[0] + s[1]))


@law(300)
@given(st.lists(spans, max_size=25))
def test_ranges_say_what_a_set_says(additions):
    scheduler_laws.check_ranges_are_sets(Ranges(), additions)
