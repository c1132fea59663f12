"""The shipped pages: what they hold, and their loads drawn by hand.

Under fifo a page needs no more than a table: packets are ceil(bytes / 1400), one leaves every 10 ms
from 10 ms on, and each resource is complete when those before it and its own have left.
"""

from __future__ import annotations

from collections import Counter

import pytest

import h3sim

# Koshiba 2016, Chrome 50 without the patch: the column Size, in table order; 1 KB is 1000 bytes.
HTTP2RULEZ_BYTES = {
    "index.html": 3_600,
    "bootstrap.css": 19_100,
    "magnific-popup.css": 1_900,
    "font-awesome.css": 4_900,
    "header.css": 181,
    "main.css": 759,
    "country-1170x400.jpeg": 61_900,
    "boat-1170x400.jpeg": 55_800,
    "snow-1170x400.jpeg": 99_200,
    "beach-1170x400.jpeg": 51_300,
    "glass-building-1170x400.jpeg": 77_600,
    "person_3.png": 54_700,
    "rila_small.jpg": 191_000,
    "varna.jpeg": 134_000,
    "tsarevets_small.jpg": 173_000,
    "london.jpeg": 29_800,
    "cibeles_small.jpg": 113_000,
    "recife_small.jpg": 145_000,
    "tree.jpeg": 82_000,
    "san-fran.jpeg": 21_600,
    "cheetah.jpeg": 53_700,
    "altscale-logo-200px.png": 7_300,
    "jquery-1.11.0.js": 32_600,
    "jquery-ui.min.js": 59_300,
    "bootstrap.min.js": 8_400,
    "jquery.magnific-popup.js": 13_500,
    "shuffle.js": 278,
    "jquery.shapeshift.js": 5_700,
    "homepage.js": 508,
    "profiler.js": 4_300,
    "glyphicons-halflings-regular.woff": 22_800,
    "fontawesome-webfont.woff": 81_900,
}

# When each resource is asked for, how many packets it takes, and when it is complete: fifo.
#
# The document's packets arrive at 10, 20 and 30, and cover its bytes up to 1400, 2800 and 3600:
# with each the references in it are found. Both fonts are asked for when their stylesheet is there.
HTTP2RULEZ_FIFO = [
    ("index.html", 0, 3, 30),
    ("bootstrap.css", 10, 14, 170),
    ("magnific-popup.css", 10, 2, 190),
    ("font-awesome.css", 10, 4, 230),
    ("header.css", 10, 1, 240),
    ("main.css", 10, 1, 250),
    ("country-1170x400.jpeg", 10, 45, 700),
    ("boat-1170x400.jpeg", 10, 40, 1100),
    ("snow-1170x400.jpeg", 10, 71, 1810),
    ("beach-1170x400.jpeg", 10, 37, 2180),
    ("glass-building-1170x400.jpeg", 10, 56, 2740),
    ("person_3.png", 20, 40, 3140),
    ("rila_small.jpg", 20, 137, 4510),
    ("varna.jpeg", 20, 96, 5470),
    ("tsarevets_small.jpg", 20, 124, 6710),
    ("london.jpeg", 20, 22, 6930),
    ("cibeles_small.jpg", 20, 81, 7740),
    ("recife_small.jpg", 20, 104, 8780),
    ("tree.jpeg", 20, 59, 9370),
    ("san-fran.jpeg", 30, 16, 9530),
    ("cheetah.jpeg", 30, 39, 9920),
    ("altscale-logo-200px.png", 30, 6, 9980),
    ("jquery-1.11.0.js", 30, 24, 10220),
    ("jquery-ui.min.js", 30, 43, 10650),
    ("bootstrap.min.js", 30, 6, 10710),
    ("jquery.magnific-popup.js", 30, 10, 10810),
    ("shuffle.js", 30, 1, 10820),
    ("jquery.shapeshift.js", 30, 5, 10870),
    ("homepage.js", 30, 1, 10880),
    ("profiler.js", 30, 4, 10920),
    ("glyphicons-halflings-regular.woff", 170, 17, 11090),
    ("fontawesome-webfont.woff", 230, 59, 11680),
]

# The head script and the hidden images stand in the document's first packet (10); background and
# font wait for the whole document (30), the hero image and bottom.js for top.js (390).
DAVIES_MEENAN_FIFO = [
    ("index.html", 0, 3, 30),
    ("top.js", 10, 36, 390),
    ("hidden1.jpg", 10, 76, 1150),
    ("hidden2.jpg", 10, 76, 1910),
    ("hidden3.jpg", 10, 76, 2670),
    ("background.png", 30, 35, 3020),
    ("font.woff2", 30, 9, 3110),
    ("hero.jpg", 390, 75, 3860),
    ("bottom.js", 390, 72, 4580),
]


