"""How nghttp2 1.52 and h2o 2.2 keep their trees, by hand; each rule names the function it is in.

A turn of 1400 bytes costs 22,400 cycles at weight 16 in nghttp2, and 63 / weight slots in h2o.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from h3sim.schedulers import Orphans, Queueing, TreeRules, TreeScheduler
from tests.unit.driving import on, opened, turns
from tests.unit.trees import drawn

if TYPE_CHECKING:
    from h3sim.signals import H2Priority


def nghttp2(**signals: H2Priority) -> TreeScheduler:
    """Return nghttp2's tree with streams named s1, s3, ... that have data."""
    tree = TreeScheduler.of_server(Queueing.NGHTTP2)
    return opened(tree, {int(name[1:]): signal for name, signal in signals.items()})


def h2o(**signals: H2Priority) -> TreeScheduler:
    """Return h2o's tree with streams named s1, s3, ... that have data."""
    tree = TreeScheduler.of_server(Queueing.H2O)
    return opened(tree, {int(name[1:]): signal for name, signal in signals.items()})


class TestIdleStreamsOfNghttp2:
    """nghttp2_session_open_stream, session_detect_idle_stream, nghttp2_session_adjust_idle..."""

    def test_a_stream_that_was_idle_is_taken_out_before_it_opens(self) -> None:
        # 10 shared out by 30 and 10 is 7.5 and 2.5, rounded down.
        tree = nghttp2()
        tree.prioritize(9, on(None, 10))
        opened(tree, {3: on(9, 30), 5: on(9, 10)})
        assert drawn(tree, weights=True) == "9:10(3:30 5:10)"
        tree.open(9, on(None, 99))
        assert drawn(tree, weights=True) == "3:7 5:2 9:99"

    def test_an_idle_stream_has_no_data_to_send_and_cannot_be_closed(self) -> None:
        tree = nghttp2()
        tree.prioritize(9, on(None, 10))
        with pytest.raises(KeyError):
            tree.activate(9)
        with pytest.raises(KeyError):
            tree.close(9)
        assert tree.pick() is None
        assert drawn(tree) == "9"

    def test_a_placeholder_that_is_closed_leaves_its_streams_to_its_parent(self) -> None:
        # 16 shared out by 30 and 10 is 12 and 4.
        tree = nghttp2()
        tree.open(-1, on(None, 16))
        opened(tree, {3: on(-1, 30), 5: on(-1, 10)})
        tree.close(-1)
        assert drawn(tree, weights=True) == "3:12 5:4"

    def test_a_stream_may_come_back_below_one_that_was_its_child(self) -> None:
        tree = nghttp2()
        tree.prioritize(5, on(None))
        opened(tree, {3: on(5)})
        tree.open(5, on(3))
        assert drawn(tree) == "3(5)"

    def test_a_parent_that_is_still_to_come_is_put_there_and_stays(self) -> None:
        tree = nghttp2(s3=on(9, 7))
        tree.close(3)
        tree.update(3, on(None))
        assert drawn(tree, weights=True) == "9:16 3:16"

    def test_who_was_there_as_a_parent_only_may_open(self) -> None:
        tree = nghttp2(s3=on(9, 7))
        tree.open(9, on(None, 99))
        # 3 moved up with all of the weight that 9 had as an idle stream.
        assert drawn(tree, weights=True) == "3:16 9:99"

    def test_the_first_stream_is_passed_over_as_others_are(self) -> None:
        tree = opened(TreeScheduler.of_server(Queueing.NGHTTP2), {4: on(0, 200)})
        assert drawn(tree, weights=True) == "4:16"

    def test_the_newest_stream_is_not_still_to_come_once_it_has_gone(self) -> None:
        # With a hundred others open no closed one is kept.
        tree = nghttp2(s301=on(None))
        tree.close(301)
        opened(tree, {stream_id: on(None) for stream_id in range(1, 201, 2)})
        tree.open(299, on(301, 200))
        assert "301" not in drawn(tree)
        assert drawn(tree, weights=True).endswith("199:16 299:16")

    def test_a_parent_that_was_passed_over_means_the_default_priority(self) -> None:
        # 5 can no longer come once 9 was opened.
        tree = nghttp2(s9=on(None), s11=on(5, 200))
        assert drawn(tree, weights=True) == "9:16 11:16"
        tree.prioritize(7, on(9))
        assert drawn(tree) == "9 11"

    def test_the_hundred_and_first_idle_stream_drives_out_the_first(self) -> None:
        tree = nghttp2(s1=on(None))
        for stream_id in range(1001, 1201, 2):
            tree.prioritize(stream_id, on(None))
        tree.update(1, on(1001))
        assert drawn(tree).startswith("1001(1) 1003")
        tree.prioritize(1201, on(None))
        assert drawn(tree).startswith("1 1003 1005")

    @pytest.mark.parametrize("call", ["open", "update", "prioritize"])
    def test_whoever_names_it(self, call: str) -> None:
        # As the parent that 3 shall have, or 3 itself; a hundred are there already.
        tree = nghttp2(s1=on(None))
        for stream_id in range(1001, 1201, 2):
            tree.prioritize(stream_id, on(None))
        assert drawn(tree).startswith("1 1001 1003")
        if call == "open":
            tree.open(3, on(1201))
        elif call == "update":
            tree.update(1, on(1201))
        else:
            tree.prioritize(1203, on(1))
        assert "1001" not in drawn(tree)
        assert "1003" in drawn(tree)


