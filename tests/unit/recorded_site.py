"""A small site that has one of everything, written into a folder."""

from __future__ import annotations

import random
import struct
import zlib
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

INDEX = """<!DOCTYPE html>
<html><head><title>One of everything</title>
<link rel="stylesheet" href="main.css">
<link rel="preload" as="image" href="hero.png" fetchpriority="high">
<script src="head.js"></script>
<script src="async.js" async></script>
<script src="defer.js" defer></script>
<script type="module" src="module.mjs"></script>
<style>#inline { background: url(back.png?v=1); width: 50px; height: 50px }</style>
</head><body>
<h1>A heading</h1><div id="inline"></div>
<img src="hero.png" width="800" height="400">
<div style="height: 9000px"></div>
<img src="low.png" width="200" height="200">
<img src="http://elsewhere.example/pixel.png">
<noscript><img src="never.png"></noscript>
<iframe src="frame.html"></iframe>
<script src="bottom.js"></script>
<script>fetch("data.json?secret=1"); fetch("missing.json")</script>
</body></html>
"""
FILES = {
    "index.html": INDEX,
    "frame.html": "<!DOCTYPE html><p>A frame<img src='framed.png'>",
    "main.css": "@import 'more.css'; @font-face { font-family: B; src: url(bold.ttf) }"
    " h1 { font: 30px B, sans-serif }",
    "more.css": "body { color: green }",
    "head.js": "window.a = 1;",
    "async.js": "window.b = 2;",
    "defer.js": "late(); const s = document.createElement('script');"
    " s.src = 'injected.js'; document.body.append(s)",
    "injected.js": "window.c = 3;",
    "bottom.js": "function late() { new Image().src = 'late.png' }",
    "module.mjs": "import './imported.mjs'",
    "imported.mjs": "export const x = 1",
    "data.json": "{}",
}
IMAGES = ("hero", "low", "back", "late", "framed", "never")


def write_site(folder: Path) -> Path:
    """Write the site; return its folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in IMAGES:
        (folder / f"{name}.png").write_bytes(png(300, 150))
    font = files("matplotlib") / "mpl-data" / "fonts" / "ttf" / "DejaVuSans-Bold.ttf"
    (folder / "bold.ttf").write_bytes(font.read_bytes())
    return folder


def png(width: int, height: int) -> bytes:
    """Return an image of noise: what is too plain counts as no large paint."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    noise = random.Random(0)
    rows = b"".join(b"\0" + noise.randbytes(3 * width) for _ in range(height))
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data
