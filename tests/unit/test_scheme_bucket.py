"""bucket and bucket-html by hand: strict buckets; level 3 first, then levels 2 and 1 by turns."""

from __future__ import annotations

import pytest

from tests.helpers import finished_ms, replay

BOTH = pytest.mark.parametrize("scheme", ["bucket", "bucket-html"])
HEAD = {"in_head": True}
VISIBLE = {"above_the_fold": True}


def test_levels_2_and_1_alternate_packet_by_packet() -> None:
    load = replay([(0, "document", 3), (0, "image", 2), (0, "image", 2)], "bucket")
    # All in bucket 31: the document at level 2, the images at level 1. Level 2 begins: 0, then
    # 4 (round 1), 0, 8 (round 1), 0; what is left of level 1: 4 8.
    assert load.trace.order == [0, 4, 0, 8, 0, 4, 8]
    assert finished_ms(load) == {0: 50, 4: 60, 8: 70}


def test_level_3_goes_first_and_one_at_a_time() -> None:
    load = replay(
        [(0, "document", 2), (0, "image", 2), (0, "fetch", 2), (0, "script", 2)], "bucket"
    )
    # All in bucket 31: fetch and script at level 3, in arrival order.
    assert load.trace.order == [8, 8, 12, 12, 0, 4, 0, 4]
    assert finished_ms(load) == {0: 70, 4: 80, 8: 20, 12: 40}


@BOTH
def test_level_2_is_sent_one_at_a_time_in_arrival_order(scheme: str) -> None:
    steps = [(0, "image", 3), (0, "script", 2, {"defer": True}), (0, "font", 2, {"preload": True})]
    load = replay(steps, scheme)
    # Bucket 31: script and preloaded font at level 2, the image at level 1.
    assert load.trace.order == [4, 0, 4, 0, 8, 0, 8]


def test_the_turn_passes_on_even_where_only_one_level_had_data() -> None:
    load = replay([(0, "image", 3), (25, "document", 2)], "bucket")
    # 10 and 20: level 1. So level 2 is next: the document at 30, the image at 40, the document.
    assert load.trace.order == [0, 0, 4, 0, 4]
    assert finished_ms(load) == {0: 40, 4: 50}


def test_bucket_63_overtakes_from_the_next_packet_on() -> None:
    steps = [
        (0, "document", 3),  # 31, level 2
        (15, "stylesheet", 2, HEAD),  # 63, level 3
        (15, "font", 1),  # 63, level 2
        (15, "image", 2, VISIBLE),  # 63, level 1
    ]
    load = replay(steps, "bucket")
    # 10: document. 20, 30: stylesheet. 40: font (level 2 begins), 50, 60: image. Then the document.
    assert load.trace.order == [0, 4, 4, 8, 12, 12, 0, 0]
    assert finished_ms(load) == {0: 80, 4: 30, 8: 40, 12: 60}


@BOTH
def test_async_and_defer_are_checked_before_all_else(scheme: str) -> None:
    steps = [
        (0, "image", 1),  # 31, level 1
        (0, "script", 2, {"in_head": True, "critical": True, "async": True}),  # 31, level 2
        (0, "stylesheet", 1, HEAD),  # 63, level 3
        (0, "font", 1, {"preload": True}),  # 31, level 2
        (0, "font", 1),  # 63, level 2
    ]
    load = replay(steps, scheme)
    # Bucket 63: 8, then 16. Bucket 31 by turns: 4 | 0 | 4, then level 2 alone: 12.
    assert load.trace.order == [8, 16, 4, 0, 4, 12]


@BOTH
def test_bucket_0_goes_last(scheme: str) -> None:
    load = replay([(0, "other", 2), (0, "media", 2)], scheme)
    assert load.trace.order == [4, 4, 0, 0]
    assert finished_ms(load) == {0: 40, 4: 20}


@pytest.mark.parametrize(
    ("scheme", "order"),
    # bucket: same bucket, by turns; level 1 had its turn at 10, so the document goes at 20 and 40.
    # bucket-html: the document is in bucket 63 and goes to its end.
    [("bucket", [0, 4, 0, 4, 0]), ("bucket-html", [0, 4, 4, 0, 0])],
)
def test_only_bucket_html_sends_a_document_before_images(scheme: str, order: list[int]) -> None:
    load = replay([(0, "image", 3), (15, "document", 2)], scheme)
    assert load.trace.order == order


def test_in_bucket_html_the_document_shares_with_visible_images() -> None:
    steps = [
        (0, "document", 2),
        (0, "stylesheet", 1, HEAD),
        (0, "font", 1),
        (0, "image", 2, VISIBLE),
    ]
    load = replay(steps, "bucket-html")
    # All in bucket 63: stylesheet at level 3; document, then font at level 2; image at level 1.
    assert load.trace.order == [4, 0, 12, 0, 12, 8]
    assert finished_ms(load) == {0: 40, 4: 10, 8: 60, 12: 50}


def test_in_bucket_html_a_later_head_script_overtakes_the_document() -> None:
    load = replay([(0, "document", 3), (15, "script", 1, HEAD), (15, "script", 1)], "bucket-html")
    # 20: the head script (63, level 3); then the document; the other script is in bucket 31.
    assert load.trace.order == [0, 4, 0, 0, 8]
    assert finished_ms(load) == {0: 40, 4: 20, 8: 50}
