"""The study of Frindell 2017: its file, its runs, and its figures."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.capture.header_lists import read_exchanges
from h3sim.catalog.roots import root
from h3sim.compression import CodecSettings
from h3sim.compression.exchanges import TimedSection
from h3sim.documents.declared import says, settle
from h3sim.documents.nested import NumbersByPath
from h3sim.documents.values import ListOf, Number, OneOrMore, Text, Whole
from h3sim.errors import InputError
from h3sim.findings.model import Estimate
from h3sim.study.header_study import header_study
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from h3sim.compression import FieldSection
    from h3sim.study.header_study import HeaderRow

__all__ = ["FORMAT", "HeaderExperiment", "HeaderResults", "header_figures"]

Figures = dict[str, Estimate]

_SCHEMES = ("hpack", "early-qpack", "qcram", "qcram-packets")
_SMALL_HELD = 1000
FORMAT = "h3sim-header-study/1"
_LOSS = Number(low=0, high=1, is_below=True, example="0.02 is 2 %")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderExperiment:
    """Lists over paths: every scheme with each round-trip time and loss, some runs each.

    Raises:
        InputError: listing every value that is out of range.
    """

    name: str = field(metadata=says(Text(), "what lists call it"))
    title: str = field(metadata=says(Text(), "a line about what is reproduced"))
    source: str = field(metadata=says(Text(), "where that was published"))
    lists: tuple[str, ...] = field(
        metadata=says(OneOrMore(Text(), "names"), "shipped lists, one behind the other")
    )
    interval_ms: float = field(metadata=says(Number(low=0), "between two lists"))
    rtts_ms: tuple[float, ...] = field(
        metadata=says(ListOf(Number(low=0), "numbers"), "round-trip times")
    )
    losses: tuple[float, ...] = field(
        metadata=says(ListOf(_LOSS, "numbers"), "shares of packets that are lost")
    )
    runs: int = field(metadata=says(Whole(low=1), "of each path"))
    table_bytes: int = field(metadata=says(Whole(low=0), "the size of the dynamic table"))
    paper: Mapping[str, float] = field(
        metadata=says(NumbersByPath(), "the numbers there, by figure")
    )

    def __post_init__(self) -> None:
        settle(self, InputError)

    def __len__(self) -> int:
        """Return how many runs there are."""
        return (len(_SCHEMES) + 1) * len(self.rtts_ms) * len(self.losses) * self.runs

    def sections(self) -> list[FieldSection]:
        """Return the requests of its lists."""
        folder = root("corpora") / "headers"
        return [
            exchange.request
            for name in self.lists
            for exchange in read_exchanges(Path(str(folder / f"{name}.req.qif")), interval_ns=0)
            if exchange.request is not None
        ]

    def run(self, lists: Sequence[FieldSection] | None = None, **how: Any) -> HeaderResults:
        """Run all; once more with the default table, which evicts.

        *lists* take the place of its own; further arguments are those of `header_study`.

        Raises:
            StoreError: if the store cannot be read or written; what was finished is kept.
        """
        sections = [
            TimedSection(ms(number * self.interval_ms), fields)
            for number, fields in enumerate(self.sections() if lists is None else lists)
        ]
        both = [
            header_study(
                sections,
                schemes=schemes,
                rtts_ms=self.rtts_ms,
                losses=self.losses,
                runs=self.runs,
                settings=settings,
                **how,
            )
            for schemes, settings in (
                (_SCHEMES, CodecSettings(table_bytes=self.table_bytes)),
                (("qcram",), CodecSettings()),
            )
        ]
        return HeaderResults(tuple(both[0]), tuple(both[1]))


class HeaderResults(NamedTuple):
    """The rows of a study, and those with a table that evicts."""

    rows: tuple[HeaderRow, ...]
    small: tuple[HeaderRow, ...]

    def of(self, scheme: str) -> list[HeaderRow]:
        """Return the rows of a scheme."""
        return [row for row in self.rows if row.scheme == scheme]

    def at(self, scheme: str, rtt_ms: float, loss: float) -> HeaderRow:
        """Return the row of one path."""
        return next(row for row in self.of(scheme) if (row.rtt_ms, row.loss) == (rtt_ms, loss))


def header_figures(results: HeaderResults, _paper: Mapping[str, float]) -> Figures:
    """Return what Frindell 2017 says of HPACK, QPACK and QCRAM."""
    hpack, qpack, qcram = (results.of(name) for name in _SCHEMES[:3])
    slow = results.at("hpack", 200.0, 0.05)
    found = {
        "hpack.delay-100ms-2pct": results.at("hpack", 100.0, 0.02).hol_mean_ms,
        "hpack.delay-200ms-5pct": slow.hol_mean_ms,
        "hpack.longest": slow.hol_max_ms,
        "hpack.grows": _mean([*_grows(hpack)]),
        "qcram.quiet": _quiet(qcram),
        "qcram.held": max(row.held_compressed_bytes for row in qcram),
        "qcram.quiet-small-table": _quiet(results.small),
        "qcram.more-bytes": max(
            a.ratio / b.ratio - 1
            for a, b in zip(qcram, hpack, strict=True)
            if 50 <= a.rtt_ms <= 100
        ),
        "qcram.saved": _mean([row.saved_percent / 100 for row in qcram if row.rtt_ms > 200]),
        "packets.saved": _apart(results.of("qcram-packets"), qcram),
        **_qpack(qpack),
        "qpack.below-hpack": _mean(
            [a.hol_mean_ms <= b.hol_mean_ms for a, b in zip(qpack, hpack, strict=True)]
        ),
        "qpack.ratio-apart": _apart(qpack, hpack),
    }
    return {name: Estimate(float(value)) for name, value in found.items()}


def _qpack(rows: Sequence[HeaderRow]) -> dict[str, float]:
    delays = sorted(row.hol_mean_ms for row in rows)
    return {
        "qpack.quiet": _quiet(rows),
        "qpack.delay": _mean(delays),
        "qpack.delay-p95": delays[int(0.95 * (len(delays) - 1))],
        "qpack.delay-longest": delays[-1],
        "qpack.small-buffers": _mean([row.held_decompressed_bytes < _SMALL_HELD for row in rows]),
    }


def _grows(rows: Sequence[HeaderRow]) -> Iterator[bool]:
    """Yield for each step to a longer path, or to more loss, whether the delay a request grows."""
    at = {(row.rtt_ms, row.loss): row.hol_mean_ms for row in rows}
    rtts, losses = (sorted(dict.fromkeys(axis)) for axis in zip(*at, strict=True))
    for a, b in itertools.pairwise(rtts):
        # Without loss nothing waits at any distance, so there is nothing to grow.
        yield from (at[a, loss] < at[b, loss] for loss in losses if loss)
    for a, b in itertools.pairwise(losses):
        yield from (at[rtt, a] < at[rtt, b] for rtt in rtts)


def _quiet(rows: Sequence[HeaderRow]) -> float:
    """Return the share of runs in which no list waited."""
    return sum(row.runs_without_hol for row in rows) / sum(row.runs for row in rows)


def _apart(ours: Sequence[HeaderRow], theirs: Sequence[HeaderRow]) -> float:
    """Return how far compression ratios are apart at most, in percentage points."""
    return max(100 * abs(a.ratio - b.ratio) for a, b in zip(ours, theirs, strict=True))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
