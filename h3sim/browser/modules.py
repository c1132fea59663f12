"""Module scripts during one load: which of them run next, and which still wait for imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from h3sim.page import Page


class ModuleScripts:
    """The modules of *page* that have run, or wait; *finished* has the resources that are complete.

    A module is ready once all that it imports, directly or not, has arrived; then those of its
    graph run that have not run before, the imports first.

    >>> from h3sim.page import Discovery, Kind, Page, Resource, TriggerEvent
    >>> by = [None, Discovery(by="/", at=TriggerEvent.OFFSET, offset_bytes=0),
    ...       Discovery(by="a", at=TriggerEvent.COMPLETE)]
    >>> root, *modules = (
    ...     Resource(id=id_, kind=Kind.SCRIPT, size_bytes=9, module=True, discovered=each)
    ...     for id_, each in zip("/ab", by, strict=True))
    >>> finished = {1: 0}
    >>> scripts = ModuleScripts(Page(name="p", resources=(root, *modules)), finished)
    >>> scripts.wait(1), scripts.ready()
    (None, [])
    >>> finished[2] = 1
    >>> scripts.ready(), scripts.ready()
    ([2, 1], [])
    """

    def __init__(self, page: Page, finished: Collection[int]) -> None:
        self._graphs = page.module_graphs
        self._imported = page.imported_modules
        self._finished = finished
        self._waiting: list[int] = []
        """Modules outside the document's order that have arrived before all of their imports."""
        self._started: set[int] = set()
        """The modules that have run, or will without further conditions."""

    def graph(self, script: int) -> tuple[int, ...]:
        """Return a script after all that it imports: only a module imports anything."""
        return self._graphs.get(script, (script,))

    def is_imported(self, script: int) -> bool:
        """Return whether a module runs only together with those that import it."""
        return script in self._imported

    def has_started(self, script: int) -> bool:
        """Return whether a module has run as part of a graph."""
        return script in self._started

    def start_next(self, script: int) -> int:
        """Return the first of a script's graph that has not run, and note that it does."""
        chosen = next((each for each in self.graph(script) if each not in self._started), script)
        if script in self._graphs or script in self._imported:
            self._started.add(chosen)
        return chosen

    def wait(self, script: int) -> None:
        """Add a module that runs as soon as its graph has arrived."""
        self._waiting.append(script)

    def ready(self) -> list[int]:
        """Return the modules that run now, in order, as the last of a graph has arrived."""
        running: list[int] = []
        for script in [*self._waiting]:
            graph = self.graph(script)
            if all(each in self._finished for each in graph):
                self._waiting.remove(script)
                new = [each for each in graph if each not in self._started]
                self._started.update(new)
                running += new
        return running
