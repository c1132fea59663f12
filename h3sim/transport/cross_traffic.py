"""Cross traffic: competing flows through the same bottleneck."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.errors import NetworkError, ValidationIssue
from h3sim.schema import format_value
from h3sim.transport.congestion import controller_names, is_controller
from h3sim.units import BITS_PER_BYTE, NS_PER_S, mbps, ms, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator


_FLOW = re.compile(r"(?P<name>[a-z0-9-]+)(?P<rates>(:[0-9.]+)*)(@(?P<start>[0-9.]+))?")
_ON_OFF = "on-off"
_USUAL_PERIOD_MS = 2000.0
"""The default length of a video segment."""
_MOST_MBPS, _MOST_MS = 1e5, 600_000.0
_EXAMPLE = "cubic, bbr@500, on-off:3 or on-off:3:4000@100, with + between flows"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossFlow:
    """A bulk flow towards the client under *cc*, on an established connection, from *starts_at_ns*.

    It always has data to send; with *mean_bps* it is on-off like video, one segment per *period_ns*
    at this mean rate, each sent as fast as possible.
    """

    cc: str
    starts_at_ns: int = 0
    mean_bps: int | None = None
    period_ns: int = 0

    @property
    def segment_bytes(self) -> int | None:
        """Bytes of a segment, one per period; None for a flow that never pauses."""
        if self.mean_bps is None:
            return None
        return max(1, self.mean_bps * self.period_ns // (BITS_PER_BYTE * NS_PER_S))

    @property
    def text(self) -> str:
        """The text form, as `parse_cross_traffic` reads it."""
        name = self.cc
        if self.mean_bps is not None:
            name = f"{_ON_OFF}:{to_mbps(self.mean_bps):g}:{to_ms(self.period_ns):g}"
        return f"{name}@{to_ms(self.starts_at_ns):g}" if self.starts_at_ns else name


def parse_cross_traffic(text: str) -> tuple[CrossFlow, ...]:
    """Return the flows that *text* describes; the number after `@` is the start in ms.

    Raises:
        NetworkError: listing every error.

    >>> [flow.text for flow in parse_cross_traffic("cubic + bbr@500 + on-off:3")]
    ['cubic', 'bbr@500', 'on-off:3:2000']
    """
    flows: list[CrossFlow] = []
    problems: list[ValidationIssue] = []
    for part in text.split("+"):
        match = _FLOW.fullmatch(part.strip())
        if match is None:
            message = f"must be such as {_EXAMPLE}, is {format_value(part.strip())}"
            problems.append(ValidationIssue(key="cross_traffic", message=message))
            continue
        errors = list(_errors(match))
        problems += (ValidationIssue(key="cross_traffic", message=message) for message in errors)
        if not errors:
            flows.append(_flow(match))
    if problems:
        raise NetworkError(problems)
    return tuple(flows)


def _errors(match: re.Match[str]) -> Iterator[str]:
    name, rates = match["name"], match["rates"].split(":")[1:]
    text_value = format_value(match[0])
    if name == _ON_OFF:
        if not 1 <= len(rates) <= 2:
            yield f"on-off needs its mean in Mbit/s and may have a period in ms, is {text_value}"
    elif not is_controller(name):
        yield f"there is no controller {name!r}; there are {', '.join(controller_names())}"
    elif rates:
        yield f"only on-off has a rate, is {text_value}"
    for number, most in zip(rates, (_MOST_MBPS, _MOST_MS), strict=False):
        value = _number(number)
        if value is None or not 0 < value <= most:
            yield f"{number} must be more than 0, to {most:,.0f}, in {text_value}"
    start = _number(match["start"] or "0")
    if start is None or start > _MOST_MS:
        yield f"{match['start']} must be 0 to {_MOST_MS:,.0f}, in {text_value}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _flow(match: re.Match[str]) -> CrossFlow:
    starts_at_ns = ms(float(match["start"] or 0))
    if match["name"] != _ON_OFF:
        return CrossFlow(cc=match["name"], starts_at_ns=starts_at_ns)
    rate, *period = (float(number) for number in match["rates"].split(":")[1:])
    return CrossFlow(
        cc="cubic",
        starts_at_ns=starts_at_ns,
        mean_bps=mbps(rate),
        period_ns=ms(period[0] if period else _USUAL_PERIOD_MS),
    )
