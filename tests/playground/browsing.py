"""The built playground in a real Chromium, driven as a user would drive it."""

from __future__ import annotations

import base64
import json
import threading
import time
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from h3sim.importers.chromium.browser import DevTools, running_chromium
from tools.playground import Handler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Tab", "open_playground", "served"]

PATIENCE_S = 120.0
"""Until Python runs, or a state is shown, on a machine that does other work as well."""
_STEP_S = 0.05


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Yield the address at which *site* is served on this machine, to the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class Tab:
    """A tab with the playground in it; what the console said and what was asked for is kept."""

    def __init__(self, tools: DevTools, address: str) -> None:
        self._tools = tools
        self._address = address
        self.host = urlsplit(address).netloc
        self.message: list[str] = []
        self.hosts: set[str] = set()
        target = tools.call("Target.createTarget", url="about:blank")["targetId"]
        attached = tools.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")
        # What the worker fetches counts as well.
        self.call(
            "Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True
        )

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a command of the DevTools protocol."""
        return self._tools.call(method, session=self._session, **params)

    def open(self, fragment: str = "") -> None:
        """Open the playground anew with *fragment* in its address, and wait until all is shown."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"{self._address}#{fragment}")
        self.settle()

    def go(self, fragment: str = "") -> None:
        """Have the open playground show what *fragment* says: Python need not start again."""
        self.value(
            "document.getElementById('results').ariaBusy = 'true';"
            f" history.replaceState(null, '', {json.dumps('#' + fragment)});"
            " dispatchEvent(new HashChangeEvent('hashchange'))"
        )
        self.settle()

    def settle(self) -> None:
        """Wait until the loads of what is chosen are shown."""
        self.wait_for("document.getElementById('results')?.ariaBusy === 'false'")

    def wait_for(self, expression: str) -> None:
        """Wait until *expression* is true; AssertionError if that takes too long."""
        until = time.monotonic() + PATIENCE_S
        while not self.value(f"Boolean({expression})"):
            self._hear()
            problems = self.value("document.getElementById('problems')?.textContent ?? ''")
            assert time.monotonic() < until, f"waited for {expression}; {problems}; {self.message}"
        self._hear()

    def value(self, expression: str) -> Any:
        """Return what *expression* is in the page; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def change(self, id_: str, value: str, event: str = "change") -> None:
        """Set the control *id_*, and wait for what comes of it."""
        self.value(
            f"(() => {{ const c = document.getElementById({json.dumps(id_)});"
            f" c.value = {json.dumps(value)};"
            f" c.dispatchEvent(new Event({json.dumps(event)}, {{bubbles: true}})) }})()"
        )
        self.settle()

    def press(self, key: str, code: int) -> None:
        """Press a key where the focus is."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **text,
            )

    def screenshot(self, path: Path, width: int = 1280) -> None:
        """Write a picture of the whole page to *path*."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        time.sleep(_STEP_S * 6)
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def _hear(self) -> None:
        """Take in what the browser said until now."""
        while (event := self._tools.next_event(_STEP_S)) is not None:
            if event.method == "Target.attachedToTarget":
                session = event.params["sessionId"]
                for command in (
                    "Network.enable",
                    "Runtime.enable",
                    "Runtime.runIfWaitingForDebugger",
                ):
                    self._tools.call(command, session=session)
            elif event.method == "Network.requestWillBeSent":
                self._note_host(event.params["request"]["url"])
            elif event.method == "Runtime.exceptionThrown":
                self.message.append(str(event.params["exceptionDetails"]))
            elif event.method == "Runtime.consoleAPICalled":
                self.message.append(f"{event.params['type']}: {event.params['args']}")
            elif event.method == "Log.entryAdded":
                self.message.append(str(event.params["entry"]))

    def _note_host(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about"):
            self.hosts.add(parts.netloc)


@contextmanager
def open_playground(site: Path, chromium: str) -> Iterator[Tab]:
    """Yield a tab that has loaded the playground in *site*."""
    with (
        served(site) as address,
        running_chromium(chromium, local_only=True) as socket,
        DevTools(socket) as tools,
    ):
        tab = Tab(tools, address)
        tab.open()
        yield tab
