"""Static sites: an HTML file with the files that it and its stylesheets request from its folder.

Nothing is executed or fetched, so requests of scripts are unknown.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from h3sim.importers.causes import HAVE_ELEMENTS
from h3sim.importers.content_encoding import WireOffsets, mime_of_extension, serve
from h3sim.importers.css import (
    BOLD,
    BOLD_ELEMENTS,
    NORMAL,
    SLANTED_ELEMENTS,
    StyledDocument,
    chosen_faces,
    read_declarations,
    read_sheet,
)
from h3sim.importers.html import Reference, Style, read_markup, scan
from h3sim.importers.recorded_request import RecordedRequest, Recording, SizeSource, Trigger
from h3sim.importers.request_fields import joined, kind_of_extension
from h3sim.page import Kind, TriggerEvent
from h3sim.schema import resolved_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from h3sim.importers.css import Face, Sheet, StyleRule


_BASE = "http://site.invalid/"
"""Base URL of the folder, used to resolve references."""
_INDEX = "index.html"
_LONGEST_FILE = 256 << 20
_LONGEST_SHEET = 4 << 20
_MOST_FILES = 20_000
_INLINE = ("data:", "blob:", "about:", "javascript:", "#")


class _File(NamedTuple):
    """A file of the site that a browser asks for."""

    request_index: int
    path: str
    served: WireOffsets


class _Later(NamedTuple):
    """A stylesheet that is still to be read: its base, its text, and where it stands."""

    url: str
    css: bytes
    file: _File
    offset_bytes: int | None
    """The offset behind it in its document; None for a file of its own."""


def read_site(path: Path, recording: Recording, *, root: Path | None = None) -> None:
    """Read the site whose first document is at *path*, and whose paths begin at *root*.

    Without *root* they begin at the document's folder. No file outside is read, and no symbolic
    link that leads out is followed.
    """
    root = path.parent if root is None else root
    # Not resolved: paths are those that a browser would request, links among them.
    absolute, absolute_root = (Path(os.path.abspath(each)) for each in (path, root))  # noqa: PTH100
    if not absolute.is_relative_to(absolute_root):
        raise recording.refuse(f"is not in {str(root)!r}", "--root")
    if resolved_within(absolute_root, absolute) is None:
        raise recording.refuse(f"is a link that leads out of {str(root)!r}, which is not followed")
    if path.stat().st_size > _LONGEST_FILE:
        raise recording.refuse(f"is larger than {_LONGEST_FILE >> 20} MiB")
    _Site(absolute_root, recording).read(absolute.relative_to(absolute_root).as_posix())


class _Fonts:
    """The fonts that the rules of a document's stylesheets ask for, as far as they apply."""

    def __init__(self, document: StyledDocument) -> None:
        self._document = document
        self._families: dict[str, None] = {}
        self._weights = {NORMAL: None}
        if document.applies(BOLD_ELEMENTS):
            self._weights[BOLD] = None
        self._is_slanted = document.applies(SLANTED_ELEMENTS)

    def add(self, rule: StyleRule) -> None:
        """Take over what a rule that applies says of fonts."""
        self._families |= dict.fromkeys(rule.families)
        self._weights |= dict.fromkeys(rule.weights)
        self._is_slanted = self._is_slanted or rule.is_slanted

    def needed(self, faces: list[Face]) -> dict[Face, None]:
        """Return those that some text of the document is set in."""
        families: dict[str, list[Face]] = {}
        for face in faces:
            if face.family in self._families:
                families.setdefault(face.family, []).append(face)
        candidates = [
            face
            for alike in families.values()
            for face in chosen_faces(alike, self._weights, is_slanted=self._is_slanted)
        ]
        return dict.fromkeys(face for face in candidates if self._document.shows(face))


