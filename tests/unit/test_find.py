"""Races of arms, and schemes that are found by them."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.advice.search import Race, arms_of
from h3sim.advice.search import race as race_by_pairs
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.effort import scaled
from tests.helpers import page_of, unworded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_N_RACES = 200


def race(n_arms: int, measure: Callable[[int, int], float], n_instances: int) -> Race:
    """Return the outcome of a race whose arms are measured one by one."""

    def all_of(pairs: Sequence[tuple[int, int]]) -> list[float]:
        return [measure(*pair) for pair in pairs]

    return race_by_pairs(n_arms, all_of, n_instances)


def noisy(seed: int, means: list[float]) -> Callable[[int, int], float]:
    """Return arms that share what makes an instance hard, and differ by a noise of their own."""

    def measure(arm: int, instance: int) -> float:
        shared = random.Random(f"{seed}-{instance}").gauss(0, 1)
        own = random.Random(f"{seed}-{arm}-{instance}").gauss(0, 0.08)
        return means[arm] + shared + own

    return measure


def test_a_planted_best_is_found_in_95_races_of_100() -> None:
    found = sure = 0
    for seed in range(_N_RACES):
        means = [0.0, 0.05, 0.05, 0.1, 0.1, 0.2, 0.3, 0.3]
        random.Random(seed).shuffle(means)
        ended = race(len(means), noisy(seed, means), 200)
        found += means[ended.best] == 0
        sure += ended.level_with_best == (ended.best,)
        assert ended.n_measured < 200 * len(means)
    assert found >= 0.95 * _N_RACES
    assert sure >= 0.8 * _N_RACES


def test_a_planted_best_is_found_among_many_that_differ_little_by_little() -> None:
    # As parameters do: three with three values each, the nearest of them 4 % behind.
    n_races = scaled(20)
    found = 0
    for seed in range(n_races):
        means = [
            0.04 * (one + two + three) for one, two, three in itertools.product(range(3), repeat=3)
        ]
        random.Random(seed).shuffle(means)
        found += means[race(len(means), noisy(seed, means), 200).best] == 0
    assert found >= 0.95 * n_races


def test_of_equals_none_is_called_best() -> None:
    called_worse = 0
    for seed in range(_N_RACES):
        ended = race(5, noisy(seed, [0.0] * 5), 64)
        assert ended.level_with_best != (ended.best,)
        called_worse += any(row.is_worse for row in ended.rows)
    assert called_worse <= 0.05 * _N_RACES


def test_the_best_of_many_arms_that_are_level_is_not_called_worse() -> None:
    n_races = scaled(40)
    missed = 0
    for seed in range(n_races):
        ended = race(60, noisy(seed, [0.0] + [1e-9] * 59), 8)
        missed += 0 not in ended.level_with_best
    assert missed <= 0.05 * n_races


def test_what_is_far_behind_leaves_early() -> None:
    seen: list[int] = []

    def measure(arm: int, instance: int) -> float:
        seen.append(arm)
        return (0.0, 0.1, 5.0, 5.0)[arm] + random.Random(f"{arm}-{instance}").gauss(0, 0.1)

    ended = race(4, measure, 128)
    assert ended.best == 0
    assert seen.count(2) == seen.count(3) == 8 < seen.count(0)


def test_differences_that_never_vary_are_sure_and_ties_are_not() -> None:
    ended = race(3, lambda arm, instance: (1.0, 1.0, 2.0)[arm] + instance, 8)
    assert (ended.best, ended.level_with_best) == (0, (0, 1))


def test_two_pairs_that_differ_are_too_few_to_be_sure() -> None:
    ended = race(2, lambda arm, instance: arm * (1.0 + instance), 2)
    assert (ended.best, ended.level_with_best) == (0, (0, 1))


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_a_race_is_the_same_each_time(seed: int) -> None:
    means = [0.0, 0.02, 0.3]
    assert race(3, noisy(seed, means), 50) == race(3, noisy(seed, means), 50)


IMAGE: dict[str, Any] = {"id": "a.png", "kind": "image", "bytes": 30_000, "above_the_fold": True}
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 5000},
    {**IMAGE, "discovered": {"by": "/", "at": "complete"}},
)

# Schemes


def test_where_seeds_make_no_difference_one_load_a_scheme_is_enough() -> None:
    found = h3sim.search("davies-meenan", schemes=["rr", "bucket-html"], networks=[])
    indexes = {
        name: h3sim.simulate("davies-meenan", scheme=name).byte_index("atf")
        for name in ("rr", "bucket-html", "chrome-eps")
    }
    assert found.best == min(indexes, key=indexes.__getitem__) == "bucket-html"
    for row in found.rows:
        assert row.pairs == 1
        assert row.ratio == pytest.approx(indexes[row.scheme] / indexes["bucket-html"])
    assert found.gain == pytest.approx(indexes["chrome-eps"] / indexes["bucket-html"])
    assert found.verdict.startswith(
        "bucket-html (needs server knowledge) is the best scheme for davies-meenan: "
    )
    assert "(no seed changes it)" in found.verdict


def test_where_two_seeds_happen_to_lose_nothing_others_are_drawn() -> None:
    reported: Any = {"network": "cable", "loss": 0.007}
    digests = [
        h3sim.simulate(PAGE, scheme="rr", seed=n, **reported).trace.digest() for n in range(12)
    ]
    assert digests[0] == digests[1] != digests[-1]
    found = h3sim.search(PAGE, schemes=["rr", "fifo"], n_seeds=12, networks=None, **reported)
    assert found.rows[0].pairs > 1


def test_an_unbounded_interval_is_no_error() -> None:
    reported: Any = {"rtt_ms": 50, "loss": 0.02, "confidence": 1 - 1e-10, "networks": None}
    found = h3sim.search("davies-meenan", schemes=["rr", "fifo"], n_seeds=3, **reported)
    assert found.rows[-1].high < float("inf")


def test_schemes_that_do_the_same_are_level() -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 5000})
    found = h3sim.search(page, schemes=["rr", "fifo"], which="all", networks=["cable"])
    assert found.level_with_best == ("fifo", "chrome-eps")
    assert found.verdict.startswith("rr, fifo and chrome-eps are equal for ")
    assert {row.loss for row in found.robustness} == {0.0}


def test_what_the_choice_loses_elsewhere_is_reported() -> None:
    found = h3sim.search(
        ["davies-meenan", "http2rulez"],
        schemes=["fifo", "bucket-html"],
        network="cable",
        networks=["4g"],
        n_seeds=2,
    )
    changed = [row.changed for row in found.robustness]
    assert changed == [
        *("network 4g", "half the RTT", "twice the RTT", "loss of 2%", "sizes wrong by up to 2")
    ]
    assert all(row.loss >= 0 for row in found.robustness)
    assert found.to_dict()["best"] == found.best


def test_what_was_found_is_found_again_by_its_document_alone() -> None:
    reported: Any = {"network": "cable", "loss": 0.02, "rtt_ms": 30}
    found = h3sim.search(
        PAGE, schemes=["rr", "fifo"], n_seeds=9, networks=["4g"], network_within=1.5, **reported
    )
    message = found.to_dict()
    loaded = {key: message["configuration"][key] for key in ("loss", "rtt_ms", "seed")}
    again = h3sim.search(
        PAGE,
        schemes=[row["scheme"] for row in message["rows"]],
        networks=[message["robustness"][0]["changed"].removeprefix("network ")],
        network=message["configuration"]["network"].partition(" with ")[0],
        **{key: message[key] for key in ("baseline", "which", "confidence", "n_seeds")},
        network_within=message["network_within"],
        **loaded,
    )
    assert again.to_dict() == message


def test_errors_are_reported_together() -> None:
    with pytest.raises(InputError) as caught:
        h3sim.search("davies-meenan", which="most", n_seeds=0)  # type: ignore[arg-type]
    assert unworded(caught.value.lines()) == unworded(
        [
            "which: must be 'all' or 'atf', is 'most'",
            "n_seeds: must be 1 to 10,000, is 0",
        ]
    )
    with pytest.raises(NothingToMeasureError, match="no page has bytes that count"):
        h3sim.search(
            page_of({"id": "/", "kind": "document", "bytes": 5000}), schemes="rr", which="atf"
        )


# What is assumed, and what is claimed

LOSSY: dict[str, Any] = {"loss": 0.02, "rtt_ms": 50, "schemes": ["fifo", "rr"]}


def test_schemes_that_know_more_than_a_client_never_win_silently() -> None:
    found = h3sim.search("davies-meenan", schemes=["fifo", "bucket-html"], networks=[])
    assert {row.scheme: row.needs_server_knowledge for row in found.rows} == {
        "bucket-html": True,
        "fifo": False,
        "chrome-eps": False,
    }
    assert found.status(found.rows[0]) == "best, needs server knowledge"
    assert "Of the schemes that a client can use, fifo comes closest" in found.verdict
    usual = h3sim.search("davies-meenan", networks=[])
    assert not any(row.needs_server_knowledge for row in usual.rows)
    assert "server knowledge" not in usual.verdict


def test_one_random_load_of_each_scheme_is_no_evidence() -> None:
    found = h3sim.search("davies-meenan", n_seeds=1, networks=[], **LOSSY)
    assert found.level_with_best == tuple(row.scheme for row in found.rows[1:])
    assert "statistically tied" in found.verdict
    assert "no interval" in found.verdict


def test_seeds_that_ran_are_named_and_not_the_first_alone() -> None:
    found = h3sim.search("davies-meenan", n_seeds=8, seed=3, networks=[], **LOSSY)
    assert "seeds 3 to 10" in found.describe()


def test_conditions_that_hold_anyway_are_no_other_conditions() -> None:
    def changed(**options: Any) -> list[str]:
        found = h3sim.search(PAGE, schemes=["rr", "fifo"], n_seeds=2, **options)
        return [row.changed for row in found.robustness]

    assert "loss of 2%" in changed(network="cable", networks=[])
    assert "loss of 2%" not in changed(network="cable", loss=0.02, networks=[])
    there = changed(network="cable", networks=["cable", "4g"])
    assert "network 4g" in there
    assert "network cable" not in there


def test_each_other_condition_has_an_interval_of_its_own() -> None:
    found = h3sim.search("creative", n_seeds=4, networks=["4g"], **LOSSY)
    behind = [row for row in found.robustness if row.best_there != found.best]
    assert behind
    for row in behind:
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.loss <= row.high
    assert any(row.low != row.high for row in behind)
    ahead = [row for row in found.robustness if row not in behind]
    assert all((row.loss, row.low, row.high) == (0, None, None) for row in ahead)


# Parameters


def test_each_scheme_is_tried_with_the_values_that_it_can_have() -> None:
    schemes = [h3sim.load_scheme(name) for name in ("rr", "wrr", "fifo")]
    vary = {"turn_packets": [1, 16], "classes.script.weight": [8, 200], "send_buffer_kb": [0, 14]}
    arms = arms_of(schemes, vary)
    assert [arm.name for arm in arms] == [
        *(f"rr turn_packets={turn} send_buffer_kb={kb}" for turn in (1, 16) for kb in (0, 14)),
        *(f"wrr classes.script.weight={w} send_buffer_kb={kb}" for w in (8, 200) for kb in (0, 14)),
        *(f"fifo send_buffer_kb={kb}" for kb in (0, 14)),
    ]
    assert arms[2].scheme.turn.packets == 16
    weights = {cls.name: cls.weight for cls in arms[6].scheme.classes}
    assert weights == {"document": 256, "script": 200, "font": 16, "other": 8}
    assert arms[1].options == {"send_buffer_kb": 14}


def test_values_that_no_scheme_can_have_are_reported_by_key() -> None:
    schemes = [h3sim.load_scheme(name) for name in ("rr", "fifo")]
    with pytest.raises(InputError) as caught:
        arms_of(schemes, {"classes.font.weight": [8], "turn_packets": [4, 0], "send_buffer_kb": []})
    assert unworded(caught.value.lines()) == unworded(
        [
            "vary.classes.font.weight: no scheme has it: there is no table 'classes.font'",
            "vary.turn_packets: rr: must be at least 1, is 0",
            "vary.send_buffer_kb: at least one value is needed",
        ]
    )
    with pytest.raises(InputError, match="vary: makes 1,001 arms, and may make 1,000"):
        arms_of(schemes[:1], {"turn_packets": list(range(1, 1002))})
    with pytest.raises(InputError, match="vary: must be lists of values by key"):
        h3sim.search("davies-meenan", vary={"turn_packets": 4})  # type: ignore[dict-item]


def test_the_best_parameters_are_found_where_they_are_known() -> None:
    # Two images of ten packets, of which the second is seen and the first is not: the fewer
    # packets a turn has, the later is the one that is seen, and an urgency of its own is best.
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 1400},
        {
            "id": "hidden.png",
            "kind": "image",
            "bytes": 14_000,
            "discovered": {"by": "/", "at": "complete"},
        },
        {
            "id": "hero.css",
            "kind": "stylesheet",
            "bytes": 14_000,
            "above_the_fold": True,
            "discovered": {"by": "/", "at": "complete"},
        },
    )
    found = h3sim.search(
        page,
        schemes=["wrr"],
        vary={"classes.other.weight": [256, 8]},
        baseline="rr",
        networks=[],
    )
    assert found.best == "wrr classes.other.weight=8"
    assert [row.scheme for row in found.rows if row.is_worse] == [
        "wrr classes.other.weight=256",
        "rr",
    ]


def test_a_buffer_is_tried_next_to_schemes_and_the_baseline_stays_as_it_is() -> None:
    found = h3sim.search(
        "davies-meenan",
        schemes=["bucket-html"],
        vary={"send_buffer_kb": [1000, 0]},
        baseline="bucket-html",
        networks=[],
    )
    assert [row.scheme for row in found.rows] == [
        "bucket-html send_buffer_kb=0",
        "bucket-html",
        "bucket-html send_buffer_kb=1000",
    ]
    assert (found.level_with_best, found.gain) == (("bucket-html",), 1)


def test_the_first_result_comes_after_one_load_of_each_scheme() -> None:
    said: list[str] = []
    n_done: list[int] = []
    after: list[int] = []

    def hear(sentence: str) -> None:
        said.append(sentence)
        after.append(n_done[-1])

    found = h3sim.search(
        "davies-meenan",
        schemes=["rr", "fifo", "bucket-html"],
        baseline="rr",
        networks=None,
        network="cable",
        network_within=2,
        n_seeds=4,
        first_result=hear,
        progress=lambda done, _: n_done.append(done),
    )
    assert found.best == "bucket-html"
    (sentence,) = said
    assert "bucket-html has " in sentence
    assert sentence.endswith(" less ByteIndex above the fold than rr")
    assert after == [3] < n_done[-1:]
