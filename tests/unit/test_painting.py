"""Paint as it loads, by hand: packets of 1,400 bytes arrive every 10 ms, the first one at 10."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.load.painting import painted_share
from h3sim.page import ImageFormat, Kind, Resource
from tests.helpers import AT_ONCE, page_of

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 1400}
AT_THE_END = {"by": "/", "at": "complete"}
HOW: dict[str, Any] = {**AT_ONCE, "handshake": False, "rtt_ms": 0, "scheme": "fifo"}


def picture(id_: str = "a.jpg", **keys: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "kind": "image",
        "bytes": 14_000,
        "viewport": 0.5,
        "discovered": AT_THE_END,
        **keys,
    }


def at_offset(offset_bytes: int) -> dict[str, Any]:
    return {"by": "/", "at": "offset", "offset_bytes": offset_bytes}


def load_of(*resources: dict[str, Any], **more: Any) -> Any:
    return h3sim.simulate(page_of(*resources), **{**HOW, "image_update_ms": 0, **more})


class TestImages:
    @pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.png?w=2", "a.gif", "a.webp"])
    def test_rows_appear_as_they_arrive(self, name: str) -> None:
        """Ten packets at 20 to 110 ms, 65 on average; the text is there at 10."""
        load = load_of(ROOT, picture(name))
        assert load.first_paint_ms == 10
        assert load.speed_index_ms == (10 + 65) / 2
        # Half is text; the rows come in tenths of the other half.
        assert load.visual == (10, 80, 100, 110, 110)

    def test_counted_once_complete_an_image_appears_with_its_last_byte(self) -> None:
        load = load_of(ROOT, picture(), paint="complete", image_update_ms=None)
        assert load.speed_index_ms == (10 + 110) / 2
        assert load.visual == (10, 110, 110, 110, 110)

    @pytest.mark.parametrize("name", ["a.avif", "a.svg", "a.ico", "a"])
    def test_what_is_decoded_as_one_appears_at_once(self, name: str) -> None:
        assert load_of(ROOT, picture(name)).speed_index_ms == (10 + 110) / 2

    def test_an_image_that_loads_is_painted_anew_after_the_update_time(self) -> None:
        """With its first packet at 20 ms; 50 ms after the second (30 ms); the next is too late."""
        load = load_of(ROOT, picture(), image_update_ms=50)
        assert load.speed_index_ms == (10 + 0.1 * 20 + 0.6 * 80 + 0.3 * 110) / 2

    def test_chrome_paints_at_most_once_a_second(self) -> None:
        load = load_of(ROOT, picture(bytes=300 * 1400), image_update_ms=None)
        # 300 packets at 20 to 3,010 ms: one at 20, those up to 1,030, 2,030 and 3,010.
        seen = (1 * 20 + 101 * 1030 + 100 * 2030 + 98 * 3010) / 300
        assert load.speed_index_ms == pytest.approx((10 + seen) / 2)

    def test_an_animated_format_is_painted_with_every_packet(self) -> None:
        every = load_of(ROOT, picture("a.gif"))
        assert load_of(ROOT, picture("a.gif"), image_update_ms=1000).visual == every.visual

    def test_the_first_scan_of_a_progressive_jpeg_shows_most_of_it(self) -> None:
        """The packet at 20 ms has a tenth of the bytes: the first scan, and part of the second."""
        whole = picture(image_format="progressive-jpeg", viewport=1.0)
        load = load_of(ROOT, whole)
        assert load.visual.vc85_ms == 20
        assert load.visual.last_change_ms == 110
        first = 0.918 + (0.970 - 0.918) * (0.1 - 0.081) / (0.179 - 0.081)
        assert float(painted_share(ImageFormat.PROGRESSIVE_JPEG, 1, 10)) == pytest.approx(first)
        baseline = load_of(ROOT, picture(viewport=1.0))
        assert load.speed_index_ms < baseline.speed_index_ms

    def test_header_bytes_paint_nothing(self) -> None:
        load = load_of(ROOT, picture(header_bytes=1400))
        assert load.speed_index_ms == (10 + 75) / 2

    def test_nothing_is_painted_before_the_first_paint(self) -> None:
        """The stylesheet comes behind the image at 120 ms, when all of that is there."""
        sheet = {"id": "s.css", "kind": "stylesheet", "bytes": 1400, "in_head": True}
        load = load_of(
            ROOT, picture(discovered=at_offset(1)), {**sheet, "discovered": at_offset(2)}
        )
        assert load.first_paint_ms == load.speed_index_ms == 120

    def test_a_poster_is_an_image_and_a_video_is_not(self) -> None:
        """How much of a video shows its first frame is unknown: it appears once complete."""
        assert load_of(ROOT, picture("poster.jpg")).speed_index_ms == (10 + 65) / 2
        assert load_of(ROOT, picture("a.mp4", kind="media")).speed_index_ms == (10 + 110) / 2

    def test_the_largest_paint_waits_for_the_complete_image(self) -> None:
        assert load_of(ROOT, picture(hero=True)).largest_paint_ms == 110


class TestFirstContentfulPaint:
    def test_text_counts_from_the_first_paint_on(self) -> None:
        assert load_of(ROOT, picture()).fcp_ms == 10

    def test_without_text_the_first_row_of_an_image_does(self) -> None:
        assert load_of(ROOT, picture(viewport=1.0)).fcp_ms == 20
        assert load_of(ROOT, picture("a.avif", viewport=1.0)).fcp_ms == 110
        # The text that is the largest paint stands over the picture.
        assert load_of({**ROOT, "hero": True}, picture(viewport=1.0)).fcp_ms == 10
        whole = load_of(ROOT, picture(viewport=1.0), paint="complete", image_update_ms=None)
        assert whole.fcp_ms == 110

    def test_a_load_that_was_replayed_has_none(self) -> None:
        page = page_of(ROOT, picture())
        assert h3sim.simulate(page, scheme="fifo").fcp_ms is None


DOCUMENT = {**ROOT, "bytes": 7000}
SHOWN = picture("a.avif", bytes=1400)
"""There at 60 ms: behind five packets of the document."""


class TestText:
    def test_it_appears_with_its_bytes(self) -> None:
        """Five packets at 10 to 50 ms."""
        load = load_of(DOCUMENT, SHOWN)
        assert load.first_paint_ms == 10
        assert load.speed_index_ms == (30 + 60) / 2

    def test_counted_once_complete_all_of_it_is_there_at_the_first_paint(self) -> None:
        load = load_of(DOCUMENT, SHOWN, paint="complete", image_update_ms=None)
        assert load.speed_index_ms == (10 + 60) / 2

    def test_the_fold_is_at_the_first_image_behind_the_last_visible_one(self) -> None:
        """That is at 2,800 bytes: half of the text comes at 10 ms, half at 20."""
        shown = picture("a.avif", bytes=1400, discovered=at_offset(1000))
        unseen = picture("b.png", bytes=1400, viewport=0, discovered=at_offset(2800))
        load = load_of(DOCUMENT, shown, unseen)
        # The first image follows the document, which was requested before.
        assert load.speed_index_ms == (15 + 60) / 2

    def test_none_appears_behind_a_script_that_blocks_the_parser(self) -> None:
        """Three fifths of the document lie behind a script that is there at 60 and runs 25 ms."""
        script = {"id": "s.js", "kind": "script", "bytes": 1400, "execute_ms": 25}
        shown = picture("a.avif", bytes=1400)
        blocked = load_of(DOCUMENT, {**script, "discovered": at_offset(2800)}, shown)
        # The image follows the script.
        assert blocked.speed_index_ms == ((10 + 20 + 3 * 85) / 5 + 70) / 2
        later = {**script, "defer": True, "discovered": at_offset(2800)}
        assert load_of(DOCUMENT, later, shown).speed_index_ms == (30 + 70) / 2

    def test_parsing_takes_its_time(self) -> None:
        """The first piece ends at 20; the parser is never ahead of its bytes, then done at 60."""
        load = load_of({**DOCUMENT, "parse_ms": 50}, SHOWN)
        assert load.first_paint_ms < 20  # a byte of the body is enough for that
        assert load.visual.last_change_ms == 60
        assert load.speed_index_ms > (30 + 60) / 2

    @pytest.mark.parametrize(("display", "seen_ms"), [("block", 100), ("auto", 100), ("swap", 30)])
    def test_text_waits_for_its_font(self, display: str, seen_ms: int) -> None:
        font = {"id": "f.woff2", "kind": "font", "bytes": 5600, "viewport": 0.5}
        font |= {"font_display": display, "discovered": AT_THE_END}
        load = load_of(DOCUMENT, SHOWN, font)
        # The font is complete at 100: behind the document and the image.
        assert load.speed_index_ms == (seen_ms + 60) / 2
        assert load.fcp_ms == 10

    def test_a_font_hides_text_for_three_seconds(self) -> None:
        font = {"id": "f.woff2", "kind": "font", "bytes": 560_000, "viewport": 0.5}
        load = load_of(ROOT, {**font, "discovered": AT_THE_END})
        assert load.visual.last_change_ms == 10 + 3000


class TestFormats:
    def test_the_page_goes_before_the_media_type_and_that_before_the_name(self) -> None:
        how: dict[str, Any] = {"id": "a.png", "kind": Kind.IMAGE, "size_bytes": 1}
        assert Resource(**how).painted_format is ImageFormat.PNG
        assert Resource(**how, mime="image/webp").painted_format is ImageFormat.WEBP
        given = Resource(**how, mime="image/webp", image_format="avif")  # type: ignore[arg-type]
        assert given.painted_format is ImageFormat.AVIF

    @pytest.mark.parametrize(
        ("content", "found"),
        [
            (b"\x89PNG\r\n\x1a\n", ImageFormat.PNG),
            (b"GIF89a", ImageFormat.GIF),
            (b"RIFF\x00\x00\x00\x00WEBPVP8 ", ImageFormat.WEBP),
            (b"\x00\x00\x00\x1cftypavif", ImageFormat.AVIF),
            (bytes.fromhex("ffd8ffe000040000ffdb00040000ffc00011"), ImageFormat.JPEG),
            (bytes.fromhex("ffd8ffc400040000ffca0011"), ImageFormat.PROGRESSIVE_JPEG),
            (bytes.fromhex("ffd8ffe0ffff"), None),
            (b"<svg>", None),
            (b"", None),
        ],
    )
    def test_bytes_show_the_format(self, content: bytes, found: ImageFormat | None) -> None:
        assert ImageFormat.of_bytes(content) is found

    def test_a_har_with_bytes_shows_which_jpeg_is_progressive(self, tmp_path: Path) -> None:
        def entry(name: str, mime: str, content: bytes) -> dict[str, Any]:
            text = {"mimeType": mime, "encoding": "base64", "size": len(content)}
            text["text"] = base64.b64encode(content).decode()
            return {
                "startedDateTime": "2026-11-23T10:00:00.000Z",
                "request": {"method": "GET", "url": f"https://a.example/{name}", "headers": []},
                "response": {"status": 200, "headers": [], "content": text, "bodySize": 500},
                "timings": {"send": 0, "wait": 1, "receive": 1},
                "time": 2,
            }

        progressive = bytes.fromhex("ffd8 ffc2 0011") + bytes(90)
        baseline = bytes.fromhex("ffd8 ffc0 0011") + bytes(90)
        entries = [
            entry("", "text/html", b"<img src=p.jpg><img src=b.jpg><img src=w.jpg>"),
            entry("p.jpg", "image/jpeg", progressive),
            entry("b.jpg", "image/jpeg", baseline),
            entry("w.jpg", "image/jpeg", b"RIFF0000WEBPVP8 "),
        ]
        path = tmp_path / "a.har"
        path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}), "utf-8")
        page = h3sim.importers.read_har(path)
        formats = [resource.image_format for resource in page.resources]
        # What the media type says is not repeated.
        assert formats == [None, ImageFormat.PROGRESSIVE_JPEG, None, ImageFormat.WEBP]
