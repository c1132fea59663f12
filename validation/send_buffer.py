"""`make validate-send-buffer`: readings of the send buffer of Marx 2019 beside Table 2's columns.

The paper says that the buffer is an application's and how large it is, and no more. A reading is
when the buffer takes something in, and whether rr, the baseline, has the buffer as well.
"""

from __future__ import annotations

import statistics
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim import catalog
from h3sim.cli.command import progress_bar
from h3sim.metrics import SAMPLE_MS
from h3sim.papers.estimates import tau
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim import Page

__all__ = ["NO_BUFFER", "PAPER", "READINGS", "Buffer", "Reading", "main", "means_of", "moves_alike"]

_STUDIES = Path(__file__).resolve().parents[1] / "models" / "studies"
_TABLE_2 = tomllib.loads((_STUDIES / "marx-2019-table-2.toml").read_text("utf-8"))["paper"]
PAPER: dict[str, tuple[float, float]] = {
    scheme: (mean, _TABLE_2["1000k"][scheme]) for scheme, mean in _TABLE_2["atf"].items()
}
"""The paper's means above the fold: without a buffer, and with one of 1000 kB."""
_BASELINE = "rr"
_STILL = 0.005
"""A mean that moves by less is not said to move: the paper has two decimals."""
_HELD = "held"
_REFILL = {"refilled": "continuous", "bursts": "when-empty"}
"""The option that stands for each other reading."""
_HELD_MS = {1000: 7200}
"""What the study's test program says of its client: "2000 is 280k, 7200 is 1000k"."""


class Buffer(NamedTuple):
    """A send buffer: its size, and when it takes something in.

    With the model "held" there is none: every request but the first is made later instead, by as
    long as the link takes for a full one.
    """

    kb: float
    model: str


class Reading(NamedTuple):
    """A buffer, and whether the baseline has it too."""

    buffer: Buffer
    is_shared: bool

    @property
    def title(self) -> str:
        """What the column is called."""
        return f"{self.buffer.kb:g} {self.buffer.model} {'b' if self.is_shared else 'a'}"


NO_BUFFER = Buffer(0, "refilled")
READINGS = [
    *(Reading(Buffer(1000, model), is_shared=False) for model in ("refilled", "bursts", _HELD)),
    *(Reading(Buffer(1000, model), is_shared=True) for model in ("refilled", "bursts", _HELD)),
    *(Reading(Buffer(kb, "bursts"), is_shared=True) for kb in (280, 14)),
]
Indexes = dict[tuple[str, Buffer], float]


def indexes_of(name: str) -> Indexes:
    """Return the ByteIndex above the fold of a page, by scheme and buffer."""
    page = h3sim.load_page(name)
    buffers = dict.fromkeys([NO_BUFFER, *(reading.buffer for reading in READINGS)])
    return {
        (scheme, buffer): _index_ms(page, scheme, buffer)
        for buffer in buffers
        for scheme in (_BASELINE, *PAPER)
    }


def _index_ms(page: Page, scheme: str, buffer: Buffer) -> float:
    if buffer.model == _HELD:
        page, buffer = _held(page, _HELD_MS[int(buffer.kb)]), NO_BUFFER
    load = h3sim.simulate(
        page, scheme=scheme, send_buffer_kb=buffer.kb, send_buffer_refill=_REFILL[buffer.model]
    )
    return load.byte_index("atf", sample_ms=SAMPLE_MS)  # as the paper has it


def _held(page: Page, by_ms: int) -> Page:
    """Return the page with each request but the first made so much later."""
    resources = tuple(
        each
        if each.discovered is None
        else replace(
            each,
            discovered=replace(each.discovered, delay_ns=each.discovered.delay_ns + ms(by_ms)),
        )
        for each in page.resources
    )
    return replace(page, resources=resources)


def means_of(pages: Sequence[Indexes], reading: Reading) -> dict[str, float]:
    """Return the mean speedup of each scheme over pages."""
    base = reading.buffer if reading.is_shared else NO_BUFFER
    return {
        scheme: statistics.mean(
            page[_BASELINE, base] / page[scheme, reading.buffer] for page in pages
        )
        for scheme in PAPER
    }


def moves_alike(before: Sequence[float], after: Sequence[float]) -> int:
    """Return how many means fall, or rise, with the buffer where the paper's do."""
    theirs = [_direction(*row) for row in PAPER.values()]
    ours = [_direction(a, b) for a, b in zip(before, after, strict=True)]
    return sum(a == b for a, b in zip(theirs, ours, strict=True))


def _direction(before: float, after: float) -> int:
    return (after > before + _STILL) - (after < before - _STILL)


def main(pages: Sequence[str]) -> int:
    """Print every reading over *pages*, or the corpus, and over the page of Davies and Meenan."""
    names = list(pages or catalog.page_set("corpus") or ())
    found: list[Indexes] = []
    with ProcessPoolExecutor() as pool, progress_bar("page") as progress:
        for indexes in pool.map(indexes_of, names):
            found.append(indexes)
            if progress is not None:
                progress(len(found), len(names))
    before = means_of(found, Reading(NO_BUFFER, is_shared=False))
    columns = {reading.title: means_of(found, reading) for reading in READINGS}
    rows: list[list[str]] = [
        [
            scheme,
            *(f"{value:.2f}" for value in PAPER[scheme]),
            f"{before[scheme]:.2f}",
            *(f"{column[scheme]:.2f}" for column in columns.values()),
        ]
        for scheme in PAPER
    ]
    theirs = [row[1] for row in PAPER.values()]
    rows.append(
        ["tau", "", "", "", *(f"{tau(theirs, [*c.values()]):.2f}" for c in columns.values())]
    )
    alike = [moves_alike([*before.values()], [*column.values()]) for column in columns.values()]
    rows.append(["as in the paper", "", "", "", *(f"{n} of {len(PAPER)}" for n in alike)])
    print(f"{len(names)} pages; a: relative to rr without a buffer, b: to rr with the same\n")
    headings = ["scheme", "paper, 0", "paper, 1000", "0", *columns]
    print(tabulate(rows, headings, "github", disable_numparse=True))
    _print_one_page()
    return 0


def _print_one_page() -> None:
    """Print what becomes of bucket-html on the page that suffers most; the paper's falls to 1/3."""
    page = indexes_of("davies-meenan")
    before = means_of([page], Reading(NO_BUFFER, is_shared=False))["bucket-html"]
    print("\ndavies-meenan, bucket-html: " + f"{before:.2f} without a buffer")
    for reading in READINGS:
        after = means_of([page], reading)["bucket-html"]
        print(f"{reading.title:24} {after:.2f}, {after / before:.2f} of it")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