@pytest.mark.parametrize(
    ("page", "timeline"),
    [("http2rulez", HTTP2RULEZ_FIFO), ("davies-meenan", DAVIES_MEENAN_FIFO)],
)
def test_a_fifo_load_follows_the_table(
    page: str, timeline: list[tuple[str, int, int, int]]
) -> None:
    load = h3sim.simulate(page, scheme="fifo")
    packets = Counter(load.trace.order)
    rows = [(t.id, t.requested_ms, packets[t.stream_id], t.finished_ms) for t in load.timings]
    assert rows == timeline
    # Streams are numbered in request order, and sent in that order.
    assert [t.stream_id for t in load.timings] == [4 * n for n in range(len(timeline))]
    assert load.trace.order == sorted(load.trace.order)
    assert load.page_load_ms == timeline[-1][3]


def test_http2rulez_has_the_sizes_of_its_source_in_order() -> None:
    page = h3sim.load_page("http2rulez")
    sizes = {resource.id: resource.size_bytes for resource in page.resources}
    assert list(sizes.items()) == list(HTTP2RULEZ_BYTES.items())
    # The column by kind, in kB: 3.6 document, 26.84 stylesheets, 1350.9 images, 124.586 scripts,
    # 104.7 fonts.
    assert page.total_bytes == 1_610_626


def test_http2rulez_has_32_resources_of_five_kinds() -> None:
    page = h3sim.load_page("http2rulez")
    assert Counter(resource.kind.value for resource in page.resources) == {
        "document": 1,
        "stylesheet": 5,
        "image": 16,
        "script": 8,
        "font": 2,
    }
    above = [resource.id for resource in page.resources if resource.above_the_fold]
    assert above == [
        "index.html",
        *[name for name in HTTP2RULEZ_BYTES if name.endswith(".css")],
        *("country-1170x400.jpeg", "jquery-1.11.0.js", "bootstrap.min.js"),
        *("glyphicons-halflings-regular.woff", "fontawesome-webfont.woff"),
    ]


def test_davies_meenan_has_the_sizes_of_its_source() -> None:
    page = h3sim.load_page("davies-meenan")
    assert {resource.id: resource.size_bytes for resource in page.resources} == {
        "index.html": 3_379,
        "top.js": 50_034,
        "hidden1.jpg": 105_302,
        "hidden2.jpg": 105_302,
        "hidden3.jpg": 105_302,
        "background.png": 48_631,
        "font.woff2": 12_052,
        "hero.jpg": 104_484,
        "bottom.js": 100_036,
    }
    # The document, the blocking script, the font and the hero image; not the background.
    above = [resource.id for resource in page.resources if resource.above_the_fold]
    assert above == ["index.html", "top.js", "font.woff2", "hero.jpg"]


def test_davies_meenan_is_requested_in_the_order_of_its_figure_under_rr() -> None:
    # Marx 2019, Fig. 8: the legend stands in request order.
    load = h3sim.simulate("davies-meenan", scheme="rr")
    assert [timing.id for timing in load.timings] == [row[0] for row in DAVIES_MEENAN_FIFO]


@pytest.mark.parametrize(
    ("scheme", "finished_ms"),
    [
        # bucket. 10: document (31, level 2). It brings top.js (63, 3): 36 packets, 20 to 370. That
        # brings the hero image (63, 1): 75 packets, 380 to 1120; and bottom.js (31, 3): 72
        # packets, 1130 to 1840. In bucket 31 the document had the last turn, so a hidden image
        # goes at 1850, the document at 1860, an image at 1870, the document at 1880. It brings
        # the font (63, 2): 9 packets, 1890 to 1970.
        (
            "bucket",
            {"top.js": 370, "hero.jpg": 1120, "bottom.js": 1840, "index.html": 1880}
            | {"font.woff2": 1970},
        ),
        # bucket-html. As above to 370, but the document is in bucket 63 with the hero image, and
        # had the last turn there: hero 380, document 390, hero 400, document 410. It brings the
        # font (63, 2), which takes every other turn: 430, 450, ... 590. The hero image had 380 to
        # 580 in steps of 20, 11 packets; its other 64 go from 600 to 1230; bottom.js follows.
        (
            "bucket-html",
            {"top.js": 370, "index.html": 410, "font.woff2": 590, "hero.jpg": 1230}
            | {"bottom.js": 1950},
        ),
    ],
)
def test_bucket_html_brings_document_and_font_far_earlier_than_bucket(
    scheme: str, finished_ms: dict[str, int]
) -> None:
    # Marx 2019, § 5.1 and Fig. 8.
    load = h3sim.simulate("davies-meenan", scheme=scheme)
    timings = {timing.id: timing.finished_ms for timing in load.timings}
    assert {name: timings[name] for name in finished_ms} == finished_ms
    assert load.page_load_ms == 4580
