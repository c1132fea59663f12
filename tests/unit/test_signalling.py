"""How signals come to the server: what `PriorityReceiver` makes of them, and who carries them."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.engine.signalling import OracleSignalling, WireSignalling
from h3sim.http import PriorityReceiver, StreamSender
from h3sim.schedulers import Queueing, TreeScheduler, UnknownParent, Weights
from h3sim.schemes import Policy, scheme_from_dict
from h3sim.signals import (
    ORPHANS,
    BucketPriority,
    Eps,
    H2Priority,
    Signal,
    SignalChange,
    Signalling,
    StrictPriority,
)
from h3sim.values.errors import SchemeError
from tests.unit.driving import on, opened, turns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.http import SchedulerUpdate
    from h3sim.page import Resource, ResourceState

DEFAULT = H2Priority()
ORPHAN = H2Priority(depends_on=ORPHANS)
CONTROL = (Signalling.DRAFT_20_CONTROL, Signalling.DRAFT_22, Signalling.DRAFT_22_ROOT)
"""All on the control stream, the first signal of a stream included."""
TREES = (Signalling.H2, Signalling.DRAFT_20, *CONTROL)


def heard(changes: Iterable[SchedulerUpdate]) -> list[tuple[str, int, Signal]]:
    return [("open" if c.opens else "update", c.element_id, c.signal) for c in changes]


class TestPriorityReceiver:
    @pytest.mark.parametrize("signalling", [Signalling.H2, Signalling.DRAFT_20])
    def test_a_request_carries_the_position_of_its_stream(self, signalling: Signalling) -> None:
        receiver = PriorityReceiver(signalling)
        assert heard(receiver.on_request(0, on(None, 7))) == [("open", 0, on(None, 7))]
        assert heard(receiver.on_request(4, None)) == [("open", 4, DEFAULT)]

    def test_in_draft_22_a_stream_is_an_orphan_until_it_is_spoken_of(self) -> None:
        receiver = PriorityReceiver(Signalling.DRAFT_22)
        assert heard(receiver.on_request(0, None)) == [("open", 0, ORPHAN)]
        assert heard(receiver.on_message(0, on(None, 7))) == [("update", 0, on(None, 7))]

    @pytest.mark.parametrize("signalling", [Signalling.DRAFT_20_CONTROL, Signalling.DRAFT_22_ROOT])
    def test_without_orphans_a_stream_is_below_the_root_with_weight_16_until_its_frame_arrives(
        self, signalling: Signalling
    ) -> None:
        """Marx 2019 §§ 3.1 and 3.2."""
        receiver = PriorityReceiver(signalling)
        assert heard(receiver.on_request(0, None)) == [("open", 0, on(None, 16))]
        assert heard(receiver.on_message(0, on(-1, 7))) == [("update", 0, on(-1, 7))]

    @pytest.mark.parametrize("signalling", TREES)
    def test_the_control_stream_counts_although_the_request_comes_later(
        self, signalling: Signalling
    ) -> None:
        """It was said later than what the request says of itself (draft-20 § 3.1 of Marx 2019)."""
        receiver = PriorityReceiver(signalling)
        assert heard(receiver.on_message(4, on(None, 3))) == [("open", 4, on(None, 3))]
        assert heard(receiver.on_message(4, on(None, 5))) == [("update", 4, on(None, 5))]
        assert receiver.on_request(4, on(None, 7)) == []

    @pytest.mark.parametrize("signalling", TREES)
    def test_a_frame_for_a_closed_stream_is_dropped(self, signalling: Signalling) -> None:
        receiver = PriorityReceiver(signalling)
        receiver.on_request(0, on(None))
        receiver.on_closed(0)
        assert receiver.on_message(0, on(None, 9)) == []

    @pytest.mark.parametrize(
        ("signalling", "expected"),
        [
            (Signalling.H2, on(0, 9, exclusive=True)),
            (Signalling.DRAFT_20, on(None, 9)),
            (Signalling.DRAFT_20_CONTROL, on(None, 9)),
            (Signalling.DRAFT_22, on(ORPHANS, 9)),
            (Signalling.DRAFT_22_ROOT, on(None, 9)),
        ],
    )
    def test_a_parent_that_was_closed_is_not_waited_for(
        self, signalling: Signalling, expected: H2Priority
    ) -> None:
        """HTTP/2 leaves it to the tree, which then gives the default (RFC 7540 § 5.3.1)."""
        receiver = PriorityReceiver(signalling)
        receiver.on_request(0, None)
        receiver.on_request(4, None)
        receiver.on_closed(0)
        below = on(0, 9, exclusive=True)
        assert heard(receiver.on_message(4, below)) == [("update", 4, expected)]
        assert heard(receiver.on_message(8, below)) == [("open", 8, expected)]

    @pytest.mark.parametrize("signalling", TREES)
    def test_a_parent_that_is_still_to_come_is_named(self, signalling: Signalling) -> None:
        receiver = PriorityReceiver(signalling)
        assert heard(receiver.on_message(4, on(0, 9))) == [("open", 4, on(0, 9))]

    def test_placeholders_are_opened_and_changed_by_frames(self) -> None:
        receiver = PriorityReceiver(Signalling.DRAFT_20)
        assert heard(receiver.on_message(-1, on(None, 3))) == [("open", -1, on(None, 3))]
        assert heard(receiver.on_message(-1, on(None, 1))) == [("update", -1, on(None, 1))]

    def test_what_nobody_spoke_of_has_the_default_weight_of_the_tree(self) -> None:
        """0 where 0 is a weight (base-drafts PR 2723)."""
        receiver = PriorityReceiver(Signalling.DRAFT_22, default_weight=Weights.ZERO_LAST.default)
        assert heard(receiver.on_request(0, None)) == [("open", 0, on(ORPHANS, 0))]

    def test_a_priority_update_before_the_request_takes_the_place_of_its_field(self) -> None:
        """RFC 9218 § 7; a stream is not opened before its request."""
        receiver = PriorityReceiver(Signalling.EPS)
        assert receiver.on_message(0, Eps(urgency=1)) == []
        assert receiver.on_message(0, Eps(urgency=2, incremental=True)) == []
        message = receiver.on_request(0, Eps(urgency=5))
        assert heard(message) == [("open", 0, Eps(urgency=2, incremental=True))]

    def test_a_priority_update_replaces_all_that_the_request_stated(self) -> None:
        receiver = PriorityReceiver(Signalling.EPS)
        receiver.on_request(0, Eps(urgency=5, incremental=True))
        assert heard(receiver.on_message(0, Eps(urgency=1))) == [("update", 0, Eps(urgency=1))]
        assert receiver.on_message(0, Eps(urgency=1)) == []
        receiver.on_closed(0)
        assert receiver.on_message(0, Eps(urgency=7)) == []

    def test_a_place_by_strict_priority_is_heard_like_one_in_a_tree(self) -> None:
        receiver = PriorityReceiver(Signalling.DRAFT_20)
        position = StrictPriority(strict=9, depends_on=-1)
        assert heard(receiver.on_message(-1, StrictPriority(strict=1))) == [
            ("open", -1, StrictPriority(strict=1))
        ]
        assert heard(receiver.on_request(0, position)) == [("open", 0, position)]

    def test_a_signal_of_another_kind_opens_nothing_before_its_request(self) -> None:
        bucket = BucketPriority(bucket=1, level=1)
        assert PriorityReceiver(Signalling.H2).on_message(0, bucket) == []


class Log:
    """A scheduler that writes down what it is told."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, int, Signal | None]] = []

    def open(self, stream_id: int, signal: Signal) -> None:
        self.reported.append(("open", stream_id, signal))

    def update(self, stream_id: int, signal: Signal) -> None:
        self.reported.append(("update", stream_id, signal))

    def activate(self, stream_id: int) -> None:
        raise AssertionError("nothing has data")

    def deactivate(self, stream_id: int) -> None:
        raise AssertionError("nothing has data")

    def close(self, stream_id: int) -> None:
        self.reported.append(("close", stream_id, None))

    def pick(self) -> int | None:
        return None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        raise AssertionError("nothing is sent")


