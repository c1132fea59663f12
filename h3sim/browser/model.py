"""Which browser loads a page: its mode, its speed, its limits."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator  # noqa: TC003 - doctest
from dataclasses import dataclass

from h3sim.errors import InputError, Problem

__all__ = ["BrowserMode", "BrowserModel"]

_MAX_FACTOR = 1000


class BrowserMode(enum.Enum):
    """How the browser decides when to ask for a resource."""

    REPLAY = "replay"
    """As it was recorded: when its trigger fires, and after the recorded delay."""
    PARSE = "parse"
    """By computing what a browser does: parsing, blocking, executing (Wang et al. 2013)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserModel:
    """A browser as a value.

    Four settings act in `BrowserMode.PARSE` only: *cpu_factor* multiplies the times of parsing and
    executing (4: a phone, where the recording was made on a desktop); without *preload_scanner*,
    only the parser finds what the document names; *max_requests* is the most requests that wait
    for their response at once, None for no limit (HTTP/1.1 browsers: 6). With *tight_mode*, as in
    Chrome, images and other things of low priority are asked for only while fewer than two requests
    are open, until the head is parsed and its scripts have run.

    Raises:
        InputError: listing every value that is out of range.

    >>> BrowserModel(mode=BrowserMode.PARSE, cpu_factor=0, max_requests=0)
    Traceback (most recent call last):
    ...
    h3sim.errors.InputError: cpu_factor: must be more than 0, to 1000, is 0
    max_requests: must be 1 or more, is 0
    """

    mode: BrowserMode = BrowserMode.REPLAY
    cpu_factor: float = 1.0
    preload_scanner: bool = True
    tight_mode: bool = False
    max_requests: int | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InputError(problems)

    def _problems(self) -> Iterator[Problem]:
        factor = self.cpu_factor
        if not (math.isfinite(factor) and 0 < factor <= _MAX_FACTOR):
            message = f"must be more than 0, to {_MAX_FACTOR}, is {factor:g}"
            yield Problem(key="cpu_factor", message=message)
        if self.max_requests is not None and self.max_requests < 1:
            yield Problem(key="max_requests", message=f"must be 1 or more, is {self.max_requests}")
