"""The experiments of the papers: study files in `models/studies`, and Frindell's header study."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.catalog.resources import root
from h3sim.errors import InputError, UnknownNameError, ValidationIssue
from h3sim.headers import CodecSettings, HeaderCompression
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.headers.synthetic_headers import request_section
from h3sim.papers.findings import Estimate
from h3sim.schema import parse_toml, read_text
from h3sim.schema.errors import format_value
from h3sim.schema.fields import NumbersByPath, declare, read_document, validate
from h3sim.schema.values import Integer, ListOf, Number, OneOrMore, Text
from h3sim.study import load_study, simulate, study_file
from h3sim.study.header_study import header_rows
from h3sim.study.study_file import Quick, StudyError, StudyFile
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from h3sim.papers.findings import Loads
    from h3sim.results import Load
    from h3sim.study import Study
    from h3sim.study.header_study import HeaderRow


Figures = dict[str, Estimate]

_CODECS = ("hpack", "early-qpack", "qcram", "qcram-packets")
_MAX_SMALL_BUFFER_BYTES = 1000
"""Buffers of held bytes below this size count as small."""
FORMAT = "h3sim-header-study/1"
_LOSS = Number(low=0, high=1, is_below=True, example="0.02 is 2 %")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderExperiment:
    """Header experiment: every scheme with each round-trip time and loss, several runs each.

    Raises:
        InputError: listing every value that is out of range.
    """

    name: str = field(metadata=declare(Text(), "name of the experiment"))
    title: str = field(metadata=declare(Text(), "one-line title of the reproduced result"))
    source: str = field(metadata=declare(Text(), "publication of the result"))
    pages: tuple[str, ...] = field(
        metadata=declare(OneOrMore(Text(), "names"), "pages whose requests are compressed")
    )
    scheme: str = field(metadata=declare(Text(), "scheme of the loads that give the requests"))
    network: str = field(metadata=declare(Text(), "network of these loads"))
    recorded_rtt_ms: float = field(
        metadata=declare(
            Number(low=0), "round-trip time of these loads, which determines the request times"
        )
    )
    rtts_ms: tuple[float, ...] = field(
        metadata=declare(ListOf(Number(low=0), "numbers"), "round-trip times")
    )
    losses: tuple[float, ...] = field(
        metadata=declare(ListOf(_LOSS, "numbers"), "packet loss rates")
    )
    runs: int = field(metadata=declare(Integer(low=1), "runs of each path"))
    table_bytes: int = field(metadata=declare(Integer(low=0), "dynamic table capacity"))
    paper: Mapping[str, float] = field(
        metadata=declare(NumbersByPath(), "published numbers, by metric")
    )

    def __post_init__(self) -> None:
        validate(self, InputError)

    def lists(self) -> list[HeaderLists]:
        """Return the requests of each page, with Chromium's headers, at the times in a load."""
        options: dict[str, Any] = {
            "scheme": self.scheme,
            "network": self.network,
            "rtt_ms": self.recorded_rtt_ms,
        }
        return [requests_of_load(simulate(page, **options)) for page in self.pages]

    def study(self, lists: Sequence[HeaderLists] | None = None) -> Study:
        """Return all runs, and those of QCRAM again with the default table, which evicts entries.

        *lists* replace those of the pages.
        """
        large_table = CodecSettings(table_bytes=self.table_bytes)
        return load_study(
            self.lists() if lists is None else lists,
            schemes="rr",
            header_compression=[
                *(HeaderCompression(codec=codec, settings=large_table) for codec in _CODECS),
                HeaderCompression(codec="qcram"),
            ],
            rtt_ms=self.rtts_ms,
            loss=self.losses,
            seeds=self.runs,
            resources=True,
            name=self.name,
        )


def requests_of_load(load: Load) -> HeaderLists:
    """Return the header lists of a load's requests, at the times at which the browser made them."""
    page = load.page
    timed = sorted((ms(timing.requested_ms), timing.id) for timing in load.timings)
    sections = (
        TimedSection(at_ns, request_section(page, page.resources[page.index[name]]))
        for at_ns, name in timed
    )
    return HeaderLists.of(sections, page.name)


