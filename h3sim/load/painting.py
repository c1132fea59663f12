"""Paint as it loads: the share of each visible element that is painted, over time.

The rules are those of Chromium's source, measured with Chromium 156 (`make validate-image-paint`):

- The parser lays out what has arrived, so the text of a document appears with its bytes, once the
  first paint is possible, but none behind a script that blocks the parser. Text in a web font waits
  for it, for the 3 s of its block period (CSS Fonts 4 § 11.1), unless `font_display` shows another
  font meanwhile.
- An image is painted with the first bytes that show its size, and again at most once a second
  until it is complete (`ImageResource::AppendData`, `kFlushDelay`); animated formats, and so every
  GIF, with all bytes that arrive (`ImageResourceContent::ShouldUpdateImageImmediately`).
- Baseline JPEG, PNG, GIF and WebP are painted row by row, as far as they have been decoded.
- Progressive JPEG is painted by scans (`JPEGImageReader::Decode`): the first scan row by row, the
  next ones refine it.
- AVIF is painted once complete: `AVIFImageDecoder` decodes a part only of images in several tiles.
  So is SVG, which must be well-formed.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from h3sim.browser.document import references
from h3sim.metrics import Element, Paint
from h3sim.page import ImageFormat, Kind
from h3sim.trace import Work
from h3sim.values.units import NS_PER_S, ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.browser import BrowserModel
    from h3sim.metrics import Timing
    from h3sim.page import Page, Resource
    from h3sim.trace import Trace


PICTURES = (Kind.IMAGE, Kind.MEDIA)
"""The kinds of resources that cover an area of their own, such as the poster of a video."""
BLOCK_PERIOD_NS = 3 * NS_PER_S
"""The time for which a missing font hides its text (CSS Fonts 4 § 11.1)."""
_ROW_BY_ROW_FORMATS = frozenset(
    (ImageFormat.JPEG, ImageFormat.PNG, ImageFormat.GIF, ImageFormat.WEBP)
)
_SCAN_ENDS = tuple(
    (Fraction(per_mille_bytes, 1000), Fraction(per_mille_seen, 1000))
    for per_mille_bytes, per_mille_seen in (
        (0, 0),
        (81, 918),
        (179, 970),
        (197, 972),
        (218, 974),
        (316, 976),
        (513, 979),
        (530, 991),
        (573, 991),
        (1000, 1000),
    )
)
"""Ends of the ten scans of a progressive JPEG: the share of bytes, and the visual completeness.

