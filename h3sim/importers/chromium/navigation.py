"""One navigation in Chromium: its events, trace, documents and measurements."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from h3sim.importers.chromium.browser import ChromiumError, DevTools, ProtocolEvent
from h3sim.importers.media_queries import HEIGHT_PX, WIDTH_PX
from h3sim.page import ImageFormat
from h3sim.values.units import MS_PER_S

TRACE_CATEGORIES = ("devtools.timeline", "disabled-by-default-devtools.timeline", "loading")
"""Trace categories with the CPU times of resources, with what each frame shows, and decoding."""
_WORLD_NAME = "h3sim"
"""Isolated world of the measurements, which the page's scripts cannot tamper with."""
_SYNCHRONOUS_URLS_EXPRESSION = "globalThis.__h3sim_waited ?? []"
"""URLs of synchronous requests, which `waits.js` collects in the page's own world."""
_BODY_BUFFER_BYTES = 200 * 2**20
"""Room for response bodies in Chromium; its default drops those of large pages."""
_TRACE_TIMEOUT_S = 60.0
"""Time in which Chromium must hand over its trace once tracing has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Timeouts of a load: it is over when idle for *quiet_s*, *settle_s* after the load event.

    Requests unfinished *late_s* after the load event are left out; without a load event within
    *limit_s* the recording fails.
    """

    settle_s: float = 1.0
    quiet_s: float = 0.5
    late_s: float = 6.0
    limit_s: float = 60.0


@dataclass(slots=True, kw_only=True)
class Navigation:
    """Raw recording of one load; times are on Chromium's monotonic clock."""

    browser: str
    events: list[ProtocolEvent] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    documents: dict[str, str] = field(default_factory=dict)
    """Texts of HTML documents, by request id."""
    measured: dict[str, Any] = field(default_factory=dict)
    """Measurements of `visible.js` and `watch.js`, and the URLs of synchronous requests."""
    fonts: list[dict[str, Any]] = field(default_factory=list)
    image_formats: dict[str, ImageFormat] = field(default_factory=dict)
    """Formats of JPEGs by request id, which their bytes show: baseline or progressive."""
    dcl_ms: float | None = None
    onload_ms: float | None = None


def visit(address: str, url: str, patience: Timeouts) -> Navigation:
    """Load *url* in the Chromium behind the DevTools socket at *address*.

    Raises:
        ChromiumError: if the page does not load.
    """
    with DevTools(address) as devtools:
        version = devtools.call("Browser.getVersion")["product"]
        tab = _Tab(devtools, Navigation(browser=version), patience)
        tab.open(url)
        tab.wait()
        tab.measure()
        return tab.visit