class _Site:
    def __init__(self, folder: Path, recording: Recording) -> None:
        self._folder = folder
        self._recording = recording
        self._files: dict[str, _File | None] = {}
        self._documents: deque[tuple[_File, bytes]] = deque()
        self._sheets: deque[_Later] = deque()

    def read(self, name: str) -> None:
        """Read the document, then what it leads to; each file is asked for once."""
        recording = self._recording
        self._ask(f"{_BASE}{quote(name)}", Kind.DOCUMENT, name, None, {})
        while self._documents:
            self._read_document(*self._documents.popleft())
        recording.dialect = recording.dialect or "site"
        recording.has_addresses = False
        folder = self._folder.name or "site"
        recording.name = folder if name == _INDEX else f"{folder}/{name}"
        recording.tool = "h3sim import"
        recording.missing.append("what scripts ask for")

    def _read_document(self, file: _File, data: bytes) -> None:
        found = scan(data)
        document = StyledDocument(data, found)
        markup = read_markup(found)
        own = f"{_BASE}{quote(file.path)}"
        for what in markup.passed_over:
            self._recording.left_out[what] += 1
        named: list[Reference | Style] = [*markup.references, *markup.styles]
        # In the order in which a parser meets them.
        for each in sorted(named, key=lambda each: each.offset_bytes):
            if isinstance(each, Reference):
                key = f"{file.path}: byte {each.offset_bytes}: {each.tag}"
                at = self._trigger_at(file, each.offset_bytes)
                self._ask(each.url_in(own), each.kind, key, at, each.flags)
            else:
                self._take_style(each, joined(own, each.base) or own, file)
        self._read_all_sheets(document)
        if not document.is_parsed:
            self._recording.inferred["documents too long or deep, all rules taken to apply"] += 1
        self._recording.inferred["selectors taken to apply"] += document.n_guessed

    def _take_style(self, style: Style, base: str, file: _File) -> None:
        if not style.is_attribute:
            self._sheets.append(_Later(base, style.text.encode(), file, style.offset_bytes))
            return
        key, trigger = f"{file.path}: style", self._trigger_at(file, style.offset_bytes)
        for url in read_declarations(style.text).urls:
            self._ask(joined(base, url), Kind.IMAGE, key, trigger, {"in_style": True})

    def _trigger_at(self, file: _File, offset_bytes: int) -> Trigger:
        offset = file.served.wire(offset_bytes)
        return Trigger(at=TriggerEvent.OFFSET, by=file.request_index, offset_bytes=offset)

    def _read_all_sheets(self, document: StyledDocument) -> None:
        """Read the stylesheets of a document and what they import, then see what is used."""
        sheets: list[tuple[_Later, Sheet]] = []
        while self._sheets:
            later = self._sheets.popleft()
            if len(later.css) > _LONGEST_SHEET:
                self._recording.inferred["stylesheets too long, not looked into"] += 1
                continue
            sheet = read_sheet(later.css)
            if not sheet.is_read:
                self._recording.inferred["stylesheets nested too deeply, not looked into"] += 1
            sheets.append((later, sheet))
            self._ask_all(sheet.imports, later, Kind.STYLESHEET)
        # Only now: a face and the rule that needs it may be in different sheets.
        fonts = _Fonts(document)
        for later, sheet in sheets:
            for rule in sheet.rules:
                if document.applies(rule.selector):
                    fonts.add(rule)
                    self._ask_all(rule.urls, later, Kind.IMAGE)
        needed = fonts.needed([face for _, sheet in sheets for face in sheet.faces])
        for later, sheet in sheets:
            urls = [face.url for face in sheet.faces if face in needed]
            self._recording.left_out["fonts that no text needs"] += len(sheet.faces) - len(urls)
            self._ask_all(urls, later, Kind.FONT)

    def _ask_all(self, urls: Iterable[str], later: _Later, kind: Kind) -> None:
        """Take what a stylesheet names into the page; it imports stylesheets."""
        is_import = kind is Kind.STYLESHEET
        flags = {"render_blocking": True} if is_import else {}
        trigger = Trigger(at=TriggerEvent.COMPLETE, by=later.file.request_index)
        if later.offset_bytes is not None:
            flags = flags if is_import else {"in_style": True}
            trigger = self._trigger_at(later.file, later.offset_bytes)
        key = f"{later.file.path}: {'@import' if is_import else 'url()'}"
        for url in urls:
            self._ask(joined(later.url, url), kind, key, trigger, flags)

    def _ask(
        self, url: str, kind: Kind, key: str, trigger: Trigger | None, flags: Mapping[str, object]
    ) -> None:
        """Take the file that *url* names into the page, unless it is there already."""
        if not url or url.startswith(_INLINE):
            self._recording.left_out["data: and blob: URLs"] += bool(url)
            return
        if not url.startswith(_BASE):
            self._recording.left_out["of other hosts"] += 1
            return
        path = unquote(urlsplit(url).path).lstrip("/")
        if path.endswith("/") or not path:
            path += _INDEX
        if path in self._files:
            file = self._files[path]
            known = self._recording.requests[file.request_index].flags if file else None
            if file is not None and known and known.get("preload"):
                # What is known goes before: the preload asked first.
                request = self._recording.requests[file.request_index]
                request.flags = {**flags, **known}
                is_element = kind in HAVE_ELEMENTS and not flags.get("preload")
                is_first = request.reference_offset_bytes is None
                if trigger is not None and trigger.by == 0 and is_element and is_first:
                    request.reference_offset_bytes = trigger.offset_bytes
                    request.flags["in_head"] = flags.get("in_head", False)
            return
        # Before it is read, so that one that cannot be had is told of once.
        self._files[path] = None
        data = self._bytes(path, key)
        if data is None:
            return
        extension = PurePosixPath(path).suffix.removeprefix(".").lower()
        served = serve(data, extension)
        kind = kind if kind is not Kind.OTHER else kind_of_extension(path) or kind
        request = RecordedRequest(key=key, url=f"{_BASE}{quote(path)}", kind=kind, trigger=trigger)
        request.mime = mime_of_extension(extension)
        request.body_bytes, request.body_from = served.wire_bytes, SizeSource.RECORDED
        request.flags = dict(flags)
        file = _File(len(self._recording.requests), path, served)
        self._files[path] = file
        self._recording.requests.append(request)
        if kind is Kind.DOCUMENT:
            self._documents.append((file, data))
        elif kind is Kind.STYLESHEET:
            self._sheets.append(_Later(url, data, file, None))

    def _bytes(self, path: str, key: str) -> bytes | None:
        """Return what is in the file, None after noting why it cannot be had."""
        parts = PurePosixPath(path).parts
        name = path if len(path) <= 100 else f"{path[:100]}..."
        why = ""
        try:
            file = resolved_within(self._folder, self._folder.joinpath(*parts))
            if ".." in parts or "\0" in path or "\\" in path:
                why = f"{name!r} is not in the folder"
            elif file is None:
                why = f"{name!r} leads out of the folder"
            elif len(self._files) > _MOST_FILES:
                why = f"more than {_MOST_FILES:,} files are asked for"
            elif not file.is_file():
                why = f"there is no file {name!r}"
            elif file.stat().st_size > _LONGEST_FILE:
                why = f"{name!r} is too large"
            else:
                return file.read_bytes()
        except (OSError, ValueError) as error:
            why = f"{name!r} cannot be read: {error}"
        self._recording.note(key, f"skipped: {why}")
        return None
