"""An installed Chromium: found, started with an empty profile, and driven over DevTools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.values.errors import H3SimError, needing_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websocket import WebSocket


EXECUTABLE_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "microsoft-edge",
    "msedge",
)
"""Names of Chromium and derived browsers on the search path."""
INSTALL_PATHS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
"""Paths on macOS, where browsers are not on the search path."""
_START_TIMEOUT_S = 30.0
"""Time in which Chromium must write the port of its DevTools server."""
_EXIT_TIMEOUT_S = 5.0
"""Time in which Chromium must end when asked to; after it, it is killed."""
_CHROMIUM_FLAGS = (
    "--headless=new",
    # Chromium chooses a free port, so that concurrent recordings do not collide.
    "--remote-debugging-port=0",
    # Nothing but the page uses the processor or the network.
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    # Every machine renders alike.
    "--disable-gpu",
    "--force-prefers-reduced-motion",
    "--hide-scrollbars",
    "--mute-audio",
    # No dialog asks for a keyring.
    "--password-store=basic",
)
_DISABLED_FEATURES = (
    # The browser's own requests would take processor time from the page.
    "AutofillServerCommunication",
    "MediaRouter",
    "OptimizationHints",
    "Translate",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "WebUIOmniboxPopup",
    # Frames of other sites stay in the page's process, and so in its trace.
    "IsolateOrigins",
    "site-per-process",
)
_FLAGS_AS_ROOT = ("--no-sandbox", "--disable-dev-shm-usage")
"""Chromium's sandbox refuses root, and a container's /dev/shm is too small."""
_LOCAL_ONLY_FLAGS = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
)


class ChromiumError(H3SimError, RuntimeError):
    """Error while recording a page, with a message of one line."""


def find_chromium(path: str | None = None) -> str:
    """Return the Chromium at *path*, or in $CHROMIUM, or the first on the search path.

    Raises:
        ChromiumError: if there is none, with advice on how to install one.
    """
    requested = path or os.environ.get("CHROMIUM")
    names = (requested,) if requested else (*EXECUTABLE_NAMES, *INSTALL_PATHS)
    found = next(filter(None, map(shutil.which, names)), None)
    if found is not None:
        return found
    if requested:
        raise ChromiumError(f"{requested!r} is not an executable Chromium")
    raise ChromiumError(
        "no Chromium is installed: install one (`apt-get install chromium` on Debian), or set"
        " its path with --chromium PATH or $CHROMIUM"
    )


@contextmanager
def running_chromium(
    program: str, *, local_only: bool, flags: tuple[str, ...] = ()
) -> Iterator[str]:
    """Start a fresh Chromium and yield its DevTools socket address; stop it afterwards.

    *local_only*: only this machine is contacted, and no DNS queries are made.

    Raises:
        ChromiumError: if it does not start.
    """
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    # Chromium's children may still write there while exiting: not a reason to lose a recording.
    with tempfile.TemporaryDirectory(prefix="h3sim-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(  # noqa: S603 - the browser that the user has installed
            [
                program,
                *_CHROMIUM_FLAGS,
                f"--disable-features={','.join(_DISABLED_FEATURES)}",
                *(_LOCAL_ONLY_FLAGS if local_only else ()),
                *(_FLAGS_AS_ROOT if is_root else ()),
                *flags,
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield _socket_address(Path(profile) / "DevToolsActivePort", process, program)
        finally:
            process.terminate()
            try:
                process.wait(_EXIT_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _socket_address(file: Path, process: subprocess.Popen[bytes], program: str) -> str:
    """Wait until Chromium has written its port and path into *file*."""
    give_up_at = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < give_up_at:
        if process.poll() is not None:
            raise ChromiumError(f"{program} exited at once with code {process.returncode}")
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        # One line so far: the second one, the path, is still being written.
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.02)
    raise ChromiumError(f"{program} did not start within {_START_TIMEOUT_S:g} s")


_ANSWER_TIMEOUT_S = 60.0
"""Time in which a DevTools command must be answered."""
_CONNECT_TIMEOUT_S = 20.0
"""Time in which the WebSocket of DevTools must open."""


class ProtocolEvent(NamedTuple):
    """Event of the DevTools protocol."""

    method: str
    params: dict[str, Any]
    session: str


class DevTools:
    """Connection to a browser, shared by the sessions of its targets ("flat" mode).

    Raises:
        MissingExtraError: if the web socket library is not installed.
        ChromiumError: if the browser cannot be reached.
    """

    def __init__(self, address: str) -> None:
        with needing_extra("websocket-client", "record"):
            import websocket
        self._connection_errors = (websocket.WebSocketException, OSError)
        self._timeout_error = websocket.WebSocketTimeoutException
        try:
            # Chromium refuses clients that send an Origin, unless it was started for that.
            self._socket: WebSocket = websocket.create_connection(
                address, timeout=_CONNECT_TIMEOUT_S, suppress_origin=True, skip_utf8_validation=True
            )
        except self._connection_errors as error:
            raise ChromiumError(f"Chromium does not answer: {error}") from error
        self._last_command_id = 0
        self._events: deque[ProtocolEvent] = deque()

    def __enter__(self) -> DevTools:
        return self

    def __exit__(self, *_: object) -> None:
        # Chromium ends anyway: it need not complete the closing handshake.
        self._socket.close(timeout=1)

    def call(self, method: str, *, session: str = "", **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events received meanwhile are queued.

        Raises:
            ChromiumError: if the browser refuses the command or is gone.
        """
        self._last_command_id += 1
        message: dict[str, Any] = {"id": self._last_command_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        try:
            self._socket.send(json.dumps(message))
        except self._connection_errors as error:
            what = f"the connection to Chromium was lost during {method}: {error}"
            raise ChromiumError(what) from error
        until = time.monotonic() + _ANSWER_TIMEOUT_S
        while time.monotonic() < until:
            answer = self._receive(until - time.monotonic())
            # Another id belongs to a command that timed out.
            if answer is None or answer.get("id") != self._last_command_id:
                continue
            if "error" in answer:
                raise ChromiumError(f"Chromium refuses {method}: {answer['error']['message']}")
            result: dict[str, Any] = answer["result"]
            return result
        raise ChromiumError(f"Chromium did not answer {method} within {_ANSWER_TIMEOUT_S:g} s")

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
        """Receive one message: queue an event, return an answer."""
        # 0 would make the socket non-blocking, with other errors.
        self._socket.settimeout(max(wait_s, 0.001))
        try:
            text = self._socket.recv()
        except self._timeout_error:
            return None
        except self._connection_errors as error:
            raise ChromiumError(f"the connection to Chromium was lost: {error}") from error
        if not text:
            raise ChromiumError("the connection to Chromium was lost")
        message: dict[str, Any] = json.loads(text)
        if "id" in message:
            return message
        params, session = message.get("params", {}), message.get("sessionId", "")
        self._events.append(ProtocolEvent(message["method"], params, session))
        return None