class TestClosedStreamsOfNghttp2:
    """nghttp2_session_keep_closed_stream, nghttp2_session_adjust_closed_stream."""

    def test_a_closed_stream_stays_where_it_is(self) -> None:
        tree = nghttp2(s1=on(None, 100), s3=on(1), s5=on(None))
        tree.close(1)
        opened(tree, {7: on(1, 3)})
        assert drawn(tree, weights=True) == "1:100(3:16 7:3) 5:16"

    def test_a_closed_stream_can_still_be_moved(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(1), s5=on(None))
        tree.close(1)
        tree.prioritize(1, on(5))
        assert drawn(tree) == "5(1(3))"

    def test_it_goes_once_there_are_a_hundred_closed_and_open_ones(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(1))
        tree.close(1)
        opened(tree, {stream_id: on(3) for stream_id in range(5, 201, 2)})
        assert drawn(tree).startswith("1(3(5 7 ")
        opened(tree, {201: on(3)})
        assert drawn(tree).startswith("3(5 7 ")

    def test_who_is_open_is_not_opened_again(self) -> None:
        tree = nghttp2(s1=on(None))
        with pytest.raises(ValueError, match="stream 1 is open already"):
            tree.open(1, on(None))


class TestClosedStreamsOfNode:
    """nghttp2_option_set_no_closed_streams: nghttp2_session_close_stream destroys the stream."""

    def test_a_closed_stream_goes_and_its_children_move_up(self) -> None:
        tree = TreeScheduler(
            queueing=Queueing.NGHTTP2, orphans=Orphans.SHARE_DOWN, rules=TreeRules.NODE
        )
        opened(tree, {1: on(None, 100), 3: on(1), 5: on(None)})
        tree.close(1)
        # What is placed below it later has the default priority.
        opened(tree, {7: on(1, 3)})
        assert drawn(tree, weights=True) == "3:100 5:16 7:16"


