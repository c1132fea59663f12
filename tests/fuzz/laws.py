"""What holds for every file that is given to `import_page`, however broken it is."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from h3sim import importers
from h3sim.importers.html import read_markup, scan
from h3sim.page import page_from_dict, page_to_dict
from h3sim.page.resource import MAX_TIME_NS
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.importers import ImportedPage

__all__ = ["check_a_page_or_a_line_comes", "check_no_secret_is_kept", "check_tags_are_found"]


def _outcome(data: bytes, name: str, read: Callable[[Path], ImportedPage]) -> ImportedPage | None:
    """Return what comes of the file, None after seeing that it was refused in whole lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            return read(path)
        except InputError as error:
            lines = error.lines()
    assert lines
    assert all(line.strip() and "\n" not in line for line in lines)
    return None


def check_a_page_or_a_line_comes(
    data: bytes, name: str, read: Callable[[Path], ImportedPage] = importers.import_page
) -> None:
    """Either the page can be written and read back, or each mistake is told in a line."""
    imported = _outcome(data, name, read)
    if imported is None:
        return
    document = json.loads(json.dumps(page_to_dict(imported.page), allow_nan=False))
    assert page_from_dict(document) == imported.page
    json.dumps(imported.to_dict(), allow_nan=False)
    assert all("\n" not in line for line in imported.lines())
    for resource in imported.page.resources:
        assert resource.discovered is None or resource.discovered.delay_ns <= MAX_TIME_NS


def check_no_secret_is_kept(
    data: bytes, name: str, read: Callable[[Path], ImportedPage] = importers.import_page
) -> None:
    """No cookie, value of a header or query string is in the page."""
    imported = _outcome(data, name, read)
    if imported is not None:
        assert "SECRET" not in json.dumps(page_to_dict(imported.page))


def check_tags_are_found(
    html: str, find: Callable[[bytes], list[tuple[str, str]]] | None = None
) -> None:
    """The images, scripts and frames are those that a parser's tree has, each URL once by tag."""
    find = _sources if find is None else find
    tree = LexborHTMLParser(html.encode())
    nodes = tree.css("img[src], script[src], iframe[src]")
    sources = {(str(node.tag), (node.attributes.get("src") or "").strip()) for node in nodes}
    assert sorted(find(html.encode())) == sorted(each for each in sources if each[1])


def _sources(data: bytes) -> list[tuple[str, str]]:
    return [(reference.tag, reference.url) for reference in read_markup(scan(data)).references]
