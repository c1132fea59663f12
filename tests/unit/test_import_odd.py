"""Recordings that are odd and valid: redirects, caches, several pages, unusual addresses."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from h3sim.importers.request_fields import ascii_host
from h3sim.importers.result import RecordingError
from h3sim.page import FetchPriority, Level
from tests.recordings import SAMPLES, SITE, entry, har, resources_of, write_recording

if TYPE_CHECKING:
    from pathlib import Path

PAGE = entry("/", 0, 100, mime="text/html")
MOVED = {"response_status": 302, "response_bodySize": 0}
EARLY = {"send": 0, "wait": 15, "receive": 80}
AFTER_A = {"by": "a.png", "at": "complete", "delay_ms": 1.0}
ROOT = SAMPLES["devtools-log"][:6]
"""The events of a page's document, of which the last ends at 5.2 s."""


def image(path: str, start_ms: float, **more: Any) -> dict[str, Any]:
    return entry(path, start_ms, 60, mime="image/png", **more)


def moved(path: str, start_ms: float, **more: Any) -> dict[str, Any]:
    return entry(path, start_ms, 30, mime="", **{**MOVED, **more})


def in_page(page: str, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**each, "pageref": page} for each in entries]


def test_a_redirect_behind_what_came_of_it_is_joined_by_time(tmp_path: Path) -> None:
    hop = moved("/a.png", 120, response_redirectURL="/b.png")
    found = resources_of(tmp_path, har(image("/b.png", 151), hop, PAGE))
    assert found["b.png"]["discovered"] == AFTER_A


def test_a_redirect_without_a_redirect_url_leads_where_its_field_says(tmp_path: Path) -> None:
    field = [{"name": "Location", "value": "/b.png"}]
    hop = moved("/a.png", 120, response_redirectURL="", response_headers=field)
    found = resources_of(tmp_path, har(PAGE, hop, image("/b.png", 151)))
    assert found["b.png"]["discovered"] == AFTER_A


def test_a_redirect_that_leads_nowhere_does_not_lead_to_itself(tmp_path: Path) -> None:
    hop = moved("/a.png", 120, response_redirectURL="")
    found = resources_of(tmp_path, har(PAGE, hop, image("/a.png", 500)))
    assert found["a.png (2)"]["discovered"]["by"] == "/"


@pytest.mark.parametrize(
    ("status_text", "more", "what"),
    [
        ("Internal Redirect", {}, "redirects of the browser itself"),
        ("Moved", {"_fromCache": "disk"}, "from the cache"),
    ],
)
def test_a_redirect_that_was_not_sent_is_left_out_and_its_target_is_the_page(
    tmp_path: Path, status_text: str, more: dict[str, Any], what: str
) -> None:
    first = moved("http://shop.example/old", 0, response_redirectURL="http://shop.example/")
    hop = moved("http://shop.example/", 31, response_redirectURL=f"{SITE}/",
                response_statusText=status_text, **more)  # fmt: skip
    page = entry("/", 62, 90, mime="text/html")
    for entries, root in (([first, hop, page], ["old", "/"]), ([hop, page], ["/"])):
        imported = import_page(write_recording(tmp_path, har(*entries, image("/a.png", 160))))
        assert imported.left_out == {what: 1}
        assert [imported.page.resources[index].id for index in imported.page.roots] == root


def test_a_log_leaves_out_what_the_browser_redirects_by_itself(tmp_path: Path) -> None:
    upgraded = {"status": 307, "statusText": "Internal Redirect", "headers": {}}
    events = [
        asked("http://shop.example/a.png", 5.3),
        extra("responseReceivedExtraInfo", 200, 90),
        asked(f"{SITE}/a.png", 5.3, redirectResponse=upgraded, redirectHasExtraInfo=False),
        answered(5.4),
        log_event("loadingFinished", 5.5, encodedDataLength=700),
    ]
    imported = import_page(write_recording(tmp_path, [*ROOT, *events]))
    assert imported.left_out == {"redirects of the browser itself": 1}
    # The header as it was received belongs to the only request that was sent.
    assert imported.page.resources[-1].header_bytes == 90


@pytest.mark.parametrize("name", ["response__error", "response__failureText"])
def test_what_failed_on_its_way_is_left_out_of_a_har_as_of_a_log(tmp_path: Path, name: str) -> None:
    ended = image("/a.png", 120, **{name: "net::ERR_ABORTED"})
    result = import_page(write_recording(tmp_path, har(PAGE, ended, image("/b.png", 130))))
    assert [resource.id for resource in result.page.resources] == ["/", "b.png"]
    assert result.left_out == {"failed or were blocked": 1}


