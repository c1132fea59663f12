"""What a scheduler knew at an instant: trees as they stood, groups in the order served."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.reporting.trees import boxes_of, busiest_ns, elements_of
from h3sim.values.errors import InputError
from tests.helpers import scripted_page

MS = 1_000_000


def reported(load: Any, at_ms: int) -> list[tuple[Any, ...]]:
    """Return (id, id of the parent, label, state, percent sent) of each element."""
    elements = elements_of(load, at_ms * MS)
    return [
        (
            each.id,
            None if each.parent is None else elements[each.parent].id,
            each.label,
            each.state,
            round(100 * each.sent),
        )
        for each in elements
    ]


# A document of 4 packets, a stylesheet and an image of 2 each, one packet each 10 ms.
PAGE = scripted_page([(0, "document", 4), (15, "stylesheet", 2), (15, "image", 2)])


def test_a_chain_stands_as_it_did_at_the_instant() -> None:
    load = h3sim.simulate(PAGE, scheme="dfifo")
    # At 20 ms two packets of the document have gone, and the others hang below it.
    assert reported(load, 20) == [
        (None, None, "root", "group", 0),
        (0, None, "w=256", "waits", 50),
        (4, 0, "w=256", "waits", 0),
        (8, 4, "w=147", "waits", 0),
    ]
    # At 70 ms all has gone but the image; what was done with stays, for it holds that up.
    assert reported(load, 70)[1:] == [
        (0, None, "w=256", "done", 100),
        (4, 0, "w=256", "done", 100),
        (8, 4, "w=147", "waits", 50),
    ]


def test_before_anything_is_requested_there_is_a_root_alone() -> None:
    page = scripted_page([(0, "document", 1), (100, "image", 1)])
    load = h3sim.simulate(page, scheme="dfifo", network="4g")
    assert reported(load, 0) == [(None, None, "root", "group", 0)]


def test_a_stream_leaves_the_tree_when_the_server_forgets_it() -> None:
    page = scripted_page([(0, "document", 1), (700, "image", 2)])
    load = h3sim.simulate(page, scheme="dfifo")
    # The document's last packet leaves at 10 ms, and it is kept for 500.
    parents = [parent for _, parent, _, state, _ in reported(load, 705) if state == "waits"]
    assert parents == [None]


def test_urgencies_are_groups_in_the_order_served() -> None:
    load = h3sim.simulate(PAGE, scheme="chrome-eps")
    assert reported(load, 15) == [
        (None, None, "scheduler: eps", "group", 0),
        (None, None, "u=0, one by one", "group", 0),
        (4, None, "", "waits", 0),
        (None, None, "u=0, incremental", "group", 0),
        (0, None, "", "waits", 25),
        (None, None, "u=2, incremental", "group", 0),
        (8, None, "", "waits", 0),
    ]
    elements = elements_of(load, 15 * MS)
    assert [each.parent for each in elements] == [None, 0, 1, 0, 3, 0, 5]


def test_buckets_are_reported_with_how_they_share() -> None:
    load = h3sim.simulate("davies-meenan", scheme="bucket-html")
    labels = [each.label for each in elements_of(load, 30 * MS) if each.parent == 0]
    assert labels[0].startswith("bucket 63.")
    assert all("," in label for label in labels)


def test_without_an_instant_most_responses_wait() -> None:
    load = h3sim.simulate(PAGE, scheme="rr")
    assert busiest_ns(load) == 15 * MS
    ax: Any = load.plot.priority_tree()
    assert "15 ms after navigation start" in ax.get_title(loc="left")


def test_streams_alike_share_a_box_and_long_trees_are_cut() -> None:
    page = h3sim.load_page("davies-meenan")
    load = h3sim.simulate(page, scheme="rr")
    texts = [box.text for box in boxes_of(page, elements_of(load, 25 * MS))]
    assert any(text.startswith("3 x image") for text in texts)
    many = h3sim.page.synthetic(seed=1, n_resources=200)
    load = h3sim.simulate(many, scheme="dfifo")
    found = boxes_of(many, elements_of(load, busiest_ns(load)))
    assert len(found) <= 61
    if len(found) == 61:
        assert found[-1].text.endswith("more below")


@pytest.mark.parametrize("scheme", [scheme.name for scheme in h3sim.list_schemes()])
def test_every_scheme_has_its_state_drawn(scheme: str) -> None:
    ax: Any = h3sim.simulate("davies-meenan", scheme=scheme).plot.priority_tree()
    assert len(ax.patches) >= 2


@pytest.mark.parametrize("at_ms", [-1, "soon", float("nan")])
def test_what_is_no_instant_is_refused(at_ms: Any) -> None:
    with pytest.raises(InputError, match="at_ms"):
        h3sim.simulate(PAGE).plot.priority_tree(at_ms=at_ms)