class Talker(Policy):
    """A policy: a placeholder; each request raises the stream before it; an end lowers -1."""

    def on_connected(self) -> list[SignalChange]:
        return [(-1, on(None, 2))]

    def on_requested(self, stream_id: int, resource: Resource) -> list[SignalChange]:
        before = [(stream_id - 4, on(-1, 99))] if stream_id else []
        return [*before, (stream_id, on(-1, 10 + stream_id))]

    def on_changed(self, resource: Resource | None, change: ResourceState) -> list[SignalChange]:
        return []

    def on_closed(self, stream_id: int) -> list[SignalChange]:
        return [(-1, on(None, 100 + stream_id))]


SOME: Any = None
"""A resource that nobody looks at."""


def talking(signalling: Signalling) -> tuple[Log, WireSignalling, list[tuple[int, int]]]:
    log, sent = Log(), list[tuple[int, int]]()
    server = StreamSender(log, turn_bytes=1400)
    signals = WireSignalling(
        Talker(),
        server,
        signalling,
        lambda number, size: sent.append((number, size)),
        message_bytes=signalling.message_bytes(is_http2=False),
    )
    return log, signals, sent


class TestWireSignalling:
    @pytest.mark.parametrize(
        ("signalling", "n_bytes"),
        [(Signalling.H2, 14), (Signalling.DRAFT_20, 8), *((way, 8) for way in CONTROL)],
    )
    def test_only_on_the_control_stream_a_request_needs_a_frame_for_itself(
        self, signalling: Signalling, n_bytes: int
    ) -> None:
        _, signals, sent = talking(signalling)
        signals.on_connected()
        assert sent == [(0, n_bytes)]
        signals.on_requested(0, SOME)
        signals.on_requested(4, SOME)
        n_frames = 1 + (3 if signalling in CONTROL else 1)
        assert sent == [(number, n_bytes) for number in range(n_frames)]
        signals.on_finished(0)
        assert sent[-1] == (n_frames, n_bytes)

    @pytest.mark.parametrize("signalling", TREES)
    def test_nothing_is_heard_before_it_comes(self, signalling: Signalling) -> None:
        log, signals, _ = talking(signalling)
        signals.on_connected()
        signals.on_requested(0, SOME)
        signals.on_finished(0)
        assert log.reported == [] == signals.record

    def test_draft_20_hears_a_request_at_once_and_frames_in_their_order(self) -> None:
        log, signals, _ = talking(Signalling.DRAFT_20)
        signals.on_connected()
        signals.on_requested(0, SOME)
        signals.on_requested(4, SOME)
        signals.on_request_arrived(4, SOME, 50)
        signals.on_message_arrived(1, 51)
        assert log.reported == [("open", 4, on(-1, 14))]
        signals.on_message_arrived(0, 60)
        # The frame says of stream 0, whose request is still to come, more than that will.
        assert log.reported[1:] == [("open", -1, on(None, 2)), ("open", 0, on(-1, 99))]
        signals.on_request_arrived(0, SOME, 70)
        assert len(log.reported) == 3
        assert [reported[:2] for reported in signals.record] == [
            (50, 4),
            (60, -1),
            (60, 0),
        ]

    def test_draft_22_holds_back_all_behind_a_frame_that_is_missing(self) -> None:
        log, signals, _ = talking(Signalling.DRAFT_22)
        signals.on_connected()
        signals.on_requested(0, SOME)
        signals.on_requested(4, SOME)
        for number in (1, 3, 2):
            signals.on_message_arrived(number, 50)
        signals.on_request_arrived(0, SOME, 50)
        assert log.reported == [("open", 0, ORPHAN)]
        signals.on_message_arrived(0, 60)
        assert log.reported[1:] == [
            ("open", -1, on(None, 2)),
            ("update", 0, on(-1, 10)),
            ("update", 0, on(-1, 99)),
            ("open", 4, on(-1, 14)),
        ]

    def test_what_was_stated_of_a_stream_that_has_gone_is_not_passed_on(self) -> None:
        log, signals, _ = talking(Signalling.DRAFT_22)
        signals.on_connected()
        signals.on_requested(0, SOME)
        signals.on_request_arrived(0, SOME, 50)
        signals.on_closed(0, 60)
        for number in (0, 1):
            signals.on_message_arrived(number, 70)
        assert log.reported == [("open", 0, ORPHAN), ("open", -1, on(None, 2))]

    def test_known_signals_are_heard_with_the_request_and_at_the_end(self) -> None:
        log = Log()
        signals = OracleSignalling(Talker(), StreamSender(log, turn_bytes=1400))
        signals.on_connected()
        for stream_id in (0, 4):
            signals.on_requested(stream_id, SOME)
            signals.on_request_arrived(stream_id, SOME, 50)
        signals.on_finished(0)
        signals.on_message_arrived(0, 55)
        signals.on_closed(0, 60)
        assert log.reported == [
            ("open", -1, on(None, 2)),
            ("open", 0, on(-1, 10)),
            ("update", 0, on(-1, 99)),
            ("open", 4, on(-1, 14)),
            ("update", -1, on(None, 100)),
        ]
        assert [at_ns for at_ns, *_ in signals.record] == [0, 50, 50, 50, 60]