def test_a_page_load_takes_no_part_in_another_of_the_same_file(tmp_path: Path) -> None:
    hop = moved("/a.png", 120, response_redirectURL="/b.png")
    script = entry("/app.js", 130, 40, mime="text/javascript")
    later = [
        entry("/two", 1000, 100, mime="text/html"),
        image("/b.png", 1200),
        image("/c.png", 1200, _initiator={"type": "script", "url": f"{SITE}/app.js"}),
    ]
    document = har(*in_page("one", PAGE, hop, script), *in_page("two", *later))
    document["log"]["pages"] = [{"id": "one"}, {"id": "two"}]
    imported = import_page(write_recording(tmp_path, document), page=2)
    assert imported.found["requests"] == 6
    assert imported.left_out == {"of another page of the recording": 3}
    found = [resource.discovered for resource in imported.page.resources[1:]]
    assert [each and (each.by, each.at.value) for each in found] == [("two", "complete")] * 2


def test_a_page_load_that_the_list_of_pages_leaves_out_can_be_taken(tmp_path: Path) -> None:
    two = entry("/two", 1000, 100, mime="text/html")
    document = har(*in_page("unlisted", two), *in_page("listed", PAGE), pages=[{"id": "listed"}])
    pages = [resources_of(tmp_path, document, page=number) for number in (1, 2)]
    assert [list(page) for page in pages] == [["/"], ["two"]]


def test_addresses_in_markup_are_those_that_browsers_send(tmp_path: Path) -> None:
    text = (
        "<img src='caf\u00e9 1.png'><img src='img\\2.png'><script async src='HTTPS://Shop.Example:443"
        "/3.js?n=\u00e9'></script><img src='//b\u00fccher.example/4.png'>"
    )
    content = {"size": len(text.encode()), "mimeType": "text/html", "text": text}
    page = entry("/", 0, 100, mime="text/html", response_content=content)
    sent = ["/caf%C3%A9%201.png", "/img/2.png", "/3.js?n=%C3%A9",
            "https://xn--bcher-kva.example/4.png"]  # fmt: skip
    found = resources_of(tmp_path, har(page, *(image(url, 120) for url in sent)))
    assert [each["discovered"]["at"] for each in list(found.values())[1:]] == ["offset"] * 4


def test_a_host_is_one_however_its_name_is_written(tmp_path: Path) -> None:
    document = har(
        entry("https://b\u00fccher.example/", 0, 100, mime="text/html"),
        image("https://xn--bcher-kva.example/a.png", 120),
    )
    for host in (None, "b\u00fccher.example", "XN--bcher-kva.example"):
        assert list(resources_of(tmp_path, document, host=host)) == ["/", "a.png"]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        (
            "\u4f8b\u3048\u3002\u30c6\u30b9\u30c8",
            "xn--r8jz45g.xn--zckzah",
        ),  # an ideographic full stop
        ("i\u2764\ufe0f.example", "xn--i-7iq.example"),  # a variation selector
        ("\u039f\u0394\u039f\u03a3.example", "xn--pxavbq.example"),  # no final sigma
        ("\u213b.example", "fax.example"),  # what is compatible with capitals
        ("un\u00adseen.example", "unseen.example"),  # a soft hyphen
        ("fa\u00df.example", "xn--fa-hia.example"),  # not transitional
        ("STRA\u1e9eE.example", "xn--strae-oqa.example"),
        ("\u03d2\u20e3.example", "xn--6xa220m.example"),  # no name by IDNA2008, and no error
    ],
)
def test_a_host_is_looked_up_as_browsers_look_it_up(written: str, sent: str) -> None:
    """By UTS #46, which browsers follow; the names are those that the package idna gives."""
    assert ascii_host(written) == sent


def log_event(name: str, second: float, **params: Any) -> dict[str, Any]:
    params = {"requestId": "9", "timestamp": second, **params}
    return {"method": f"Network.{name}", "params": params}


def asked(url: str, second: float, **params: Any) -> dict[str, Any]:
    request = {"url": url, "method": "GET", "headers": {}}
    return log_event("requestWillBeSent", second, request=request, type="Image", **params)


def answered(second: float) -> dict[str, Any]:
    response = {"status": 200, "headers": {}, "encodedDataLength": 100, "mimeType": "image/png"}
    return log_event("responseReceived", second, response=response, type="Image")


