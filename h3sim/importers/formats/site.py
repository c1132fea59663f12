"""Static sites: an HTML file with the files that it and its stylesheets request from its folder.

Nothing is executed or fetched, so requests of scripts are unknown, except what modules import.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from h3sim.importers.causes import BLOCKING_KINDS
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
from h3sim.importers.html import InlineModule, Reference, Style, read_markup, scan
from h3sim.importers.modules import imports_of
from h3sim.importers.recorded_request import RecordedRequest, Recording, SizeSource, Trigger
from h3sim.importers.request_fields import joined, kind_of_extension
from h3sim.page import Kind, TriggerEvent
from h3sim.schema import resolved_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from h3sim.importers.css import Face, Sheet, StyleRule


_BASE_URL = "http://site.invalid/"
"""Base URL of the folder, used to resolve references."""
_INDEX_FILE = "index.html"
_MAX_FILE_BYTES = 256 << 20
_MAX_SHEET_BYTES = 4 << 20
"""Longest stylesheet that is parsed: the parser is slow and takes much memory."""
_MAX_MODULE_BYTES = 4 << 20
"""Longest module whose imports are read."""
_IMPORTABLE_PREFIXES = ("/", "./", "../", "http://", "https://")
"""Beginnings of module specifiers that are URLs; others need an import map, which is not read."""
_MAX_FILES = 20_000
"""Most files that are read of a folder."""
_INLINE_PREFIXES = ("data:", "blob:", "about:", "javascript:", "#")


class _File(NamedTuple):
    """File of the site that a browser requests."""

    request_index: int
    path: str
    served: WireOffsets


class _UnreadSheet(NamedTuple):
    """Stylesheet that is still to be read, with the file that has its text."""

    url: str
    """Base of its references."""
    css: bytes
    file: _File
    offset_bytes: int | None
    """Offset of its end in the document; None for a separate file."""


def read_site(path: Path, recording: Recording, *, root: Path | None = None) -> None:
    """Read the site whose first document is at *path*, and whose folder is *root*.

    *root* is by default the document's folder. No file outside it is read, also through symbolic
    links.
    """
    root = path.parent if root is None else root
    # Symbolic links are not resolved: paths are those that a browser would request.
    absolute, absolute_root = (Path(os.path.abspath(each)) for each in (path, root))  # noqa: PTH100
    if not absolute.is_relative_to(absolute_root):
        raise recording.refuse(f"is not in {str(root)!r}", "--root")
    if resolved_within(absolute_root, absolute) is None:
        raise recording.refuse(f"is a link that leads out of {str(root)!r}, which is not followed")
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise recording.refuse(f"is larger than {_MAX_FILE_BYTES >> 20} MiB")
    _Site(absolute_root, recording).read(absolute.relative_to(absolute_root).as_posix())


class _UsedFonts:
    """Fonts that the rules that apply to a document set, to find the faces that it needs."""

    def __init__(self, document: StyledDocument) -> None:
        self._document = document
        self._families: dict[str, None] = {}
        # Dictionaries, unlike sets, keep the order, on which the order of requests depends.
        self._weights = {NORMAL: None}
        if document.applies(BOLD_ELEMENTS):
            self._weights[BOLD] = None
        self._is_slanted = document.applies(SLANTED_ELEMENTS)

    def add(self, rule: StyleRule) -> None:
        """Add the fonts that a rule sets."""
        self._families |= dict.fromkeys(rule.families)
        self._weights |= dict.fromkeys(rule.weights)
        self._is_slanted = self._is_slanted or rule.is_slanted

    def used_faces(self, faces: list[Face]) -> dict[Face, None]:
        """Return the faces in which some text of the document is set."""
        by_family: dict[str, list[Face]] = {}
        for face in faces:
            if face.family in self._families:
                by_family.setdefault(face.family, []).append(face)
        candidates = [
            face
            for family_faces in by_family.values()
            for face in chosen_faces(family_faces, self._weights, is_slanted=self._is_slanted)
        ]
        return dict.fromkeys(face for face in candidates if self._document.shows(face))


class _Site:
    """Reader of a folder: requests files as a browser would, each once."""

    def __init__(self, folder: Path, recording: Recording) -> None:
        self._folder = folder
        self._recording = recording
        self._file_by_path: dict[str, _File | None] = {}
        """Requested files; None for those that cannot be read."""
        self._unread_documents: deque[tuple[_File, bytes]] = deque()
        self._unread_sheets: deque[_UnreadSheet] = deque()
        self._unread_modules: deque[tuple[_File, bytes]] = deque()
        self._prefetches: list[tuple[Reference, str, _File]] = []
        """Prefetch links with the URL and file of their document, which count if nothing else
        requests their files."""

    def read(self, name: str) -> None:
        """Read the document *name*, then all files to which it leads."""
        recording = self._recording
        self._request(f"{_BASE_URL}{quote(name)}", Kind.DOCUMENT, name, None, {})
        while self._unread_documents:
            self._read_document(*self._unread_documents.popleft())
        for each, document_url, file in self._prefetches:
            self._request_reference(each, document_url, file)
        recording.dialect = recording.dialect or "site"
        recording.has_addresses = False
        folder = self._folder.name or "site"
        recording.name = folder if name == _INDEX_FILE else f"{folder}/{name}"
        recording.tool = "h3sim import"
        recording.missing.append("what scripts ask for")

    def _read_document(self, file: _File, data: bytes) -> None:
        found = scan(data)
        document = StyledDocument(data, found)
        markup = read_markup(found)
        document_url = f"{_BASE_URL}{quote(file.path)}"
        self._recording.left_out.update(markup.passed_over)
        causes: list[Reference | Style | InlineModule] = [
            *markup.references,
            *markup.styles,
            *markup.modules,
        ]
        # In the order in which a parser meets them.
        for each in sorted(causes, key=lambda each: each.offset_bytes):
            if isinstance(each, Reference) and each.flags.get("prefetch"):
                self._prefetches.append((each, document_url, file))
            elif isinstance(each, Reference):
                self._request_reference(each, document_url, file)
            elif isinstance(each, InlineModule):
                self._request_imports_of_inline(each, document_url, file)
            else:
                self._add_style(each, joined(document_url, each.base) or document_url, file)
        self._read_all_modules()
        self._read_all_sheets(document)
        if not document.is_parsed:
            self._recording.inferred["documents too long or deep, all rules taken to apply"] += 1
        self._recording.inferred["selectors taken to apply"] += document.n_guessed

    def _request_reference(self, each: Reference, document_url: str, file: _File) -> None:
        key = f"{file.path}: byte {each.offset_bytes}: {each.tag}"
        at = self._trigger_at(file, each.offset_bytes)
        self._request(each.url_in(document_url), each.kind, key, at, each.flags)

    def _add_style(self, style: Style, base: str, file: _File) -> None:
        if not style.is_attribute:
            self._unread_sheets.append(
                _UnreadSheet(base, style.text.encode(), file, style.offset_bytes)
            )
            return
        key, trigger = f"{file.path}: style", self._trigger_at(file, style.offset_bytes)
        for url in read_declarations(style.text).urls:
            self._request(joined(base, url), Kind.IMAGE, key, trigger, {"in_style": True})

    def _request_imports_of_inline(
        self, module: InlineModule, document_url: str, file: _File
    ) -> None:
        """Request what a module in the document imports, which runs as such a script would."""
        base = joined(document_url, module.base) or document_url
        trigger = self._trigger_at(file, module.offset_bytes)
        flags = {"module": True, "in_head": module.in_head}
        flags |= {"is_async": True} if module.is_async else {"is_defer": True}
        for specifier in self._specifiers(module.text.encode()):
            key = f"{file.path}: import"
            self._request(joined(base, specifier), Kind.SCRIPT, key, trigger, flags)

    def _read_all_modules(self) -> None:
        """Request what modules import, as soon as they are complete."""
        while self._unread_modules:
            file, source = self._unread_modules.popleft()
            if len(source) > _MAX_MODULE_BYTES:
                self._recording.inferred["modules too long, not looked into"] += 1
                continue
            trigger = Trigger(at=TriggerEvent.COMPLETE, by=file.request_index)
            url = f"{_BASE_URL}{quote(file.path)}"
            for specifier in self._specifiers(source):
                key, flags = f"{file.path}: import", {"module": True}
                self._request(joined(url, specifier), Kind.SCRIPT, key, trigger, flags)

    def _specifiers(self, source: bytes) -> Iterator[str]:
        """Yield the imports of a module that are URLs; count the others."""
        for specifier in imports_of(source):
            if specifier.startswith(_IMPORTABLE_PREFIXES):
                yield specifier
            else:
                self._recording.left_out["imports of bare names"] += 1

    def _trigger_at(self, file: _File, offset_bytes: int) -> Trigger:
        offset = file.served.wire(offset_bytes)
        return Trigger(at=TriggerEvent.OFFSET, by=file.request_index, offset_bytes=offset)

    def _read_all_sheets(self, document: StyledDocument) -> None:
        """Read the stylesheets of a document and their imports, then request what they use."""
        sheets: list[tuple[_UnreadSheet, Sheet]] = []
        while self._unread_sheets:
            unread = self._unread_sheets.popleft()
            if len(unread.css) > _MAX_SHEET_BYTES:
                self._recording.inferred["stylesheets too long, not looked into"] += 1
                continue
            sheet = read_sheet(unread.css)
            if not sheet.is_read:
                self._recording.inferred["stylesheets nested too deeply, not looked into"] += 1
            sheets.append((unread, sheet))
            self._request_all(sheet.imports, unread, Kind.STYLESHEET)
        # Not before all are read: a face and the rule that needs it may be in different sheets.
        fonts = _UsedFonts(document)
        for unread, sheet in sheets:
            for rule in sheet.rules:
                if document.applies(rule.selector):
                    fonts.add(rule)
                    self._request_all(rule.urls, unread, Kind.IMAGE)
        used_faces = fonts.used_faces([face for _, sheet in sheets for face in sheet.faces])
        for unread, sheet in sheets:
            urls = [face.url for face in sheet.faces if face in used_faces]
            self._recording.left_out["fonts that no text needs"] += len(sheet.faces) - len(urls)
            self._request_all(urls, unread, Kind.FONT)

    def _request_all(self, urls: Iterable[str], unread: _UnreadSheet, kind: Kind) -> None:
        """Request the URLs in a stylesheet: of *kind* stylesheet, those that it imports."""
        is_import = kind is Kind.STYLESHEET
        flags = {"render_blocking": True} if is_import else {}
        trigger = Trigger(at=TriggerEvent.COMPLETE, by=unread.file.request_index)
        if unread.offset_bytes is not None:
            flags = flags if is_import else {"in_style": True}
            trigger = self._trigger_at(unread.file, unread.offset_bytes)
        key = f"{unread.file.path}: {'@import' if is_import else 'url()'}"
        for url in urls:
            self._request(joined(unread.url, url), kind, key, trigger, flags)

    def _request(
        self, url: str, kind: Kind, key: str, trigger: Trigger | None, flags: Mapping[str, object]
    ) -> None:
        """Add a request for the file at *url*, or its flags, if the file was preloaded before."""
        if not url or url.startswith(_INLINE_PREFIXES):
            self._recording.left_out["data: and blob: URLs"] += bool(url)
            return
        if not url.startswith(_BASE_URL):
            self._recording.left_out["of other hosts"] += 1
            return
        path = unquote(urlsplit(url).path).lstrip("/")
        if path.endswith("/") or not path:
            path += _INDEX_FILE
        if path in self._file_by_path:
            file = self._file_by_path[path]
            if file is not None:
                self._request_again(file, kind, trigger, flags)
            return
        # Before it is read, so that an unreadable file is reported only once.
        self._file_by_path[path] = None
        data = self._read_file(path, key)
        if data is None:
            return
        extension = PurePosixPath(path).suffix.removeprefix(".").lower()
        served = serve(data, extension)
        if kind is Kind.OTHER and not flags.get("prefetch"):
            kind = kind_of_extension(path) or kind
        request = RecordedRequest(
            key=key, url=f"{_BASE_URL}{quote(path)}", kind=kind, trigger=trigger
        )
        request.mime = mime_of_extension(extension)
        request.body_bytes, request.body_from = served.wire_bytes, SizeSource.RECORDED
        request.flags = dict(flags)
        file = _File(len(self._recording.requests), path, served)
        self._file_by_path[path] = file
        self._recording.requests.append(request)
        if kind is Kind.DOCUMENT:
            self._unread_documents.append((file, data))
        elif kind is Kind.STYLESHEET:
            self._unread_sheets.append(_UnreadSheet(url, data, file, None))
        elif kind is Kind.SCRIPT and flags.get("module"):
            self._unread_modules.append((file, data))

    def _request_again(
        self, file: _File, kind: Kind, trigger: Trigger | None, flags: Mapping[str, object]
    ) -> None:
        """Add to the request of a file what a further reference to it says."""
        request = self._recording.requests[file.request_index]
        known = request.flags or {}
        if trigger is None or request.trigger is None or flags.get("prefetch"):
            return
        if flags.get("module") and trigger.at is TriggerEvent.COMPLETE:
            # A module that another one imports, too: the first to be complete requests it, and
            # both wait for it.
            request.trigger = replace(request.trigger, or_else=(*request.trigger.or_else, trigger))
        elif flags.get("preload") and known.get("is_lazy") and not known.get("preload"):
            # The scanner finds the link, and leaves the lazy element before it to the parser.
            request.trigger, request.flags = trigger, {**known, **flags, "is_lazy": True}
        elif known.get("preload"):
            # The preload's attributes take precedence, as it came first.
            request.flags = {**flags, **known}
            is_element = kind in BLOCKING_KINDS and not flags.get("preload")
            is_first = request.reference_offset_bytes is None
            # The page's document is request 0; elements of frames block nothing of the page.
            if trigger.by == 0 and is_element and is_first:
                request.reference_offset_bytes = trigger.offset_bytes
                request.flags["in_head"] = flags.get("in_head", False)

    def _read_file(self, path: str, key: str) -> bytes | None:
        """Return the contents of a file; if it cannot be read, note why and return None."""
        parts = PurePosixPath(path).parts
        name = path if len(path) <= 100 else f"{path[:100]}..."
        why = ""
        try:
            file = resolved_within(self._folder, self._folder.joinpath(*parts))
            if ".." in parts or "\0" in path or "\\" in path:
                why = f"{name!r} is not in the folder"
            elif file is None:
                why = f"{name!r} leads out of the folder"
            elif len(self._file_by_path) > _MAX_FILES:
                why = f"more than {_MAX_FILES:,} files are asked for"
            elif not file.is_file():
                why = f"there is no file {name!r}"
            elif file.stat().st_size > _MAX_FILE_BYTES:
                why = f"{name!r} is too large"
            else:
                return file.read_bytes()
        except (OSError, ValueError) as error:
            why = f"{name!r} cannot be read: {error}"
        self._recording.note(key, f"skipped: {why}")
        return None
