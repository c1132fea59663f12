"""What a server keeps of the tree: how many placeholders, and for how long closed streams."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

import h3sim
from h3sim.signals import H2Priority
from h3sim.values.errors import InputError
from tests.helpers import replay, scripted_page

FIREFOX = [
    (0, "document", 1),
    (0, "script", 1, {"in_head": True}),
    (0, "fetch", 1),
    (0, "image", 1),
]


def message(load: Any) -> list[tuple[int, int | None, int]]:
    """Return what the server was told: of whom, below whom, with what weight."""
    return [
        (s.element_id, s.signal.depends_on, s.signal.weight)
        for s in load.trace.signals
        if isinstance(s.signal, H2Priority)
    ]


class TestPlaceholders:
    def test_without_a_limit_all_are_declared(self) -> None:
        load = replay(FIREFOX, "firefox-draft-20")
        assert [element_id for element_id, *_ in message(load)[:6]] == [-1, -2, -3, -4, -5, -6]

    def test_what_is_not_declared_hangs_where_it_would(self) -> None:
        # Declared are leaders (-1), unblocked (-2) and background (-3); followers stood below
        # leaders, urgent-start at the root.
        load = replay(FIREFOX, "firefox-draft-20", max_placeholders=3)
        assert message(load) == [
            (-1, None, 201),
            (-2, None, 101),
            (-3, None, 1),
            (0, None, 42),
            (4, -1, 32),
            (8, -2, 32),
            (12, -1, 22),
        ]

    def test_without_any_all_share_at_the_root(self) -> None:
        load = replay(FIREFOX, "firefox-draft-20", max_placeholders=0)
        assert message(load) == [(0, None, 42), (4, None, 32), (8, None, 32), (12, None, 22)]

    def test_a_group_that_is_not_there_yields_to_nobody(self) -> None:
        load = replay([(0, "document", 1), (0, "image", 3)], "p+", max_placeholders=0)
        assert all(element_id >= 0 for element_id, *_ in message(load))

    def test_the_limit_goes_with_strict_priorities_too(self) -> None:
        load = replay([(0, "document", 1)], "swett", max_placeholders=0)
        assert [s.element_id for s in load.trace.signals] == [0]

    def test_the_limit_is_in_the_json_of_the_load(self) -> None:
        load = replay(FIREFOX, "firefox-h2", max_placeholders=2)
        assert load.configuration["max_placeholders"] == 2
        assert h3sim.export.load_from_dict(load.to_dict()).run().trace == load.trace


class TestRetention:
    PAGE = scripted_page(
        [(0, "document", 1), (0, "image", 40), (100, "script", 1), (130, "script", 9)]
    )

    def runs(self, **options: Any) -> str:
        load = h3sim.simulate(self.PAGE, scheme="chrome-h2", rtt_ms=100, handshake=False, **options)
        names = ["D", "I", "s", "S"]
        order = (names[stream_id // 4] for stream_id in load.trace.order)
        return " ".join(f"{name}*{len(list(run))}" for name, run in groupby(order))

    def test_a_stream_can_be_put_below_one_that_was_closed(self) -> None:
        # The large script comes at 180, below the small one, whose only packet left at 150.
        assert self.runs() == "D*1 I*9 s*1 I*2 S*9 I*29"

    def test_a_parent_that_the_server_forgot_makes_siblings(self) -> None:
        # Marx 2019, Fig. 3: below the root, with weight 16 beside an image of 183, which gets 11 or
        # 12 turns for each of the script; the script's first turn ends 11.4 of the image's later.
        order = self.runs(closed_stream_retention_ms=0)
        assert order == "D*1 I*9 s*1 I*13 S*1 I*11 S*1 I*7 S*7"

    def test_how_long_decides(self) -> None:
        # It is spoken of 30 ms after it was closed.
        assert self.runs(closed_stream_retention_ms=29.9) == self.runs(closed_stream_retention_ms=0)
        assert self.runs(closed_stream_retention_ms=31) == self.runs()

    def test_draft_22_puts_it_below_the_orphan_placeholder(self) -> None:
        steps = [(0, "document", 1), (130, "image", 4), (130, "image", 4)]
        kept = replay(steps, "fifo-draft-22", rtt_ms=100, handshake=False)
        gone = replay(
            steps, "fifo-draft-22", rtt_ms=100, handshake=False, closed_stream_retention_ms=0
        )
        assert kept.trace.order == gone.trace.order == [0] + [4] * 4 + [8] * 4

    def test_a_scheme_file_can_state_both(self) -> None:
        document = {
            "format": "h3sim-scheme/1",
            "name": "forgets",
            "title": "",
            "source": "",
            "mechanism": "tree",
            "signalling": "h2",
            "max_placeholders": 1,
            "retention_ms": 2.5,
            "classes": {"all": {}},
        }
        scheme = h3sim.schemes.scheme_from_dict(document)
        assert (scheme.max_placeholders, scheme.retention_ns) == (1, 2_500_000)
        assert h3sim.schemes.scheme_to_dict(scheme) == document | {"otherwise": "all"}
        load = h3sim.simulate(scripted_page([(0, "document", 1)]), scheme=scheme)
        assert load.configuration["closed_stream_retention_ms"] == 2.5

    def test_a_negative_one_is_refused(self) -> None:
        with pytest.raises(InputError, match="closed_stream_retention_ms: "):
            h3sim.LoadConfig(closed_stream_retention_ms=-1)
