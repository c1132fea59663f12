"""Ends the program in order when the system asks for it."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from h3sim.errors import Terminated

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["exits_on_sigterm"]

_KILLED = 128
"""A shell's exit code for a signal is so much above the signal's number."""


@contextmanager
def exits_on_sigterm() -> Iterator[None]:
    """Leave on a request to end the process (SIGTERM) as on Ctrl-C: drafts go, browsers end.

    Without it, Python ends at once and runs no `finally`. What was there before is put back. Only
    the main thread may set what a signal does; on another nothing is changed.
    """

    def leave(number: int, _frame: object) -> None:
        raise Terminated(_KILLED + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
