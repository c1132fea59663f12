"""The learning environment: what it observes, what actions do, and what rewards add up to."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import h3sim
from h3sim.engine import SteppedLoad
from h3sim.load import Load, LoadConfig, resolve, resolve_scheme
from h3sim.page import site_of, split_by_site
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.helpers import page_of

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402 - only where it is installed

from h3sim.learn import LinearPolicy, SchedulingEnv, evaluate  # noqa: E402
from h3sim.learn.scheduling_env import CLASSES, FEATURES  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.page import Page

PAGES = ["davies-meenan", "creative"]
IN_ORDER = np.arange(32).clip(max=7)
SHORTEST = LinearPolicy(-1.0 * np.array([name == "bytes_left" for name in FEATURES]))


def in_order(_: Any) -> Any:
    return IN_ORDER


def episode(env: SchedulingEnv, policy: Callable[[Any], Any], page: str) -> Any:
    """Return the observations and rewards of a load, and what is known at its end."""
    observation, info = env.reset(seed=0, options={"page": page})
    observations, rewards, is_over = [observation], [], False
    while not is_over:
        observation, reward, is_over, _, info = env.step(policy(observation))
        observations.append(observation)
        rewards.append(reward)
    return observations, rewards, info


@pytest.mark.parametrize("action", ["streams", "classes"])
def test_gymnasium_finds_no_fault(action: str) -> None:
    check_env(gymnasium.make("h3sim/Scheduling-v0", pages=PAGES, action=action).unwrapped)


def test_several_loads_are_learned_from_at_once() -> None:
    envs = gymnasium.make_vec("h3sim/Scheduling-v0", 3, vectorization_mode="sync", pages=PAGES)
    observations, _ = envs.reset(seed=1)
    assert observations.shape == (3, 32, len(FEATURES))
    _, rewards, *_ = envs.step(envs.action_space.sample())
    assert (rewards < 0).all()
    envs.close()


@pytest.mark.parametrize(
    "options", [{}, {"network": "cable"}, {"transport": "tcp", "network": "4g"}]
)
def test_a_load_in_steps_is_the_load_at_once(options: dict[str, Any]) -> None:
    spec = resolve(h3sim.load_page("creative"), resolve_scheme("chrome-eps"), LoadConfig(**options))
    stepped = SteppedLoad(spec)
    times_ns = []
    while stepped.advance():
        times_ns.append(stepped.now_ns)
    load = h3sim.simulate("creative", scheme="chrome-eps", **options)
    assert Load(**stepped.result()._asdict()).trace.digest() == load.trace.digest()
    assert len(times_ns) >= 5
    assert all(earlier <= later for earlier, later in pairwise(times_ns))


def test_the_order_of_requests_is_that_of_fifo() -> None:
    _, _, info = episode(SchedulingEnv(PAGES), in_order, "davies-meenan")
    fifo = h3sim.simulate("davies-meenan", scheme="fifo")
    assert info["byte_index_atf_ms"] == fifo.byte_index("atf")
    assert info["bound_ms"] == fifo.lower_bound("atf", given="page")


def test_the_shortest_of_two_goes_first_and_the_urgency_of_its_class_as_well() -> None:
    found = {"by": "/", "at": "complete"}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 1400, "above_the_fold": True},
        {"id": "long", "kind": "image", "bytes": 140_000, "discovered": found},
        {"id": "short", "kind": "script", "bytes": 1400, "discovered": found}
        | {"above_the_fold": True},
    )
    env = SchedulingEnv(page)
    (*_, shortest), (*_, first) = (episode(env, one, page.name) for one in (SHORTEST, in_order))
    assert shortest["ratio"] == 1.0
    # The script waits for the 100 packets of the image, a packet each 10 ms; the document does not.
    assert first["byte_index_atf_ms"] - shortest["byte_index_atf_ms"] == 500
    urgencies = np.array([name == "image" for name in CLASSES]).astype(int)
    *_, last = episode(SchedulingEnv(page, action="classes"), lambda _: urgencies, page.name)
    assert last["byte_index_atf_ms"] == shortest["byte_index_atf_ms"]


@pytest.mark.parametrize(
    "options",
    [{}, {"network": "cable"}, {"objective": "first_paint", "browser": "parse"}],
)
def test_rewards_add_up_to_the_distance_from_the_bound(options: dict[str, Any]) -> None:
    env = SchedulingEnv("creative", **options)
    _, rewards, info = episode(env, SHORTEST, "creative")
    assert all(reward <= 1e-9 for reward in rewards[:-1])
    value_ms = info[f"{options.get('objective', 'byte_index_atf')}_ms"]
    if "network" not in options:  # else rewards have the bound of another load's requests
        assert sum(rewards) == pytest.approx(-info["ratio"])
    assert info["ratio"] == pytest.approx(value_ms / info["bound_ms"])
    assert info["ratio"] >= 1


def test_nothing_is_observed_that_a_server_cannot_know() -> None:
    page = h3sim.load_page("creative")
    other = page.with_resources(
        replace(one, above_the_fold=not one.above_the_fold) for one in page.resources
    )
    ((seen, *_), (seen_of_other, *_)) = (
        episode(SchedulingEnv(one), SHORTEST, one.name) for one in (page, other)
    )
    assert np.array_equal(np.array(seen), np.array(seen_of_other))


def test_a_stream_is_observed_with_its_class_size_and_signal() -> None:
    observation, _ = SchedulingEnv(PAGES).reset(options={"page": "davies-meenan"})
    begun, new, *_ = (dict(zip(FEATURES, row.tolist(), strict=True)) for row in observation)
    assert begun["document"] == begun["waits"] == new["waits"] == new["script"] == 1
    assert sum(begun[name] for name in CLASSES) == 1
    assert begun["share_left"] < new["share_left"] == 1
    assert new["size"] == new["bytes_left"]
    assert 0 <= begun["urgency"] < new["urgency"] < 1


def test_the_same_seed_draws_the_same_pages_and_losses() -> None:
    def run(seed: int) -> list[Any]:
        env = SchedulingEnv(PAGES, network="cable", loss=0.02)
        ends = []
        for number in range(3):
            _, info = env.reset(seed=seed if not number else None)
            is_over = False
            while not is_over:
                *_, is_over, _, info = env.step(IN_ORDER)
            ends.append(info)
        return ends

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_wrong_arguments_are_refused() -> None:
    bare = page_of({"id": "index", "kind": "document", "bytes": 9_000})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"scheme": "rr"}, "'eps'"),
        ({"pages": bare}, "nothing above the fold"),
        ({"objective": "load"}, "objective"),
        ({"action": "packets"}, "action"),
        ({"n_streams": 1}, "n_streams"),
    ]
    for arguments, words in wrong:
        with pytest.raises(InputError, match=words):
            SchedulingEnv(**{"pages": PAGES} | arguments)
    with pytest.raises(InputError, match="one of the pages"):
        SchedulingEnv(PAGES).reset(options={"page": "agency"})
    with pytest.raises(InputError, match="http1"):
        SchedulingEnv(PAGES, transport="http1", network="4g").reset()
    with pytest.raises(NothingToMeasureError, match="parse"):
        SchedulingEnv(PAGES, objective="largest_paint").reset()


def test_every_page_is_evaluated() -> None:
    ends = evaluate(SchedulingEnv(PAGES), SHORTEST)
    assert list(ends) == PAGES
    assert all(end["ratio"] >= 1 for end in ends.values())


def test_no_site_is_in_both_parts() -> None:
    pages: list[Page] = [h3sim.load_page(row.name) for row in h3sim.list_pages()]
    train, test = split_by_site(pages, test_share=0.25)
    assert len(train) + len(test) == len(pages)
    assert not {*map(site_of, train)} & {*map(site_of, test)}
    n_train, n_test = (len({*map(site_of, some)}) for some in (train, test))
    assert n_test == pytest.approx((n_train + n_test) / 4, abs=1)


@pytest.mark.parametrize("action", [3, np.zeros(3, int), np.zeros((2, 32), int), np.full(32, 2.5)])
def test_an_action_of_another_shape_is_refused(action: Any) -> None:
    env = SchedulingEnv("davies-meenan")
    env.reset(seed=1)
    with pytest.raises(InputError, match="action"):
        env.step(action)


def test_a_step_needs_a_load_that_is_under_way() -> None:
    env = SchedulingEnv("davies-meenan")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(32, int))
    env.reset(seed=1)
    is_over = False
    while not is_over:
        _, _, is_over, _, _ = env.step(np.zeros(32, int))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(32, int))


def test_no_pages_are_refused() -> None:
    with pytest.raises(InputError, match="pages"):
        SchedulingEnv([])
