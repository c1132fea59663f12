"""Exact virtual time where somebody is alone, and where a turn carries little or nothing.

A turn of 1400 bytes costs 22,400 at weight 16. Who joins starts a turn of 1400 behind the one that
was served last; equal times go to the lower id, and to streams before placeholders.
"""

from __future__ import annotations

import pytest

from h3sim.schedulers import TreeScheduler
from tests.unit.driving import on, opened, turns


def alone(weight: int = 16) -> TreeScheduler:
    """Return stream 4, which has data; stream 0 goes before it where both are due."""
    return opened(TreeScheduler(), {4: on(None, weight)})


@pytest.mark.parametrize("n_bytes", [0, 1, 2, 1399])
def test_who_is_alone_is_charged_what_it_sent(n_bytes: int) -> None:
    # It is due after n bytes, and 0 joins 1400 behind its last turn.
    tree = alone()
    assert turns(tree, 1, n_bytes=n_bytes) == [4]
    opened(tree, {0: on(None)})
    assert turns(tree, 2) == [4, 0]


def test_of_turns_alone_the_last_counts() -> None:
    for first, last, order in ((1400, 700, [4, 0]), (700, 1400, [0, 4])):
        tree = alone()
        assert turns(tree, 1, n_bytes=first) == [4]
        assert turns(tree, 1, n_bytes=last) == [4]
        opened(tree, {0: on(None)})
        assert turns(tree, 2) == order


def test_who_is_alone_is_charged_at_its_new_weight() -> None:
    # At weight 32 the same bytes cost 11,200, and 0 joins at 22,400.
    tree = alone()
    assert turns(tree, 1) == [4]
    tree.update(4, on(None, 32))
    assert turns(tree, 1) == [4]
    opened(tree, {0: on(None)})
    assert turns(tree, 3) == [4, 0, 4]


def test_who_is_alone_again_leaves_the_turns_of_others_behind() -> None:
    # 8 joins at 1400, has a turn there and leaves. 4 goes, is due a turn later, and so is 0.
    tree = alone()
    assert turns(tree, 1) == [4]
    opened(tree, {8: on(None, 256)})
    assert turns(tree, 1) == [8]
    tree.deactivate(8)
    assert turns(tree, 1) == [4]
    opened(tree, {0: on(None)})
    assert turns(tree, 4) == [0, 4, 0, 4]


def test_a_turn_of_nothing_alone_is_not_taken_for_one_before_company() -> None:
    # 4 sends nothing, alone: due at once. Beside 8, due at 22,400, it sends 2800 and is due behind
    # it. Alone once more it sends nothing: due at once, before 0, which joins 22,400 behind.
    tree = alone()
    assert turns(tree, 1, n_bytes=0) == [4]
    opened(tree, {8: on(None)})
    assert turns(tree, 1, n_bytes=2800) == [4]
    assert tree.pick() == 8
    tree.deactivate(8)
    assert turns(tree, 1, n_bytes=0) == [4]
    opened(tree, {0: on(None)})
    assert turns(tree, 2) == [4, 0]


def test_a_group_that_is_alone_pays_a_turn_whatever_was_sent_below_it() -> None:
    tree = opened(TreeScheduler(), {-1: on(None), 4: on(-1)})
    assert turns(tree, 2, n_bytes=1) == [4, 4]
    # Both are due at 22,400.
    opened(tree, {8: on(None)})
    assert turns(tree, 4) == [8, 4, 8, 4]


def test_streams_go_before_placeholders_whatever_their_ids() -> None:
    # Ids of streams are below 2^62 (RFC 9000 § 2.1).
    last = 2**62 - 4
    tree = opened(TreeScheduler(), {-1: on(None), 4: on(-1), last: on(None)})
    assert turns(tree, 4) == [last, 4, last, 4]
