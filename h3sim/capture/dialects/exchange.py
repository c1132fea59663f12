"""A request as the events of the DevTools protocol tell it, from a log or from a browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.capture.dialects.initiators import Initiator
from h3sim.capture.inference.kinds import kind_of_word
from h3sim.capture.inference.observed import Observed, RequestOutcome, Size
from h3sim.capture.inference.recorded import take_fields
from h3sim.capture.inference.sizes import (
    NO_BODY,
    length_of,
    request_text_bytes,
    response_text_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Headers", "RecordedExchange", "join_redirects"]

Headers = tuple[tuple[str, str], ...]


@dataclass(slots=True, kw_only=True)
class RecordedExchange(Observed):
    """One request and its answer, with what only the protocol tells; times on Chromium's clock."""

    hop_id: str
    """The protocol's id of the request, and behind a slash which hop of its redirects it is."""
    type: str = ""
    frame_id: str = ""
    wall_time_s: float | None = None
    asked_by: Initiator = field(default_factory=Initiator)
    priorities: list[tuple[float | None, str]] = field(default_factory=list)
    """When each was given, and what it was; the first of them with the request."""
    post_bytes: int = 0
    charset: str = ""
    wire_bytes: int | None = None
    """Header and body as they were sent; None where no end of the body was told."""
    from_cache: bool = False
    from_service_worker: bool = False
    is_internal: bool = False
    is_early_hint: bool = False
    has_extra: bool = True
    """Whether events of its own tell its header as it was sent and received."""
    failed: str = ""
    redirected_from: RecordedExchange | None = None
    chunks: list[tuple[float, int, int]] = field(default_factory=list)
    """When how many bytes of the body came: as they were sent, and plain."""
    request_fields: Headers = ()
    response_fields: Headers = ()

    @property
    def number(self) -> str:
        """The protocol's id of the request, which its redirects keep."""
        return self.hop_id.rpartition("/")[0]

    @property
    def requested_ms(self) -> float:
        """When it was asked for, 0 where that is not known."""
        return self.start_ms or 0.0

    @property
    def is_unfinished(self) -> bool:
        """Whether neither an end nor a reason for none was told."""
        is_over = self.failed or self.from_cache or self.from_service_worker
        return self.end_ms is None and not is_over

    @property
    def is_whole(self) -> bool:
        """Whether an answer came over the network, to its end."""
        is_cached = self.from_cache or self.from_service_worker
        return self.end_ms is not None and not is_cached and bool(self.status)

    def settle(self) -> None:
        """Work out what follows from all that was told of it."""
        sent, got = (
            {name.lower(): value for name, value in fields}
            for fields in (self.request_fields, self.response_fields)
        )
        take_fields(self, sent, got)
        self.kind = kind_of_word(self.type) or kind_of_word(sent.get("sec-fetch-dest", ""))
        self.priority = self.priorities[0][1].lower() if self.priorities else ""
        self.later_priorities = tuple(
            (at_ms, level.lower()) for at_ms, level in self.priorities[1:] if at_ms is not None
        )
        self.outcome = self._outcome()
        if self.is_early_hint:
            self.was_hinted()
        self._settle_sizes(got.get("content-length", ""))

    def _outcome(self) -> RequestOutcome:
        if self.kind is None and self.type == "WebSocket":
            return RequestOutcome.NOT_HTTP
        if self.is_internal:
            return RequestOutcome.INTERNAL
        if self.from_service_worker:
            return RequestOutcome.SERVICE_WORKER
        if self.from_cache:
            return RequestOutcome.CACHE
        # Without a status the log ends before the answer.
        is_answered = self.status is not None and not self.failed
        return RequestOutcome.ANSWERED if is_answered else RequestOutcome.FAILED

    def _settle_sizes(self, content_length: str) -> None:
        text_bytes = request_text_bytes(self.method, self.url, self.request_fields)
        self.request_bytes, self.request_from = text_bytes + self.post_bytes, Size.FIELDS
        header_bytes, self.header_from = self.header_bytes or 0, Size.RECORDED
        self.header_bytes = header_bytes
        if not header_bytes and self.status is not None:
            self.header_bytes = response_text_bytes(self.response_fields)
            self.header_from = Size.FIELDS
        self.pieces = tuple((at_ms, n_sent) for at_ms, n_sent, _ in self.chunks if n_sent)
        if self.status in NO_BODY or self.method == "HEAD":
            self.body_bytes, self.body_from = 0, Size.RECORDED
        elif self.wire_bytes:
            is_known = self.header_from is Size.RECORDED
            self.body_bytes = max(0, self.wire_bytes - header_bytes)
            self.body_from = Size.RECORDED if is_known else Size.TRANSFER
        elif self.pieces:
            self.body_bytes = sum(n_sent for _, n_sent in self.pieces)
            self.body_from = Size.PIECES
        elif (length := length_of(content_length)) is not None:
            self.body_bytes, self.body_from = length, Size.CONTENT_LENGTH
        elif self.decoded_bytes is not None:
            self.body_bytes, self.body_from = self.decoded_bytes, Size.DECODED


def join_redirects(exchanges: Sequence[RecordedExchange]) -> None:
    """Note for each of what came of a redirect at which index of *exchanges* that is."""
    indexes = {exchange.hop_id: index for index, exchange in enumerate(exchanges)}
    for exchange in exchanges:
        before = exchange.redirected_from
        if before is not None and before.hop_id in indexes:
            exchange.redirect_of = indexes[before.hop_id]
