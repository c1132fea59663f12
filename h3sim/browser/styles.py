"""The stylesheets of a page: which are met, which are ready, and what waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.page import Page

__all__ = ["Styles"]


class Styles:
    """A stylesheet that the parser has met blocks scripts behind it, and rendering.

    If the page tells of any resource that it blocks rendering, only stylesheets of which it says so
    block; else all do but those that are only preloaded. A stylesheet is ready when it and all
    that it imports are parsed.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._tells = any(resource.render_blocking for resource in page.resources)
        self._met: list[int] = []
        self._parsed: dict[int, int] = {}
        self._given: set[int] = set()

    def meet(self, index: int) -> None:
        """Take in that the parser has passed a stylesheet."""
        if self.blocks(index):
            self._met.append(index)

    def blocks(self, index: int) -> bool:
        """Return whether a stylesheet blocks what stands behind it."""
        resource = self._page.resources[index]
        return resource.render_blocking if self._tells else not resource.preload

    def on_parsed(self, index: int, activity: int) -> None:
        """Take in that a stylesheet was parsed; *activity* is that."""
        self._parsed[index] = activity

    def imports(self, index: int) -> list[int]:
        """Return the stylesheets that a stylesheet asks for."""
        return [
            child
            for child in self._page.children.get(index, ())
            if self._page.resources[child].kind is Kind.STYLESHEET
        ]

    def blocking(self) -> list[int] | None:
        """Return the activities that made those met so far ready; None while one is not."""
        activities: list[int] = []
        for index in self._met:
            ready = self._ready(index)
            if ready is None:
                return None
            activities += ready
        return activities

    def newly_ready(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each stylesheet that is ready and was not yielded before, and what made it so."""
        for index in self._parsed:
            if index not in self._given:
                ready = self._ready(index)
                if ready is not None:
                    self._given.add(index)
                    yield index, ready

    def _ready(self, index: int) -> list[int] | None:
        activities = []
        waiting = [index]
        while waiting:
            sheet = waiting.pop()
            if sheet not in self._parsed:
                return None
            activities.append(self._parsed[sheet])
            waiting += self.imports(sheet)
        return activities
