"""Loads as values, which can be run with another scheduler, server or browser put in."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.browser import factory, rendering
from h3sim.engine import browser_driver, builders, constant_rate, endpoints, http_connection
from h3sim.schemes import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.page import Page


@dataclass(frozen=True)
class Case:
    """Everything that a load follows from; *link* are more keyword arguments of `simulate`."""

    page: Page
    scheme: str = "rr"
    transport: str = "quic"
    send_buffer_kb: float = 0
    link: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Any:
        """Return the load."""
        return h3sim.simulate(
            self.page,
            scheme=self.scheme,
            transport=self.transport,
            send_buffer_kb=self.send_buffer_kb,
            **self.link,
        )

    def but(self, **changed: Any) -> Any:
        """Return the case with other values; unknown names are those of *link*."""
        own = {
            name: changed.pop(name)
            for name in ("scheme", "transport", "send_buffer_kb")
            if name in changed
        }
        return replace(self, **own, link={**self.link, **changed})


def usual_scheduler(scheme: Any, turn_bytes: int, *, make: Any = Scheme.make_scheduler) -> Any:
    """Return the scheduler that the scheme has, whatever stands in its place now."""
    return make(scheme, turn_bytes=turn_bytes)


@contextmanager
def scheduler_made_by(make: Any) -> Iterator[Any]:
    """Let every scheme have the scheduler that *make(scheme, turn_bytes)* returns."""
    with pytest.MonkeyPatch.context() as patch:
        make_scheduler = "make_scheduler"
        patch.setattr(Scheme, make_scheduler, lambda self, *, turn_bytes: make(self, turn_bytes))
        yield


@contextmanager
def engine_part(name: str, part: Any) -> Iterator[Any]:
    """Let the engine be built with *part* where it names *name*: `StreamSender`, for example."""
    with pytest.MonkeyPatch.context() as patch:
        for module in homes_of(name):
            patch.setattr(module, name, part)
        yield


def homes_of(name: str) -> list[Any]:
    """Return the modules that build a load with that part."""
    modules = (
        *(builders, constant_rate, endpoints, http_connection, browser_driver),
        *(factory, rendering),
    )
    return [module for module in modules if hasattr(module, name)]
