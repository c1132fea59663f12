"""Plug-ins whose answers are the bytes of a file: half of them are right, the rest anything."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
import sysconfig
import warnings
from typing import TYPE_CHECKING, Any
from unittest import mock

import h3sim
from h3sim.schedulers import FifoScheduler
from h3sim.schemes.registry import REGISTRY as SCHEDULERS
from h3sim.transport.congestion import ControllerSettings, NewRenoController
from h3sim.transport.congestion.registry import ENTRY_POINT_GROUP
from h3sim.transport.congestion.registry import REGISTRY as CONTROLLERS
from h3sim.values.plugins import NO_PLUGINS_VARIABLE
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from h3sim.values.plugins import PluginRegistry

__all__ = ["Newest", "list_plugins", "load_with_controller", "load_with_scheduler"]

_PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 3000},
    {
        "id": "a.css",
        "kind": "stylesheet",
        "bytes": 9000,
        "discovered": {"by": "/", "at": "complete"},
    },
)
_WRONG: tuple[Any, ...] = (
    *(None, 0, 1, 4, -1, 2**70, -(2**70), 1.5, 0.0, float("nan"), float("inf")),
    *(True, False, "4", "", b"4", [], {}, object(), "\x1b[31m", ValueError, SystemExit, 10**5000),
)
"""What a plug-in may answer instead, or raise."""


class _Answers:
    """Bytes of a file, one for each answer; at its end all are right."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def next(self, right: Any) -> Any:
        """Return the right answer or another one, or raise what the next byte says."""
        byte = next(self._data, 0)
        if byte < 128:
            return right
        wrong = _WRONG[byte % len(_WRONG)]
        if isinstance(wrong, type) and issubclass(wrong, BaseException):
            raise wrong("\x1b[31m plug-in \n")
        return wrong


class Newest(FifoScheduler):
    """A scheduler that an entry point may name."""


def load_with_scheduler(path: Path) -> None:
    """Load a page with a scheduler whose every answer is the next byte of the file."""
    answers = _Answers(path.read_bytes())

    class Answering(FifoScheduler):
        def activate(self, stream_id: int) -> None:
            answers.next(None)
            super().activate(stream_id)

        def pick(self) -> int | None:
            found: int | None = answers.next(super().pick())
            return found

    h3sim.simulate(_PAGE, scheduler=Answering)


def load_with_controller(path: Path) -> None:
    """Load a page with a controller whose windows and rates are the bytes of the file."""
    answers = _Answers(path.read_bytes())

    class Answering(NewRenoController):
        def on_acked(self, *event: Any) -> None:
            super().on_acked(*event)
            self.congestion_window = answers.next(self.congestion_window)
            self.ssthresh = answers.next(self.ssthresh)

        def pacing_rate_bps(self, rtt: Any) -> int | None:
            rate: int | None = answers.next(super().pacing_rate_bps(rtt))
            return rate

    def made(settings: ControllerSettings) -> Any:
        return answers.next(Answering(settings))

    point = importlib.metadata.EntryPoint("fuzzed", "json:dumps", ENTRY_POINT_GROUP)
    with (
        _asked_anew(CONTROLLERS),
        mock.patch.object(importlib.metadata, "entry_points", return_value=[point]),
        mock.patch.object(importlib.metadata.EntryPoint, "load", return_value=made),
    ):
        h3sim.simulate(_PAGE, network="cable", cc="fuzzed", time_limit_s=60)


def list_plugins(path: Path) -> None:
    """List the schedulers while a package with these entry points is installed, and no other."""
    SCHEDULERS.listed()  # what is built in is imported
    (path.parent / "METADATA").write_text("Metadata-Version: 2.1\nName: fuzzed\nVersion: 1\n")
    standard_library = sysconfig.get_path("stdlib")  # readers of metadata import some of it late
    with (
        _asked_anew(SCHEDULERS),
        mock.patch.object(sys, "path", [str(path.parents[1]), standard_library]),
    ):
        SCHEDULERS.listed()


@contextlib.contextmanager
def _asked_anew(registry: PluginRegistry[Any]) -> Iterator[None]:
    """Make a registry look for plug-ins within, and anew behind; warnings are whole lines."""
    registry.forget()
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            mock.patch.dict("os.environ", {NO_PLUGINS_VARIABLE: ""}),
        ):
            warnings.simplefilter("always")
            yield
    finally:
        registry.forget()
    assert all(str(each.message).isprintable() for each in caught)
