"""One cold load of a URL in a fresh headless Chromium: paints, load event, and what it recorded.

`python -m validation.sites.load URL FLAG OUT WHAT` is run inside a network namespace, or on a
server of this machine. WHAT is
"times" (paints and the load event, nothing that costs the page time), "frames" (screenshots too,
for SpeedIndex), "har" (the events and texts of which a HAR is made) or "trace" (a Chrome trace).
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from h3sim.importers.chromium.browser import DevTools, find_chromium, running_chromium
from h3sim.importers.media_queries import HEIGHT_PX, WIDTH_PX

_QUIET_S, _SETTLE_S, _LATE_S, _LIMIT_S = 0.6, 1.2, 8.0, 120.0
_CATEGORIES = {
    "frames": ("disabled-by-default-devtools.screenshot", "blink.user_timing", "loading"),
    "trace": (
        *("devtools.timeline", "disabled-by-default-devtools.timeline", "loading", "v8.execute"),
        *("blink.user_timing", "latencyInfo", "disabled-by-default-devtools.timeline.frame"),
    ),
}
_OBSERVER = """(() => {
  if (window !== top) return;
  new PerformanceObserver((list) => {
    globalThis.__largest = list.getEntries().at(-1).startTime;
  }).observe({ type: "largest-contentful-paint", buffered: true });
})();"""
_RESULT = """(() => {
  const [navigation] = performance.getEntriesByType("navigation");
  const [fcp] = performance.getEntriesByName("first-contentful-paint");
  return {
    fcp_ms: fcp?.startTime ?? null,
    lcp_ms: globalThis.__largest ?? null,
    load_ms: navigation.loadEventStart,
  };
})()"""


def load(url: str, flag: str, what: str) -> dict[str, Any]:
    """Return the times of one load, in ms since navigation start, and what else *what* asks for."""
    only = f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {urlsplit(url).hostname}"
    flags = (flag, "--no-proxy-server", only)
    with (
        running_chromium(find_chromium(), local_only=False, flags=flags) as address,
        DevTools(address) as devtools,
    ):
        return _Load(devtools, what).run(url)


class _Load:
    def __init__(self, devtools: DevTools, what: str) -> None:
        self._devtools, self._what = devtools, what
        target = devtools.call("Target.createTarget", url="about:blank")["targetId"]
        attached = devtools.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._events: list[dict[str, Any]] = []
        self._pending: set[str] = set()
        self._n_requests = 0

    def run(self, url: str) -> dict[str, Any]:
        for domain in ("Network", "Page"):
            self._call(f"{domain}.enable")
        screen = {"width": WIDTH_PX, "height": HEIGHT_PX, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **screen)
        self._call("Page.addScriptToEvaluateOnNewDocument", source=_OBSERVER, worldName="measuring")
        if categories := _CATEGORIES.get(self._what):
            chosen = {"includedCategories": categories, "excludedCategories": ["*"]}
            self._call("Tracing.start", transferMode="ReportEvents", traceConfig=chosen)
        time.sleep(0.3)
        answer = self._call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise RuntimeError(answer["errorText"])
        self._wait()
        frame = self._call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = self._call("Page.createIsolatedWorld", frameId=frame, worldName="measuring")
        found = self._call(
            "Runtime.evaluate",
            expression=_RESULT,
            contextId=world["executionContextId"],
            returnByValue=True,
        )
        result: dict[str, Any] = found["result"]["value"]
        result["requests"] = self._n_requests
        if self._what == "har":
            result["events"] = self._with_texts()
        elif categories:
            trace = self._trace()
            result |= {"trace": trace} if self._what == "trace" else speed_index(trace)
        return result

    def _wait(self) -> None:
        """Return once the page is loaded and quiet."""
        began = quiet_since = time.monotonic()
        loaded_at: float | None = None
        while True:
            event = self._devtools.next_event(0.05)
            now = time.monotonic()
            if event is not None and event.session == self._session:
                method, params = event.method, event.params
                if method == "Page.loadEventFired":
                    loaded_at = now
                elif method == "Page.javascriptDialogOpening":
                    self._call("Page.handleJavaScriptDialog", accept=True)
                elif method == "Network.requestWillBeSent":
                    if params["request"]["url"].startswith("http"):
                        self._pending.add(params["requestId"])
                        self._n_requests += 1
                        quiet_since = now
                elif method in ("Network.loadingFinished", "Network.loadingFailed"):
                    self._pending.discard(params["requestId"])
                    quiet_since = now
                if self._what == "har":
                    self._events.append({"method": method, "params": params})
            if loaded_at is None:
                if now - began > _LIMIT_S:
                    raise RuntimeError(f"no load event within {_LIMIT_S:g} s")
                continue
            is_quiet = not self._pending and now - quiet_since >= _QUIET_S
            if now - loaded_at >= (_SETTLE_S if is_quiet else _LATE_S):
                return

    def _with_texts(self) -> list[dict[str, Any]]:
        """Return the events, those of HTML and CSS with their texts, as developer tools save it."""
        for event in self._events:
            if event["method"] != "Network.responseReceived":
                continue
            response = event["params"]["response"]
            if response.get("mimeType") in ("text/html", "text/css"):
                try:
                    body = self._call(
                        "Network.getResponseBody", requestId=event["params"]["requestId"]
                    )
                except RuntimeError:  # a frame whose document is gone
                    continue
                text = body["body"]
                if body["base64Encoded"]:
                    text = base64.b64decode(text).decode("utf-8", "replace")
                response["body"] = text
        return self._events

    def _trace(self) -> list[dict[str, Any]]:
        self._call("Tracing.end")
        trace: list[dict[str, Any]] = []
        while True:
            event = self._devtools.next_event(30)
            if event is None:
                raise RuntimeError("Chromium did not deliver its trace")
            if event.method == "Tracing.dataCollected":
                trace += event.params["value"]
            elif event.method == "Tracing.tracingComplete":
                return trace

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._devtools.call(method, session=self._session, **params)


def speed_index(trace: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the SpeedIndex of a trace with screenshots, as speedline computes it.

    Progress is how much of the way from the first frame's histogram to the last one's is done.
    """
    starts = [each["ts"] for each in trace if each.get("name") == "navigationStart"]
    frames = sorted(
        (each["ts"], each["args"]["snapshot"]) for each in trace if each.get("name") == "Screenshot"
    )
    if not starts or not frames:
        return {"speed_index_ms": None}
    histograms = []
    for _, snapshot in frames:
        with Image.open(io.BytesIO(base64.b64decode(snapshot))) as image:
            histograms.append(np.array(image.convert("RGB").histogram()))
    # The first navigation is the page's: its frames navigate later.
    starts_us = min(starts)
    before = [n for n, (at_us, _) in enumerate(frames) if at_us <= starts_us]
    first = before[-1] if before else 0
    target = histograms[-1] - histograms[first]
    total = np.abs(target).sum()
    index_ms, done, at_us = 0.0, 0.0, starts_us
    for (frame_at_us, _), histogram in zip(
        frames[first + 1 :], histograms[first + 1 :], strict=True
    ):
        index_ms += (1 - done) * (frame_at_us - at_us) / 1000
        moved = (histogram - histograms[first]) * np.sign(target)
        done = float(np.minimum(np.abs(target), moved.clip(0)).sum() / total) if total else 1.0
        at_us = frame_at_us
    return {"speed_index_ms": round(index_ms, 1)}


if __name__ == "__main__":
    address, certificate_flag, out, wanted = sys.argv[1:]
    answer = load(address, certificate_flag, wanted) | {"load_average": os.getloadavg()[0]}
    Path(out).write_text(json.dumps(answer), encoding="utf-8")
