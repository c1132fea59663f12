"""What servers call the files of a site, and which they compress."""

from __future__ import annotations

__all__ = ["is_compressible", "mime_of_extension"]

_MIMES = {
    "avif": "image/avif",
    "css": "text/css",
    "eot": "application/vnd.ms-fontobject",
    "gif": "image/gif",
    "htm": "text/html",
    "html": "text/html",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "map": "application/json",
    "mjs": "text/javascript",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "otf": "font/otf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "ttf": "font/ttf",
    "txt": "text/plain",
    "vtt": "text/vtt",
    "wasm": "application/wasm",
    "webm": "video/webm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xhtml": "application/xhtml+xml",
    "xml": "application/xml",
}
"""Types that must not depend on what this machine has in its tables."""
_COMPRESSED = frozenset(
    (
        *("application/json", "application/manifest+json", "application/vnd.ms-fontobject"),
        *("application/wasm", "application/xhtml+xml", "application/xml"),
        *("font/otf", "font/ttf", "image/svg+xml", "image/x-icon"),
    )
)
"""Types besides text that servers compress; others are compressed in themselves."""


def mime_of_extension(extension: str) -> str:
    """Return the media type of files that end so, "" where there is none that all servers use.

    >>> mime_of_extension("JS"), mime_of_extension("")
    ('text/javascript', '')
    """
    return _MIMES.get(extension.lower(), "")


def is_compressible(mime: str) -> bool:
    """Return whether servers compress files of that media type."""
    return mime.startswith("text/") or mime in _COMPRESSED
