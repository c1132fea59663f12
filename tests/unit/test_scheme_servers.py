"""nghttp2, h2o-h2 and ats by hand: one client's tree, three servers.

Fonts have weight 42 and images 22, both among the followers. A packet of 1400 bytes costs 8533 1/3
and 16,290 10/11; a turn in the calendar 1.5 and 2.864 slots. Leaders have 201, what is unblocked
101: 1783.08 and 3548.51, or .3134 and .6238 slots.
"""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.schedulers import TreeScheduler
from h3sim.values.units import ms
from tests.helpers import replay

FONT_AND_IMAGE = [(0, "font", 4), (0, "image", 3)]
LEADER_AND_UNBLOCKED = [(0, "script", 5), (0, "fetch", 3)]
LATE_FONT = [(0, "image", 5), (25, "font", 3)]


def order(steps: list[tuple[Any, ...]], scheme: str) -> list[int]:
    return replay(steps, scheme).trace.order


class TestNghttp2:
    def test_siblings(self) -> None:
        # Font 0, 8533, 17066, 25600 (the remainders make one more). Image 0, 16290, 32581.
        assert order(FONT_AND_IMAGE, "nghttp2") == [0, 4, 0, 4, 0, 0, 4]

    def test_groups(self) -> None:
        # Leaders 0, 1783, 3566, 5349, 7132. Unblocked 0, 3548, 7097.
        assert order(LEADER_AND_UNBLOCKED, "nghttp2") == [0, 4, 0, 4, 0, 0, 4, 0]

    def test_who_joins_starts_at_the_cycle_served_last(self) -> None:
        # Image 0, 16290, 32581. The font joins at 16290: 16290, 24823, 33356.
        assert order(LATE_FONT, "nghttp2") == [0, 0, 4, 4, 0, 4, 0, 0]


class TestH2o:
    def test_siblings(self) -> None:
        # Font in slots 1, 3, 4, 6. Image 2 (.864), 5 (.727), 8.
        assert order(FONT_AND_IMAGE, "h2o-h2") == [0, 4, 0, 0, 4, 0, 4]

    def test_groups(self) -> None:
        # Leaders .313, .627, .940 in slot 0, 1.254, 1.567 in slot 1. Unblocked .624 in slot 0,
        # 1.248, 1.871 in slot 1. In slot 0: 0 4, then 0 0. In slot 1 first come, first served:
        # 4 (listed second), 0 (fourth), 4 (fifth), 0 (sixth).
        assert order(LEADER_AND_UNBLOCKED, "h2o-h2") == [0, 4, 0, 0, 4, 0, 4, 0]

    def test_who_joins_starts_a_turn_behind_the_slot_served_last(self) -> None:
        # Image 2, 5, 8. The font joins 5 + 1: 6, 8 (behind the image there), 9.
        assert order(LATE_FONT, "h2o-h2") == [0, 0, 4, 0, 4, 4, 0, 0]


class TestAts:
    def test_siblings(self) -> None:
        # Font 0, 8533, 17066, 25599. Image 4, 16294, 32584.
        assert order(FONT_AND_IMAGE, "ats") == [0, 4, 0, 4, 0, 0, 4]

    def test_groups(self) -> None:
        # Groups begin with their numbers. Leaders 1, 1784, 3567, 5350, 7133.
        # Unblocked 3, 3551, 7099.
        assert order(LEADER_AND_UNBLOCKED, "ats") == [0, 4, 0, 4, 0, 0, 4, 0]

    def test_who_joins_late_catches_up(self) -> None:
        # Image 0, 16290, 32580. The font begins with 4: 4, 8537, 17070.
        assert order(LATE_FONT, "ats") == [0, 0, 4, 4, 4, 0, 0, 0]


def calls(scheme: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return what the tree is told of two images that are asked for at one instant."""
    reported: list[tuple[str, int]] = []

    def noting(name: str) -> None:
        method = getattr(TreeScheduler, name)

        def noted(tree: TreeScheduler, stream_id: int, *rest: Any) -> Any:
            if stream_id >= 0:
                reported.append((name, stream_id))
            return method(tree, stream_id, *rest)

        monkeypatch.setattr(TreeScheduler, name, noted)

    for name in ("open", "activate", "close"):
        noting(name)
    replay([(0, "image", 1), (0, "image", 1)], scheme)
    return reported


def test_nghttp2_reads_all_requests_before_a_response_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """session_after_frame_sent1: a body joins the tree once its headers were sent."""
    assert calls("nghttp2", monkeypatch)[:4] == [
        ("open", 0),
        ("open", 4),
        ("activate", 0),
        ("activate", 4),
    ]


def test_h2o_lists_a_response_before_it_reads_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """h2o_http2_conn_register_for_proceed_callback is called while a request is handled."""
    assert calls("h2o-h2", monkeypatch)[:4] == [
        ("open", 0),
        ("activate", 0),
        ("open", 4),
        ("activate", 4),
    ]


@pytest.mark.parametrize(("scheme", "n_closed"), [("nghttp2", 1), ("h2o-h2", 1), ("ats", 0)])
def test_streams_close_with_their_last_frame_and_not_500_ms_later(
    scheme: str, n_closed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The load ends, and with it all events, when the second image is there.
    assert [name for name, _ in calls(scheme, monkeypatch)].count("close") == n_closed


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        # Script of weight 32: 0, 11200, ... Followers: 0, 358400; there they were listed first.
        ("nghttp2", [0, 4, *[0] * 31, 4, 0]),
        # Script: n * 1.96875, and so in slot 63 with its 32nd packet. Followers: 63, listed first.
        ("h2o-h2", [*[0] * 31, 4, 0, 0, 4]),
        # Script: 0, 11200, ..., 358400. Followers, number 2: 2, 358402.
        ("ats", [0, 4, *[0] * 32, 4]),
    ],
)
def test_followers_get_one_turn_for_thirty_two_of_a_leader(
    scheme: str, expected: list[int]
) -> None:
    assert order([(0, "script", 33), (0, "image", 2)], scheme) == expected


@pytest.mark.parametrize("name", ["nghttp2", "h2o-h2"])
def test_a_server_of_http_2_forgets_what_is_closed_by_its_own_rules(name: str) -> None:
    """What nghttp2 keeps of the tree it counts in nodes, and h2o keeps nothing; no time runs."""
    assert h3sim.load_scheme(name).resolved_retention_ns == 0
    assert h3sim.load_scheme("fifo-h2").resolved_retention_ns == ms(500)
