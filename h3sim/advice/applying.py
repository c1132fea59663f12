"""Edits of `hints` in the files of a page: attributes of its tags, and links in its head."""

from __future__ import annotations

import html
import posixpath
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from h3sim.advice.edits import preconnect_links, preload_link
from h3sim.importers.html import read_markup, scan
from h3sim.schema.files import write_atomically
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.advice.edits import Edit
    from h3sim.importers.html import Tag
    from h3sim.page import Page, Resource

_LINKED = ("preload", "preconnect")
"""Kinds of edits that add links to the head."""
_HEAD = re.compile(rb"<head(?:\s[^>]*)?>(?:\s*<meta\s[^>]*charset[^>]*>)?", re.IGNORECASE)
"""Where links may be added: the encoding must be among the first 1024 bytes."""


def is_markup(edit: Edit) -> bool:
    """Return whether an edit changes the markup of the document, and nothing else."""
    return bool(edit.attribute) or edit.kind in _LINKED


def with_edits(document: bytes, page: Page, edits: Sequence[Edit]) -> bytes:
    """Return the HTML *document* of *page* with *edits*, each of which `is_markup`.

    Raises:
        InputError: listing every resource that no tag of the document names.
    """
    tags = _tags(document, page)
    root = page.resources[page.root]
    missing = [
        ValidationIssue(key=each.id, message=f"no tag of {root.id} names it")
        for edit in edits
        if edit.attribute
        for each in _edited(page, edit)
        if each.id not in tags
    ]
    if missing:
        raise InputError(missing)
    for edit in edits:
        if edit.attribute:
            document = _with_attribute(document, page, edit)
        else:
            document = _with_links(document, page, edit)
    return document


def apply_edits(
    folder: Path, page: Page, choices: Sequence[Sequence[Edit]], output: Path
) -> Sequence[Edit]:
    """Write a copy of the files of *page* in *folder* to *output*, with edits in its document.

    These are the first of the *choices* of which the document has all tags; they are returned.

    Raises:
        InputError: if *output* exists or is in *folder*, or the document is not there, or for each
            choice what it lacks. Nothing is written then.
    """
    path = page.resources[page.root].id.partition("?")[0].strip("/")
    name = path if (folder / path).is_file() else posixpath.join(path, "index.html").lstrip("/")
    if output.exists():
        raise InputError.at(str(output), "exists: name a new folder")
    if output.resolve().is_relative_to(folder.resolve()):
        raise InputError.at(str(output), f"is in {folder}: name a folder elsewhere")
    # The name is from the page file, whose author may be anybody.
    is_within = (folder / name).resolve().is_relative_to(folder.resolve())
    if not is_within or not (folder / name).is_file():
        raise InputError.at(str(folder), f"has no file {name}, the document of the page")
    if not choices:
        raise InputError.at(page.name, "no hint that helps changes only markup")
    chosen, changed = _first_possible((folder / name).read_bytes(), page, choices)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as unfinished:
        copy = Path(unfinished) / "copy"
        shutil.copytree(folder, copy)
        write_atomically(copy / name, changed)
        for coding in (".gz", ".br", ".zst"):  # of the document as it was
            (copy / f"{name}{coding}").unlink(missing_ok=True)
        copy.rename(output)
    return chosen


def _first_possible(
    document: bytes, page: Page, choices: Sequence[Sequence[Edit]]
) -> tuple[Sequence[Edit], bytes]:
    problems: list[ValidationIssue] = []
    for edits in choices:
        try:
            return edits, with_edits(document, page, edits)
        except InputError as error:
            problems += error.problems
    raise InputError(dict.fromkeys(problems))


def _edited(page: Page, edit: Edit) -> Iterator[Resource]:
    """Yield the resources that an edit touches, in the order of the page."""
    ids = {touched.partition(" ")[2] for touched in edit.touches}
    return (resource for resource in page.resources if resource.id in ids)


def _with_links(document: bytes, page: Page, edit: Edit) -> bytes:
    root = page.resources[page.root]
    if edit.kind == "preconnect":
        host = next(iter(edit.touches)).partition(" ")[2]
        links = preconnect_links(host, (r for r in page.resources if r.host == host))
    else:
        folder = posixpath.dirname(root.id)
        links = "\n".join(
            preload_link(
                each
                if each.host != root.host
                else replace(each, id=posixpath.relpath(each.id, folder or "."))
            )
            for each in _edited(page, edit)
        )
    head = _HEAD.search(document)
    at = 0 if head is None else head.end()
    if head is None and (doctype := re.match(rb"\s*<!doctype[^>]*>", document, re.IGNORECASE)):
        at = doctype.end()
    return document[:at] + b"\n" + links.encode() + document[at:]


def _tags(document: bytes, page: Page) -> dict[str, list[tuple[str, int]]]:
    """Return the name and the end of each tag that requests a resource, by the resource's id."""
    root, scanned = page.resources[page.root], scan(document)
    host = root.host or "page.invalid"
    by_source: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for tag in scanned.tags:
        by_source.setdefault(_source(tag), []).append((tag.name, tag.end))
    tag_by_end = {tag.end: tag for tag in scanned.tags}
    found: dict[str, list[tuple[str, int]]] = {}
    for reference in read_markup(scanned).references:
        parts = urlsplit(reference.url_in(f"https://{host}/{root.id.lstrip('/')}"))
        path = unquote(parts.path).lstrip("/")
        id_ = path if parts.hostname == host else f"{parts.hostname}/{path}"
        if "preload" not in reference.flags:
            # Markup has the first tag of each resource only.
            places = by_source[_source(tag_by_end[reference.offset_bytes])]
            found.setdefault(id_, []).extend(places)
    return found


def _source(tag: Tag) -> tuple[str, str]:
    """Return what tags of the same resource have in common."""
    texts = (tag.attributes.get(name, "") for name in ("src", "href", "srcset"))
    return tag.name, " ".join(texts)


def _with_attribute(document: bytes, page: Page, edit: Edit) -> bytes:
    """Return the document with the attribute of *edit* in all tags that name what it touches."""
    name, value = edit.attribute or ("", None)
    tags = _tags(document, page)
    places = {place for each in _edited(page, edit) for place in tags[each.id]}
    for tag, end in sorted(places, key=lambda place: -place[1]):
        begin = document.lower().rfind(f"<{tag}".encode(), 0, end)
        changed = _set_attribute(document[begin:end], name, value)
        document = document[:begin] + changed + document[end:]
    return document


def _set_attribute(tag: bytes, name: str, value: str | None) -> bytes:
    """Return a start tag with an attribute set; without it if *value* is None.

    >>> _set_attribute(b"<img src=a loading='eager'/>", "loading", "lazy")
    b'<img src=a loading="lazy"/>'
    >>> _set_attribute(b"<script src=a.js>", "defer", ""), _set_attribute(b"<a b=c>", "b", None)
    (b'<script src=a.js defer>', b'<a>')
    """
    # The slash after an unquoted value is a part of it.
    closing = 2 if re.search(rb"[\s\"']/>$", tag) else 1
    tag, end = tag[:-closing], tag[-closing:]
    known = rb"\s+" + name.encode() + rb"(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"']+))?(?=\s|$)"
    tag = re.sub(known, b"", tag, count=1, flags=re.IGNORECASE).rstrip()
    if value is not None:
        tag += f" {name}".encode() + (f'="{html.escape(value)}"'.encode() if value else b"")
    return tag + end