They are those of libjpeg's default script (`jpeg_simple_progression`) for a photograph, the means
of qualities 75 and 85; `make validate-image-paint` prints them. The eighth scan changes nothing.
"""


def painted_share(image_format: ImageFormat, n_bytes: int, of_bytes: int) -> Fraction:
    """Return the share of an image of *of_bytes* that its first *n_bytes* paint.

    For a progressive JPEG that is its visual completeness, interpolated between two scans.

    >>> shares = [painted_share(each, 8, 100) for each in ImageFormat]
    >>> {each.value: round(float(share), 3) for each, share in zip(ImageFormat, shares) if share}
    {'jpeg': 0.08, 'progressive-jpeg': 0.907, 'png': 0.08, 'gif': 0.08, 'webp': 0.08}
    """
    if n_bytes >= of_bytes:
        return Fraction(1)
    share = Fraction(n_bytes, of_bytes)
    if image_format in _ROW_BY_ROW_FORMATS:
        return share
    if image_format is not ImageFormat.PROGRESSIVE_JPEG:
        return Fraction(0)
    # 2 is more than any completeness, so that a scan which ends at *share* is over.
    next_scan = bisect_right(_SCAN_ENDS, (share, Fraction(2)))
    (begin, seen), (end, next_seen) = _SCAN_ENDS[next_scan - 1 : next_scan + 1]
    return seen + (next_seen - seen) * (share - begin) / (end - begin)


def updates(
    arrivals: Sequence[tuple[int, int]], every_ns: int, until_ns: int
) -> Iterator[tuple[int, int]]:
    """Yield the times of an image's partial paints, until it is complete, and its bytes by then.

    *arrivals* are times, rising, and the bytes that had arrived. The image is painted with the
    first arrival. Each later paint shows all bytes that have arrived; between two of them, and
    between the second arrival and the first of them, there are at least *every_ns*.

    >>> list(updates([(0, 10), (3, 20), (8, 30), (14, 40), (25, 50)], 10, 25))
    [(0, 10), (13, 30), (23, 40)]
    """
    flushed_ns: int | None = None
    n_read = 0
    while n_read < len(arrivals):
        now_ns, n_bytes = arrivals[n_read]
        n_read += 1
        if n_read > 1:
            flushed_ns = now_ns if flushed_ns is None else flushed_ns
            flushed_ns = now_ns = max(now_ns, flushed_ns + every_ns)
            while n_read < len(arrivals) and arrivals[n_read][0] <= now_ns:
                n_read += 1
            _, n_bytes = arrivals[n_read - 1]
        if now_ns >= until_ns:
            return
        yield now_ns, n_bytes


class Painting:
    """The visible elements of a load, each with its partial paints."""

    def __init__(
        self, page: Page, trace: Trace, timings: Sequence[Timing], browser: BrowserModel
    ) -> None:
        self._page = page
        self._trace = trace
        self._timings = {timing.resource: timing for timing in timings}
        self._browser = browser
        self._frame_ns = frame_ns(browser)
        # The first activity is the download of the document whose milestones are the load's.
        self._document = next(
            (done.resource for done in trace.activities if done.resource is not None), page.root
        )

    @cached_property
    def elements(self) -> list[Element]:
        """The images and media with a share of the viewport, and the text of fonts with one."""
        return [
            self._font_text(resource, timing)
            if resource.kind is Kind.FONT
            else self._picture_element(resource, timing)
            for index, timing in self._timings.items()
            for resource in (self._page.resources[index],)
            if resource.viewport and resource.kind in (*PICTURES, Kind.FONT)
        ]

    @cached_property
    def text(self) -> Element:
        """The area that no element covers: text that waits for no font, and plain background."""
        *partial, (ready_ns, _) = self._text_paints
        return Element(None, False, ready_ns, tuple(partial))

    def _picture_element(self, resource: Resource, timing: Timing) -> Element:
        """Return an image or a medium with its paints."""
        image_format = resource.painted_format
        update_ns = 0 if image_format is ImageFormat.GIF else ms(self._browser.image_update_ms)
        paints: list[Paint] = []
        painted = Fraction(0)
        if resource.kind is Kind.IMAGE:
            arrivals = self._arrivals[timing.resource]
            for at_ns, n_bytes in updates(arrivals, update_ns, timing.finished_at_ns):
                share = painted_share(image_format, n_bytes, resource.size_bytes)
                if share > painted:
                    paints.append((at_ns + self._frame_ns, share))
                    painted = share
        ready_ns = timing.finished_at_ns + self._frame_ns
        return Element(resource.viewport, resource.hero, ready_ns, tuple(paints))

    def _font_text(self, resource: Resource, timing: Timing) -> Element:
        """Return the text in a font, which appears as other text does, but not before its font."""
        shown_ns = shown_at_ns(resource, timing, self._frame_ns)
        paints = [(max(shown_ns, at_ns), share) for at_ns, share in self._text_paints]
        *partial, (ready_ns, _) = paints
        return Element(resource.viewport, resource.hero, ready_ns, tuple(partial))

    @cached_property
    def _text_paints(self) -> list[Paint]:
        """The paints of the text above the fold, the last of which completes it."""
        begin, fold = self._visible_offsets
        paints: list[Paint] = []
        painted = Fraction(0)
        for at_ns, offset in self._parsing_progress:
            share = min(Fraction(1), Fraction(max(0, offset - begin), max(1, fold - begin)))
            if share > painted:
                paints.append((at_ns + self._frame_ns, share))
                painted = share
            if share == 1:
                return paints
        # The parser did not get as far as the fold, for example in a document without a body.
        finished_ns = self._timings[self._document].finished_at_ns + self._frame_ns
        return [*paints, (finished_ns, Fraction(1))]

    @cached_property
    def _visible_offsets(self) -> tuple[int, int]:
        """The part of the document that is above the fold: from behind the head to an offset.

        That is the offset of the first image behind the last visible one, or the document's end.
        """
        head_end = max((at for at, each in self._document_references if each.in_head), default=0)
        images = [(at, each) for at, each in self._document_references if each.kind is Kind.IMAGE]
        visible = [at for at, each in images if each.viewport or each.above_the_fold]
        last = max(visible, default=head_end)
        size = self._page.resources[self._document].size_bytes
        return head_end, min((at for at, _ in images if at > last), default=size)

    @property
    def _document_references(self) -> list[tuple[int, Resource]]:
        """The offset of each reference in the document, and the resource that it names."""
        found = references(self._page, self._document)
        return [(offset, self._page.resources[index]) for offset, index in found]

    @property
    def _parsing_progress(self) -> list[tuple[int, int]]:
        """Times, and the offset of the document that the parser had reached by then.

        Parsing takes time in proportion to bytes, so offsets follow from the times of its pieces.
        If it takes no time, the parser is where the bytes that have arrived end, or at the first
        script that blocks it.
        """
        pieces = [
            done
            for done in self._trace.activities
            if done.work is Work.PARSE and done.resource == self._document
        ]
        total_ns = sum(done.ended_at_ns - done.began_at_ns for done in pieces)
        size = self._page.resources[self._document].size_bytes
        if total_ns:
            parsed_ns, progress = 0, []
            for done in pieces:
                parsed_ns += done.ended_at_ns - done.began_at_ns
                progress.append((done.ended_at_ns, size * parsed_ns // total_ns))
            return progress
        arrivals, blocking = self._arrivals[self._document], self._blocking_scripts
        times = sorted({at_ns for at_ns, _ in arrivals} | {ended_ns for ended_ns, _ in blocking})
        return [(at_ns, _parsed_bytes(arrivals, blocking, at_ns)) for at_ns in times]

    @property
    def _blocking_scripts(self) -> list[tuple[int, int]]:
        """The scripts that block the parser: the time when each has run, and its offset."""
        offsets = {
            index: offset
            for offset, index in references(self._page, self._document)
            for each in (self._page.resources[index],)
            if each.kind is Kind.SCRIPT and each.has_element
            if not (each.is_async or each.is_deferred)
        }
        return [
            (done.ended_at_ns, offsets[done.resource])
            for done in self._trace.activities
            if done.work is Work.EXECUTE and done.resource in offsets
        ]

    @cached_property
    def _arrivals(self) -> dict[int, list[tuple[int, int]]]:
        """The delivery times of each painted resource, and the bytes of its body by then."""
        resources = self._page.resources
        painted = {
            request.stream_id: request.resource
            for request in self._trace.requests
            if request.resource == self._document
            or (
                (resources[request.resource].kind is Kind.IMAGE)
                and resources[request.resource].viewport
            )
        }
        deliveries: dict[int, list[tuple[int, int]]] = {index: [] for index in painted.values()}
        columns = self._trace.packet_rows.columns
        rows = zip(
            columns.delivered_at_ns,
            columns.stream_id,
            columns.offset,
            columns.length_bytes,
            strict=True,
        )
        for at_ns, stream_id, offset, n_bytes in rows:
            index = painted.get(stream_id)
            if index is not None and at_ns is not None:
                body_bytes = offset + n_bytes - resources[index].header_bytes
                if body_bytes > 0:
                    deliveries[index].append((at_ns, body_bytes))
        return {index: _rising(pairs) for index, pairs in deliveries.items()}


def _rising(deliveries: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most bytes by each time, both rising."""
    bytes_by_time: dict[int, int] = {}
    n_bytes = 0
    for at_ns, end in sorted(deliveries):
        n_bytes = max(n_bytes, end)
        bytes_by_time[at_ns] = n_bytes
    return list(bytes_by_time.items())


def _parsed_bytes(
    arrivals: Sequence[tuple[int, int]], blocking: Sequence[tuple[int, int]], now_ns: int
) -> int:
    """Return the offset that the parser has reached: all bytes, or the first script to run."""
    arrived = max((n_bytes for at_ns, n_bytes in arrivals if at_ns <= now_ns), default=0)
    return min([arrived, *(offset for ended_ns, offset in blocking if ended_ns > now_ns)])


def frame_ns(browser: BrowserModel) -> int:
    """Return the time between the moment at which something can be painted and its frame."""
    return ms(browser.paint_ms * browser.cpu_slowdown)


def shown_at_ns(resource: Resource, timing: Timing, frame_ns: int) -> int:
    """Return when text in a web font is first painted; 0 if a fallback font shows it at once."""
    if not resource.font_display.hides_text:
        return 0
    return min(timing.finished_at_ns, timing.requested_at_ns + BLOCK_PERIOD_NS) + frame_ns
