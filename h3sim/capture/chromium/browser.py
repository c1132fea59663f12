"""Finds an installed Chromium, starts it without a window and with an empty profile, ends it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.errors import H3SimError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ChromiumError", "find_chromium", "running_chromium"]

NAMES = (
    *("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"),
    *("microsoft-edge", "msedge"),
)
"""What Chromium and its kin are called on the search path."""
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
"""Where they stand on macOS, which has no search path for them."""
_START_S = 30.0
_END_S = 5.0
# Port 0 lets Chromium choose one, so that several recordings at a time do not meet.
_FLAGS = (
    *("--headless=new", "--remote-debugging-port=0", "--no-first-run"),
    *("--no-default-browser-check", "--disable-background-networking"),
    *("--disable-component-update", "--disable-default-apps", "--disable-domain-reliability"),
    *("--disable-extensions", "--disable-sync", "--disable-gpu"),
    *("--force-prefers-reduced-motion", "--hide-scrollbars", "--metrics-recording-only"),
    *("--mute-audio", "--password-store=basic"),
)
_WITHOUT = (
    # What the browser loads for itself would take processor time from the page.
    *("AutofillServerCommunication", "MediaRouter", "OptimizationHints", "Translate"),
    *("WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxPopup"),
    # Frames of other sites stay in the page's process, and so in its trace.
    *("IsolateOrigins", "site-per-process"),
)
_LOCAL_ONLY = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
)


class ChromiumError(H3SimError, RuntimeError):
    """A page could not be recorded; the message is one line."""


def find_chromium(path: str | None = None) -> str:
    """Return the Chromium at *path*, or in $CHROMIUM, or the first on the search path.

    Raises:
        ChromiumError: if there is none, saying how to get one.
    """
    wanted = path or os.environ.get("CHROMIUM")
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise ChromiumError(f"there is no Chromium at {wanted!r} that could be run")
        return found
    for name in (*NAMES, *PLACES):
        found = shutil.which(name)
        if found is not None:
            return found
    raise ChromiumError(
        "no Chromium is installed: install one (`apt-get install chromium` on Debian), or say"
        " where it is with --chromium PATH or $CHROMIUM"
    )


@contextmanager
def running_chromium(
    program: str, *, local_only: bool, flags: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the address of the DevTools socket of a fresh Chromium; end it afterwards.

    *local_only*: no host but this machine is ever contacted, nor asked for in the DNS.

    Raises:
        ChromiumError: if it does not start.
    """
    # Chromium's children may still write there while it goes: no reason to lose a recording.
    with tempfile.TemporaryDirectory(prefix="h3sim-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(  # noqa: S603 - the browser that the user has installed
            [
                program,
                *_FLAGS,
                f"--disable-features={','.join(_WITHOUT)}",
                *(_LOCAL_ONLY if local_only else ()),
                *_sandbox(),
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
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _sandbox() -> tuple[str, ...]:
    """Chromium refuses to run its sandbox as root, as in a container."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return ("--no-sandbox", "--disable-dev-shm-usage") if is_root else ()


def _socket_address(file: Path, process: subprocess.Popen[bytes], program: str) -> str:
    """Wait until Chromium has written its port and path into *file*."""
    give_up_at = time.monotonic() + _START_S
    while time.monotonic() < give_up_at:
        if process.poll() is not None:
            raise ChromiumError(f"{program} ended at once, with code {process.returncode}")
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        # One line: it is about to write the other, the path.
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.02)
    raise ChromiumError(f"{program} did not start within {_START_S:g} s")
