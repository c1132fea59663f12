"""`make validate-image-paint`: what Chromium shows of an image that loads, beside h3sim's rule.

A server on this machine sends an image of each format in even pieces over some seconds; each frame
that Chromium shows meanwhile says how much of the image is painted, and how many bytes had been
sent by then. It also prints what the scans of a progressive JPEG show, by the method of SpeedIndex:
the share of each colour's histogram that is as in the complete picture (WebPageTest). Without a
Chromium the first table is left out.
"""

from __future__ import annotations

import argparse
import base64
import io
import itertools
import statistics
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image, ImageFile
from tabulate import tabulate

from h3sim.importers.chromium.browser import (
    ChromiumError,
    DevTools,
    find_chromium,
    running_chromium,
)
from h3sim.load.painting import painted_share
from h3sim.page import ImageFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIDE_PX = 600
_SECONDS = 3.5
_PIECES = 140
_WHITE = 235
"""The page is white, and no colour of the image is brighter than 215: so pixels show paint."""
_QUALITIES = (75, 85)
_SLOP = 13
"""Levels of 256 by which a pixel may differ: 5 %, as WebPageTest counts."""


def sample_image() -> Image.Image:
    """Return coloured noise, of which every row has about as many bytes as any other."""
    source = np.random.default_rng(1)
    coarse = source.integers(20, 200, size=(24, 24, 3)).astype(np.uint8)
    smooth = Image.fromarray(coarse).resize((_SIDE_PX, _SIDE_PX), Image.Resampling.BICUBIC)
    grain = source.integers(-25, 25, size=(_SIDE_PX, _SIDE_PX, 3))
    return Image.fromarray(np.clip(np.asarray(smooth).astype(int) + grain, 0, 215).astype(np.uint8))


_SAVED: dict[str, tuple[ImageFormat, str, dict[str, Any]]] = {
    "JPEG": (ImageFormat.JPEG, "JPEG", {"quality": 85}),
    "progressive JPEG": (
        ImageFormat.PROGRESSIVE_JPEG,
        "JPEG",
        {"quality": 85, "progressive": True},
    ),
    "PNG": (ImageFormat.PNG, "PNG", {}),
    "GIF": (ImageFormat.GIF, "GIF", {"interlace": 0}),
    "WebP": (ImageFormat.WEBP, "WEBP", {"quality": 85}),
    "WebP, lossless": (ImageFormat.WEBP, "WEBP", {"lossless": True}),
    "AVIF": (ImageFormat.AVIF, "AVIF", {"quality": 80}),
}


def saved(image: Image.Image, name: str) -> bytes:
    """Return the bytes of *image* in the format of that name."""
    _, pillow_name, how = _SAVED[name]
    file = io.BytesIO()
    (image.convert("P") if pillow_name == "GIF" else image).save(file, pillow_name, **how)
    return file.getvalue()


