"""RFC 7540 § 5.3, rule by rule and figure by figure.

Streams go by the RFC's letters: A is stream 1, B is 3, and so on.
"""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.schedulers import (
    Orphans,
    SelfDependencyError,
    TreeScheduler,
    UnknownParent,
)
from h3sim.signals import DEFAULT_WEIGHT, H2Priority
from h3sim.values.errors import H3SimError
from tests.unit.driving import drain_order, on, opened, turns
from tests.unit.trees import drawn

A, B, C, D, E, F = range(1, 13, 2)
NAMES = dict(zip((A, B, C, D, E, F), "ABCDEF", strict=True))


def tree(signals: dict[int, H2Priority], **options: Any) -> TreeScheduler:
    """Return a tree as the RFC has it, in which all streams have data."""
    made = TreeScheduler(**{"orphans": Orphans.SHARE, **options})
    opened(made, dict(signals))
    return made


def figure(made: TreeScheduler) -> str:
    return drawn(made, NAMES)


class TestStreamDependencies:
    """§ 5.3.1."""

    def test_a_stream_that_depends_on_none_depends_on_the_root(self) -> None:
        assert figure(tree({A: on(None), B: on(None)})) == "A B"

    def test_a_new_dependency_joins_the_others_of_its_parent(self) -> None:
        # Figure 3: B and C depend on A, and so does D now; their order is of no importance.
        made = tree({A: on(None), B: on(A), C: on(A)})
        made.open(D, on(A))
        assert figure(made) == "A(B C D)"

    def test_an_exclusive_dependency_inserts_a_level(self) -> None:
        # Figure 4: D becomes the only one that depends on A; B and C depend on D.
        made = tree({A: on(None), B: on(A), C: on(A)})
        made.open(D, on(A, exclusive=True))
        assert figure(made) == "A(D(B C))"

    def test_the_other_dependents_keep_their_weights(self) -> None:
        made = tree({A: on(None), B: on(A, 7), C: on(A, 200)})
        made.open(D, on(A, 3, exclusive=True))
        assert drawn(made, NAMES, weights=True) == "A:16(D:3(B:7 C:200))"

    def test_a_dependent_stream_waits_while_its_parents_can_make_progress(self) -> None:
        made = tree({A: on(None, 1), B: on(A, 256), C: on(B, 256)})
        assert turns(made, 3) == [A, A, A]
        made.deactivate(A)
        assert turns(made, 3) == [B, B, B]
        made.deactivate(B)
        assert turns(made, 3) == [C, C, C]
        made.activate(A)
        assert made.pick() == A

    def test_a_dependency_on_a_stream_that_is_not_there_gives_the_default_priority(self) -> None:
        made = tree({A: on(None)})
        made.open(B, on(D, 200, exclusive=True))
        assert drawn(made, NAMES, weights=True) == "A:16 B:16"

    def test_or_it_puts_that_stream_there_with_the_default_priority(self) -> None:
        made = tree({A: on(None)}, unknown_parent=UnknownParent.CREATE)
        made.open(B, on(D, 200))
        assert drawn(made, NAMES, weights=True) == "A:16 D:16(B:200)"

    @pytest.mark.parametrize("call", ["open", "update"])
    def test_a_stream_cannot_depend_on_itself(self, call: str) -> None:
        made = tree({} if call == "open" else {A: on(None)})
        before = str(made)
        with pytest.raises(SelfDependencyError) as caught:
            getattr(made, call)(A, on(A))
        assert caught.value.stream_id == A
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, H3SimError)
        assert str(made) == before


class TestDependencyWeighting:
    """§ 5.3.2."""

    @pytest.mark.parametrize("weight", [1, 256])
    def test_weights_are_1_to_256(self, weight: int) -> None:
        assert drawn(tree({A: on(None, weight)}), NAMES, weights=True) == f"A:{weight}"

    def test_a_weight_of_0_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"weight .*, is 0"):
            tree({A: on(None, 0)})

    def test_streams_with_one_parent_share_by_their_weights(self) -> None:
        # The RFC's example: B of weight 4 and C of weight 12 depend on A, which cannot make
        # progress. B gets one third of what C gets. Units of 1/12: C at 1, 2, 3, B at 3.
        made = tree({A: on(None), B: on(A, 4), C: on(A, 12)})
        made.deactivate(A)
        assert turns(made, 8) == [C, C, B, C, C, C, B, C]