def extra(name: str, status: int, n_bytes: int) -> dict[str, Any]:
    return log_event(name, 0.0, headers={}, statusCode=status, headersText="x" * n_bytes)


def test_a_log_tells_of_an_answer_304_where_chromium_shows_what_it_had(tmp_path: Path) -> None:
    # So Chromium 156 tells of a revalidated image: all of its 5,000 bytes are counted as sent.
    events = [
        asked(f"{SITE}/a.png", 5.3),
        extra("responseReceivedExtraInfo", 304, 113),
        answered(5.4),
        log_event("dataReceived", 5.5, dataLength=5000, encodedDataLength=0),
        log_event("loadingFinished", 5.5, encodedDataLength=5000),
    ]
    result = import_page(write_recording(tmp_path, [*ROOT, *events]))
    image = result.page.resources[-1]
    assert (image.size_bytes, image.header_bytes) == (0, 113)
    assert result.found["answers 304"] == 1


def test_pieces_are_counted_from_the_beginning_of_their_page(tmp_path: Path) -> None:
    # So chrome-har counts: its second page begins 10 s behind the first entry of the file.
    page = entry("/two", 10_005, 95, mime="text/html", timings=EARLY,
                 _chunks=[{"ts": 40, "bytes": 600}, {"ts": 100, "bytes": 400}])  # fmt: skip
    pages = [
        {"id": "one", "startedDateTime": "2026-03-04T05:06:00Z"},
        {"id": "two", "startedDateTime": "2026-03-04T05:06:10Z"},
    ]
    later = in_page("two", page, image("/a.png", 10_050))
    found = resources_of(tmp_path, har(*in_page("one", PAGE), *later, pages=pages), page=2)
    trigger = {"by": "two", "at": "offset", "offset_bytes": 600, "delay_ms": 10.0}
    assert found["a.png"]["discovered"] == trigger


def test_pieces_of_a_decoded_body_are_stretched_to_what_was_sent(tmp_path: Path) -> None:
    # A body of 1,000 bytes that are 2,000 plain ones.
    chunks = [{"ts": 30, "bytes": 1500}, {"ts": 80, "bytes": 500}]
    page = entry("/", 0, 100, mime="text/html", timings=EARLY, _chunks=chunks)
    found = resources_of(tmp_path, har(page, image("/a.png", 40)))
    trigger = {"by": "/", "at": "offset", "offset_bytes": 750, "delay_ms": 10.0}
    assert found["a.png"]["discovered"] == trigger
    assert found["/"]["response_offsets"] == [0, 750]


def test_a_request_that_the_browser_held_back_was_made_before_it_started(tmp_path: Path) -> None:
    held = image("/a.png", 160)
    held["timings"]["_queued"] = 40
    found = resources_of(tmp_path, har(PAGE, held))
    assert found["a.png"]["discovered"]["delay_ms"] == 20.0


def test_the_first_of_two_priorities_is_that_of_the_request(tmp_path: Path) -> None:
    raised = image("/a.png", 120, _initialPriority="Low", _priority="High")
    found = resources_of(tmp_path, har(PAGE, raised))["a.png"]
    shown_text = [
        (each["level"], each.get("when", {}).get("delay_ms")) for each in found["recorded"]
    ]
    assert shown_text == [("Low", None), ("High", 60.0)]
    assert "fetchpriority" not in found


@pytest.mark.parametrize(
    ("length", "size"), [([], 1100), ([{"name": "Content-Length", "value": "980"}], 980)]
)
def test_a_body_that_is_all_that_was_transferred_has_the_header_in_it(
    tmp_path: Path, length: list[Any], size: int
) -> None:
    reported = {
        "response_headersSize": -1,
        "response_bodySize": 1100,
        "response__transferSize": 1100,
    }
    found = resources_of(
        tmp_path, har(PAGE, image("/a.png", 120, response_headers=length, **reported))
    )
    assert found["a.png"]["bytes"] == size


def test_a_body_size_that_has_the_header_in_it_is_told_by_the_content_length(
    tmp_path: Path,
) -> None:
    length = [{"name": "Content-Length", "value": "900"}]  # and a header of 100, as Firefox counts
    found = resources_of(tmp_path, har(PAGE, image("/a.png", 120, response_headers=length)))
    assert (found["a.png"]["bytes"], found["a.png"]["header_bytes"]) == (900, 100)