class TestSiblingsOfNghttp2:
    """insert_link_dep, nghttp2_stream_dep_insert, ..._dep_insert_subtree, ..._dep_remove."""

    def test_an_exclusive_stream_takes_its_siblings_over_newest_first(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(None), s5=on(None))
        tree.open(7, on(None, exclusive=True))
        assert drawn(tree) == "7(1 3 5)"
        assert turns(tree, 3) == [5, 3, 1]

    def test_one_that_is_moved_exclusively_keeps_its_own_children_as_the_newest(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(1), s5=on(None), s7=on(None))
        tree.update(1, on(None, exclusive=True))
        assert drawn(tree) == "1(5 7 3)"

    def test_the_children_of_one_that_goes_stand_where_it_stood(self) -> None:
        tree = nghttp2()
        tree.prioritize(9, on(None, 32))
        opened(tree, {1: on(9), 3: on(9), 5: on(None)})
        tree.open(9, on(None))
        assert drawn(tree) == "1 3 5 9"
        # Listed 5, then 3 and 1 as they moved up, the newest first.
        assert turns(tree, 3) == [5, 3, 1]

    def test_a_stream_that_moves_below_its_child_lets_it_take_its_place_first(self) -> None:
        # RFC 7540 § 5.3.3, Figure 5; nghttp2_session_reprioritize_stream.
        tree = nghttp2(s1=on(None, 7), s3=on(1, 8), s5=on(1, 9))
        tree.update(1, on(3, 99))
        assert drawn(tree, weights=True) == "3:8(1:99(5:9))"
        assert sorted({*turns(tree, 3)}, key=str) == [3]
        tree.deactivate(3)
        assert turns(tree, 1) == [1]

    def test_another_weight_alone_moves_nothing(self) -> None:
        tree = nghttp2(s1=on(None, 7), s3=on(1, 8), s5=on(None, 9))
        tree.update(1, on(None, 50))
        assert drawn(tree, weights=True) == "1:50(3:8) 5:9"

    def test_graphs_mark_closed_and_exclusive_nodes(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(None, exclusive=True))
        tree.close(1)
        nodes = tree.to_networkx().nodes
        assert [(n, nodes[n]["closed"], nodes[n]["exclusive"]) for n in (1, 3)] == [
            (1, True, False),
            (3, False, True),
        ]
        with pytest.raises(KeyError):
            tree.activate(1)


class TestTurnsOfNghttp2:
    """nghttp2_stream_dep_remove_subtree."""

    def test_a_group_whose_only_stream_moves_within_it_begins_anew(self) -> None:
        # Group 9 has paid for 2800 bytes, 44,800, and stream 5 for 1400. Off its list for a moment,
        # the group owes nothing: it goes at 0, before stream 5 at 22,400.
        tree = nghttp2()
        tree.prioritize(9, on(None))
        opened(tree, {3: on(9), 5: on(None)})
        assert turns(tree, 1, n_bytes=2800) == [3]
        assert turns(tree, 1) == [5]
        tree.update(3, on(9, exclusive=True))
        assert turns(tree, 3) == [3, 5, 3]

    def test_a_stream_that_moves_owes_nothing(self) -> None:
        # nghttp2_stream_dep_remove_subtree drops what it has for its last turn: at weight 1 that
        # would be 358,400 cycles, 22,400 turns of a byte of stream 3.
        tree = nghttp2(s1=on(None), s3=on(1), s5=on(None, 1))
        tree.deactivate(1)
        tree.charge(5, 1400)
        tree.update(5, on(1, 1))
        assert turns(tree, 3, n_bytes=1) == [3, 5, 3]

    def test_a_copy_goes_on_as_the_tree_does(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(1), s5=on(11))
        tree.close(1)
        copied = pickle.loads(pickle.dumps(tree))
        assert (drawn(copied), turns(copied, 4)) == (drawn(tree), turns(tree, 4))
        for each in (tree, copied):
            # What was passed over, what is idle and what was closed is known to both.
            opened(each, {7: on(2, 99), 11: on(None, 50), 13: on(1)})
            each.close(5)
            each.prioritize(9, on(7))
        assert drawn(tree, weights=True) == "1:16(3:16 13:16) 5:16 7:16 11:50"
        assert drawn(copied, weights=True) == drawn(tree, weights=True)


