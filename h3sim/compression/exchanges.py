"""Requests and responses as header compression sees them: field sections with their times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import At, Discovery, Kind, Page, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.compression.base import FieldSection

__all__ = [
    *("DEFAULT_BODY_BYTES", "Exchange", "HeaderLists", "TimedSection", "requests_of"),
    "responses_of",
]

DEFAULT_BODY_BYTES = 10_000
"""What a response has whose size is not known."""
_LENGTH = b"content-length"
_MOST_DIGITS = 12


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


@dataclass(frozen=True, kw_only=True)
class HeaderLists:
    """The header lists of requests, or *of_responses*, which a sweep sends in place of a page.

    >>> lists = HeaderLists.of([TimedSection(0, ((b"a", b"b"),)), TimedSection(5, ((b"c", b"d"),))])
    >>> [section.at_ns for section in lists.sections], lists.page.resources[1].discovered.delay_ns
    ([0, 5], 5)
    """

    name: str = "header lists"
    exchanges: tuple[Exchange, ...]
    of_responses: bool = False

    @classmethod
    def of(cls, requests: Iterable[TimedSection], name: str = "header lists") -> HeaderLists:
        """Return the lists of *requests*, the responses of which are not known."""
        timed = (Exchange(requested_at_ns=at_ns, request=fields) for at_ns, fields in requests)
        return cls(name=name, exchanges=tuple(timed))

    @property
    def recorded_load(self) -> None:
        """Lists say nothing of the path that they were recorded over."""

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all that is sent, and when: equal for equal runs."""
        import hashlib  # on use, as for pages

        return hashlib.sha256(repr((self.exchanges, self.of_responses)).encode()).hexdigest()

    @property
    def total_bytes(self) -> int:
        """The bytes of all names and values of its direction."""
        return sum(len(n) + len(v) for section in self.sections for n, v in section.fields)

    @cached_property
    def sections(self) -> tuple[TimedSection, ...]:
        """The lists of its direction, in the order in which they are sent."""
        return (responses_of if self.of_responses else requests_of)(self.exchanges)

    @cached_property
    def in_order(self) -> tuple[Exchange, ...]:
        """The exchanges in the order of their requests, without those that lack its direction."""
        listed = (e for e in self.exchanges if (e.response if self.of_responses else e.request))
        return tuple(sorted(listed, key=lambda exchange: exchange.requested_at_ns))

    @cached_property
    def page(self) -> Page:
        """The page that makes these requests at their times, whatever comes down.

        A response has as many bytes as it says, or `DEFAULT_BODY_BYTES`.
        """
        first_ns = self.in_order[0].requested_at_ns
        resources = [
            Resource(
                id=str(number),
                kind=Kind.OTHER if number else Kind.DOCUMENT,
                size_bytes=_body_bytes(exchange.response),
                discovered=Discovery(at=At.TIME, delay_ns=exchange.requested_at_ns - first_ns),
            )
            for number, exchange in enumerate(self.in_order)
        ]
        resources[0] = replace(resources[0], discovered=None)
        return Page(name=self.name or "header lists", resources=tuple(resources))


def requests_of(exchanges: Iterable[Exchange]) -> tuple[TimedSection, ...]:
    """Return the requests in the order in which they are made; equal times as they stand."""
    timed = (TimedSection(e.requested_at_ns, e.request) for e in exchanges if e.request)
    return tuple(sorted(timed, key=lambda section: section.at_ns))


def responses_of(exchanges: Iterable[Exchange]) -> tuple[TimedSection, ...]:
    """Return the responses in the order in which they begin; equal times as they stand."""
    timed = (TimedSection(e.responded_at_ns, e.response) for e in exchanges if e.response)
    return tuple(sorted(timed, key=lambda section: section.at_ns))


def _body_bytes(response: FieldSection) -> int:
    text = dict(response).get(_LENGTH, b"")
    if text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    return DEFAULT_BODY_BYTES
