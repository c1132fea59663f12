"""Causes of requests of the same instant: the recording's own order decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from tests.recordings import SITE, entry, har, resources_of, write_recording

if TYPE_CHECKING:
    from pathlib import Path

AT_ONCE = {"blocked": 0, "send": 0, "wait": 0, "receive": 0}
PAGE = entry("/", 0, 100, mime="text/html")


def instant(path: str, at_ms: float, mime: str, **more: Any) -> dict[str, Any]:
    """Return an entry that took no time, as recorders with clocks of a millisecond write them."""
    return entry(path, at_ms, 0, mime=mime, timings=AT_ONCE, **more)


def test_scripts_that_begin_and_end_in_one_millisecond_do_not_wait_for_each_other(
    tmp_path: Path,
) -> None:
    scripts = [instant(path, 200, "text/javascript") for path in ("/a.js", "/b.js", "/c.js")]
    found = resources_of(tmp_path, har(PAGE, *scripts))
    causes = [found[id_]["discovered"]["by"] for id_ in ("a.js", "b.js", "c.js")]
    assert causes == ["/", "a.js", "b.js"]


@pytest.mark.parametrize(
    ("kind", "mime"), [("text/javascript", "application/json"), ("text/css", "font/woff2")]
)
def test_what_timing_alone_explains_follows_something_before_it(
    tmp_path: Path, kind: str, mime: str
) -> None:
    cause, effect = (entry(path, 200, 60, mime=kind) for path in ("/cause", "/second"))
    later = instant("/later", 260, kind)
    found = resources_of(tmp_path, har(PAGE, cause, instant("/effect", 260, mime), later, effect))
    assert found["effect"]["discovered"]["by"] == "second"


def test_a_response_that_ends_before_it_begins_causes_nothing_before_it(tmp_path: Path) -> None:
    wrong = entry("/wrong.js", 300, 60, mime="text/javascript", time=0)
    wrong["timings"] = {}
    data = entry("/data", 200, 60, mime="application/json")
    page = import_page(write_recording(tmp_path, har(PAGE, data, wrong))).page
    assert [each.discovered and each.discovered.by for each in page.resources][1] == "/"


def test_the_referer_tells_which_of_two_documents_with_the_same_tag_made_a_request(
    tmp_path: Path,
) -> None:
    markup = "<!doctype html><title>x</title><img src='/a.png'>"
    content = {"size": len(markup), "mimeType": "text/html", "text": markup}
    frame = [{"name": "Sec-Fetch-Dest", "value": "iframe"}]
    of_frame = [{"name": "Referer", "value": f"{SITE}/frame"}]
    document = har(
        entry("/", 0, 100, mime="text/html", response_content=content),
        entry("/a.png", 120, 60, mime="image/png"),
        entry("/frame", 130, 60, mime="text/html", response_content=content, request_headers=frame),
        entry("/a.png", 200, 60, mime="image/png", request_headers=of_frame),
    )
    found = resources_of(tmp_path, document)
    causes = [found[id_]["discovered"]["by"] for id_ in ("a.png", "a.png (2)")]
    assert causes == ["/", "frame"]
