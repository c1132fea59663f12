"""`python -m tests.fuzz [SECONDS]`: break recordings until the time is over.

What fails is made as small as it gets and shown; the exit code is then 1.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz import broken, laws

if TYPE_CHECKING:
    from collections.abc import Callable

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
    "recordings": (broken.broken_recordings(), _recording),
    "bytes": (
        broken.broken_bytes(),
        lambda data: laws.check_a_page_or_a_line_comes(data, "recording.har"),
    ),
    "markup": (
        broken.markup(),
        lambda html: laws.check_a_page_or_a_line_comes(html.encode(), "index.html"),
    ),
    "tags": (broken.markup(), lambda html: laws.check_tags_are_found(html)),
    "sheets": (
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


def main(arguments: list[str]) -> int:
    """Fuzz each target in turn, each round with a seed of its own, for so many seconds."""
    seconds = float(arguments[0]) if arguments else 60.0
    until = time.monotonic() + seconds
    number, done = 0, dict.fromkeys(TARGETS, 0)
    while time.monotonic() < until:
        for name in TARGETS:
            try:
                _run(name, number)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
                print(f"{name}, seed {number}: {type(error).__name__}: {error}")
                print("\n".join(getattr(error, "__notes__", ())))
                return 1
            done[name] += _EXAMPLES
        number += 1
    print(", ".join(f"{name} {n:,}" for name, n in done.items()), "examples, none failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
