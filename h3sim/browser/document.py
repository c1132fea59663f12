"""The document's parser and its stylesheets: progress, and blocking."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import Kind
from h3sim.page.resource import offsets_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.page import Page, Resource


def references(page: Page, root: int | None = None) -> list[tuple[int, int]]:
    """Return the references of a root in document order, as (offset in its body, index).

    That of a resource which a preload or Early Hints request is its element, not the preload.

    >>> from h3sim.page import Discovery, Kind, Resource, TriggerEvent
    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=100)
    >>> found = Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=50)
    >>> image = Resource(id="a", kind=Kind.IMAGE, size_bytes=9, discovered=found)
    >>> from h3sim.page import Page
    >>> references(Page(name="p", resources=(root, image)))
    [(50, 1)]
    """
    root = page.root if root is None else root
    elements = list(hinted(page, root))
    passed = {index for _, index in elements}
    named = ((at, index) for at, index in _triggered_references(page, root) if index not in passed)
    return sorted([*elements, *named])


def _triggered_references(page: Page, root: int) -> Iterator[tuple[int, int]]:
    """Yield the requests that the body of *root* triggers, as (offset, index)."""
    root_id = page.resources[root].id
    for index in page.children.get(root, ()):
        for offset_bytes in offsets_in(page.resources[index], root_id):
            yield offset_bytes, index


def hinted(page: Page, root: int) -> Iterator[tuple[int, int]]:
    """Yield the elements in *root* of resources that something else requests, as `references`."""
    for index, resource in enumerate(page.resources):
        if resource.reference_offset_bytes is not None and page.root_of[index] == root:
            yield resource.reference_offset_bytes, index


def scripts_in_order(page: Page) -> set[int]:
    """Return the scripts that run in document order: when parsed, or once parsing has ended."""
    scripts = set()
    for _, index in references(page):
        resource = page.resources[index]
        if resource.kind is Kind.SCRIPT and not resource.is_async and resource.has_element:
            scripts.add(index)
    return scripts


def preloaded_fonts_in_head(page: Page) -> list[int]:
    """Return the fonts that preload links in the head of the document request.

    Fonts of Early Hints or of links in the body are not among them.
    """
    elements = references(page)
    head_bytes = max((at for at, index in elements if page.resources[index].in_head), default=0)
    root_id = page.resources[page.root].id
    return [
        index
        for index in page.children.get(page.root, ())
        for font in (page.resources[index],)
        if font.kind is Kind.FONT and font.preload
        if any(font.in_head or at <= head_bytes for at in offsets_in(font, root_id))
    ]


def unplaced_in_head(page: Page) -> list[int]:
    """Return the resources at unknown positions of the document that block the first paint.

    Recordings without bodies know that the document references it, and not where. Preloads do not
    block, nor do scripts that are async or deferred.
    """
    referenced = {index for _, index in references(page)}
    return [
        index
        for index in page.children.get(page.root, ())
        if index not in referenced and _blocks_paint(page.resources[index])
    ]


def _blocks_paint(resource: Resource) -> bool:
    """Return whether a resource of the document, wherever it is, blocks the first paint."""
    if not resource.has_element:
        return False
    if resource.kind is Kind.STYLESHEET:
        return resource.render_blocking
    is_in_order = not resource.is_async and not resource.is_deferred
    return resource.kind is Kind.SCRIPT and resource.in_head and is_in_order


class ParserStop(NamedTuple):
    """A reference at which the parser stops: the element of a resource, or only its preload."""

    offset_bytes: int
    resource: int
    is_element: bool


class DocumentParser:
    """The parser of a root's body, which advances from one reference to the next.

    *cost_ns* is the time to parse the complete body. The parser only keeps the state; the browser
    makes it advance, and stops it at scripts.
    """

    def __init__(self, page: Page, *, cost_ns: int) -> None:
        root = page.resources[page.root]
        self._body_bytes = root.size_bytes
        self._cost_ns = cost_ns
        elements = references(page)
        preloads = set(_triggered_references(page, page.root)).difference(elements)
        self._stops = sorted(
            [ParserStop(at, index, is_element=True) for at, index in elements]
            + [ParserStop(at, index, is_element=False) for at, index in preloads]
        )
        self._next_stop = 0
        """The index of the first of these that it has not passed."""
        heads = [at for at, index in elements if page.resources[index].in_head]
        self.head_bytes = max(heads, default=0)
        """The offset in the body of the last resource that the head references."""
        self._received_bytes = 0
        self._is_complete = False
        """True if the complete body has arrived."""
        self.position = 0
        """The offset in the body that it has reached."""
        self.waits_for: int | None = None
        """The script that blocks it."""
        self.has_ended = False
        self.after: int | None = None
        """The activity that let it continue."""
        self.ready_at_ns = 0
        """Time when that activity let it continue."""

    @property
    def has_passed_head(self) -> bool:
        """True if it has passed all references of the head, so that there is something to paint."""
        return self.has_ended or (self.position > self.head_bytes and not self._at_reference)

    @property
    def _at_reference(self) -> bool:
        """True if there is a reference at its position that it has not passed."""
        if self._next_stop == len(self._stops):
            return False
        return self._stops[self._next_stop].offset_bytes <= self.position

    def receive(self, n_bytes: int, now_ns: int, download: int, *, is_complete: bool) -> None:
        """Record that the first *n_bytes* of the body have arrived; *download* is its activity."""
        # The end counts even without new bytes: only then can the parser finish.
        if n_bytes > self._received_bytes or is_complete:
            # If it was out of bytes, this download lets it continue; otherwise something else
            # blocks it.
            if self.position == self._received_bytes:
                self.go_on(download, now_ns)
            self._received_bytes = n_bytes
            self._is_complete = is_complete

    def go_on(self, after: int | None, now_ns: int) -> None:
        """Record which activity lets it continue, and when."""
        self.after, self.ready_at_ns = after, now_ns

    def next_reference(self) -> tuple[int, bool] | None:
        """Return the reference at its position, if there is one, and pass it.

        The result is the index of the resource, and True for its element, False for a preload.
        """
        if not self._at_reference:
            return None
        stop = self._stops[self._next_stop]
        self._next_stop += 1
        return stop.resource, stop.is_element

    def next_piece(self) -> tuple[int, int] | None:
        """Return the offset that it can reach now, and the time for it; None if it is blocked."""
        stop = self._received_bytes
        if self.position <= self.head_bytes < stop:
            # There is something to paint as soon as the body begins.
            stop = self.head_bytes + 1
        if self._next_stop < len(self._stops):
            stop = min(stop, self._stops[self._next_stop].offset_bytes)
        if stop <= self.position:
            return None
        return stop, self._cost_to(stop) - self._cost_to(self.position)

    def reaches_end(self) -> bool:
        """Return whether it is at the end of the document; then it has finished.

        It is asked once the references there have been passed.
        """
        if self.position == self._body_bytes and self._is_complete:
            self.has_ended = True
        return self.has_ended

    def _cost_to(self, position: int) -> int:
        """Return the time to parse the body up to *position*."""
        # The product first: pieces of any number add up to the total cost.
        return self._cost_ns * position // self._body_bytes


class Styles:
    """The stylesheets that the parser has met: they block later scripts, and rendering.

    If the page marks any resource as render-blocking, only marked stylesheets block; otherwise all
    do except those that are only preloaded. A stylesheet is ready when it and all its imports are
    parsed.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._has_render_blocking = any(resource.render_blocking for resource in page.resources)
        self._met: list[int] = []
        """The blocking stylesheets that the parser has passed."""
        self._parsed: dict[int, int] = {}
        """The activity that parsed each stylesheet."""
        self._reported_ready: set[int] = set()
        """The stylesheets that `newly_ready` has reported."""

    def meet(self, index: int) -> None:
        """Record that the parser has passed a stylesheet."""
        if self.blocks(index):
            self._met.append(index)

    def blocks(self, index: int) -> bool:
        """Return whether a stylesheet blocks scripts and content after it."""
        resource = self._page.resources[index]
        return resource.render_blocking if self._has_render_blocking else resource.has_element

    def on_parsed(self, index: int, activity: int) -> None:
        """Record that a stylesheet was parsed by that *activity*."""
        self._parsed[index] = activity

    def imports(self, index: int) -> list[int]:
        """Return the stylesheets that a stylesheet imports."""
        return [
            child
            for child in self._page.children.get(index, ())
            if self._page.resources[child].kind is Kind.STYLESHEET
        ]

    def with_imports(self, index: int) -> Iterator[int]:
        """Yield a stylesheet and all that it imports, directly or not, each once."""
        waiting, met = [index], {index}
        while waiting:
            sheet = waiting.pop()
            yield sheet
            imports = [each for each in self.imports(sheet) if each not in met]
            met.update(imports)
            waiting += imports

    def blocking(self) -> list[int] | None:
        """Return the activities that made the stylesheets met so far ready; None if one is not."""
        activities: list[int] = []
        for index in self._met:
            ready = self._parsed_with_imports(index)
            if ready is None:
                return None
            activities += ready
        return activities

    def newly_ready(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each stylesheet that became ready, with the activity that made it so, once."""
        for index in self._parsed:
            if index not in self._reported_ready:
                ready = self._parsed_with_imports(index)
                if ready is not None:
                    self._reported_ready.add(index)
                    yield index, ready

    def _parsed_with_imports(self, index: int) -> list[int] | None:
        """Return the activities that parsed a sheet and its imports; None if one is missing."""
        activities = []
        for sheet in self.with_imports(index):
            if sheet not in self._parsed:
                return None
            activities.append(self._parsed[sheet])
        return activities
