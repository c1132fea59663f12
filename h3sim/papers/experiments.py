"""The experiments of the papers: study files in `models/studies`, and Frindell's header study."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.catalog import page_set
from h3sim.catalog.resources import root
from h3sim.headers import CodecSettings, HeaderCompression
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.headers.synthetic_headers import request_section
from h3sim.load import simulate
from h3sim.papers.estimates import Estimate, draws, over_groups, over_pages
from h3sim.schema import parse_toml, read_text
from h3sim.schema.errors import format_value
from h3sim.schema.fields import NumbersByPath, Record, declare, read_document, validate
from h3sim.schema.values import Integer, ListOf, Number, OneOrMore, Text
from h3sim.study import load_study, study_file
from h3sim.study.study_file import Quick, StudyError, StudyFile
from h3sim.values.errors import InputError, UnknownNameError, ValidationIssue
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.load import Load
    from h3sim.papers.estimates import Loads
    from h3sim.study import Study


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
    tables_bytes: tuple[int, ...] = field(
        metadata=declare(ListOf(Integer(low=0), "whole numbers"), "dynamic table capacities")
    )
    paper: Mapping[str, float] = field(
        metadata=declare(NumbersByPath(), "published numbers, by metric")
    )
    quick: Quick = field(
        default_factory=Quick,
        metadata=declare(Record(Quick), "how `h3sim reproduce` reduces the runs without `--full`"),
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
        """Return all runs, with each size of table.

        *lists* replace those of the pages.
        """
        return load_study(
            self.lists() if lists is None else lists,
            schemes="rr",
            header_compression=[
                HeaderCompression(codec=codec, settings=CodecSettings(table_bytes=table_bytes))
                for table_bytes in self.tables_bytes
                for codec in _CODECS
            ],
            rtt_ms=self.rtts_ms,
            loss=self.losses,
            seeds=self.runs,
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


_N_PUBLISHED_RUNS = 5
"""Runs of each path in the publication, of which it gives a maximum."""
_USUAL_PATH, _SLOW_PATH = (100.0, 0.02), (200.0, 0.05)
"""Round-trip time in ms and loss of the two paths whose delays are published."""


def header_figures(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the figures of Frindell 2017 on HPACK, QPACK and QCRAM: means over pages, and by page.

    Runs are drawn for the intervals: of each number of a run, all pages and paths together. Names
    of a page's figures begin with that of the page: `kicad-eeschema.qcram.saved`.
    """
    figures = _header_figures(loads)
    for page in loads.pages:
        of_page = _header_figures(loads.where(page=page))
        figures |= {f"{page}.{name}": figure for name, figure in of_page.items()}
    return figures


