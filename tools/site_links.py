"""Checks, without a network, that links within a built site lead somewhere.

`python -m tools.site_links build/docs/html` ends with 1 and a line per link that does not.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["broken_links", "main"]

_FROM = {"a": "href", "link": "href", "img": "src", "script": "src"}


class _Page(HTMLParser):
    """What a page can be linked at, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: dict[str, None] = {}
        self.links: dict[str, None] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for key in ("id", "name"):
            if value := given.get(key):
                self.anchors[value] = None
        if target := given.get(_FROM.get(tag, "")):
            self.links[target] = None


def main() -> None:
    """Check the folder that is named on the command line."""
    lines = list(broken_links(Path(sys.argv[1])))
    for line in lines:
        print(line, file=sys.stderr)
    sys.exit(1 if lines else 0)


def broken_links(folder: Path) -> Iterator[str]:
    """Yield a line for each link in the pages of *folder* to a file or heading that is not there.

    Links that begin with a scheme or a host lead out of the site, and are not followed.
    """
    root = folder.resolve()
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(root.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            shown = path.relative_to(root)
            if not target.is_file():
                yield f"{shown}: {link}: there is no such file"
            elif parts.fragment and target in pages:
                anchors = pages[target].anchors
                if unquote(parts.fragment) not in anchors:
                    yield f"{shown}: {link}: there is no such heading"


if __name__ == "__main__":
    main()
