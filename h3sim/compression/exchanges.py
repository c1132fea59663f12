"""Requests and responses as header compression sees them: field sections with their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.compression.base import FieldSection

__all__ = ["Exchange", "TimedSection", "requests_of", "responses_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request with its response; times count from the first request.

    Either may be empty: a file of header lists may hold those of one direction only.
    """

    requested_at_ns: int
    request: FieldSection
    response: FieldSection = ()
    responded_at_ns: int = 0


class TimedSection(NamedTuple):
    """A field section, and when it is encoded."""

    at_ns: int
    fields: FieldSection


def requests_of(exchanges: Iterable[Exchange]) -> tuple[TimedSection, ...]:
    """Return the requests in the order in which they are made; equal times as they stand."""
    timed = (TimedSection(e.requested_at_ns, e.request) for e in exchanges if e.request)
    return tuple(sorted(timed, key=lambda section: section.at_ns))


def responses_of(exchanges: Iterable[Exchange]) -> tuple[TimedSection, ...]:
    """Return the responses in the order in which they begin; equal times as they stand."""
    timed = (TimedSection(e.responded_at_ns, e.response) for e in exchanges if e.response)
    return tuple(sorted(timed, key=lambda section: section.at_ns))
