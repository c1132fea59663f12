"""nginx's queue by depth and share, worked by hand, and the orders that nginx 1.22.1 sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.schedulers import RankedTreeScheduler
from tests.unit.driving import on, opened

if TYPE_CHECKING:
    from h3sim.signals import H2Priority


def sent(tree: RankedTreeScheduler, n_turns: int = 3) -> list[int]:
    """Return the order in which streams send *n_turns* packets each."""
    left: dict[int, int] = {}
    order: list[int] = []
    while (stream_id := tree.pick()) is not None:
        order.append(stream_id)
        tree.charge(stream_id, 1400)
        left[stream_id] = left.get(stream_id, 0) + 1
        if left[stream_id] == n_turns:
            tree.deactivate(stream_id)
            tree.close(stream_id)
    return order


@pytest.mark.parametrize(
    ("signals", "order"),
    [
        ({3: on(None, 16), 5: on(None, 16), 7: on(None, 16)}, [3, 5, 7]),
        ({3: on(None, 1), 5: on(None, 16), 7: on(None, 256)}, [7, 5, 3]),
    ],
)
def test_responses_go_whole_as_nginx_sent_them(
    signals: dict[int, H2Priority], order: list[int]
) -> None:
    tree = opened(RankedTreeScheduler(), signals)
    assert sent(tree) == [stream_id for stream_id in order for _ in range(3)]


def test_one_that_is_put_above_all_goes_first_as_nginx_sent_it() -> None:
    tree = opened(RankedTreeScheduler(), {3: on(None, 16), 5: on(None, 16)})
    tree.open(7, on(None, 16, exclusive=True))
    tree.activate(7)
    assert sent(tree, 1) == [7, 3, 5]


def test_depth_comes_before_share_and_share_is_that_of_the_root() -> None:
    # 5 has 256/256 of 1/256; 9 has 16/256 of 200/256, and 11 the same depth but 32/256 of it.
    tree = opened(RankedTreeScheduler(), {3: on(None, 1), 7: on(None, 200)})
    opened(tree, {5: on(3, 256), 9: on(7, 16), 11: on(7, 32)})
    assert sent(tree, 1) == [7, 3, 11, 9, 5]


def test_a_new_priority_and_a_pause_change_the_order() -> None:
    tree = opened(RankedTreeScheduler(), {3: on(None, 16), 5: on(None, 16)})
    assert tree.pick() == 3
    tree.update(5, on(None, 17))
    assert tree.pick() == 5
    tree.update(5, on(None, 16))
    tree.deactivate(3)
    tree.activate(3)  # behind 5 now
    assert tree.pick() == 5


def test_nginx_sends_chrome_in_its_chain_and_firefox_nearly_so() -> None:
    by_server = {
        (client, server): h3sim.simulate("davies-meenan", client=client, server=server)
        for client in ("chrome", "edge")
        for server in ("nginx", "rfc7540", "msquic")
    }
    chrome = by_server["chrome", "nginx"].trace.order
    assert chrome == by_server["chrome", "rfc7540"].trace.order
    assert by_server["edge", "nginx"].trace.order == by_server["edge", "msquic"].trace.order
