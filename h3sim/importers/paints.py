"""Causes of the paints of a recording, inferred from the frames and tasks of its trace.

Chromium reports when the main thread drew each frame, and each text and image in it
(`PaintTimingVisualizer`), and when the first and the largest contentful paint were shown.

- A frame without content, drawn after the whole document had arrived, shows that the document alone
  had nothing to show. Then the first paint waits for the scripts that first ran between that frame
  and the first one with content, and for the responses to scripts that found the main thread idle
  between them: it had nothing to paint without them. Without such a frame the paint waits for
  nothing more: what ran before it ran there by chance.
- The largest paint waits for the scripts and responses that came between the last frame without its
  element and the first one with it; if that is an image that arrived between them, for that alone.
- What the main thread has done since then, other than parsing and running resources, is the paint's
  own work: style, layout, paint, and callbacks, in processor time. While the main thread is idle,
  the paint is delayed: by a timer, an animation, or the time that it takes to show the frame.
- A drawn frame is shown once its images are decoded. Without throttling these are there with the
  first frame; over a link they come later. So their decoding delays the largest paint, if that is
  an image, but not the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.recorded_request import RecordedPaint, kind_of
from h3sim.importers.trace_tasks import US_PER_MS, first_runs, number_in, table_in, thread_of
from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.importers.formats.devtools import RecordedExchange
    from h3sim.importers.trace_tasks import TraceTask


_FRAME_US = 1_000_000 / 60
"""Time between two frames (Chromium's `BeginFrameArgs::DefaultInterval`): an idle thread draws."""
_FRAME, _PAINT = "PrePaint", "Paint"
_OWN_TASKS = frozenset(
    (
        *("UpdateLayoutTree", "Layout", _FRAME, _PAINT, "Layerize"),  # style, layout and paint
        *("FunctionCall", "RunMicrotasks", "TimerFire", "FireAnimationFrame", "EventDispatch"),
    )
)
"""Tasks of the main thread that belong to no resource."""
VIEWPORT, OBJECT_PAINTED = (
    "PaintTimingVisualizer::Viewport",
    "PaintTimingVisualizer::LayoutObjectPainted",
)
FIRST_PAINT, LARGEST_PAINT = "firstContentfulPaint", "largestContentfulPaint::Candidate"
FINISH_REQUEST, DECODE_IMAGE = "ResourceFinish", "ImageDecodeTask"
PAINT_EVENTS = _OWN_TASKS | {
    *(VIEWPORT, OBJECT_PAINTED, FIRST_PAINT, LARGEST_PAINT, FINISH_REQUEST, DECODE_IMAGE)
}
"""Names of the trace events from which causes are inferred."""


class PaintEvent(NamedTuple):
    """A trace event about frames: a task of the main thread, or a mark of a node or request."""

    start_us: float
    end_us: float
    cpu_us: float
    name: str
    thread: tuple[str, str]
    frame: str
    subject: object


def paint_event(event: dict[str, Any]) -> PaintEvent | None:
    """Return what an event of a trace tells about frames; None for any other event.

    >>> event = {"name": "PrePaint", "ph": "X", "ts": 5, "dur": 3, "pid": 1, "tid": 2}
    >>> paint_event(event | {"args": {"data": {"frame": "A"}}}).frame
    'A'
    """
    name, start_us = event.get("name"), number_in(event, "ts")
    if not isinstance(name, str) or name not in PAINT_EVENTS or start_us is None:
        return None
    wall_us, cpu_us = number_in(event, "dur") or 0.0, number_in(event, "tdur")
    args = table_in(event, "args")
    data = table_in(args, "data")
    return PaintEvent(
        start_us=start_us,
        end_us=start_us + wall_us,
        cpu_us=wall_us if cpu_us is None else cpu_us,
        name=name,
        thread=thread_of(event),
        frame=str(args.get("frame") or data.get("frame") or ""),
        subject=data.get("dom_node_id", data.get("nodeId", data.get("requestId"))),
    )


def paints_of(
    events: Iterable[PaintEvent],
    tasks: Iterable[TraceTask],
    requests: Sequence[RecordedExchange],
    *,
    frame: str,
    hero: str = "",
) -> dict[str, RecordedPaint]:
    """Return what the first and the largest paint of a load waited for, by their keys in a page.

    *events* and *tasks* are those of the load, *requests* are the document first, *frame* is the
    id of its frame, and *hero* is the URL of the largest image.
    """
    in_order = sorted(events)
    first = next(
        (each for each in in_order if each.name == FIRST_PAINT and each.frame == frame), None
    )
    if first is None:
        return {}
    own = [each for each in in_order if each.thread == first.thread and each.name != DECODE_IMAGE]
    process, _ = first.thread
    decodes = [each for each in in_order if each.thread[0] == process and each.name == DECODE_IMAGE]
    on_thread = sorted(task for task in tasks if task.thread == first.thread)
    return _Frames(own, on_thread, decodes, requests, frame).causes(first.start_us, hero)


class _Frames:
    """The frames of one document, and what the main thread did between them."""

    def __init__(
        self,
        events: Sequence[PaintEvent],
        tasks: Sequence[TraceTask],
        decodes: Sequence[PaintEvent],
        requests: Sequence[RecordedExchange],
        frame: str,
    ) -> None:
        self._events, self._decodes, self._requests = events, decodes, requests
        self._tasks = [task for task in tasks if task.name not in _OWN_TASKS]
        of_page = [each for each in events if each.frame == frame]
        self._frames_us = [each.start_us for each in of_page if each.name == _FRAME]
        self._paints = [each for each in of_page if each.name == _PAINT]
        self._drawn = [each for each in of_page if each.name == OBJECT_PAINTED]
        self._largest = [each for each in of_page if each.name == LARGEST_PAINT]
        self._knows_content = any(each.name in (VIEWPORT, OBJECT_PAINTED) for each in events)
        self._runs = first_runs(tasks)
        self._finished_us = {
            each.subject: each.start_us for each in events if each.name == FINISH_REQUEST
        }
        """Times at which the main thread learned of complete responses, by the request's id."""
        self._document_us = self._arrived_us(requests[0])

    def causes(self, first_us: float, hero: str) -> dict[str, RecordedPaint]:
        """Return the causes; *first_us* is when the first contentful paint was shown."""
        drawn = [each.start_us for each in self._drawn if each.start_us <= first_us]
        drawn_us = drawn[0] if drawn else self._painted_before(first_us)
        if drawn_us is None or not self._knows_content:
            return {}
        frame_us = self._frame_before(drawn_us)
        blank_us = [each for each in self._frames_us if self._document_us <= each < frame_us]
        after = self._ended_between(blank_us[0], drawn_us) if blank_us else []
        after = [(each, at_us) for each, at_us in after if self._could_gate(each, at_us)]
        base_us = max((at_us for _, at_us in after), default=self._ready_us(frame_us))
        decoded_us = self._decoded_us(drawn_us, first_us)
        found = {"first_paint": self._cause(after, base_us, drawn_us, first_us - decoded_us)}
        if not self._largest or self._largest[-1].start_us <= first_us:
            if hero and decoded_us:
                found["largest_paint"] = RecordedPaint([], 0.0, decoded_us / US_PER_MS)
            return found
        shown = self._largest[-1]
        of_node = [each.start_us for each in self._drawn if each.subject == shown.subject]
        images_us = [self._arrived_us(each) for each in self._requests if each.url == hero != ""]
        drawn = [each for each in of_node if max(images_us, default=0) <= each <= shown.start_us]
        # A text may grow until it is the largest; an image is, once it is complete.
        drawn = drawn[:1] if images_us else drawn[-1:]
        with_it_us = drawn[0] if drawn else self._painted_before(shown.start_us)
        if with_it_us is None:
            return found
        before_us = max(frame_us, self._frame_before(self._frame_before(with_it_us), strictly=True))
        is_explained = any(before_us < each <= with_it_us for each in images_us)
        after = [] if is_explained else self._ended_between(before_us, with_it_us)
        base_us = max((first_us, *(at_us for _, at_us in after), *images_us))
        requests = [request for request, _ in after]
        delay_ms = max(0.0, shown.start_us - base_us) / US_PER_MS
        return found | {"largest_paint": RecordedPaint(requests, 0.0, delay_ms)}

    def _cause(
        self,
        after: Sequence[tuple[RecordedExchange, float]],
        base_us: float,
        drawn_us: float,
        shown_us: float,
    ) -> RecordedPaint:
        """Return the cause of a paint that was possible from *base_us* on."""
        painted_us = (each.end_us for each in self._paints if each.start_us <= drawn_us)
        until_us = max((drawn_us, *painted_us))
        work_us, busy_us = self._work_us(base_us, until_us)
        delay_us = max(0.0, shown_us - base_us - busy_us)
        requests = [request for request, _ in after]
        return RecordedPaint(requests, work_us / US_PER_MS, delay_us / US_PER_MS)

    def _arrived_us(self, request: RecordedExchange) -> float:
        return self._finished_us.get(request.number, (request.end_ms or 0) * US_PER_MS)

    def _painted_before(self, at_us: float) -> float | None:
        """Return when a frame was last painted: some content is not reported, such as SVG."""
        return max((each.start_us for each in self._paints if each.start_us <= at_us), default=None)

    def _frame_before(self, at_us: float, *, strictly: bool = False) -> float:
        """Return when the last frame until, or with *strictly* before, a time began."""
        earlier = (
            each for each in self._frames_us if each < at_us or (each == at_us and not strictly)
        )
        return max(earlier, default=at_us)

    def _ready_us(self, frame_us: float) -> float:
        """Return when the last resource that blocks rendering was parsed or had run before a frame.

        Fonts that are preloaded delay the first paint, too, and so does the commit of the document,
        after which its parser begins.
        """
        root, *others = self._requests
        blocking = {each.url for each in others if each.blocking == "blocking"}
        ends_us = [task.end_us for task in self._tasks if task.url == root.url][:1]
        ends_us += [task.end_us for task in self._tasks if task.url in blocking]
        ends_us += [
            self._arrived_us(each)
            for each in self._requests
            if each.is_preload and kind_of(each)[0] is Kind.FONT
        ]
        return max((each for each in ends_us if each <= frame_us), default=self._document_us)

    def _ended_between(
        self, since_us: float, until_us: float
    ) -> list[tuple[RecordedExchange, float]]:
        """Return the scripts that first ran, and the responses to scripts, with when."""
        found = []
        for request in self._requests[1:]:
            kind, ended_us = kind_of(request)[0], None
            if kind is Kind.SCRIPT:
                ended_us = self._runs.get(request.url)
            elif kind is Kind.FETCH:
                ended_us = self._arrived_us(request)
            if ended_us is not None and since_us < ended_us <= until_us:
                found.append((request, ended_us))
        return found

    def _could_gate(self, request: RecordedExchange, at_us: float) -> bool:
        """Return whether the first paint waited: a response counts if it found the thread idle.

        If it has done nothing for a frame, it could have drawn one.
        """
        since_us = at_us - _FRAME_US
        own = (each for each in self._events if each.name in _OWN_TASKS)
        spans_us = [(each.start_us, each.end_us) for tasks in (self._tasks, own) for each in tasks]
        is_idle = not any(begun < at_us and ended > since_us for begun, ended in spans_us)
        return is_idle or kind_of(request)[0] is Kind.SCRIPT

    def _decoded_us(self, since_us: float, until_us: float) -> float:
        """Return for how long of an interval images were decoded, on any of the other threads."""
        decoded_us, reached_us = 0.0, since_us
        for each in self._decodes:
            end_us = min(each.end_us, until_us)
            decoded_us += max(0.0, end_us - max(each.start_us, reached_us))
            reached_us = max(reached_us, end_us)
        return decoded_us

    def _work_us(self, since_us: float, until_us: float) -> tuple[float, float]:
        """Return the processor time of the page's own tasks in an interval, and how long any ran.

        The other tasks parse and run resources, whose time a page has. A task that runs for longer
        than its processor time waits for the processor, which others use.
        """
        own = [each for each in self._events if each.name in _OWN_TASKS]
        spans = [(each.start_us, each.end_us, each.cpu_us) for each in own]
        spans += [(each.start_us, each.end_us, 0.0) for each in self._tasks]
        work_us, busy_us, busy_until_us = 0.0, 0.0, since_us
        for begun_us, ended_us, cpu_us in sorted(spans):
            if busy_until_us <= begun_us < until_us:
                work_us += cpu_us
                busy_us += ended_us - begun_us
                busy_until_us = ended_us
        return work_us, busy_us