class _SlowServer(ThreadingHTTPServer):
    """Serves a page with one image, and sends the image slowly."""

    def __init__(self, mime: str, content: bytes, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mime, self.content, self.seconds = mime, content, seconds
        self.sent: list[tuple[float, int]] = []
        """When the first so many bytes had been written."""


class _Handler(BaseHTTPRequestHandler):
    server: _SlowServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        tag = f"<img src=image width={_SIDE_PX} height={_SIDE_PX}>"
        page = f'<!doctype html><body style="margin:0;background:#fff">{tag}'.encode()
        if self.path == "/":
            self._begin("text/html", len(page))
            self.wfile.write(page)
        elif self.path == "/image":
            self._send_slowly()
        else:
            self._begin("text/plain", 0)

    def _begin(self, mime: str, n_bytes: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", mime)
        self.send_header("Content-Length", str(n_bytes))
        self.end_headers()

    def _send_slowly(self) -> None:
        content = self.server.content
        self._begin(self.server.mime, len(content))
        begun = time.time()
        for n in range(1, _PIECES + 1):
            begin, end = (len(content) * at // _PIECES for at in (n - 1, n))
            self.wfile.write(content[begin:end])
            self.server.sent.append((time.time(), end))
            time.sleep(max(0.0, begun + self.server.seconds * n / _PIECES - time.time()))


class Frame(NamedTuple):
    """A frame: its time, the share of bytes sent by then, and the share of the image painted."""

    at_s: float
    sent: float
    painted: float


def frames_of(devtools: DevTools, mime: str, content: bytes, seconds: float) -> list[Frame]:
    """Return the frames in which Chromium shows an image that loads, until it is complete."""
    server = _SlowServer(mime, content, seconds)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = devtools.call("Target.createTarget", url="about:blank")["targetId"]
    session = devtools.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(method: str, **params: Any) -> None:
        devtools.call(method, session=session, **params)

    size = {"width": _SIDE_PX, "height": _SIDE_PX}
    call("Page.enable")
    call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
    call("Page.startScreencast", format="png", everyNthFrame=1)
    call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/")
    frames: list[Frame] = []
    until = time.monotonic() + seconds + 2
    while time.monotonic() < until:
        event = devtools.next_event(0.1)
        if event is None or event.method != "Page.screencastFrame":
            continue
        call("Page.screencastFrameAck", sessionId=event.params["sessionId"])
        at_s = event.params["metadata"]["timestamp"]
        picture = Image.open(io.BytesIO(base64.b64decode(event.params["data"]))).convert("RGB")
        pixels = np.asarray(picture)[:_SIDE_PX, :_SIDE_PX]
        if pixels.shape[0] == _SIDE_PX and server.sent:
            n_bytes = max((n for sent_s, n in server.sent if sent_s <= at_s), default=0)
            painted = float((pixels.min(axis=2) < _WHITE).mean())
            frames.append(Frame(at_s, n_bytes / len(content), painted))
    devtools.call("Target.closeTarget", targetId=target)
    server.shutdown()
    server.server_close()
    return frames


def paint_row(name: str, frames: Sequence[Frame], n_bytes: int) -> tuple[str, ...]:
    """Return a row: how often it was painted while it loaded, and how far that is from h3sim.

    Of a progressive JPEG h3sim counts how like the complete picture it is: its error is left out.
    """
    image_format = _SAVED[name][0]
    begun = [frame for frame in sorted(frames) if frame.sent < 1]
    changes = [b for a, b in itertools.pairwise(begun) if b.painted != a.painted]
    gaps = [b.at_s - a.at_s for a, b in itertools.pairwise(changes)]
    errors = [
        abs(
            frame.painted - float(painted_share(image_format, round(frame.sent * n_bytes), n_bytes))
        )
        for frame in changes
    ]
    by_area = image_format is not ImageFormat.PROGRESSIVE_JPEG
    shown = ", ".join(f"{frame.painted:.2f} of {frame.sent:.2f}" for frame in changes[:4])
    return (
        name,
        f"{n_bytes:,}",
        str(len(changes)),
        f"{1000 * statistics.median(gaps):,.0f}" if gaps else "",
        shown + (", ..." if len(changes) > 4 else ""),
        f"{statistics.fmean(errors):.2f}" if errors and by_area else "",
    )


def scan_ends(content: bytes) -> list[int]:
    """Return where the scans of a JPEG end: at the next one's header, or the end of the image."""
    found, at = [], 2
    while at + 2 <= len(content):
        marker = content[at + 1]
        if content[at] != 0xFF or marker in (0, 0xFF) or 0xD0 <= marker <= 0xD7:
            at += 1  # entropy-coded data
            continue
        if marker in (0xD9, 0xDA):
            found.append(at)
        if marker == 0xD9:
            break
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return found[1:]


def completeness(shown: np.ndarray[Any, Any], complete: np.ndarray[Any, Any]) -> float:
    """Return the visual completeness of a picture, from a white page: 1 where both are alike."""
    shares = []
    for colour in range(3):
        have, wanted = (
            np.bincount(picture[..., colour].ravel(), minlength=256)[:255].astype(float)
            for picture in (shown, complete)
        )
        matched, total = 0.0, wanted.sum()
        for level in range(255):
            near = sorted(range(max(0, level - _SLOP), min(255, level + _SLOP + 1)))
            for other in sorted(near, key=lambda n: abs(n - level)):
                taken = min(wanted[level], have[other])
                wanted[level] -= taken
                have[other] -= taken
                matched += taken
        shares.append(matched / total)
    return statistics.fmean(shares)


def scan_rows(picture: Image.Image) -> list[tuple[int, float, float]]:
    """Return the scans of a progressive JPEG: number, share of bytes, visual completeness."""
    columns = []
    for quality in _QUALITIES:
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=quality, progressive=True)
        content = file.getvalue()
        complete = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
        column = []
        for end in scan_ends(content):
            part = Image.open(io.BytesIO(content[:end] + b"\xff\xd9")).convert("RGB")
            column.append((end / len(content), completeness(np.asarray(part), complete)))
        columns.append(column)
    means = [
        (statistics.fmean(end for end, _ in row), statistics.fmean(seen for _, seen in row))
        for row in zip(*columns, strict=True)
    ]
    return [(number, end, seen) for number, (end, seen) in enumerate(means, 1)]


def main(argv: Sequence[str] | None = None) -> int:
    """Print how Chromium paints each format, and what the scans of a progressive JPEG show."""
    parser = argparse.ArgumentParser(prog="validate-image-paint", description=__doc__)
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="for each image")
    seconds = parser.parse_args(argv).seconds
    try:
        program = find_chromium()
    except ChromiumError as error:
        print(f"validate-image-paint: no measurement: {error}")
    else:
        image = sample_image()
        rows = []
        with running_chromium(program, local_only=True) as address, DevTools(address) as devtools:
            for name, (image_format, _, _) in _SAVED.items():
                content = saved(image, name)
                mime = f"image/{image_format.value.removeprefix('progressive-')}"
                frames = frames_of(devtools, mime, content, seconds)
                rows.append(paint_row(name, frames, len(content)))
        heads = ("format", "bytes", "paints", "ms apart", "painted of sent", "off by")
        print(tabulate(rows, heads, disable_numparse=True) + "\n")
    import matplotlib  # on use: for its photograph alone

    ImageFile.LOAD_TRUNCATED_IMAGES = True
    photograph = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    found = scan_rows(Image.open(photograph).convert("RGB"))
    print(tabulate(found, ("scan", "bytes", "completeness"), floatfmt=".3f"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
