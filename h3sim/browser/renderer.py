"""What is seen, and what that asks for: stylesheets, the first paint, layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.discoverer import OF_LAYOUT
from h3sim.browser.styles import Styles
from h3sim.trace import Work

if TYPE_CHECKING:
    from h3sim.browser.discoverer import Discoverer
    from h3sim.browser.document import DocumentParser
    from h3sim.browser.main_thread import MainThreadRecord
    from h3sim.page import Page

__all__ = ["Renderer"]


class Renderer:
    """Paints once the head is parsed and the stylesheets that the parser has met are ready.

    With *stops_parser* these hold the parser up as well.
    """

    def __init__(
        self,
        page: Page,
        record: MainThreadRecord,
        parser: DocumentParser,
        discoverer: Discoverer,
        *,
        stops_parser: bool = False,
    ) -> None:
        self.styles = Styles(page)
        self._page = page
        self._record = record
        self._parser = parser
        self._discoverer = discoverer
        self._painted: int | None = None
        self._stops_parser = stops_parser
        self._is_held = False
        """Whether the parser stands at a stylesheet."""

    @property
    def is_laid_out(self) -> bool:
        """Whether it has laid the page out: from the first paint on."""
        return self._painted is not None

    def on_styled(self, sheet: int, activity: int, now_ns: int) -> None:
        """Take in that *sheet* was parsed: ask for what it imports, and for what layout needs."""
        self.styles.on_parsed(sheet, activity)
        for child in self._page.children.get(sheet, ()):
            if self._page.resources[child].kind not in OF_LAYOUT:
                self._discoverer.ask(child, now_ns, activity)
        if self._painted is not None:
            self._lay_out(now_ns)

    def paint(self, now_ns: int) -> bool:
        """Paint for the first time, if there is something to see; return whether it did."""
        if self._painted is not None or not self._parser.has_passed_head:
            return False
        sheets = self.styles.blocking()
        if sheets is None:
            return False
        after = self._record.latest([self._parser.after, *sheets])
        self._painted = self._record.begin(Work.FIRST_PAINT, None, now_ns, after=after)
        self._lay_out(now_ns)
        self._discoverer.on_painted(self._painted, now_ns)
        return True

    def holds_parser(self, now_ns: int) -> bool:
        """Return whether the parser has to stand until stylesheets are ready (WProf's O3)."""
        if not self._stops_parser:
            return False
        sheets = self.styles.blocking()
        # What it stood for is there: from here on the style is why the parser goes on, not the
        # bytes.
        if self._is_held and sheets is not None:
            self._parser.go_on(self._record.latest([self._parser.after, *sheets]), now_ns)
        self._is_held = sheets is None
        return self._is_held

    def _lay_out(self, now_ns: int) -> None:
        """Ask for what the stylesheets that are ready name, now that something is laid out."""
        for sheet, activities in self.styles.newly_ready():
            after = self._record.latest([*activities, self._painted])
            for child in self._page.children.get(sheet, ()):
                if self._page.resources[child].kind in OF_LAYOUT:
                    self._discoverer.ask(child, now_ns, after)
