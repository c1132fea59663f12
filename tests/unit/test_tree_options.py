"""What servers do differently with the tree: unknown parents, closed streams, idle ones."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from h3sim.schedulers import Orphans, Queueing, TreeScheduler, UnknownParent, Weights
from tests.effort import scaled
from tests.unit.driving import drain_order, on, opened, turns
from tests.unit.trees import drawn


class TestCreatedParents:
    """An unknown parent is put under the root with weight 16."""

    def tree(self, **options: Any) -> TreeScheduler:
        return TreeScheduler(unknown_parent=UnknownParent.CREATE, **options)

    def test_it_becomes_a_stream_like_others_once_it_opens(self) -> None:
        tree = opened(self.tree(), {8: on(4, 32), 12: on(None)})
        assert drawn(tree, weights=True) == "4:16(8:32) 12:16"
        tree.open(4, on(12, 99))
        tree.activate(4)
        assert drawn(tree, weights=True) == "12:16(4:99(8:32))"
        assert drain_order(tree, 3) == [12, 4, 8]

    def test_it_is_no_open_stream_until_then(self) -> None:
        tree = opened(self.tree(), {8: on(4)})
        for call in ("activate", "deactivate", "close"):
            with pytest.raises(KeyError):
                getattr(tree, call)(4)

    def test_it_can_be_given_a_priority_before_that(self) -> None:
        tree = opened(self.tree(), {8: on(4), 12: on(None)})
        tree.update(4, on(12, 3))
        assert drawn(tree, weights=True) == "12:16(4:3(8:16))"

    def test_it_goes_with_the_last_stream_below_it(self) -> None:
        tree = opened(self.tree(), {8: on(4), 12: on(4)})
        tree.close(8)
        assert drawn(tree) == "4(12)"
        tree.update(12, on(None))
        assert drawn(tree) == "12"

    def test_one_that_is_below_another_takes_that_along(self) -> None:
        tree = opened(self.tree(), {8: on(4)})
        tree.update(4, on(0))
        assert drawn(tree) == "0(4(8))"
        tree.close(8)
        assert drawn(tree) == ""

    def test_one_that_moves_below_its_only_child_goes(self) -> None:
        tree = opened(self.tree(), {8: on(4)})
        tree.update(4, on(8))
        assert drawn(tree) == "8"

    def test_one_that_is_left_by_its_last_stream_goes_wherever_it_stands(self) -> None:
        # 12 takes the place of 0, which moves below it; 8, which stood between them, is left.
        tree = opened(self.tree(), {0: on(None), 12: on(8)})
        tree.update(8, on(0))
        assert drawn(tree) == "0(8(12))"
        tree.update(0, on(12))
        assert drawn(tree) == "12(0)"

    def test_one_that_another_depends_on_as_well_stays(self) -> None:
        tree = opened(self.tree(), {0: on(None), 12: on(8), 16: on(8)})
        tree.update(8, on(0))
        tree.update(0, on(12))
        assert drawn(tree) == "12(0(8(16)))"

    def test_a_placeholder_may_be_created_before_it_is_declared(self) -> None:
        tree = opened(self.tree(), {0: on(-1)})
        tree.open(-1, on(None, 200))
        assert drawn(tree, weights=True) == "-1:200(0:16)"

    def test_a_closed_parent_that_is_forgotten_is_created_again(self) -> None:
        tree = opened(self.tree(), {0: on(None, 99)})
        tree.close(0)
        opened(tree, {4: on(0)})
        assert drawn(tree, weights=True) == "0:16(4:16)"


class TestNearestAncestors:
    """An unknown parent leads to its nearest known ancestor, else to a shadow (ATS)."""

    def tree(self, **options: Any) -> TreeScheduler:
        return TreeScheduler(unknown_parent=UnknownParent.ANCESTOR, **options)

    def test_the_parent_of_a_parent_that_has_gone_stands_in(self) -> None:
        tree = opened(self.tree(), {0: on(None), 4: on(0), 8: on(4)})
        tree.close(4)
        opened(tree, {12: on(4, 99)})
        assert drawn(tree, weights=True) == "0:16(8:16 12:99)"

    def test_so_does_one_further_up(self) -> None:
        tree = opened(self.tree(), {0: on(None), 4: on(0), 8: on(4), 12: on(8)})
        tree.close(8)
        tree.close(4)
        opened(tree, {16: on(8, exclusive=True)})
        assert drawn(tree) == "0(16(12))"

    def test_a_parent_that_stood_under_the_root_is_not_remembered(self) -> None:
        # A shadow takes its place; the weight, which was meant for another place, is lost.
        tree = opened(self.tree(), {0: on(None, 99)})
        tree.close(0)
        opened(tree, {4: on(0, 200)})
        assert drawn(tree, weights=True) == "0:16(4:16)"

    def test_a_parent_that_is_yet_to_come_has_a_shadow(self) -> None:
        tree = opened(self.tree(), {4: on(8, 200)})
        assert drawn(tree, weights=True) == "8:16(4:200)"
        tree.open(8, on(None, 5))
        assert drawn(tree, weights=True) == "8:5(4:200)"

    def test_a_shadow_goes_with_the_last_stream_below_it(self) -> None:
        tree = opened(self.tree(), {4: on(8)})
        tree.close(4)
        assert drawn(tree) == ""

    def test_who_is_in_the_tree_stays_where_it_is(self) -> None:
        tree = opened(self.tree(), {0: on(None), 4: on(0, 7)})
        tree.update(4, on(99, 200))
        assert drawn(tree, weights=True) == "0:16(4:7)"

    def test_who_names_a_parent_that_is_there_goes_below_it(self) -> None:
        tree = opened(self.tree(), {0: on(None), 4: on(None), 8: on(0, 7)})
        tree.update(8, on(4, 200))
        assert drawn(tree, weights=True) == "0:16 4:16(8:200)"
        tree.update(8, on(None, 9))
        assert drawn(tree, weights=True) == "0:16 4:16 8:9"

    def test_64_are_remembered(self) -> None:
        tree = opened(self.tree(), {0: on(None)})
        for stream_id in range(4, 4 * 66, 4):
            tree.open(stream_id, on(0))
        for stream_id in range(4, 4 * 66, 4):
            tree.close(stream_id)
        opened(tree, {1000: on(8), 1004: on(4)})
        assert drawn(tree) == "0(1000) 4(1004)"

    def test_what_was_remembered_of_a_shadow_is_forgotten_once_it_opens(self) -> None:
        # The shadow of 8 went from below 0. The stream itself stands below the root.
        tree = opened(self.tree(), {0: on(None), 4: on(8)})
        tree.update(8, on(0))
        tree.close(4)
        assert drawn(tree) == "0"
        tree.open(8, on(None))
        tree.close(8)
        opened(tree, {12: on(8)})
        assert drawn(tree) == "0 8(12)"

    def test_a_shadow_whose_ancestor_would_be_itself_has_a_shadow_too(self) -> None:
        tree = opened(self.tree(), {4: on(8), 12: on(8)})
        tree.close(4)
        tree.open(8, on(4))
        assert drawn(tree) == "4(8(12))"


class TestRetention:
    def test_a_closed_stream_that_is_retained_is_not_open(self) -> None:
        tree = opened(TreeScheduler(retain=1), {0: on(None)})
        tree.close(0)
        for call in ("activate", "deactivate", "close"):
            with pytest.raises(KeyError):
                getattr(tree, call)(0)
        assert tree.pick() is None

    def test_it_holds_nobody_up(self) -> None:
        # Closed though it had data, as a stream that was reset.
        tree = opened(TreeScheduler(retain=1), {0: on(None), 4: on(None)})
        tree.close(0)
        assert turns(tree, 2) == [4, 4]
        # What is below it has its share, and at equal times its id.
        opened(tree, {8: on(0)})
        assert turns(tree, 4) == [8, 4, 8, 4]

    def test_the_newest_of_all_is_not_known_once_it_has_gone(self) -> None:
        tree = opened(TreeScheduler(), {0: on(None), 4: on(None)})
        tree.close(4)
        tree.prioritize(4, on(None))
        assert drawn(tree) == "0"
        tree.prioritize(8, on(None))
        assert drawn(tree) == "0 8"

    def test_it_can_be_given_another_priority(self) -> None:
        tree = opened(TreeScheduler(retain=1), {0: on(None), 4: on(0), 8: on(None)})
        tree.close(0)
        tree.update(0, on(8))
        assert drawn(tree) == "8(0(4))"

    def test_it_may_open_again_and_then_counts_no_more(self) -> None:
        tree = opened(TreeScheduler(retain=1), {0: on(None), 4: on(0), 8: on(None)})
        tree.close(0)
        opened(tree, {0: on(None, 200)})
        assert tree.pick() == 0
        tree.close(8)
        assert drawn(tree, weights=True) == "0:200(4:16) 8:16"

    def test_weights_are_shared_out_when_it_leaves_the_tree_and_not_before(self) -> None:
        tree = opened(TreeScheduler(retain=1, orphans=Orphans.SHARE), {0: on(None), 4: on(0, 200)})
        opened(tree, {8: on(None)})
        tree.close(0)
        assert drawn(tree, weights=True) == "0:16(4:200) 8:16"
        tree.close(8)
        assert drawn(tree, weights=True) == "8:16 4:16"

    def test_a_half_that_16_bits_make_less_of_is_rounded_down(self) -> None:
        """As h2o shares: 18 of 24 times 2 is 1.5, but 18 times 5461 / 65536 is less."""
        tree = opened(TreeScheduler(orphans=Orphans.SHARE), {0: on(None, 2), 4: on(0, 6)})
        opened(tree, {8: on(0, 18)})
        tree.close(0)
        assert drawn(tree, weights=True) == "4:1 8:1"

    def test_its_children_share_what_was_its_own(self) -> None:
        tree = opened(TreeScheduler(retain=1), {0: on(None), 4: on(0), 8: on(0), 12: on(None)})
        tree.close(0)
        assert turns(tree, 4) == [4, 12, 8, 12]

    def test_a_negative_number_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"retain .*, is -1"):
            TreeScheduler(retain=-1)


def test_zero_weights_are_not_shared_out() -> None:
    with pytest.raises(ValueError, match=r"zero weights cannot be shared out \('share-down'\)"):
        TreeScheduler(weights=Weights.ZERO, orphans=Orphans.SHARE_DOWN)


@pytest.mark.parametrize("queueing", Queueing)
def test_a_chain_of_thousands_of_exclusive_streams_is_no_trouble(queueing: Queueing) -> None:
    n_streams = scaled(3_000)
    tree = TreeScheduler(queueing=queueing, orphans=Orphans.SHARE, retain=10)
    for stream_id in range(n_streams):
        tree.open(stream_id, on(None, exclusive=True))
        tree.activate(stream_id)
    # The last one stands on top; the first goes last, at the bottom.
    assert drain_order(tree, 100) == list(range(n_streams - 1, n_streams - 101, -1))
    for stream_id in range(1, n_streams - 100):
        tree.deactivate(stream_id)
    assert turns(tree, 2) == [0, 0]
    assert len(str(tree).splitlines()) < 100
    assert tree.to_networkx().number_of_edges() == n_streams
    assert turns(pickle.loads(pickle.dumps(tree)), 2) == [0, 0]
    for stream_id in range(n_streams):
        tree.close(stream_id)
    assert tree.pick() is None
    assert len(str(tree).splitlines()) == 1 + 10


@pytest.mark.parametrize("queueing", Queueing)
def test_who_is_taken_over_came_there_exclusively_no_more(queueing: Queueing) -> None:
    tree = opened(TreeScheduler.of_server(queueing), {1: on(None), 3: on(None, exclusive=True)})
    nodes = tree.to_networkx().nodes
    assert [nodes[stream_id]["exclusive"] for stream_id in (1, 3)] == [False, True]
    opened(tree, {5: on(None, exclusive=True)})
    nodes = tree.to_networkx().nodes
    assert drawn(tree) == "5(3(1))"
    assert [nodes[stream_id]["exclusive"] for stream_id in (1, 3, 5)] == [False, False, True]


@pytest.mark.parametrize("queueing", Queueing)
def test_groups_that_are_left_without_data_hold_nobody_up(queueing: Queueing) -> None:
    # 8, two levels below 0, takes its place, and 0 with what is left of it goes below.
    tree = TreeScheduler(queueing=queueing)
    opened(tree, {0: on(None), 4: on(0), 8: on(4), 12: on(None)})
    for stream_id in (0, 4):
        tree.deactivate(stream_id)
    tree.update(0, on(8))
    assert drawn(tree) == "12 8(0(4))"
    tree.deactivate(8)
    assert turns(tree, 2) == [12, 12]
    tree.deactivate(12)
    assert tree.pick() is None


class TestOrphanPlaceholder:
    """HTTP/3 draft-22: an unknown parent stands below the orphan placeholder."""

    def tree(self) -> TreeScheduler:
        return TreeScheduler(unknown_parent=UnknownParent.ORPHANS)

    def test_what_is_below_it_goes_while_nothing_else_can(self) -> None:
        tree = opened(self.tree(), {0: on(99, 256), 4: on(None, 1)})
        assert turns(tree, 2) == [4, 4]
        tree.deactivate(4)
        assert turns(tree, 2) == [0, 0]

    def test_it_is_taken_over_by_nobody(self) -> None:
        tree = opened(self.tree(), {0: on(99), 4: on(None), 8: on(None, exclusive=True)})
        assert str(tree).splitlines() == [
            "root",
            "├─ the orphan placeholder",
            "│  └─ stream 99, weight 16, idle",
            "│     └─ stream 0, weight 16, has data",
            "└─ stream 8, weight 16, has data",
            "   └─ stream 4, weight 16, has data",
        ]


class TestViews:
    def tree(self) -> TreeScheduler:
        tree = TreeScheduler(unknown_parent=UnknownParent.CREATE, retain=1)
        tree.open(-1, on(None, 201))
        opened(tree, {0: on(-1, 32), 4: on(-1, 22), 8: on(0), 12: on(16, exclusive=True)})
        tree.open(20, on(4, exclusive=True))
        tree.close(8)
        return tree

    def test_text_has_a_line_for_each_node(self) -> None:
        assert str(self.tree()).splitlines() == [
            "root",
            "├─ placeholder -1, weight 201",
            "│  ├─ stream 0, weight 32, has data",
            "│  │  └─ stream 8, weight 16, closed",
            "│  └─ stream 4, weight 22, has data",
            "│     └─ stream 20, weight 16",
            "└─ stream 16, weight 16, idle",
            "   └─ stream 12, weight 16, has data",
        ]

    def test_below_forty_levels_the_text_counts(self) -> None:
        tree = TreeScheduler()
        for stream_id in range(50):
            tree.open(stream_id, on(stream_id - 1 if stream_id else None))
        lines = str(tree).splitlines()
        assert lines[40] == "   " * 39 + "└─ stream 39, weight 16"
        assert lines[41:] == ["   " * 40 + "└─ ... 10 more below"]
        # What stands beside it is told, and of one with nothing below it nothing is counted.
        tree.open(99, on(None))
        for stream_id in range(40, 50):
            tree.close(stream_id)
        assert str(tree).splitlines()[-2:] == [
            "│  " + "   " * 38 + "└─ stream 39, weight 16",
            "└─ stream 99, weight 16",
        ]
        tree.open(40, on(39))
        assert str(tree).splitlines()[-2:] == [
            "│  " + "   " * 39 + "└─ ... 1 more below",
            "└─ stream 99, weight 16",
        ]

    def test_a_graph_has_the_edges_from_parents_to_children(self) -> None:
        assert sorted(self.tree().to_networkx().edges, key=str) == [
            ("root", -1), ("root", 16), (-1, 0), (-1, 4), (0, 8), (16, 12), (4, 20),
        ]  # fmt: skip

    def test_a_graph_shows_the_state_of_each_node_of_the_tree(self) -> None:
        nodes = self.tree().to_networkx().nodes
        usual = {"active": False, "exclusive": False, "closed": False, "idle": False, "position": 0}
        assert nodes["root"] == {}
        assert nodes[-1] == {**usual, "weight": 201}
        assert nodes[4] == {**usual, "weight": 22, "active": True, "position": 1}
        assert nodes[20] == {**usual, "weight": 16, "exclusive": True}
        assert nodes[8] == {**usual, "weight": 16, "closed": True}
        assert nodes[16] == {**usual, "weight": 16, "idle": True, "position": 1}

    def test_a_tree_without_a_node_is_a_root(self) -> None:
        assert str(TreeScheduler()) == "root"
        assert list(TreeScheduler().to_networkx().nodes) == ["root"]


def test_an_ancestor_that_came_to_hang_below_its_own_descendant_is_forgotten() -> None:
    tree = TreeScheduler.of_server(Queueing.ATS)
    opened(tree, {0: on(None), 4: on(0)})
    tree.close(4)  # that went under 0
    tree.close(0)
    # 0 is there again, for 8, and so is 4, for 0: each has been above the other.
    opened(tree, {8: on(0), 0: on(4)})
    assert drawn(tree) == "4(0(8))"
    tree.close(8)
    tree.close(0)
    assert drawn(opened(tree, {12: on(4)})) == "4(12)"
