"""What an HTML document refers to, and where."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from h3sim.importers.chromium.recording import Document
from h3sim.importers.content_encoding import WireOffsets
from h3sim.page import FetchPriority

BASE = "http://x/dir/page.html"


def references(html: str) -> dict[str, Any]:
    return Document(html, BASE).references  # type: ignore[return-value]


def test_the_head_ends_with_its_tag_or_with_the_first_element_of_a_body() -> None:
    closed = references('<head><link href=a.css></head><link href=b.css><body><img src="c.png">')
    assert ["in_head" in r.flags for r in closed.values()] == [True, False, False]
    left_open = references("<title>x</title><link href=a.css><p>text<link href=b.css>")
    assert ["in_head" in r.flags for r in left_open.values()] == [True, False]


def test_a_reference_ends_behind_its_tag() -> None:
    html = "<!-- <img src=no.png> -->\n<p>ü<img\n src='a.png'\n alt='>'>after"
    found = references(html)["http://x/dir/a.png"]
    assert html.encode()[found.offset_bytes :] == b"after"


@pytest.mark.parametrize(
    ("tag", "is_async", "is_defer"),
    [
        ("<script src=a.js>", False, False),
        ("<script src=a.js async>", True, False),
        ("<script src=a.js defer>", False, True),
        ("<script src=a.js async defer>", True, False),
        ("<script src=a.js type=module>", False, True),
        ("<script src=a.js type=module async>", True, False),
    ],
)
def test_a_script_is_async_or_deferred_as_its_tag_states(
    tag: str, is_async: bool, is_defer: bool
) -> None:
    found = references(f"{tag}</script>")["http://x/dir/a.js"]
    assert ("is_async" in found.flags, "is_defer" in found.flags) == (is_async, is_defer)


def test_images_and_frames_are_lazy_where_they_report_it() -> None:
    found = references("<img src=a loading=LAZY><img src=b><video src=c loading=lazy></video>")
    assert ["is_lazy" in r.flags for r in found.values()] == [True, False, False]


def test_preloads_and_hints_are_kept() -> None:
    found = references(
        "<link rel=preload href=a.png as=image fetchpriority=HIGH>"
        "<link rel=modulepreload href=b.js><link rel=stylesheet href=c.css fetchpriority=soon>"
    )
    assert [("preload" in r.flags, r.flags["fetchpriority"]) for r in found.values()] == [
        (True, FetchPriority.HIGH),
        (True, FetchPriority.AUTO),
        (False, FetchPriority.AUTO),
    ]


def test_every_candidate_of_a_srcset_is_found() -> None:
    found = references("<img src=a.png srcset='b.png 1x, c,d.png 2x,'>")
    assert {*found} == {"http://x/dir/a.png", "http://x/dir/b.png", "http://x/dir/c,d.png"}


def test_what_is_not_loaded_where_scripts_run_is_not_found() -> None:
    hidden = "<noscript><img src=a.png></noscript><template><img src=b.png></template>"
    assert not references(hidden)


def test_a_base_element_moves_the_references_behind_it() -> None:
    found = references("<link href=a.css><base href='/other/'><link href=b.css>")
    assert [*found] == ["http://x/dir/a.css", "http://x/other/b.css"]


def test_the_first_of_two_references_to_one_resource_counts() -> None:
    html = "<link rel=preload href=a.png><img src=a.png>"
    assert references(html)["http://x/dir/a.png"].offset_bytes == len(
        "<link rel=preload href=a.png>"
    )


def test_inline_style_is_found_by_the_name_of_the_file() -> None:
    start = "<style>a{background:url(img/back.png"
    document = Document(f"{start})}}</style>", BASE)
    assert document.mention("http://x/dir/img/back.png?v=1") == len(start)
    assert document.mention("http://x/dir/img/front.png") is None


@pytest.mark.parametrize("url", ["http://[", "//[x", "http://x:port/"])
def test_an_address_that_is_none_stops_nothing(url: str) -> None:
    assert "http://x/dir/b.png" in references(f"<img src='{url}'><img src=b.png>")


def test_wire_offsets_are_those_of_the_compressed_stream() -> None:
    plain = b"<html>" + bytes(range(256)) * 8 + b"x" * 20_000
    packed = gzip.compress(plain, 6)
    offsets = WireOffsets(plain, len(packed))
    # What does not repeat takes nearly all of the compressed bytes, the rest hardly any.
    assert offsets.wire(262) > 0.5 * len(packed)
    assert offsets.wire(len(plain)) == len(packed)
    assert offsets.wire(0) <= offsets.wire(262) <= offsets.wire(5_000) <= len(packed)


def test_wire_offsets_of_a_body_that_is_not_compressed_are_its_own() -> None:
    offsets = WireOffsets(b"abcdef", 6)
    assert [offsets.wire(n) for n in (0, 3, 6, 9)] == [0, 3, 6, 6]


@pytest.mark.parametrize("charset", ["", "utf-8", "latin-1", "utf-16", "no such charset"])
def test_places_are_counted_in_the_bytes_that_came(charset: str) -> None:
    html = "<p>\n\u00fc\u00fc<img src=a.png> url(b.png)\n<script>\u00fc\n</script>"
    document = Document(html, BASE, charset)
    is_narrow = charset == "latin-1"
    before = len(b"<p>\n") + (2 if is_narrow else 4)
    assert document.first_image_bytes == before + len("<img src=a.png>")
    assert document.position(1, 2) == before
    assert document.mention("http://x/b.png") == before + len("<img src=a.png> url(b.png")
    assert document.script_end(3) == len(document.data) - 1
    assert document.position(99, 0) == document.position(3, 0)


def test_what_a_person_names_is_found_as_the_browser_calls_it() -> None:
    html = "<img src='caf\u00e9 1.png'><style>p { background: url('caf\u00e9 2.png') }</style>"
    document = Document(html, "http://x/")
    assert list(document.references) == ["http://x/caf%C3%A9%201.png"]
    end = len(html[: html.index("2.png") + len("2.png")].encode())
    assert document.mention("http://x/caf%C3%A9%202.png") == end


def test_a_script_states_whether_it_is_a_module() -> None:
    found = references(
        "<script src=a.js></script><script type=module src=b.js></script>"
        "<link rel=modulepreload href=c.js><link rel=preload as=script href=d.js>"
    )
    assert ["module" in r.flags for r in found.values()] == [False, True, True, False]


def test_a_stylesheet_states_whether_its_media_query_matches() -> None:
    found = references(
        "<link rel=stylesheet href=a.css><link rel=stylesheet media=print href=b.css>"
        "<link rel=stylesheet media=screen href=c.css>"
    )
    assert ["other_media" in r.flags for r in found.values()] == [False, True, False]


@pytest.mark.parametrize(
    ("attributes", "is_small"),
    [
        ("", False),
        ("width=100 height=100", True),
        ("width=100 height=101", False),
        ("width=20", False),
        ("height=0", True),
        ("width=50% height=10", False),
    ],
)
def test_an_image_is_small_where_its_tag_declares_10_000_pixels_at_most(
    attributes: str, is_small: bool
) -> None:
    (found,) = references(f"<img src=a.png {attributes}>").values()
    assert ("small" in found.flags) == is_small