class TestBlockedStreamsOfNghttp2:
    """session_prep_frame looks at the window once a stream's turn has come."""

    def test_a_window_that_opens_before_the_turn_comes_changes_nothing(self) -> None:
        # At weight 1 a turn costs 358,400. Taken off its list, stream 1 would join at 0 again.
        tree = nghttp2(s1=on(None, 1), s3=on(None))
        assert turns(tree, 2) == [1, 3]
        tree.block(1)
        tree.activate(1)
        assert turns(tree, 16) == [*[3] * 15, 1]

    def test_others_go_meanwhile(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(1), s5=on(None))
        tree.block(1)
        assert tree.pick() == tree.pick() == 3
        assert turns(tree, 4) == [3, 5, 3, 5]

    def test_of_those_that_go_meanwhile_a_group_without_data_is_none(self) -> None:
        tree = nghttp2(s5=on(None), s1=on(None), s3=on(1))
        tree.deactivate(1)
        tree.block(5)
        assert turns(tree, 2) == [3, 3]

    def test_one_whose_turn_has_come_leaves_and_joins_anew(self) -> None:
        # Stream 1 would go at 22,400, before stream 3 at 44,800. It leaves there, and the clock
        # stands at 44,800 when its window opens: it goes at once, behind nothing that it owes.
        tree = nghttp2(s1=on(None), s3=on(None))
        assert turns(tree, 1) == [1]
        assert turns(tree, 1, n_bytes=2800) == [3]
        tree.block(1)
        assert turns(tree, 2) == [3, 3]
        tree.activate(1)
        assert turns(tree, 3) == [1, 3, 1]

    def test_its_turn_turns_the_clock_of_its_group_though_it_sends_nothing(self) -> None:
        # Below stream 1, 3 was due at 67,200 and 5 is at 112,000. While 7 sends what was lost, 3
        # has its turn and leaves: from there 9 has two turns before 5, and from 0 it had five.
        tree = nghttp2(s1=on(None), s3=on(1), s5=on(1), s7=on(None))
        tree.deactivate(1)
        for stream_id, n_bytes in ((3, 4200), (5, 7000), (7, 14_000)):
            tree.charge(stream_id, n_bytes)
        tree.block(3)
        tree.charge(7, 1400)
        opened(tree, {9: on(1)})
        assert turns(tree, 3) == [9, 9, 5]

    def test_all_blocked_is_nothing_to_send(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(1))
        tree.block(1)
        tree.block(3)
        assert tree.pick() is None

    def test_one_that_closes_while_it_is_blocked_is_gone(self) -> None:
        tree = nghttp2(s1=on(None), s3=on(None))
        tree.block(1)
        tree.close(1)
        assert turns(tree, 2) == [3, 3]

    def test_who_is_not_open_cannot_be_blocked(self) -> None:
        for tree in (nghttp2(s1=on(None)), h2o(s1=on(None))):
            tree.prioritize(9, on(None))
            for stream_id in (3, 9):
                with pytest.raises(KeyError):
                    tree.block(stream_id)
            assert turns(tree, 2) == [1, 1]

    def test_who_has_no_data_is_not_waited_for(self) -> None:
        # What 1 lost goes again while nobody else has anything.
        tree = nghttp2(s1=on(None), s3=on(None))
        for stream_id in (1, 3):
            tree.deactivate(stream_id)
        tree.block(3)
        tree.charge(1, 1400)
        assert tree.pick() is None
        tree.activate(3)
        assert turns(tree, 2) == [3, 3]

    def test_the_rfcs_tree_takes_it_off_at_once(self) -> None:
        tree = opened(TreeScheduler(queueing=Queueing.NGHTTP2), {1: on(None, 1), 3: on(None)})
        assert turns(tree, 2) == [1, 3]
        tree.block(1)
        tree.activate(1)
        assert turns(tree, 1) == [1]


