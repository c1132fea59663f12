"""What a browser comes upon, and asks for: by the bytes that name it, or by what has happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.page import At, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.browser.requests import Requests
    from h3sim.page import Page, Resource

__all__ = ["OF_LAYOUT", "Discoverer", "is_lazy"]

OF_LAYOUT = (Kind.FONT, Kind.IMAGE)
"""What a stylesheet names is asked for once there is a layout that needs it."""
_MAY_BE_LAZY = (Kind.IMAGE, Kind.MEDIA, Kind.DOCUMENT)


def is_lazy(resource: Resource) -> bool:
    """Return whether it waits until it is nearly in sight (`loading=lazy`)."""
    return resource.is_lazy and resource.kind in _MAY_BE_LAZY


class Discoverer:
    """Asks for the resources of *page* through *requests*; resources are told by their indices.

    Lazy ones wait: those in sight for the first paint, the others for the load event.
    """

    def __init__(self, page: Page, requests: Requests, *, has_scanner: bool) -> None:
        self._page = page
        self._requests = requests
        self._has_scanner = has_scanner
        self._lazy: list[int] = []
        self._painted: int | None = None
        self._loaded: int | None = None

    def ask(self, index: int, now_ns: int, after: int | None, *, delayed: bool = False) -> None:
        """Ask for a resource that was come upon, because of the activity *after*.

        Where it is *delayed*, it is so by what was recorded.
        """
        resource = self._page.resources[index]
        if is_lazy(resource):
            self._lazy.append(index)
            self._ask_lazy(now_ns)
            return
        delay_ns = 0
        if delayed and resource.discovered is not None:
            delay_ns = resource.discovered.delay_ns
        self._requests.ask(index, now_ns, delay_ns, after=after)

    def on_painted(self, activity: int, now_ns: int) -> None:
        """Ask for the lazy resources in sight, now and from now on."""
        self._painted = activity
        self._ask_lazy(now_ns)

    def on_loaded(self, activity: int, now_ns: int) -> None:
        """Ask for the other lazy resources, now and from now on."""
        self._loaded = activity
        self._ask_lazy(now_ns)

    def children(self, index: int, at: At) -> Iterator[int]:
        """Yield what a resource leads to by that trigger."""
        for child in self._page.children.get(index, ()):
            discovery = self._page.resources[child].discovered
            if discovery is not None and discovery.at is at:
                yield child

    def offsets(self, index: int) -> list[tuple[int, int]]:
        """Return at how many bytes of its stream which child is come upon, the nearest last."""
        resource = self._page.resources[index]
        is_root = index == self._page.root
        # The parser goes through the document by itself.
        if is_root and not self._has_scanner:
            return []
        found = []
        for child in self.children(index, At.OFFSET):
            named = self._page.resources[child]
            of_layout = resource.kind is Kind.STYLESHEET and named.kind in OF_LAYOUT
            # The preload scanner leaves lazy images to the parser.
            if named.discovered is not None and not of_layout and not (is_root and is_lazy(named)):
                offset_bytes = named.discovered.offset_bytes or 0
                found.append((resource.header_bytes + offset_bytes, child))
        # Taken off the end, so of one offset the child that stands first in the file comes first.
        return sorted(found, reverse=True)

    def _ask_lazy(self, now_ns: int) -> None:
        # Those asked for before stay in the list: to ask again has no effect.
        for index in self._lazy:
            in_sight = self._page.resources[index].above_the_fold
            after = self._painted if in_sight else self._loaded
            if after is not None:
                self._requests.ask(index, now_ns, 0, after=after)
