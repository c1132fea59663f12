"""How `make validate-answers` goes from loads to choices, on tables made up by hand."""

from __future__ import annotations

import math

import pytest

from validation.answers import (
    CLIENTS,
    NETWORKS,
    best_action,
    differences,
    holds,
    in_pairs,
    informed,
    logs_of,
    minimax_action,
    regrets,
)
from validation.estimates import estimate

STATES = [(client, network) for client in CLIENTS for network in NETWORKS]
SITES = ["a", "b", "c"]


def made_up(**factors: dict[str, float]) -> dict:  # type: ignore[type-arg]
    """Return logarithms: each action's factor per client, the same for all networks and sites."""
    return {
        (client, network): {
            action: {site: math.log(100 * by_client.get(client, 1.0)) for site in SITES}
            for action, by_client in factors.items()
        }
        for client, network in STATES
    }


# "good" is best for most users, and bad for the few of Firefox; "even" is never far behind.
LOGS = made_up(good={"firefox": 2.0}, even=dict.fromkeys(CLIENTS, 1.1), bad={"chrome": 3.0})


def test_the_best_on_average_and_the_least_regret_differ() -> None:
    weights = {state: CLIENTS[state[0]] * NETWORKS[state[1]] for state in STATES}
    assert best_action(LOGS, SITES, weights) == "good"
    assert minimax_action(LOGS, SITES) == "even"
    behind = regrets(LOGS, SITES)["firefox", "cable"]
    assert behind == {"good": pytest.approx(100), "even": pytest.approx(10), "bad": 0}


def test_who_knows_the_client_takes_the_best_of_each() -> None:
    policy = informed(LOGS, SITES, lambda state: state[0])
    assert [policy((client, "4g")) for client in ("chrome", "firefox")] == ["good", "bad"]
    gain = differences(LOGS, policy, "good", SITES)
    assert gain == pytest.approx([-CLIENTS["firefox"] * math.log(2)] * 3)
    # The networks are all alike, so to know one is worth nothing.
    blind = informed(LOGS, SITES, lambda state: state[1])
    assert differences(LOGS, blind, "good", SITES) == [0, 0, 0]


def test_a_site_counts_once_whatever_its_pages_and_seeds() -> None:
    class Sites:
        def of(self, page: str) -> str:
            return page[0]

    rows = [
        {"page": page, "scheme": "rr", "lcp": value}
        for page, value in (("a1", 100), ("a2", 400), ("b1", 50), ("b1", None))
    ]
    found = logs_of(
        rows,
        "lcp",
        state=lambda _: 0,
        action=lambda row: row["scheme"],
        sites=Sites(),  # type: ignore[arg-type]
    )
    assert {site: math.exp(log) for site, log in found[0]["rr"].items()} == pytest.approx(
        {"a": 200, "b": 50}
    )


def test_a_load_that_did_not_end_takes_its_pair_out() -> None:
    cell = {"cc": "bbr", "queue_discipline": "drop-tail", "loss": 0.1, "mean_loss_burst": 16}
    ended = [("a", 0, "fifo"), ("a", 0, "rr"), ("a", 1, "rr"), ("b", 1, "fifo")]
    rows = [{"page": page, "seed": seed, "scheme": name, **cell} for page, seed, name in ended]
    assert [(row["page"], row["seed"]) for row in in_pairs(rows)] == [("a", 0), ("a", 0)]


def test_a_larger_family_has_wider_intervals() -> None:
    logs = [0.1, 0.3, 0.2, 0.25, 0.05, 0.4, 0.15]
    one, many = estimate(logs), estimate(logs, family=40)
    assert one.mean == many.mean == pytest.approx(100 * math.expm1(sum(logs) / 7))
    assert one.low is not None
    assert many.low is not None
    assert many.low < one.low
    assert one.is_sure
    assert not estimate([-0.1, 0.1, 0.05]).is_sure


@pytest.mark.parametrize(
    ("signs", "letters"),
    [
        ((1, 1, 1, 1, 1, 1, 1), "a b c d"),
        ((1, -1, 1, 1, 1, 1, 1), "b c d"),
        ((1, 1, -1, -1, 1, 1, 1), "a d"),
        ((-1, 1, -1, 1, -1, 1, -1), "none"),
    ],
)
def test_a_letter_needs_the_same_sign_in_all_its_variants(
    signs: tuple[int, ...], letters: str
) -> None:
    base = estimate([0.1, 0.2, 0.1, 0.2] * 2)
    others = [estimate([sign * 0.1, sign * 0.2] * 4) for sign in signs]
    assert holds(base, others) == letters


def test_what_is_not_sure_on_the_web_does_not_survive() -> None:
    unsure = estimate([0.1, -0.2] * 4)
    assert holds(unsure, [estimate([0.1, 0.2] * 4)] * 7) == "undecided"