@pytest.mark.parametrize(
    ("name", "what"),
    [("fromServiceWorker", "from a service worker"), ("fromPrefetchCache", "from the cache")],
)
def test_where_an_answer_came_from_is_told_as_the_protocol_names_it(
    tmp_path: Path, name: str, what: str
) -> None:
    served = image("/a.png", 120, **{f"response_{name}": True})
    assert import_page(write_recording(tmp_path, har(PAGE, served))).left_out == {what: 1}


def test_what_early_hints_preloaded_is_in_the_page(tmp_path: Path) -> None:
    # Chromium shows it as from its cache, where it was put behind the hint.
    hinted = {"fromDiskCache": True, "fromEarlyHints": True}
    response = {"status": 200, "mimeType": "text/css", "encodedDataLength": 0, **hinted}
    answer = log_event("responseReceived", 5.31, type="Stylesheet",
                       response={**response, "headers": {"content-length": "321"}})  # fmt: skip
    data = log_event("dataReceived", 5.32, dataLength=900, encodedDataLength=0)
    end = log_event("loadingFinished", 5.32, encodedDataLength=0)
    sheet = resources_of(tmp_path, [*ROOT, asked(f"{SITE}/a.css", 5.3), answer, data, end])["a.css"]
    assert (sheet["preload"], sheet["bytes"], sheet["kind"]) == (True, 321, "stylesheet")
    reported = {f"response_{name}": value for name, value in hinted.items()}
    found = resources_of(tmp_path, har(PAGE, entry("/a.css", 120, 30, mime="text/css", **reported)))
    assert found["a.css"]["preload"] is True


def test_what_came_from_the_cache_behind_a_hint_tells_nothing_of_the_network(
    tmp_path: Path,
) -> None:
    page = entry("/", 0, 1000, mime="text/html", response_bodySize=50_000)
    hints = {"response_fromEarlyHints": True, "response_fromDiskCache": True}
    sheet = entry("/a.css", 990, 1, mime="text/css", response_bodySize=90_000, **hints)
    alone, both = (
        import_page(write_recording(tmp_path, har(*entries))).page.recorded_load
        for entries in ((page,), (page, sheet))
    )
    assert alone is not None
    assert both is not None
    assert (alone.rtt_ns, alone.rate_bps) == (both.rtt_ns, both.rate_bps)


def test_a_file_that_cannot_be_unpacked_at_all_says_so(tmp_path: Path) -> None:
    cut = gzip.compress(json.dumps(har(PAGE)).encode())[:15]
    with pytest.raises(RecordingError) as refused:
        import_page(write_recording(tmp_path, cut, "cut.har.gz"))
    assert [problem.message.partition(":")[0] for problem in refused.value.problems] == [
        "cannot be unpacked further",
        "is empty",
    ]


def test_the_load_event_of_a_log_is_that_of_its_page_counted_from_its_document(
    tmp_path: Path,
) -> None:
    def loaded(second: float) -> dict[str, Any]:
        return {"method": "Page.loadEventFired", "params": {"timestamp": second}}

    begun_s = next(each["params"]["timestamp"] for each in ROOT if "request" in each["params"])
    extension = asked("chrome-extension://abc/x.js", begun_s - 2)
    events = [loaded(begun_s - 1), extension, *ROOT, loaded(begun_s + 0.9), loaded(begun_s + 9)]
    page = import_page(write_recording(tmp_path, events)).page
    assert page.recorded_load is not None
    assert page.recorded_load.load_event_ns == 900_000_000


def test_a_preload_link_is_told_at_the_request_of_an_entry(tmp_path: Path) -> None:
    found = resources_of(tmp_path, har(PAGE, image("/a.png", 120, request__isLinkPreload=True)))
    assert found["a.png"]["preload"] is True


def test_an_image_whose_last_priority_is_high_was_not_asked_for_as_such(tmp_path: Path) -> None:
    # So DevTools tells of an image in sight: Chrome raised it, and its author said nothing.
    seen, unseen = image("/a.png", 120, _priority="High"), image("/b.png", 120, _priority="Low")
    script = entry("/c.js", 120, 30, mime="text/javascript", _priority="High")
    found = import_page(write_recording(tmp_path, har(PAGE, seen, unseen, script))).page
    shown_text = [
        (each.level, each.when is not None) for row in found.resources for each in row.recorded
    ]
    assert shown_text == [(Level.HIGH, True), (Level.LOW, False), (Level.HIGH, False)]
    assert {row.fetchpriority for row in found.resources} == {FetchPriority.AUTO}
    assert [row.id for row in found.resources if row.above_the_fold] == ["/", "a.png"]
