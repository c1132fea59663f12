"""Pauses of servers in recordings: bodies in pieces, and what only looks like them.

The path has 20 ms and, by the pace of what else was loaded, 10 Mbit/s: 1250 bytes take 1 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from h3sim.importers.formats.fact_table import facts_from_dict
from h3sim.values.units import to_ms
from tests.recordings import SITE, write_recording

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim import Page


def page_of(*chunks: list[int], end_ms: int | None = None, images: Any = ()) -> Page:
    """Return the page of a table: a document that was read in chunks, beside a large image."""
    document: dict[str, Any] = {"id": "r0", "parent": None, "type": "html", "start_ms": 0}
    document["sent_ms"] = 20
    document |= {"connect_ms": 20, "first_byte_ms": 50, "end_ms": end_ms or chunks[-1][0]}
    document |= {"body_bytes": sum(size for _, size in chunks), "chunks": chunks}
    image: dict[str, Any] = {"id": "r1", "parent": "r0", "type": "image", "start_ms": 3000}
    image |= {"body_bytes": 500_000, "sent_ms": 3000, "first_byte_ms": 3020, "end_ms": 3420}
    if images:
        image["chunks"] = images
    return facts_from_dict({"name": "paused", "resources": [document, image]}).page


def pieces_of(page: Page) -> list[tuple[float, int]]:
    return [(to_ms(at_ns), n_bytes) for at_ns, n_bytes in page.resources[0].body]


def test_a_pause_of_the_server_makes_a_body_in_pieces() -> None:
    page = page_of([50, 4000], [52, 1000], [852, 20_000], [870, 5000])
    assert pieces_of(page) == [(0, 5000), (802, 25_000)]


def test_a_flushed_header_is_a_pause_before_the_body() -> None:
    assert pieces_of(page_of([652, 5000], [654, 1000])) == [(602, 6000)]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (page_of([50, 4000], [280, 9000]), "a lost packet explains 240 ms"),
        (page_of([50, 4000], [850, 900_000]), "the link needs 720 ms for the second piece"),
        (page_of([50, 4000], [850, 9000], end_ms=90), "a busy browser read it after its end"),
        (page_of([50, 4000], images=[[3020, 400_000], [3420, 100_000]]), "files are there at once"),
    ],
)
def test_a_gap_that_something_else_explains_is_no_pause(page: Page, why: str) -> None:
    assert not any(each.body for each in page.resources), why


def test_a_document_whose_pieces_have_no_sizes_on_the_wire_pauses_too(tmp_path: Path) -> None:
    """Chromium counts only decoded bytes of documents; here 12,000 are 6000 on the wire."""

    def event(method: str, number: str, second: float, **params: Any) -> dict[str, Any]:
        params = {"requestId": number, "timestamp": second, **params}
        return {"method": f"Network.{method}", "params": params}

    def loaded(number: str, path: str, type_: str, at_s: float, n_bytes: int) -> list[Any]:
        request = {"url": SITE + path, "method": "GET", "headers": {}}
        initiator = {"type": "parser" if path != "/" else "other", "url": f"{SITE}/"}
        timing = {"requestTime": at_s, "sendEnd": 0, "connectStart": 0, "connectEnd": 20}
        answer = {"status": 200, "headers": {}, "encodedDataLength": 100, "timing": timing}
        asked = event("requestWillBeSent", number, at_s, request=request, type=type_)
        asked["params"] |= {"initiator": initiator, "wallTime": 1_780_000_000 + at_s}
        got = event("responseReceived", number, at_s + 0.02, response=answer, type=type_)
        return [asked, got, n_bytes]

    *document, _ = loaded("1", "/", "Document", 1.0, 0)
    first = event("dataReceived", "1", 1.021, dataLength=4000, encodedDataLength=0)
    *style, _ = loaded("2", "/a.css", "Stylesheet", 1.03, 0)
    styled = event("loadingFinished", "2", 1.1, encodedDataLength=50_100)
    second = event("dataReceived", "1", 2.0, dataLength=8000, encodedDataLength=0)
    finished = event("loadingFinished", "1", 1.922, encodedDataLength=6100)
    log = [*document, first, *style, styled, second, finished]
    page = import_page(write_recording(tmp_path, log)).page
    root, style_sheet = page.resources
    assert [n_bytes for _, n_bytes in root.body] == [2000, 4000]
    assert to_ms(root.body[1][0]) == pytest.approx(902, abs=1)
    assert style_sheet.discovered is not None
    assert style_sheet.discovered.offset_bytes == 2000