class TestReprioritization:
    """§ 5.3.3."""

    @staticmethod
    def before() -> TreeScheduler:
        """Return the tree on the left of Figure 5."""
        made = tree({A: on(None), B: on(A), C: on(A), D: on(C), E: on(C), F: on(D)})
        assert figure(made) == "A(B C(D(F) E))"
        return made

    def test_dependents_move_with_their_parent(self) -> None:
        made = self.before()
        made.update(C, on(None))
        assert figure(made) == "A(B) C(D(F) E)"

    def test_exclusively_what_depended_on_the_new_parent_depends_on_the_moved_one(self) -> None:
        made = self.before()
        made.update(B, on(C, exclusive=True))
        assert figure(made) == "A(C(B(D(F) E)))"

    def test_below_its_own_dependent_that_one_first_takes_its_place(self) -> None:
        # Figure 5, "non-exclusive".
        made = self.before()
        made.update(A, on(D))
        assert figure(made) == "D(F A(B C(E)))"

    def test_and_exclusively_what_depended_on_that_one_comes_last(self) -> None:
        # Figure 5, "exclusive".
        made = self.before()
        made.update(A, on(D, exclusive=True))
        assert figure(made) == "D(A(B C(E) F))"

    def test_the_dependent_that_takes_the_place_retains_its_weight(self) -> None:
        made = tree({A: on(None, 5), B: on(A, 6), C: on(B, 7)})
        made.update(A, on(C, 8))
        assert drawn(made, NAMES, weights=True) == "C:7(A:8(B:6))"

    def test_a_new_weight_alone_moves_nothing(self) -> None:
        made = self.before()
        made.update(C, on(A, 99))
        assert figure(made) == "A(B C(D(F) E))"

    def test_a_change_counts_at_the_next_turn(self) -> None:
        made = self.before()
        assert made.pick() == A
        made.update(C, on(None))
        made.update(A, on(E))
        # Figure 5's tree is C(D(F) E(A(B))) now; D and E take turns, D first.
        assert drain_order(made, 6) == [C, D, E, F, A, B]