class _CodecRuns:
    """Results of a codec with one size of table: arrays by run, page and path."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], codec: str, table_bytes: int) -> None:
        import numpy as np  # lazy: h3sim.papers should load quickly

        own = [
            row
            for row in rows
            if row["header_compression"] == codec and row["table_bytes"] == table_bytes
        ]
        seeds, pages, self.paths = (
            {value: index for index, value in enumerate(dict.fromkeys(values))}
            for values in (
                (row["seed"] for row in own),
                (row["page"] for row in own),
                ((row["rtt_ms"], row["loss"]) for row in own),
            )
        )
        columns = ("delay", "blocked", "ratio", "held", "evicted")
        tables = {
            name: np.full((len(seeds), len(pages), len(self.paths)), np.nan) for name in columns
        }
        for row in own:
            index = seeds[row["seed"]], pages[row["page"]], self.paths[row["rtt_ms"], row["loss"]]
            tables["delay"][index] = row["hol_total_ms"] / row["sections"]
            tables["blocked"][index] = row["blocked"] > 0
            tables["ratio"][index] = row["n_bytes"] / row["uncompressed_bytes"]
            tables["held"][index] = row["held_decompressed_bytes"]
            tables["evicted"][index] = np.nan if row["n_evicted"] is None else row["n_evicted"]
        self.delay, self.blocked, self.ratio, self.held, self.evicted = tables.values()

    def at(self, table: Any, path: tuple[float, float]) -> Any:
        """Return the values of a path, averaged over pages, one per run."""
        return table[:, :, self.paths[path]].mean(axis=1)


def _header_figures(loads: Loads) -> Figures:
    """Return the figures of Frindell 2017 that findings refer to."""
    import numpy as np

    tables_bytes = sorted(loads.distinct("table_bytes"))
    of = {
        (codec, suffix): _CodecRuns(loads.rows, codec, table_bytes)
        for codec in _CODECS
        # In his trace nothing was evicted; the default table evicts entries.
        for suffix, table_bytes in (("", tables_bytes[-1]), (".small", tables_bytes[0]))
    }
    figures: Figures = {}
    for suffix in ("", ".small"):
        hpack, qpack, qcram, packets = (of[codec, suffix] for codec in _CODECS)
        rtts_ms = np.array([rtt_ms for rtt_ms, _ in hpack.paths])
        moderate, slow = (rtts_ms >= 50) & (rtts_ms <= 100), rtts_ms > 200
        both = np.stack([hpack.ratio.mean(axis=1), qcram.ratio.mean(axis=1)], axis=1)
        named = {
            "hpack.delay-100ms-2pct": over_pages(hpack.at(hpack.delay, _USUAL_PATH), np.mean),
            "hpack.delay-200ms-5pct": over_pages(hpack.at(hpack.delay, _SLOW_PATH), np.mean),
            "hpack.longest": _longest_of_five(hpack),
            "hpack.grows": _growth_share(hpack),
            "qcram.quiet": _quiet_runs(qcram),
            "qcram.held": Estimate(float(qcram.held.max())),
            "qcram.more-bytes": over_pages(
                both[:, :, moderate], lambda runs: _most_more(runs.mean(axis=0))
            ),
            "qcram.saved": over_pages(1 - qcram.ratio[:, :, slow].mean(axis=(1, 2)), np.mean),
            "packets.saved": _largest_difference(packets, qcram),
            "qpack.quiet": _quiet_runs(qpack),
            "qpack.delay": over_pages(qpack.delay.mean(axis=(1, 2)), np.mean),
            "qpack.delay-p95": over_groups(
                qpack.delay.reshape(len(qpack.delay), -1),
                lambda values: np.percentile(values, 95, method="inverted_cdf"),
            ),
            "qpack.delay-longest": _longest_of_five(qpack),
            "qpack.small-buffers": over_pages(
                (qpack.held < _MAX_SMALL_BUFFER_BYTES).mean(axis=(1, 2)), np.mean
            ),
            "qpack.below-hpack": over_pages(
                np.stack([qpack.delay.mean(axis=1), hpack.delay.mean(axis=1)], axis=1),
                _share_below,
            ),
            "qpack.ratio-apart": _largest_difference(qpack, hpack),
            "qcram.evicted": over_pages(qcram.evicted.mean(axis=(1, 2)), np.mean),
            "qpack.evicted": over_pages(qpack.evicted.mean(axis=(1, 2)), np.mean),
        }
        figures |= {f"{name}{suffix}": figure for name, figure in named.items()}
    return figures


def _quiet_runs(runs: _CodecRuns) -> Estimate:
    """Return the share of runs in which no list waited."""
    import numpy as np

    return over_pages(1 - runs.blocked.mean(axis=(1, 2)), np.mean)


def _longest_of_five(runs: _CodecRuns) -> Estimate:
    """Return the longest delay per request of a run over all paths, of five runs of each.

    A maximum grows with the number of runs. So it is that of as many as were published: the mean
    over all groups of five, and pages. The interval holds 95 % of the maxima of any five runs, of
    which the published one is one.
    """
    import numpy as np

    longest = runs.delay.max(axis=2)  # by run and page
    groups = np.array_split(longest, max(1, len(longest) // _N_PUBLISHED_RUNS))
    figure = float(np.mean([group.max(axis=0).mean() for group in groups]))
    if len(longest) < _N_PUBLISHED_RUNS:
        return Estimate(figure)
    drawn = draws(len(longest))[:, :_N_PUBLISHED_RUNS]
    return Estimate.of(figure, longest[drawn].max(axis=1).mean(axis=1))


def _growth_share(runs: _CodecRuns) -> Estimate:
    paths = [*runs.paths]
    return over_pages(runs.delay.mean(axis=1), lambda drawn: _growth(drawn.mean(axis=0), paths))


def _growth(delays_ms: Any, paths: Sequence[tuple[float, float]]) -> float:
    """Return the share of steps to a longer path or to more loss on which the delay grows."""
    by_path = dict(zip(paths, delays_ms.tolist(), strict=True))
    rtts = sorted({rtt for rtt, _ in paths})
    losses = sorted({loss for _, loss in paths})
    grows = [
        by_path[shorter, loss] < by_path[longer, loss]
        for shorter, longer in itertools.pairwise(rtts)
        for loss in losses
        if loss  # without loss there are no delays, at any distance
    ]
    grows += [
        by_path[rtt, less] < by_path[rtt, more]
        for less, more in itertools.pairwise(losses)
        for rtt in rtts
    ]
    return float(sum(grows) / len(grows))


def _most_more(ratios: Any) -> float:
    """Return by how much more the second codec sends than the first, on its worst path."""
    first, second = ratios
    return float((second / first - 1).max())


def _share_below(runs: Any) -> float:
    """Return the share of paths on which the first codec delays no longer than the second."""
    first, second = runs.mean(axis=0)
    return float((first <= second).mean())


def _largest_difference(runs: _CodecRuns, others: _CodecRuns) -> Estimate:
    """Return the largest difference between compression ratios of a path, in percentage points."""
    import numpy as np

    difference = (runs.ratio - others.ratio).mean(axis=1)
    return over_pages(difference, lambda rows: float(100 * np.abs(rows.mean(axis=0)).max()))


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
        """Return the loads: all with *full*, else those that `quick` selects.

        *pages* are files that replace the corpus, if the experiment uses it.

        Raises:
            InputError: listing every error of the study, or of a page.
        """
        file = self.file
        if isinstance(file, HeaderExperiment):
            if not full and file.quick.seeds is not None:
                file = replace(file, runs=min(file.runs, file.quick.seeds))
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
        quick=file.quick,
    )


def page_files(folder: str | Path) -> list[str]:
    """Return the pages of a set, or the page files in *folder*, by name.

    Raises:
        StudyError: if there is no such set or folder, or no page file in it.

    >>> page_files("papers")
    ['http2rulez', 'davies-meenan']
    """
    if found := page_set(str(folder)):
        return [*found]
    path = Path(folder)
    files = sorted(map(str, path.glob("*.json"))) if path.is_dir() else []
    if not files:
        problem = (
            "has no page file (*.json)" if path.is_dir() else "is no set of pages and no folder"
        )
        raise StudyError(
            [ValidationIssue(key="--pages", message=f"{format_value(str(folder))} {problem}")]
        )
    return files
