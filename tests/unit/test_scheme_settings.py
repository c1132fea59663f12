"""Settings of a scheme's mechanism: turns, what is mixed, and when lost bytes go again."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import h3sim
from h3sim.schedulers import EpsScheduler, Mixed, Quantum, Retransmit, RoundRobinScheduler
from h3sim.schemes import scheme_from_dict
from h3sim.signals import Eps
from h3sim.values.errors import SchemeError
from tests.helpers import scripted_page, unworded
from tests.unit.driving import opened, turns

SHARES = Eps(incremental=True)


def document(**changed: Any) -> dict[str, Any]:
    return {
        "format": "h3sim-scheme/1",
        "name": "mine",
        "title": "Mine",
        "mechanism": "eps",
        "signalling": "server",
        "source": "me",
        "classes": {"all": {}},
        **changed,
    }


def problems(**changed: Any) -> list[str]:
    with pytest.raises(SchemeError) as caught:
        scheme_from_dict(document(**changed))
    return unworded(caught.value.problems)


def test_settings_are_read() -> None:
    scheme = scheme_from_dict(document(mixed="halves", turn_packets=4, retransmission="first"))
    assert (scheme.mixed, scheme.turn) == (Mixed.HALVES, Quantum(packets=4))
    assert scheme.retransmission is Retransmit.FIRST
    assert scheme_from_dict(document(turn_bytes=9)).turn == Quantum(size_bytes=9)
    plain = scheme_from_dict(document())
    assert (plain.mixed, plain.turn, plain.retransmission) == (None, None, None)


def test_settings_reach_the_scheduler() -> None:
    scheme = scheme_from_dict(document(mixed="all-share", turn_packets=2))
    scheduler = scheme.make_scheduler(turn_bytes=1400)
    assert isinstance(scheduler, EpsScheduler)
    assert turns(opened(scheduler, {0: Eps(), 4: SHARES}), 5) == [0, 0, 4, 4, 0]
    scheme = scheme_from_dict(document(mechanism="round-robin", turn_bytes=1500))
    scheduler = scheme.make_scheduler(turn_bytes=1400)
    assert isinstance(scheduler, RoundRobinScheduler)
    assert turns(opened(scheduler, {0: Eps(), 4: SHARES}), 5) == [0, 0, 4, 4, 0]


def test_a_class_of_eps_has_the_defaults_of_the_rfc() -> None:
    """RFC 9218 § 4.1 and § 4.2."""
    entry = scheme_from_dict(document()).classes[0]
    assert (entry.urgency, entry.incremental) == (3, False)


@pytest.mark.parametrize("mechanism", ["fifo", "tree", "zero-weight-tree", "buckets"])
def test_a_mechanism_without_turns_takes_none(mechanism: str) -> None:
    classes = {"all": {"bucket": 1, "level": 1} if mechanism == "buckets" else {}}
    for key in ("turn_packets", "turn_bytes"):
        reported = problems(mechanism=mechanism, classes=classes, **{key: 4})
        assert reported == [f"{key}: is only allowed with the mechanisms 'round-robin' and 'eps'"]
    reported = problems(mechanism=mechanism, classes=classes, mixed="halves")
    assert reported == ["mixed: is only allowed with the mechanism 'eps'"]


def test_every_error_of_a_setting_is_reported() -> None:
    reported = problems(
        mixed="both",
        turn_packets=0,
        turn_bytes=2,
        retransmission="never",
        classes={"all": {"urgency": 8, "incremental": 1, "weight": 3}},
    )
    rules = "non-incremental-first, shared-list, halves, halves-incremental-first, "
    rules += "first-turn, all-share"
    assert reported == unworded(
        [
            f"mixed: 'both' is not one of {rules}",
            "turn_packets: must be at least 1, is 0",
            "turn_bytes: give packets or bytes, not both",
            "retransmission: 'never' is not one of first, priority, turn",
            "classes.all.urgency: must be 0 to 7, is 8",
            "classes.all.incremental: is 1",
            "classes.all.weight: unknown key; allowed are urgency, incremental",
        ]
    )


def test_an_urgency_goes_only_with_eps() -> None:
    reported = problems(mechanism="tree", classes={"all": {"urgency": 1}})
    assert reported == ["classes.all.urgency: unknown key; allowed are weight, group, arrangement"]


PAGE = scripted_page([(0, "document", 40), (0, "image", 40)])
ALL = {"all": {"incremental": True}}
LOSSY: dict[str, Any] = {"network": "sander-2mbps-100ms-5pct", "seed": 3}


def order_of(profile: str, **changed: Any) -> list[int]:
    scheme = scheme_from_dict(document(classes=ALL, **changed))
    return h3sim.simulate(PAGE, scheme=scheme, transport_profile=profile, **LOSSY).trace.order


def test_an_option_takes_precedence_over_the_scheme() -> None:
    scheme = scheme_from_dict(document(classes=ALL, retransmission="first"))
    load = h3sim.simulate(
        PAGE, scheme=scheme, transport_profile="quicly", retransmission_order="turn", **LOSSY
    )
    assert load.trace.order == order_of("quicly", retransmission="turn")


def test_ranks_need_to_know_what_they_are_by() -> None:
    assert problems(mechanism="ranks") == [
        "rank_by: is required with the mechanism 'ranks', and only allowed there"
    ]
    assert problems(rank_by="critical-path") == [
        "rank_by: is required with the mechanism 'ranks', and only allowed there"
    ]
    assert "rank_by: 'size' is not one of critical-path, above-the-fold" in problems(
        mechanism="ranks", rank_by="size"
    )


def test_every_error_of_a_rule_is_reported() -> None:
    reported = problems(rules=[{"class": "all", "fetchpriority": "urgent", "first_images": 0}])
    assert reported == unworded(
        [
            "rules[0].fetchpriority: 'urgent' is not one of high, low, auto",
            "rules[0].first_images: must be at least 1, is 0",
        ]
    )


def test_the_scheme_orders_retransmissions_and_else_the_profile() -> None:
    # quicly sends lost bytes in the turn of their stream, where nothing else is said.
    unsaid, first, turn = (
        order_of("quicly"),
        order_of("quicly", retransmission="first"),
        order_of("quicly", retransmission="turn"),
    )
    assert unsaid == turn
    assert unsaid != first


def test_a_scheme_that_was_used_is_pickled_with_what_it_remembers() -> None:
    scheme = h3sim.load_scheme("chrome-eps")
    load = h3sim.simulate("davies-meenan", scheme=scheme)
    copied = pickle.loads(pickle.dumps(scheme))
    assert copied == scheme
    assert h3sim.simulate("davies-meenan", scheme=copied).trace.digest() == load.trace.digest()
