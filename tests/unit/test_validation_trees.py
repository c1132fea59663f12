"""What `make validate-trees` does without a server: its scripts, its models and its measure."""

from __future__ import annotations

from collections import Counter

import pytest

from validation.tree_models import MODELS
from validation.tree_scripts import KINDS, WARM_UP, Ask, Prioritize, Widen, script, stream_window_of
from validation.trees import most_apart


def test_streams_that_take_turns_in_another_order_are_a_frame_apart() -> None:
    assert most_apart([1, 3, 1, 3], [3, 1, 3, 1]) == 1


def test_a_stream_that_goes_three_frames_too_early_is_three_apart() -> None:
    assert most_apart([1, 1, 1, 3, 3, 3], [3, 3, 3, 1, 1, 1]) == 3


def test_frames_that_are_missing_count() -> None:
    assert most_apart([1, 3], [1, 3, 3, 3]) == 2


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "stream windows"])
def test_a_script_lets_every_byte_go_and_never_more(kind: str) -> None:
    waiting = 0
    for each in script(1, kind):
        waiting += sum(event.size_bytes for event in each.events if isinstance(event, Ask))
        waiting -= each.window_bytes
        assert waiting >= 0
    assert waiting == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", MODELS)
def test_a_model_sends_every_body_completely(server: str, kind: str) -> None:
    rounds = script(2, kind)
    asked = {WARM_UP.stream_id: WARM_UP.size_bytes}
    for each in rounds:
        asked |= {e.stream_id: e.size_bytes for e in each.events if isinstance(e, Ask)}
    sent: Counter[int] = Counter()
    for stream_id, n_bytes in MODELS[server](stream_window_of(kind)).run(rounds):
        sent[stream_id] += n_bytes
    assert sent == asked


def test_scripts_have_what_their_kinds_name() -> None:
    def message(kind: str) -> list[Ask | Prioritize]:
        events = [event for each in script(0, kind) for event in each.events]
        return [event for event in events if not isinstance(event, Widen)]

    chained = [event.priority for event in message("chains") if event.priority]
    assert sum(priority.exclusive for priority in chained) > len(chained) / 2
    asked = {event.stream_id for event in message("idle parents") if isinstance(event, Ask)}
    parents = {event.priority.depends_on for event in message("idle parents") if event.priority}
    assert parents - asked - {None}
    assert any(isinstance(event, Prioritize) for event in message("reprioritization"))
    assert sum(isinstance(event, Ask) for event in message("over 100 streams")) > 100
