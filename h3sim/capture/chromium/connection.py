"""A client of the Chrome DevTools protocol: commands, answers and events over one web socket."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.capture.chromium.browser import ChromiumError
from h3sim.errors import needing_extra

if TYPE_CHECKING:
    from websocket import WebSocket

__all__ = ["DevTools", "ProtocolEvent"]

_ANSWER_S = 60.0
_CONNECT_S = 20.0


class ProtocolEvent(NamedTuple):
    """What the browser said of its own accord."""

    method: str
    params: dict[str, Any]
    session: str


class DevTools:
    """One connection to a browser; sessions of its targets share it ("flat" mode).

    Raises:
        MissingExtraError: if there is no web socket library.
        ChromiumError: if the browser cannot be reached.
    """

    def __init__(self, address: str) -> None:
        with needing_extra("websocket-client", "record"):
            import websocket
        self._lost = (websocket.WebSocketException, OSError)
        self._slow = websocket.WebSocketTimeoutException
        try:
            # Chromium refuses clients that send an Origin, unless it was started for that.
            self._socket: WebSocket = websocket.create_connection(
                address, timeout=_CONNECT_S, suppress_origin=True, skip_utf8_validation=True
            )
        except self._lost as error:
            raise ChromiumError(f"Chromium does not answer: {error}") from error
        self._number = 0
        self._events: deque[ProtocolEvent] = deque()

    def __enter__(self) -> DevTools:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close(timeout=1)

    def call(self, method: str, *, session: str = "", **params: Any) -> dict[str, Any]:
        """Return the browser's answer to a command; events that come before it are kept.

        Raises:
            ChromiumError: if the browser refuses the command or is gone.
        """
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        try:
            self._socket.send(json.dumps(message))
        except self._lost as error:
            raise ChromiumError(f"Chromium went away during {method}: {error}") from error
        until = time.monotonic() + _ANSWER_S
        while time.monotonic() < until:
            answer = self._receive(until - time.monotonic())
            # Another number answers a command that was given up.
            if answer is None or answer.get("id") != self._number:
                continue
            if "error" in answer:
                raise ChromiumError(f"Chromium refuses {method}: {answer['error']['message']}")
            result: dict[str, Any] = answer["result"]
            return result
        raise ChromiumError(f"Chromium did not answer {method} within {_ANSWER_S:g} s")

    def next_event(self, wait_s: float) -> ProtocolEvent | None:
        """Return the next event, or None if none comes within *wait_s* seconds."""
        until = time.monotonic() + wait_s
        while not self._events:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return None
            self._receive(left_s)
        return self._events.popleft()

    def _receive(self, wait_s: float) -> dict[str, Any] | None:
        """Take in one message: an event is kept, an answer is returned."""
        # 0 would mean a socket that never waits, and says so by another error.
        self._socket.settimeout(max(wait_s, 0.001))
        try:
            text = self._socket.recv()
        except self._slow:
            return None
        except self._lost as error:
            raise ChromiumError(f"Chromium went away: {error}") from error
        if not text:
            raise ChromiumError("Chromium went away")
        message: dict[str, Any] = json.loads(text)
        if "id" in message:
            return message
        self._events.append(
            ProtocolEvent(
                message["method"], message.get("params", {}), message.get("sessionId", "")
            )
        )
        return None