class _Tab:
    """Browser tab, from opening it to the last measurement."""

    def __init__(self, devtools: DevTools, visit: Navigation, patience: Timeouts) -> None:
        self._devtools = devtools
        self._timeouts = patience
        self.visit = visit
        self._session = ""
        self._pending_ids: set[str] = set()
        self._quiet_since = time.monotonic()
        self._loaded_at: float | None = None
        self._document_ids: list[str] = []
        self._jpeg_ids: list[str] = []

    def open(self, url: str) -> None:
        """Open the tab, and begin to load *url* in it."""
        target = self._devtools.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._devtools.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Network.enable", maxTotalBufferSize=_BODY_BUFFER_BYTES)
        for domain in ("Page", "DOM", "CSS", "Debugger"):  # CSS needs DOM
            self._call(f"{domain}.enable")
        self._call("Debugger.setAsyncCallStackDepth", maxDepth=32)
        # A `debugger` statement would stop the page for good.
        self._call("Debugger.setSkipAllPauses", skip=True)
        screen = {"width": WIDTH_PX, "height": HEIGHT_PX, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **screen)
        add_script = "Page.addScriptToEvaluateOnNewDocument"
        # In the page's world, since it wraps the page's XMLHttpRequest.
        self._call(add_script, source=_script("waits.js"))
        self._call(add_script, source=_script("watch.js"), worldName=_WORLD_NAME)
        # Without a session: the whole browser is traced, including the tab's process.
        trace_config = {
            "recordMode": "recordAsMuchAsPossible",
            "includedCategories": list(TRACE_CATEGORIES),
            "excludedCategories": ["*"],
        }
        self._devtools.call("Tracing.start", transferMode="ReportEvents", traceConfig=trace_config)

        answer = self._call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise ChromiumError(f"{url} cannot be loaded: {answer['errorText']}")

    def wait(self) -> None:
        """Process events until the load is over."""
        started = time.monotonic()
        while True:
            event = self._devtools.next_event(0.05)
            now = time.monotonic()
            if event is not None:
                self._handle(event, now)
            if self._loaded_at is None:
                if now - started > self._timeouts.limit_s:
                    limit = self._timeouts.limit_s
                    raise ChromiumError(f"the page was not loaded after {limit:g} s")
                continue
            since_s = now - self._loaded_at
            is_quiet = not self._pending_ids and now - self._quiet_since >= self._timeouts.quiet_s
            if since_s >= self._timeouts.late_s or (
                is_quiet and since_s >= self._timeouts.settle_s
            ):
                return

    def _handle(self, event: ProtocolEvent, now: float) -> None:
        if event.session != self._session:
            return
        method, params = event.method, event.params
        if method == "Page.loadEventFired":
            self.visit.onload_ms = params["timestamp"] * MS_PER_S
            self._loaded_at = now
        elif method == "Page.domContentEventFired":
            self.visit.dcl_ms = params["timestamp"] * MS_PER_S
        elif method == "CSS.fontsUpdated" and "font" in params:
            self.visit.fonts.append(params["font"])
        elif method == "Page.javascriptDialogOpening":
            self._call("Page.handleJavaScriptDialog", accept=True)  # the page blocks until then
        elif method.startswith("Network."):
            self.visit.events.append(event)
            self._track_request(method, params, now)

    def _track_request(self, method: str, params: dict[str, Any], now: float) -> None:
        """Note which requests are pending, and those whose bodies are fetched after the load."""
        number = params.get("requestId", "")
        if method == "Network.requestWillBeSent":
            self._pending_ids.add(number)
            self._quiet_since = now
            if params.get("type") == "Document":
                self._document_ids.append(number)
        elif method == "Network.responseReceived":
            if params.get("response", {}).get("mimeType") == "image/jpeg":
                self._jpeg_ids.append(number)
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            self._pending_ids.discard(number)
            self._quiet_since = now

    def measure(self) -> None:
        """Measure what is visible, then fetch the documents and the trace."""
        frame = self._call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = self._call("Page.createIsolatedWorld", frameId=frame, worldName=_WORLD_NAME)
        measured = self._evaluate(_script("visible.js"), contextId=world["executionContextId"])
        # The page's scripts may have stored anything there.
        waited = self._evaluate(_SYNCHRONOUS_URLS_EXPRESSION)
        waited = waited if isinstance(waited, list) else []
        urls = [url for url in waited if isinstance(url, str)]
        self.visit.measured = {**json.loads(measured), "waited": urls}
        # Without duplicates: all hops of a redirect have the same id.
        for number in dict.fromkeys(self._document_ids):
            content = self._body(number)
            if content is not None:
                self.visit.documents[number] = content.decode("utf-8", "replace")
        for number in dict.fromkeys(self._jpeg_ids):
            image_format = ImageFormat.of_bytes(self._body(number) or b"")
            if image_format is not None:
                self.visit.image_formats[number] = image_format
        self._devtools.call("Tracing.end")
        self._collect_trace()

    def _evaluate(self, expression: str, **more: Any) -> Any:
        """Return the value of a JavaScript expression, in the page's own world unless given."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, **more
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise ChromiumError(f"the page cannot be measured: {details.get('text')}")
        return answer["result"].get("value")

    def _body(self, number: str) -> bytes | None:
        try:
            answer = self._call("Network.getResponseBody", requestId=number)
        except ChromiumError:  # a frame whose document was replaced or never arrived
            return None
        text: str = answer["body"]
        return base64.b64decode(text) if answer["base64Encoded"] else text.encode(errors="replace")

    def _collect_trace(self) -> None:
        until = time.monotonic() + _TRACE_TIMEOUT_S
        while time.monotonic() < until:
            event = self._devtools.next_event(1.0)
            if event is None:
                continue
            if event.method == "Tracing.dataCollected":
                self.visit.trace += event.params["value"]
            elif event.method == "Tracing.tracingComplete":
                return
        raise ChromiumError("Chromium did not deliver its trace")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._devtools.call(method, session=self._session, **params)


def _script(name: str) -> str:
    return files("h3sim.importers.chromium").joinpath(name).read_text(encoding="utf-8")
