"""Schedulers against one another, and ranges against a set."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from h3sim.ranges import Ranges
from h3sim.schedulers import FifoScheduler, RoundRobinScheduler, TreeScheduler
from h3sim.signals import H2Priority
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


spans = st.tuples(st.integers(0, 60), st.integers(0, 15)).map(lambda s: (s[0], s[0] + s[1]))


@law(300)
@given(st.lists(spans, max_size=25))
def test_ranges_say_what_a_set_says(additions):
    scheduler_laws.check_ranges_are_sets(Ranges(), additions)
