"""A browser that computes a load: it parses, blocks, executes and paints.

The rules are those that Wang et al. found in browsers (WProf, NSDI 2013, table 1), as far as a page
file has the data, and those of the HTML standard for deferred scripts:

- the parser processes the document as its bytes arrive; a preload scanner reads ahead of it;
- at a script that is neither async nor deferred it waits until the script has run;
- a script waits for the stylesheets before it, an async one does not;
- deferred scripts run in order once the document is parsed, before DOMContentLoaded;
- the first paint needs the head to be parsed and the stylesheets met so far to be ready, and comes
  with the next frame; Chrome also waits for fonts that the head preloads, up to a limit;
- fonts and images of a stylesheet are requested once a layout needs them;
- one main thread runs all of this sequentially;
- it begins once the browser has handed the document to it (the commit of the navigation).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from h3sim.browser.base import Browser, ScheduledRequest
from h3sim.browser.document import (
    DocumentParser,
    Styles,
    hinted,
    preloaded_fonts_in_head,
    scripts_in_order,
    unplaced_in_head,
)
from h3sim.browser.model import TightMode
from h3sim.browser.modules import ModuleScripts
from h3sim.browser.requests import (
    LAYOUT_KINDS,
    PREFETCHING_MODES,
    Discoverer,
    Requests,
    first_paint_gates,
    is_lazy,
    ranks_of,
    rules_of,
)
from h3sim.browser.tailing import Tailing
from h3sim.page import Kind, TriggerEvent
from h3sim.trace import Activity, Work
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from h3sim.browser.model import BrowserModel
    from h3sim.page import Page, Resource


class MainThreadRecord:
    """The activities so far.

    >>> record = MainThreadRecord()
    >>> download = record.begin(Work.DOWNLOAD, 0, 5, after=None)
    >>> record.end(download, 9)
    >>> record.latest([download, None])
    0
    >>> record.activities()[0].ended_at_ns
    9
    """

    def __init__(self) -> None:
        self._rows: list[Activity] = []

    def __len__(self) -> int:
        return len(self._rows)

    def begin(self, work: Work, resource: int | None, now_ns: int, *, after: int | None) -> int:
        """Record the start of an activity; return its index. Without `end`, it ends at once."""
        self._rows.append(Activity(work, resource, now_ns, now_ns, after))
        return len(self._rows) - 1

    def end(self, index: int, now_ns: int) -> None:
        """Record the end of an activity."""
        self._rows[index] = self._rows[index]._replace(ended_at_ns=now_ns)

    def ended_at_ns(self, index: int) -> int:
        """Return the end of an activity."""
        return self._rows[index].ended_at_ns

    def latest(self, indices: Iterable[int | None]) -> int | None:
        """Return the one that ended last; of equals, the last one."""
        latest: int | None = None
        for index in indices:
            if index is not None and (
                # The later row of equals: it began after the other, and was waited for last.
                latest is None or self.ended_at_ns(index) >= self.ended_at_ns(latest)
            ):
                latest = index
        return latest

    def activities(self) -> tuple[Activity, ...]:
        """Return the activities in the order of their start."""
        return tuple(self._rows)


class Task(NamedTuple):
    """A computation that is ready: its activity, what allowed it, and its consequences."""

    work: Work
    resource: int
    cost_ns: int
    after: int | None
    ready_at_ns: int
    when_done: Callable[[int, int], None]
    """Called with its index among the activities, and the time."""


class MainThread:
    """Runs tasks one at a time, in the order in which they became ready.

    >>> record, done = MainThreadRecord(), []
    >>> thread = MainThread(record)
    >>> for resource in (1, 2):
    ...     note = lambda index, now_ns: done.append(now_ns)
    ...     thread.add(Task(Work.EXECUTE, resource, 10, None, 0, note))
    >>> thread.start_next(0), thread.busy_until_ns, thread.finish(10)
    (True, 10, True)
    >>> thread.start_next(10), thread.finish(20), done
    (True, True, [10, 20])
    """

    def __init__(self, record: MainThreadRecord) -> None:
        self._record = record
        self._queue: deque[Task] = deque()
        self._running: tuple[Task, int] | None = None
        """The task that runs, and its index among the activities."""
        self._last: int | None = None
        """The activity of the task before."""
        self.busy_until_ns = 0
        """The end of the task that runs, or of the last one."""

    @property
    def is_idle(self) -> bool:
        """True if nothing runs."""
        return self._running is None

    @property
    def has_tasks(self) -> bool:
        """True if a task runs or is ready."""
        return self._running is not None or bool(self._queue)

    def add(self, task: Task) -> None:
        """Queue a task."""
        self._queue.append(task)

    def start_next(self, now_ns: int) -> bool:
        """Begin the next task, if the thread is idle and there is one; return whether it did."""
        if self._running is not None or not self._queue:
            return False
        self.start(self._queue.popleft(), now_ns)
        return True

    def start(self, task: Task, now_ns: int) -> None:
        """Begin this task now; the thread must be idle."""
        # A task that was ready earlier has waited for the thread.
        after = (
            task.after
            if task.ready_at_ns == now_ns
            else self._record.latest((task.after, self._last))
        )
        index = self._record.begin(task.work, task.resource, now_ns, after=after)
        self.busy_until_ns = now_ns + task.cost_ns
        self._running = task, index

    def finish(self, now_ns: int) -> bool:
        """End the task that is over by now; return whether there was one."""
        if self._running is None or self.busy_until_ns > now_ns:
            return False
        (task, index), self._running = self._running, None
        self._record.end(index, now_ns)
        self._last = index
        task.when_done(index, now_ns)
        return True


class FontHold(NamedTuple):
    """The rule by which a browser delays the first paint for fonts that the head preloads.

    It waits until they have arrived, or until the first of these times; None is no limit.
    """

    after_request_ms: float | None
    """Since the first of them was requested."""
    after_ready_ms: float | None
    """Since nothing else delays the first paint."""
    after_navigation_ms: float | None
    source: str
    version: str
    read: str = "2026-11-27"


_BLOCKING_SOURCE = "third_party/blink/renderer/core/loader/render_blocking_resource_manager.cc"
FONT_HOLDS: dict[TightMode, FontHold] = {
    TightMode.CHROME_95: FontHold(
        after_request_ms=50,
        after_ready_ms=None,
        after_navigation_ms=None,
        source=f"{_BLOCKING_SOURCE}: kMaxRenderingDelayForFontPreloads",
        version="Chromium until kRenderBlockingFonts was enabled",
    ),
    TightMode.CHROME_118: FontHold(
        after_request_ms=None,
        after_ready_ms=100,
        after_navigation_ms=1500,
        source=f"{_BLOCKING_SOURCE}: kMaxFCPDelayMsForRenderBlockingFonts,"
        " kMaxBlockingTimeMsForRenderBlockingFonts",
        version="Chromium 156",
    ),
}
"""The rules of the browsers that the tight modes belong to; Firefox and Safari have none."""
_SHEET_EVENTS = (TriggerEvent.COMPLETE, TriggerEvent.EXECUTED)
"""The events of a stylesheet that is parsed."""


class Renderer:
    """Paints once the head is parsed and the stylesheets that the parser has met are ready.

    It does so with the next frame, *frame_ns* later. With *stops_parser* stylesheets block the
    parser as well. What is in the head at an unknown position has to be parsed or executed, too.
    If the page knows what its first paint waited for (`Page.first_paint`), it waits for that, keeps
    the main thread busy, and paints after the recorded delay instead of *frame_ns*.
    """

    def __init__(
        self,
        page: Page,
        record: MainThreadRecord,
        main_thread: MainThread,
        parser: DocumentParser,
        discoverer: Discoverer,
        *,
        frame_ns: int,
        slowdown: float,
        stops_parser: bool,
        font_hold: FontHold | None,
        finished: Mapping[int, int],
    ) -> None:
        cause = page.first_paint
        self._frame_ns = frame_ns if cause is None else cause.delay_ns
        self._work_ns = None if cause is None else round(cause.work_ns * slowdown)
        """Style, layout and paint before the frame, if they are known."""
        self._gates = dict.fromkeys(first_paint_gates(page))
        """Resources that have to be processed before there is anything to paint."""
        self._last_gate: int | None = None
        """The activity that processed one of them last."""
        self._main_thread = main_thread
        self._drawn: int | None = None
        """The activity that laid the page out; None before it."""
        self._font_hold = font_hold
        self._held_fonts = [] if font_hold is None else preloaded_fonts_in_head(page)
        """The fonts that the first paint waits for, within limits."""
        self._finished = finished
        """The download of each resource that is complete."""
        self._fonts_requested_ns: int | None = None
        self.fonts_until_ns: int | None = None
        """The time until which the first paint waits for fonts, once nothing else delays it."""
        self.navigated_ns = 0
        self._after: int | None = None
        """The activity that made the first paint possible, once it is."""
        self.frame_at_ns: int | None = None
        """Time of the frame that will be the first paint, once it is known."""
        self.styles = Styles(page)
        self._unplaced = dict.fromkeys(unplaced_in_head(page))
        """Resources at unknown positions of the head that were not parsed or executed yet."""
        self._last_unplaced: int | None = None
        """The activity that parsed or executed one of them last."""
        self._page = page
        self._record = record
        self._parser = parser
        self._discoverer = discoverer
        self._painted: int | None = None
        """The first paint as an activity; None before it."""
        self._stops_parser = stops_parser
        self._is_held = False
        """True if the parser is blocked by a stylesheet."""

    @property
    def is_laid_out(self) -> bool:
        """True if it has laid the page out: from the first paint on, or from the work for it."""
        return self._drawn is not None

    @property
    def has_painted(self) -> bool:
        """True from the first paint on."""
        return self._painted is not None

    @property
    def lacks_head(self) -> bool:
        """True if something in the head at an unknown position still blocks what follows it."""
        return bool(self._unplaced)

    def on_styled(self, sheet: int, activity: int, now_ns: int) -> None:
        """Record that *sheet* was parsed: request its imports, and its fonts and images."""
        self.styles.on_parsed(sheet, activity)
        self.on_processed(sheet, activity)
        for child in self._discoverer.children_of_sheet(sheet):
            if not self._needs_layout(child):
                self._discoverer.ask(child, now_ns, activity)
        for at in _SHEET_EVENTS:
            self._discoverer.on_event(
                sheet, at, now_ns, activity, lambda child: not self._needs_layout(child)
            )
        if self._drawn is not None:
            self._lay_out(now_ns)

    def on_processed(self, resource: int, activity: int) -> None:
        """Record that a stylesheet was parsed or a script executed by that *activity*."""
        if resource in self._unplaced:
            del self._unplaced[resource]
            self._last_unplaced = activity
        if resource in self._gates:
            del self._gates[resource]
            self._last_gate = activity

    def paint(self, now_ns: int) -> bool:
        """Paint for the first time, if there is something to paint; return whether it did."""
        if self._painted is not None:
            return False
        if self.frame_at_ns is None:
            if self.fonts_until_ns is None:
                is_ready = self._parser.has_passed_head and not (self.lacks_head or self._gates)
                sheets = self.styles.blocking() if is_ready else None
                if sheets is None:
                    return False
                causes = [self._parser.after, self._last_unplaced, self._last_gate, *sheets]
                self._after = self._record.latest(causes)
                self.fonts_until_ns = self._font_limit_ns(now_ns)
            fonts = [self._finished.get(font) for font in self._held_fonts]
            if now_ns < self.fonts_until_ns and None in fonts:
                return False
            self._after = self._record.latest([self._after, *fonts])
            if self._work_ns is not None:
                self.frame_at_ns = now_ns + self._work_ns + self._frame_ns
                root, after = self._page.root, self._after
                task = Task(Work.RENDER, root, self._work_ns, after, now_ns, self._on_drawn)
                self._main_thread.start(task, now_ns)
                return True
            self.frame_at_ns = now_ns + self._frame_ns
        return self.present(now_ns)

    def present(self, now_ns: int) -> bool:
        """Show the frame of the first paint, if its time has come; return whether it did."""
        at_ns = self.frame_at_ns
        if self._painted is not None or at_ns is None or at_ns > now_ns:
            return False
        painted = self._record.begin(Work.FIRST_PAINT, None, now_ns, after=self._after)
        self._painted = painted
        if self._drawn is None:
            self._on_drawn(painted, now_ns)
        return True

    def _on_drawn(self, activity: int, now_ns: int) -> None:
        """Request what the layout shows to be needed: that *activity* has made it."""
        self._drawn = self._after = activity
        self._lay_out(now_ns)
        self._discoverer.on_painted(activity, now_ns)

    def on_requested(self, resource: int, now_ns: int) -> None:
        """Record the request for a resource: limits may count from that for a font."""
        if self._fonts_requested_ns is None and resource in self._held_fonts:
            self._fonts_requested_ns = now_ns

    def _font_limit_ns(self, now_ns: int) -> int:
        """Return until when the first paint waits for fonts, if nothing else delays it now."""
        hold, requested_ns = self._font_hold, self._fonts_requested_ns
        if hold is None or requested_ns is None:
            return now_ns
        limits = (
            (requested_ns, hold.after_request_ms),
            (now_ns, hold.after_ready_ms),
            (self.navigated_ns, hold.after_navigation_ms),
        )
        return min(since_ns + ms(limit_ms) for since_ns, limit_ms in limits if limit_ms is not None)

    def holds_parser(self, now_ns: int) -> bool:
        """Return whether the parser has to wait until stylesheets are ready (WProf's O3)."""
        if not self._stops_parser:
            return False
        sheets = self.styles.blocking()
        # What it waited for has arrived: from here on the stylesheet lets the parser continue, not
        # the bytes.
        if self._is_held and sheets is not None:
            self._parser.go_on(self._record.latest([self._parser.after, *sheets]), now_ns)
        self._is_held = sheets is None
        return self._is_held

    def _lay_out(self, now_ns: int) -> None:
        """Request the resources of the stylesheets that are ready, once there is a layout."""
        for sheet, activities in self.styles.newly_ready():
            after = self._record.latest([*activities, self._drawn])
            for child in self._discoverer.children_of_sheet(sheet):
                if self._needs_layout(child):
                    self._discoverer.ask(child, now_ns, after)
            for at in _SHEET_EVENTS:
                self._discoverer.on_event(sheet, at, now_ns, after, self._needs_layout)

    def _needs_layout(self, child: int) -> bool:
        """Return whether what a stylesheet names is requested only once a layout needs it."""
        return self._page.resources[child].kind in LAYOUT_KINDS


_SORTING_MODES = (TightMode.CHROME_95, TightMode.CHROME_118)
"""The modes of browsers that request the important resources first."""


class RenderingBrowser(Browser):
    """One load of *page*, computed by the rules of *model*.

    Recorded delays apply only after scripts and other resources; it finds the references of the
    document and its stylesheets by itself. Documents in frames are not parsed: their references are
    requested as recorded, and their scripts run when they arrive. A page with several roots has one
    of these per root (`MultiPageBrowser`).
    """

    def __init__(self, page: Page, model: BrowserModel, tight_mode: TightMode) -> None:
        self._page = page
        self._model = model
        self._commit_ns = ms(model.commit_ms * model.cpu_slowdown)
        self._commits_at_ns: int | None = None
        """Time when the navigation is committed; None before the first bytes of the document."""
        self._record = MainThreadRecord()
        self._main_thread = MainThread(self._record)
        self._parser = DocumentParser(page, cost_ns=self._cost_ns(page.resources[page.root]))
        rules = rules_of(page, model, tight_mode)
        ranks = ranks_of(page, tight_mode) if tight_mode in _SORTING_MODES else ()
        awaited = [page.index[id_] for id_ in page.awaited_by_load_event]
        tailing = Tailing(page) if tight_mode is TightMode.FIREFOX else None
        if tailing is not None and not tailing.is_needed:
            tailing = None
        self._requests = Requests(model.max_concurrent_requests, rules, ranks, awaited, tailing)
        self._discoverer = Discoverer(
            page,
            self._requests,
            has_scanner=model.preload_scanner,
            prefetches_early=tight_mode in PREFETCHING_MODES,
        )
        self._finished: dict[int, int] = {}
        """The activity of each resource that is complete."""
        self._renderer = Renderer(
            page,
            self._record,
            self._main_thread,
            self._parser,
            self._discoverer,
            frame_ns=ms(model.paint_ms * model.cpu_slowdown),
            slowdown=model.cpu_slowdown,
            stops_parser=model.stylesheets_block_parser,
            font_hold=FONT_HOLDS.get(tight_mode),
            finished=self._finished,
        )
        self._downloads: dict[int, int] = {}
        """The activity of each resource that was requested."""
        self._offsets_ahead: dict[int, list[tuple[int, int]]] = {}
        """The offsets of each resource at which others are discovered, the nearest last."""
        self._contiguous = 0
        """The delivered bytes of the document, headers included."""
        self._is_read = False
        """True once the complete document has arrived, and the navigation is committed."""
        self._unreferenced = {index for _, index in hinted(page, page.root)}
        """Resources requested before the document names them: until then they are only loaded."""
        self._in_order = scripts_in_order(page)
        self._modules = ModuleScripts(page, self._finished)
        self._deferred: list[int] = []
        """Deferred scripts that have not run, in document order."""
        # They do not delay the load event (HTML standard, "Lazy loading attributes", "Link type
        # prefetch").
        self._unawaited = [
            index
            for index, each in enumerate(page.resources)
            if is_lazy(each) or each.is_prefetched
        ]
        self._woken_at_ns: int | None = None
        """The earliest wake-up that was requested and is still ahead."""
        self._content_loaded: int | None = None
        self._loaded: int | None = None
        """The events DOMContentLoaded and load as activities; None before they fire."""
        self.executed: list[int] = []
        """The resources that have run, or that have arrived and have nothing to run."""

    def has_laid_out(self, resource: int) -> bool:  # noqa: ARG002 - they are all of one document
        """Return whether the position of that resource in the layout is known."""
        return self._renderer.is_laid_out

    @property
    def is_done(self) -> bool:
        """True if all was delivered, and the page is idle."""
        is_delivered = len(self._finished) == len(self._page.resources)
        is_idle = self._loaded is not None and not self._main_thread.has_tasks
        return is_delivered and is_idle and self._renderer.has_painted

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        resources = enumerate(self._page.resources)
        return [resource.id for index, resource in resources if index not in self._finished]

    @property
    def activities(self) -> tuple[Activity, ...]:
        """The activities of the browser."""
        return self._record.activities()

    def on_navigation(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests that depend on no resource: the root, then those with a time."""
        self._renderer.navigated_ns = now_ns
        self._requests.ask(self._page.root, now_ns, 0, after=None)
        for index, resource in enumerate(self._page.resources):
            discovery = resource.discovered
            if (
                discovery is not None
                and discovery.at is TriggerEvent.TIME
                and not discovery.is_joined
            ):
                delay_ns = max(0, discovery.delay_ns - now_ns)
                self._requests.ask(index, now_ns, delay_ns, after=None)
        self._discoverer.ask_timers(now_ns)
        return self._run(now_ns)

    def on_requested(self, resource: int, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests and changes that follow from the request for *resource*."""
        after = self._requests.after[resource]
        self._downloads[resource] = self._record.begin(Work.DOWNLOAD, resource, now_ns, after=after)
        self._renderer.on_requested(resource, now_ns)
        self._offsets_ahead[resource] = self._discoverer.offsets(resource)
        for child in self._discoverer.children(resource, TriggerEvent.REQUEST):
            self._discoverer.ask(child, now_ns, after)
        self._discoverer.on_event(resource, TriggerEvent.REQUEST, now_ns, after)
        return self._run(now_ns)

    def next_offset(self, resource: int) -> int:
        """Return the contiguous bytes of *resource*'s stream at which to report it next."""
        all_bytes = self._page.resources[resource].stream_bytes
        if resource == self._page.root:
            # The parser takes all bytes that arrive.
            return min(all_bytes, self._contiguous + 1)
        ahead = self._offsets_ahead[resource]
        if not ahead:
            return all_bytes
        offset_bytes, _ = ahead[-1]
        return offset_bytes

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> list[ScheduledRequest]:
        """Return the requests and changes that follow from that many delivered bytes."""
        download = self._downloads[resource]
        described = self._page.resources[resource]
        is_complete = contiguous_bytes >= described.stream_bytes
        if is_complete:
            self._record.end(download, now_ns)
            self._finished[resource] = download
            self._requests.on_finished(resource)
        if resource == self._page.root:
            self._contiguous = contiguous_bytes
            if self._commits_at_ns is None and (
                contiguous_bytes > described.header_bytes or is_complete
            ):
                self._commits_at_ns = now_ns + self._commit_ns
            self._read_document(now_ns)
        else:
            # A document in a frame is committed, too, before it is parsed.
            delay_ns = self._commit_ns if described.kind is Kind.DOCUMENT else 0
            self._request_references(resource, contiguous_bytes, now_ns, delay_ns)
            if is_complete and resource not in self._unreferenced:
                self._on_complete(resource, self._finished[resource], now_ns)
        return self._run(now_ns)

    def on_wake(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests and changes that are due now."""
        if self._woken_at_ns is not None and self._woken_at_ns <= now_ns:
            self._woken_at_ns = None
        if not self._is_read:
            self._read_document(now_ns)
        return self._run(now_ns)

    def _request_references(
        self, resource: int, contiguous_bytes: int, now_ns: int, delay_ns: int
    ) -> None:
        """Request the references in the delivered bytes of a resource."""
        ahead, described = self._offsets_ahead[resource], self._page.resources[resource]
        while ahead:
            at_bytes, child = ahead[-1]
            if at_bytes > contiguous_bytes:
                break
            ahead.pop()
            after = self._downloads[resource]
            self._discoverer.ask(child, now_ns, after, delay_ns=delay_ns)
            offset_bytes = self._page.resources[child].reference_offset_bytes
            # At another offset there is only its preload.
            if offset_bytes is not None and at_bytes == offset_bytes + described.header_bytes:
                self._on_referenced(child, after, now_ns)

    def _read_document(self, now_ns: int) -> None:
        """Give the scanner and the parser the delivered part of the root, once it is committed."""
        if self._commits_at_ns is None or now_ns < self._commits_at_ns:
            return
        root = self._page.root
        download, described = self._downloads[root], self._page.resources[root]
        self._request_references(root, self._contiguous, now_ns, 0)
        is_complete = root in self._finished
        if is_complete and not self._is_read:
            self._is_read = True
            self._on_complete(root, download, now_ns)
        body_bytes = max(0, self._contiguous - described.header_bytes)
        self._parser.receive(body_bytes, now_ns, download, is_complete=is_complete)

    def _run(self, now_ns: int) -> list[ScheduledRequest]:
        """Do all that can be done now; return the requests, and the time of the next step."""
        self._requests.ripen(now_ns)
        while self._main_thread.finish(now_ns) or self._step(now_ns):
            pass
        if self._parser.has_passed_head:
            self._requests.progress.has_passed_head = True
        due = self._requests.due(now_ns)
        is_busy = not self._main_thread.is_idle
        times_ns = (
            self._requests.next_at_ns,
            self._main_thread.busy_until_ns if is_busy else None,
            self._commits_at_ns,
            self._renderer.frame_at_ns,
            self._renderer.fonts_until_ns,
        )
        soonest_ns = min((at_ns for at_ns in times_ns if _is_after(at_ns, now_ns)), default=None)
        woken_ns = self._woken_at_ns
        if soonest_ns is not None and (woken_ns is None or soonest_ns < woken_ns):
            self._woken_at_ns = soonest_ns
            due.append(ScheduledRequest(soonest_ns, None))
        return due

    def _step(self, now_ns: int) -> bool:
        """Show a frame, or start the next task on an idle main thread; return whether it did."""
        if self._renderer.is_laid_out and self._renderer.present(now_ns):
            return True
        return self._main_thread.is_idle and (
            self._renderer.paint(now_ns)
            or self._main_thread.start_next(now_ns)
            or self._parse(now_ns)
            or self._run_deferred(now_ns)
            or self._end(now_ns)
        )

    def _parse(self, now_ns: int) -> bool:
        """Advance the parser to its next reference or piece; return whether it moved."""
        parser = self._parser
        # Not even a reference at offset 0 is found before the document is committed.
        is_committed = self._commits_at_ns is not None and now_ns >= self._commits_at_ns
        if not is_committed or parser.has_ended or self._renderer.holds_parser(now_ns):
            return False
        if parser.waits_for is not None:
            return self._run_in_order(parser.waits_for, parser.after, now_ns)
        reference = parser.next_reference()
        if reference is not None:
            self._on_reference(*reference, now_ns)
            return True
        piece = parser.next_piece()
        if piece is None:
            ended = parser.reaches_end()
            if ended:
                for child in self._discoverer.children(self._page.root, TriggerEvent.EXECUTED):
                    self._discoverer.ask(child, now_ns, parser.after)
                root, after = self._page.root, parser.after
                self._discoverer.on_event(root, TriggerEvent.EXECUTED, now_ns, after)
            return ended
        stop, cost_ns = piece

        def on_parsed(activity: int | None, at_ns: int) -> None:
            parser.position = stop
            parser.go_on(activity, at_ns)

        if cost_ns:  # otherwise a page would have an activity between any two references
            after, ready_at_ns = parser.after, parser.ready_at_ns
            task = Task(Work.PARSE, self._page.root, cost_ns, after, ready_at_ns, on_parsed)
            self._main_thread.start(task, now_ns)
        else:
            parser.position = stop
        return True

    def _on_reference(self, index: int, is_element: bool, now_ns: int) -> None:
        """Record that the parser reached a reference."""
        resource = self._page.resources[index]
        self._discoverer.ask(index, now_ns, self._parser.after)
        if not is_element:
            return
        self._on_referenced(index, self._parser.after, now_ns)
        if resource.kind is Kind.STYLESHEET:
            self._renderer.styles.meet(index)
        elif index in self._in_order:
            if resource.is_deferred:
                self._deferred.append(index)
            else:
                self._parser.waits_for = index

    def _run_in_order(self, index: int, after: int | None, now_ns: int) -> bool:
        """Run the next script in order, if it has arrived and no stylesheet blocks it.

        A module runs once all its imports have arrived, after those of them that have not run.
        """
        sheets = self._renderer.styles.blocking()
        downloads = [self._finished.get(each) for each in self._modules.graph(index)]
        if sheets is None or None in downloads:
            return False
        after = self._record.latest([after, *sheets, *downloads])
        script = self._modules.start_next(index)
        self._main_thread.start(self._script_task(script, after, now_ns), now_ns)
        return True

    def _run_deferred(self, now_ns: int) -> bool:
        """Run the next deferred script, if the document is parsed; return whether it began."""
        if not self._parser.has_ended:
            return False
        # What an earlier module imports has run with it.
        while self._deferred and self._modules.has_started(self._deferred[0]):
            self._deferred.pop(0)
        if not self._deferred:
            return False
        return self._run_in_order(self._deferred[0], self._parser.after, now_ns)

    def _script_task(self, index: int, after: int | None, now_ns: int) -> Task:
        """Return the execution of a script, or of whatever else takes time to run."""
        cost_ns = self._cost_ns(self._page.resources[index])
        return Task(Work.EXECUTE, index, cost_ns, after, now_ns, self._on_script_executed(index))

    def _on_script_executed(self, index: int) -> Callable[[int, int], None]:
        """Return the callback for the end of a script's execution."""

        def on_executed(activity: int, now_ns: int) -> None:
            # A script in order lets the parser continue, or the next deferred one run.
            if index == self._parser.waits_for:
                self._parser.waits_for = None
                self._parser.go_on(activity, now_ns)
            elif self._deferred and index == self._deferred[0]:
                self._deferred.pop(0)
                self._parser.go_on(activity, now_ns)
            self.executed.append(index)
            self._renderer.on_processed(index, activity)
            for child in self._discoverer.children(index, TriggerEvent.EXECUTED):
                self._discoverer.ask(child, now_ns, activity, delayed=True)
            self._discoverer.on_event(index, TriggerEvent.EXECUTED, now_ns, activity)

        return on_executed

    def _on_referenced(self, index: int, after: int | None, now_ns: int) -> None:
        """Record that the document names a resource: from now on it is parsed or runs."""
        if index in self._unreferenced:
            self._unreferenced.remove(index)
            if index in self._finished:
                self._on_complete(index, self._finished[index] if after is None else after, now_ns)

    def _on_complete(self, index: int, download: int, now_ns: int) -> None:
        """Parse or run a resource that has arrived and is more than a preload.

        *download* is the activity that ended, and so the cause of what follows.
        """
        resource = self._page.resources[index]
        if resource.kind is Kind.STYLESHEET:
            cost_ns = self._cost_ns(resource)

            def on_styled(activity: int, at_ns: int) -> None:
                self._renderer.on_styled(index, activity, at_ns)

            task = Task(Work.STYLE, index, cost_ns, download, now_ns, on_styled)
            self._main_thread.add(task)
            return
        for child in self._discoverer.children(index, TriggerEvent.COMPLETE):
            self._discoverer.ask(child, now_ns, download, delayed=True)
        self._discoverer.on_event(index, TriggerEvent.COMPLETE, now_ns, download)
        is_run_by_others = index in self._in_order or self._modules.is_imported(index)
        if resource.is_module:
            if not is_run_by_others:
                self._modules.wait(index)
            for each in self._modules.ready():
                self._main_thread.add(self._script_task(each, download, now_ns))
            return
        if index == self._page.root or is_run_by_others:  # the parser runs those
            return
        if resource.kind is Kind.SCRIPT or self._cost_ns(resource):
            self._main_thread.add(self._script_task(index, download, now_ns))
        else:
            self._on_script_executed(index)(download, now_ns)

    def _end(self, now_ns: int) -> bool:
        """Fire DOMContentLoaded, and load, if nothing delays them."""
        if not self._parser.has_ended or self._deferred or self._renderer.lacks_head:
            return False
        if self._content_loaded is None:
            after = self._parser.after
            self._content_loaded = self._record.begin(
                Work.DOM_CONTENT_LOADED, None, now_ns, after=after
            )
            self._requests.progress.is_parsed = True
            return True
        if self._loaded is not None or self._main_thread.has_tasks:
            return False
        if self._requests.n_open > self._requests.n_open_of(self._unawaited):
            return False
        after = self._record.latest(range(len(self._record)))  # it waits for all
        self._loaded = self._record.begin(Work.LOAD, None, now_ns, after=after)
        self._requests.progress.is_loaded = True
        self._discoverer.on_loaded(self._loaded, now_ns)
        return True

    def _cost_ns(self, resource: Resource) -> int:
        """Return the time to parse and execute a resource on this model's processor."""
        return round((resource.parse_ns + resource.execute_ns) * self._model.cpu_slowdown)


def _is_after(at_ns: int | None, now_ns: int) -> TypeGuard[int]:
    """Return whether a time is set, and not over."""
    return at_ns is not None and at_ns > now_ns