class TestStateManagement:
    """§ 5.3.4."""

    def test_dependents_of_a_removed_stream_depend_on_its_parent(self) -> None:
        made = tree({A: on(None), B: on(A), C: on(B), D: on(B), E: on(A)})
        made.close(B)
        assert figure(made) == "A(E C D)"

    def test_its_weight_is_shared_out_by_their_weights(self) -> None:
        made = tree({A: on(None, 40), B: on(A, 12), C: on(A, 4)})
        made.close(A)
        assert drawn(made, NAMES, weights=True) == "B:30 C:10"

    def test_a_stream_may_get_less_once_its_parent_is_removed(self) -> None:
        # The RFC's example: A and B share a parent, C and D depend on A; A and D cannot proceed.
        # C gets what is A's, one half. With A gone, C gets one third.
        made = tree({A: on(None), B: on(None), C: on(A), D: on(A)})
        made.deactivate(A)
        made.deactivate(D)
        assert turns(made, 6) == [C, B] * 3
        made.close(A)
        assert drawn(made, NAMES, weights=True) == "B:16 C:8 D:8"
        assert turns(made, 6).count(C) == 2

    def test_weights_never_fall_below_1(self) -> None:
        made = tree({A: on(None, 1), B: on(A, 255), C: on(A, 1)})
        made.close(A)
        assert drawn(made, NAMES, weights=True) == "B:1 C:1"

    def test_halves_are_rounded_up(self) -> None:
        made = tree({A: on(None, 5), B: on(A), C: on(A)})
        made.close(A)
        assert drawn(made, NAMES, weights=True) == "B:3 C:3"

    def test_what_is_shared_out_is_rounded_as_the_option_states(self) -> None:
        # 16 for three of 10 each, 5.33; for 12 and 16, 6.86 and 9.14.
        for orphans, thirds, others in (
            (Orphans.SHARE, "B:5 C:5 D:5", "B:7 C:9"),
            (Orphans.SHARE_DOWN, "B:5 C:5 D:5", "B:6 C:9"),
            (Orphans.KEEP, "B:10 C:10 D:10", "B:12 C:16"),
        ):
            three = tree({A: on(None), B: on(A, 10), C: on(A, 10), D: on(A, 10)}, orphans=orphans)
            three.close(A)
            assert drawn(three, NAMES, weights=True) == thirds
            two = tree({A: on(None), B: on(A, 12), C: on(A, 16)}, orphans=orphans)
            two.close(A)
            assert drawn(two, NAMES, weights=True) == others

    @pytest.mark.parametrize(
        ("orphans", "child", "removed", "total", "weight"),
        [
            (Orphans.SHARE, 1, 1, 256, 1),
            (Orphans.SHARE_DOWN, 1, 1, 256, 1),
            (Orphans.SHARE_DOWN, 1, 3, 2, 1),
            (Orphans.SHARE_DOWN, 2, 3, 2, 3),
            # The factor, 65,536 * 1 / 3 = 21,845.3, is taken for 21,845: 3 of them are below 1, and
            # 256 of them, 85.3, are 85; twice that, of 2 / 3, is rounded up to 43,691.
            (Orphans.SHARE, 256, 1, 3, 85),
            (Orphans.SHARE, 3, 1, 2, 2),
            # 72,089.6 is taken for 72,090: 5 of them are above 5.5.
            (Orphans.SHARE, 5, 11, 10, 6),
            (Orphans.SHARE, 3, 2, 3, 2),
            (Orphans.KEEP, 7, 1, 256, 7),
        ],
    )
    def test_a_weight_that_is_shared_out_in_numbers(
        self, orphans: Orphans, child: int, removed: int, total: int, weight: int
    ) -> None:
        assert orphans.weight(child, removed, total) == weight

    def test_streams_can_be_retained_for_a_while_after_they_closed(self) -> None:
        made = tree({A: on(None), B: on(A), C: on(B)}, retain=2)
        made.close(B)
        assert figure(made) == "A(B(C))"
        assert drain_order(made, 2) == [A, C]
        # D depends on a stream that has closed, and gets what was intended.
        made.open(D, on(B))
        assert figure(made) == "A(B(C D))"

    def test_of_more_closed_streams_the_oldest_go(self) -> None:
        made = tree({A: on(None), B: on(A), C: on(B), D: on(C)}, retain=1)
        made.close(B)
        made.close(C)
        assert figure(made) == "A(C(D))"
        made.close(D)
        assert figure(made) == "A(D)"

    def test_an_idle_stream_can_group_others(self) -> None:
        # A and B are never used. Units of 1/3 of weight: C and D halve what A gets, 3 to 1.
        made = TreeScheduler()
        made.open(A, on(None, 3))
        made.open(B, on(None, 1))
        opened(made, {C: on(A), D: on(A), E: on(B)})
        served = turns(made, 16)
        assert [served.count(n) for n in (C, D, E)] == [6, 6, 4]

    def test_a_priority_of_a_placeholder_that_is_not_there_is_of_no_stream(self) -> None:
        made = TreeScheduler()
        made.prioritize(-1, on(None))
        assert figure(made) == ""
        made.prioritize(0, on(None))
        assert drawn(made) == "0"

    def test_an_idle_stream_can_be_used_later(self) -> None:
        made = TreeScheduler()
        made.open(A, on(None))
        opened(made, {B: on(A)})
        assert made.pick() == B
        made.activate(A)
        assert made.pick() == A


class TestDefaultPriorities:
    """§ 5.3.5."""

    def test_a_stream_of_which_nothing_is_reported_depends_on_the_root_with_weight_16(self) -> None:
        made = tree({A: H2Priority(), B: H2Priority()})
        assert drawn(made, NAMES, weights=True) == "A:16 B:16"
        assert DEFAULT_WEIGHT == 16

    def test_a_pushed_stream_depends_on_its_associated_stream(self) -> None:
        made = tree({A: on(None, 99), B: on(A)})
        made.open_pushed(2, A)
        assert drawn(made, NAMES | {2: "pushed"}, weights=True) == "A:99(B:16 pushed:16)"
