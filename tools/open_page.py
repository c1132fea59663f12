"""Opens a file of HTML in an installed Chromium, and sees what goes wrong in it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from h3sim.importers.chromium.browser import DevTools, find_chromium, running_chromium

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["OpenPage", "browser"]

_LOAD_S = 60.0
_SIZE = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
_KEYS = {"Tab": 9, "Enter": 13, " ": 32, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "l": 76}
"""Keys that can be pressed, with the codes that Windows gave them, which the protocol wants."""


class OpenPage:
    """A page in a browser: *problems* are errors of its console, *requests* what it asked for."""

    def __init__(self, devtools: DevTools, session: str) -> None:
        self._devtools = devtools
        self._session = session
        self.problems: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol."""
        return self._devtools.call(method, session=self._session, **params)

    def load(self, url: str) -> None:
        """Load *url*, and wait for its load event.

        Raises:
            TimeoutError: if that does not come within a minute.
        """
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        limit = time.monotonic() + _LOAD_S
        while not self._take_event():
            if time.monotonic() > limit:
                raise TimeoutError(f"{url} was not loaded within {_LOAD_S:g} s")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, awaited if it is a promise.

        Raises:
            RuntimeError: if it throws.
        """
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"].get("exception", answer)))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, as a reader does who has no mouse."""
        code = _KEYS[key]
        text = {"text": {"Enter": "\r"}.get(key, key)} if len(key) == 1 or key == "Enter" else {}
        pressed: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, **text}
        self.call("Input.dispatchKeyEvent", type="keyDown", **pressed)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def settle(self) -> None:
        """Take in what the browser has said by now."""
        self.evaluate("new Promise((resolve) => setTimeout(resolve, 0))")
        while (event := self._devtools.next_event(0.0)) is not None:
            self._note(event)

    def _take_event(self) -> bool:
        """Take in an event, and return whether the page is loaded."""
        event = self._devtools.next_event(0.05)
        return event is not None and self._note(event)

    def _note(self, event: Any) -> bool:
        method, params = event.method, event.params
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        return bool(method == "Page.loadEventFired")


@contextmanager
def browser() -> Iterator[Callable[[Path], OpenPage]]:
    """Yield what opens files of HTML in one browser, which reaches no network, a tab each.

    Raises:
        ChromiumError: if no Chromium is installed, or it does not start.
    """
    with (
        running_chromium(find_chromium(), local_only=True) as address,
        DevTools(address) as devtools,
    ):

        def open_page(path: Path) -> OpenPage:
            target = devtools.call("Target.createTarget", url="about:blank")["targetId"]
            attached = devtools.call("Target.attachToTarget", targetId=target, flatten=True)
            page = OpenPage(devtools, attached["sessionId"])
            page.call("Emulation.setDeviceMetricsOverride", **_SIZE)
            page.load(path.resolve().as_uri())
            page.settle()
            return page

        yield open_page
