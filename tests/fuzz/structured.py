"""Recordings and sites that are broken in their values and not in their syntax, by Hypothesis."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz import broken, laws

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TARGETS", "fuzz"]

_EXAMPLES = 200
_SETTINGS = settings(
    max_examples=_EXAMPLES,
    database=None,
    deadline=None,
    derandomize=False,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def _recording(text: str) -> None:
    laws.check_a_page_or_a_line_comes(text.encode(), "recording.har")
    laws.check_no_secret_is_kept(text.encode(), "recording.har")


TARGETS: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "recordings, by value": (broken.broken_recordings(), _recording),
    "recordings, by byte": (
        broken.broken_bytes(),
        lambda data: laws.check_a_page_or_a_line_comes(data, "recording.har"),
    ),
    "HTML, by tag": (
        broken.markup(),
        lambda html: laws.check_a_page_or_a_line_comes(html.encode(), "index.html"),
    ),
    "tags beside a parser's": (broken.markup(), lambda html: laws.check_tags_are_found(html)),
    "CSS, by token": (
        broken.sheets(),
        lambda css: laws.check_a_page_or_a_line_comes(
            f"<p><style>{css}</style>".encode("utf-8", "replace"), "index.html"
        ),
    ),
}
"""What is drawn, and what must hold for it."""


def _run(name: str, number: int) -> None:
    strategy, check = TARGETS[name]
    seed(number)(_SETTINGS(given(strategy)(check)))()  # type: ignore[no-untyped-call]


def fuzz(name: str, seconds: float, number: int) -> tuple[int, int]:
    """Draw for a target until the time is over; return how many inputs, and the seed to go on with.

    Raises:
        Exception: what an input led to; it was made as small as it gets.
    """
    until, done = time.monotonic() + seconds, 0
    while done == 0 or time.monotonic() < until:
        _run(name, number)
        number, done = number + 1, done + _EXAMPLES
    return done, number