class TestOrphanPlaceholder:
    """HTTP/3 draft-22 (base-drafts PR 2690)."""

    @staticmethod
    def tree(weights: Weights = Weights.SHARES) -> TreeScheduler:
        return TreeScheduler(weights=weights, unknown_parent=UnknownParent.ORPHANS)

    def test_orphans_send_while_nothing_else_can_and_share_by_weight(self) -> None:
        tree = self.tree()
        opened(tree, {0: on(ORPHANS, 32), 4: on(ORPHANS, 16), 8: on(None, 1)})
        assert turns(tree, 3) == [8, 8, 8]
        tree.deactivate(8)
        assert turns(tree, 6) == [0, 0, 4, 0, 0, 4]
        tree.activate(8)
        assert turns(tree, 2) == [8, 8]

    def test_what_weighs_nothing_still_goes_before_orphans(self) -> None:
        tree = self.tree(Weights.ZERO)
        opened(tree, {0: on(ORPHANS, 255), 4: on(None, 0), -1: on(None, 0), 8: on(-1, 0)})
        assert turns(tree, 1) == [4]
        tree.deactivate(4)
        assert turns(tree, 1) == [8]
        tree.deactivate(8)
        assert turns(tree, 1) == [0]

    def test_an_unknown_parent_waits_there_and_takes_its_children_along(self) -> None:
        tree = self.tree()
        opened(tree, {0: on(None), 8: on(4, 7)})
        assert turns(tree, 2) == [0, 0]
        tree.open(4, on(None, 16))
        # 4 joins a turn behind 0, level with it: the lower id first, then what is below 4.
        assert turns(tree, 4) == [0, 8, 0, 8]
        assert "the orphan placeholder" in str(tree)

    def test_nothing_takes_the_orphan_placeholder_over(self) -> None:
        """It is no part of the tree, so an exclusive child of the root does not stand above it."""
        tree = self.tree()
        opened(tree, {0: on(ORPHANS), 4: on(None), 8: on(None, exclusive=True)})
        edges = [(ORPHANS, 0), ("root", 8), ("root", ORPHANS), (8, 4)]
        assert sorted(tree.to_networkx().edges, key=str) == sorted(edges, key=str)

    def test_a_tree_with_orphans_survives_pickling(self) -> None:
        tree = self.tree()
        opened(tree, {0: on(ORPHANS, 3), 4: on(8), 12: on(None)})
        copy = pickle.loads(pickle.dumps(tree))
        assert str(copy) == str(tree)
        tree.close(12)
        copy.close(12)
        assert turns(copy, 5) == turns(tree, 5)

    @pytest.mark.parametrize("queueing", [Queueing.NGHTTP2, Queueing.H2O, Queueing.ATS])
    def test_only_exact_queueing_has_it(self, queueing: Queueing) -> None:
        with pytest.raises(ValueError, match="only exact queueing has an orphan placeholder"):
            TreeScheduler(queueing=queueing, unknown_parent=UnknownParent.ORPHANS)


