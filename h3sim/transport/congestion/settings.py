"""Settings of a congestion controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterator


_K_INITIAL_WINDOW_PACKETS = 10
_K_INITIAL_WINDOW_BYTES = 14_720
_K_MINIMUM_WINDOW_PACKETS = 2
"""RFC 9002 § 7.2: ten packets, 14,720 bytes unless two packets are more; never below two."""
MAX_WINDOW_BYTES = 2**30
"""A bound above the bandwidth-delay product of any path (RFC 7323 § 2.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Settings of a controller; None selects the value of the controller's specification.

    Raises:
        InputError: listing every value that is out of range.

    >>> settings = ControllerSettings(max_datagram_bytes=1280)
    >>> settings.initial_congestion_window, settings.minimum_window_bytes
    (12800, 2560)
    >>> ControllerSettings(max_datagram_bytes=1472, beta=1.5)
    Traceback (most recent call last):
    ...
    h3sim.errors.InputError: congestion control: beta: must be above 0 and below 1, is 1.5
    """

    max_datagram_bytes: int
    initial_window_bytes: int | None = None
    beta: float | None = None
    hystart: bool = False
    rate_bps: int | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InputError(problems, "congestion control")

    @property
    def initial_congestion_window(self) -> int:
        """The window before the first acknowledgement (RFC 9002 § 7.2)."""
        if self.initial_window_bytes is not None:
            return self.initial_window_bytes
        datagram_bytes = self.max_datagram_bytes
        most_bytes = max(_K_INITIAL_WINDOW_BYTES, _K_MINIMUM_WINDOW_PACKETS * datagram_bytes)
        return min(_K_INITIAL_WINDOW_PACKETS * datagram_bytes, most_bytes)

    @property
    def minimum_window_bytes(self) -> int:
        """The smallest window (kMinimumWindow, RFC 9002 § 7.2)."""
        return _K_MINIMUM_WINDOW_PACKETS * self.max_datagram_bytes

    def _problems(self) -> Iterator[ValidationIssue]:
        """Yield what is wrong with the values."""
        for key in ("max_datagram_bytes", "rate_bps"):
            value = getattr(self, key)
            if value is not None and value < 1:
                yield ValidationIssue(key=key, message=f"must be at least 1, is {value}")
        window, least = self.initial_window_bytes, max(1, self.max_datagram_bytes)
        if window is not None and not least <= window <= MAX_WINDOW_BYTES:
            message = f"must be {least:,} (a packet) to {MAX_WINDOW_BYTES:,}, is {window:,}"
            yield ValidationIssue(key="initial_window_bytes", message=message)
        if self.beta is not None and not 0 < self.beta < 1:
            yield ValidationIssue(
                key="beta", message=f"must be above 0 and below 1, is {self.beta}"
            )