def header_figures(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the figures of Frindell 2017 on HPACK, QPACK and QCRAM: means over pages, and by page.

    Names of a page's figures begin with that of the page: `kicad-eeschema.qcram.saved`.
    """
    by_page = {page: _header_figures(loads.where(page=page)) for page in loads.pages}
    names = next(iter(by_page.values()))
    means = {name: _mean([figures[name] for figures in by_page.values()]) for name in names}
    page_figures = {
        f"{page}.{name}": value
        for page, figures in by_page.items()
        for name, value in figures.items()
    }
    return {name: Estimate(value) for name, value in (means | page_figures).items()}


def _header_figures(loads: Loads) -> dict[str, float]:
    """Return the figures of Frindell 2017 that findings refer to, of one page's lists."""
    # QCRAM was also run with a small table, which evicts entries.
    tables_bytes = loads.distinct("table_bytes")
    small_table, large_table = (
        [*header_rows(of_table.rows, of_table.resources)]
        for of_table in (
            loads.where(table_bytes=min(tables_bytes)),
            loads.where(table_bytes=max(tables_bytes)),
        )
    )
    hpack, qpack, qcram, packets = (
        [row for row in large_table if row.scheme == codec] for codec in _CODECS
    )
    by_path = {(row.rtt_ms, row.loss): row for row in hpack}
    usual, slow = by_path[100.0, 0.02], by_path[200.0, 0.05]
    delays_ms = sorted(row.hol_mean_ms for row in qpack)
    figures = {
        "hpack.delay-100ms-2pct": usual.hol_mean_ms,
        "hpack.delay-200ms-5pct": slow.hol_mean_ms,
        "hpack.longest": slow.hol_max_ms,
        "hpack.grows": _mean([*_growths(hpack)]),
        "qcram.quiet": _share_without_delay(qcram),
        "qcram.held": max(row.held_compressed_bytes for row in qcram),
        "qcram.quiet-small-table": _share_without_delay(small_table),
        "qcram.more-bytes": max(
            row.ratio / hpack_row.ratio - 1
            for row, hpack_row in zip(qcram, hpack, strict=True)
            if 50 <= row.rtt_ms <= 100
        ),
        "qcram.saved": _mean([row.saved_percent / 100 for row in qcram if row.rtt_ms > 200]),
        "packets.saved": _largest_difference(packets, qcram),
        "qpack.quiet": _share_without_delay(qpack),
        "qpack.delay": _mean(delays_ms),
        "qpack.delay-p95": delays_ms[int(0.95 * (len(delays_ms) - 1))],
        "qpack.delay-longest": max(delays_ms),
        "qpack.small-buffers": _mean(
            [row.held_decompressed_bytes < _MAX_SMALL_BUFFER_BYTES for row in qpack]
        ),
        "qpack.below-hpack": _mean(
            [
                row.hol_mean_ms <= hpack_row.hol_mean_ms
                for row, hpack_row in zip(qpack, hpack, strict=True)
            ]
        ),
        "qpack.ratio-apart": _largest_difference(qpack, hpack),
    }
    return {name: float(value) for name, value in figures.items()}


def _growths(rows: Sequence[HeaderRow]) -> Iterator[bool]:
    """Yield whether the mean delay grows, for each step to a longer path or to more loss."""
    delays_ms = {(row.rtt_ms, row.loss): row.hol_mean_ms for row in rows}
    rtts = sorted({rtt for rtt, _ in delays_ms})
    losses = sorted({loss for _, loss in delays_ms})
    for shorter, longer in itertools.pairwise(rtts):
        # Without loss there are no delays, at any distance.
        yield from (delays_ms[shorter, loss] < delays_ms[longer, loss] for loss in losses if loss)
    for less, more in itertools.pairwise(losses):
        yield from (delays_ms[rtt, less] < delays_ms[rtt, more] for rtt in rtts)


def _share_without_delay(rows: Sequence[HeaderRow]) -> float:
    """Return the share of runs in which no list waited."""
    return sum(row.runs_without_hol for row in rows) / sum(row.runs for row in rows)


def _largest_difference(rows: Sequence[HeaderRow], others: Sequence[HeaderRow]) -> float:
    """Return the largest difference between compression ratios, in percentage points."""
    return max(100 * abs(row.ratio - other.ratio) for row, other in zip(rows, others, strict=True))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


_CORPUS = "corpus"
"""Name that stands for all pages of the shipped corpus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Experiment: the published numbers, and the study that repeats it."""

    file: StudyFile | HeaderExperiment = field(repr=False)
    """Contents of its study file."""
    path: Path = field(repr=False)
    name: str
    title: str
    source: str
    paper: Mapping[str, float]
    """Published numbers, by the names of h3sim's figures."""
    quick: Quick

    @property
    def is_about_headers(self) -> bool:
        """True if it compresses headers; otherwise it loads pages."""
        return isinstance(self.file, HeaderExperiment)

    @property
    def takes_pages(self) -> bool:
        """True if it uses the shipped corpus, which other pages may replace."""
        return isinstance(self.file, StudyFile) and self.file.pages == (_CORPUS,)

    def study(self, *, full: bool = False, pages: Sequence[str] | None = None) -> Study:
        """Return the loads: all with *full* or for headers, else those that `quick` selects.

        *pages* are files that replace the corpus, if the experiment uses it.

        Raises:
            InputError: listing every error of the study, or of a page.
        """
        file = self.file
        if isinstance(file, HeaderExperiment):
            return file.study()
        if pages is not None and self.takes_pages:
            file = replace(file, pages=tuple(pages))
        study = file.study(self.path.parent, source=str(self.path))
        if full:
            return study
        design = study.design
        by_size = sorted(design.pages, key=lambda page: (page.total_bytes, page.name))
        quick_names = {page.name for page in by_size[:: self.quick.every]}
        quick_pages = tuple(page for page in design.pages if page.name in quick_names)
        quick_seeds = tuple(design.seeds)[: self.quick.seeds]
        return replace(study, design=replace(design, pages=quick_pages, seeds=quick_seeds))


def experiment_names() -> tuple[str, ...]:
    """Return the names of the experiments, in order.

    >>> experiment_names()[:2]
    ('davies-meenan', 'frindell-2017')
    """
    files = (Path(file.name) for file in (root("models") / "studies").iterdir())
    return tuple(sorted(file.stem for file in files if file.suffix == ".toml"))


def load_experiment(name: str) -> Experiment:
    """Return the experiment of that name.

    Raises:
        UnknownNameError: if there is none.
        StudyError: listing every error of its file.

    >>> load_experiment("marx-2019-table-2").paper["atf.fifo"]
    1.93
    """
    if name not in experiment_names():
        raise UnknownNameError("experiment", name, experiment_names())
    path = Path(str(root("models") / "studies" / f"{name}.toml"))
    document = parse_toml(read_text(path, StudyError), StudyError, source=str(path))
    is_about_headers = document.get("format") == FORMAT
    cls: type[StudyFile | HeaderExperiment] = HeaderExperiment if is_about_headers else StudyFile
    format_ = FORMAT if is_about_headers else study_file.FORMAT
    file = read_document(cls, document, StudyError, source=str(path), format_=format_)
    return Experiment(
        file=file,
        path=path,
        name=file.name,
        title=file.title,
        source=file.source,
        paper=file.paper,
        quick=file.quick if isinstance(file, StudyFile) else Quick(),
    )


def page_files(folder: str | Path) -> list[str]:
    """Return the page files in *folder*, by name.

    Raises:
        StudyError: if there is no such folder, or no page file in it.
    """
    path = Path(folder)
    files = sorted(map(str, path.glob("*.json"))) if path.is_dir() else []
    if not files:
        problem = "has no page file (*.json)" if path.is_dir() else "is no folder"
        raise StudyError(
            [ValidationIssue(key="--pages", message=f"{format_value(str(folder))} {problem}")]
        )
    return files