def problems(**changed: Any) -> list[str]:
    document = {
        "format": "h3sim-scheme/1",
        "name": "mine",
        "title": "Mine",
        "mechanism": "tree",
        "source": "me",
        "classes": {"all": {}},
    }
    with pytest.raises(SchemeError) as caught:
        scheme_from_dict(document | changed)
    return [str(problem) for problem in caught.value.problems]


class TestSchemes:
    @pytest.mark.parametrize("signalling", ["h2", "draft-20", "draft-22"])
    @pytest.mark.parametrize("mechanism", ["fifo", "round-robin", "eps"])
    def test_places_in_a_tree_are_stated_to_a_tree(self, mechanism: str, signalling: str) -> None:
        assert problems(mechanism=mechanism, signalling=signalling) == [
            f"signalling: '{signalling}' requires a tree mechanism"
        ]

    def test_eps_is_stated_to_eps(self) -> None:
        assert problems(signalling="eps") == ["signalling: 'eps' requires the mechanism 'eps'"]

    def test_draft_20_has_nothing_exclusive(self) -> None:
        classes = {"all": {"arrangement": "strict-chain"}}
        assert problems(signalling="draft-20", classes=classes) == [
            "classes.all.arrangement: needs exclusive dependencies, which 'draft-20' lacks"
        ]

    @pytest.mark.parametrize(
        "mechanism", ["nghttp2-tree", "h2o-calendar", "ats-heap", "nginx-queue"]
    )
    def test_servers_of_http_2_have_no_orphan_placeholder(self, mechanism: str) -> None:
        assert problems(mechanism=mechanism, signalling="draft-22") == [
            f"signalling: 'draft-22' has orphan placeholders, which '{mechanism}' does not support"
        ]

    def test_strict_priorities_are_sent_as_draft_20_has_it_only(self) -> None:
        assert problems(mechanism="strict", signalling="h2") == [
            "signalling: 'h2' requires a tree mechanism"
        ]
