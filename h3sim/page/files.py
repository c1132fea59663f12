"""Page files (`h3sim-page/1`): read, written, and their published schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.page.model import FORMAT, Page
from h3sim.schema.output import schema_of

if TYPE_CHECKING:
    from pathlib import Path


def read_page(path: str | Path) -> Page:
    """Return the page that the file at *path* describes.

    Raises:
        PageError: if the file cannot be read, or listing every error in it.
    """
    return Page.from_file(path)


def page_from_dict(document: dict[str, Any], *, source: str = "page") -> Page:
    """Return the page that *document*, a parsed page file, describes.

    Raises:
        PageError: listing every error in it.
    """
    return Page.from_dict(document, source=source)


def page_to_dict(page: Page) -> dict[str, Any]:
    """Return *page* as a page file's document; reading it back gives an equal page.

    >>> from h3sim.page import Kind, Resource
    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=10),))
    >>> page_from_dict(page_to_dict(page)) == page
    True
    """
    return page.to_dict()


def schema() -> dict[str, Any]:
    """Return the published JSON Schema of a page file.

    >>> schema()["properties"]["format"]
    {'const': 'h3sim-page/1'}
    """
    return schema_of(Page, FORMAT, title="A page for h3sim", about=_ABOUT, rules=_RULES)


_ABOUT = (
    "A web page as a dependency graph of its resources and their triggers. Rules that a schema"
    " cannot express: ids are unique, exactly one resource has no 'discovered', parents exist,"
    " there is no cycle, and no offset is beyond the end of its parent."
)
_RULES: dict[str, dict[str, Any]] = {
    "page": {"properties": {"resources": {"minItems": 1}}},
    "discovery": {
        "allOf": [
            {
                "if": {"properties": {"at": {"const": "offset"}}},
                "then": {"required": ["offset_bytes"]},
                "else": {"not": {"required": ["offset_bytes"]}},
            },
            {"if": {"properties": {"at": {"const": "time"}}}, "else": {"required": ["by"]}},
        ]
    },
}
"""The rules between values, as far as a schema can express them."""