class TestH2o:
    """do_rebind, proceed, set_priority and h2o_http2_scheduler_close."""

    def test_a_group_whose_only_stream_gets_a_new_weight_begins_anew(self) -> None:
        # Group 9, of weight 1, stands in slot 63; stream 5, of weight 63, goes in 1, 2, 3, ...
        # At 40 the group leaves and joins again, in slot 103.
        tree = h2o()
        tree.prioritize(9, on(None, 1))
        opened(tree, {3: on(9), 5: on(None, 63)})
        assert turns(tree, 40) == [5] * 40
        tree.update(3, on(9, 17))
        assert turns(tree, 63) == [*[5] * 62, 3]

    def test_the_same_priority_again_changes_nothing(self) -> None:
        tree = h2o()
        tree.prioritize(9, on(None, 1))
        opened(tree, {3: on(9), 5: on(None, 63)})
        assert turns(tree, 40) == [5] * 40
        tree.update(3, on(9))
        assert turns(tree, 23) == [*[5] * 22, 3]

    def test_the_same_priority_takes_the_siblings_over_if_it_is_exclusive(self) -> None:
        tree = h2o(s1=on(None), s3=on(None), s5=on(None))
        tree.update(3, on(None, exclusive=True))
        assert drawn(tree) == "3(1 5)"

    def test_a_stream_that_moves_below_its_child_lets_it_take_its_place_first(self) -> None:
        tree = h2o(s1=on(None, 7), s3=on(1, 8), s5=on(1, 9))
        tree.update(1, on(3, 99))
        assert drawn(tree, weights=True) == "3:8(1:99(5:9))"

    def test_a_group_begins_anew_when_the_child_of_a_closed_stream_moves_up(self) -> None:
        tree = h2o()
        tree.prioritize(9, on(None, 1))
        opened(tree, {1: on(9), 3: on(1), 5: on(None, 63)})
        tree.deactivate(1)
        assert turns(tree, 40) == [5] * 40
        tree.close(1)
        assert turns(tree, 63) == [*[5] * 62, 3]

    def test_the_last_turn_of_a_stream_is_not_priced(self) -> None:
        # At weight 42 a turn is 1.5 slots: stream 1 joins slot 1 and half a slot over. It comes
        # back with that half, two slots behind slot 1: behind stream 5 in 1, 2 but not in 3.
        tree = h2o(s1=on(None, 42), s5=on(None, 63))
        assert turns(tree, 1) == [1]
        tree.deactivate(1)
        tree.activate(1)
        assert turns(tree, 4) == [5, 5, 1, 5]

    def test_an_idle_stream_keeps_what_is_below_it_when_it_opens(self) -> None:
        tree = h2o()
        tree.prioritize(9, on(None, 10))
        opened(tree, {3: on(9)})
        tree.open(9, on(None, 99))
        assert drawn(tree, weights=True) == "9:99(3:16)"

    def test_a_priority_of_a_stream_that_has_gone_is_dropped(self) -> None:
        tree = h2o(s1=on(None), s3=on(1))
        tree.close(1)
        tree.prioritize(1, on(3))
        assert drawn(tree) == "3"

    def test_an_unknown_parent_means_the_default_priority(self) -> None:
        tree = h2o(s1=on(None), s3=on(1, 99))
        tree.prioritize(3, on(77, 50, exclusive=True))
        assert drawn(tree, weights=True) == "1:16 3:16"

    def test_shares_of_a_weight_are_taken_by_a_factor_of_16_bits(self) -> None:
        # 5 in two halves: 65,536 * 5 / 6 is rounded down to 54,613, so 3 * that is just below 2.5.
        assert [Orphans.SHARE.weight(3, 5, 6)] * 2 == [2, 2]
        tree = h2o(s1=on(None, 5), s3=on(1, 3), s5=on(1, 3))
        tree.close(1)
        assert drawn(tree, weights=True) == "3:2 5:2"
