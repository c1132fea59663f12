"""A recommendation: from a recording to the scheme that suits its page best."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim._version import __version__
from h3sim.config.load_config import config_for, config_of, with_options
from h3sim.errors import InputError
from h3sim.importers import ImportedPage, import_page
from h3sim.importers.result import IMPORT
from h3sim.page import Page
from h3sim.schema import open_input
from h3sim.schema.arguments import PATH, ErrorCollector, check_arguments
from h3sim.schema.output import TEXT, VERSION, OutputSchema, Property
from h3sim.schema.values import Flag, ListOf, Number, OrNone
from h3sim.study.compare import COMPARISON, baseline_of, compare
from h3sim.study.fidelity import FIDELITY, Fidelity, fidelity, gated
from h3sim.study.racing import check_race
from h3sim.study.run import resolve_schemes
from h3sim.study.search import FOUND, search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from h3sim.config.load_config import LoadConfig
    from h3sim.results.load import Which
    from h3sim.study.compare import Comparison
    from h3sim.study.run import PageLike, SchemeLike
    from h3sim.study.search import SearchResult, SearchRow


DEPLOYABLE = ("rr", "fifo", "chrome-eps", "firefox-eps", "safari-eps", "h3sim-1")
"""What can be deployed over HTTP/3: none knows more than a client does.

rr and fifo stand for servers that hear no client.
"""
_PAGE_FILE = b"h3sim-page/"
_HEAD_BYTES = 1000
_NEAR = 1.01
"""Who is surely behind the best by less is named, too: nobody changes a server for that."""
_FEW = 3
"""Of fewer pairs there is no interval."""
_ARGUMENTS = (
    *("schemes", "baseline", "which", "n_seeds", "confidence", "network_within", "keep_loads"),
    *("config", "progress"),
)


ADVICE = OutputSchema(
    "h3sim-advice/2",
    "Which scheme serves a page best",
    VERSION,
    Property("page", TEXT, "the page's name", of="page.name"),
    Property("page_digest", TEXT, "SHA-256 of the page's resources", of="page.digest"),
    Property("sentence", TEXT, "which serves it best, by how much, and how sure that is"),
    Property("best", TEXT, "the scheme that came in first", of="found.best"),
    Property("level_with_best", ListOf(TEXT, "names"), "those as good", of="found.level_with_best"),
    Property("network_within", Number(low=1), "by which factor RTT and rate may be wrong"),
    Property("above_the_fold_from", TEXT, "who says what is", of="page.above_the_fold_from.value"),
    Property("fidelity", OrNone(FIDELITY, none=None), "how well its replay fits its recording"),
    Property("import", OrNone(IMPORT, none=None), "how it was made of a recording", of="imported"),
    Property("found", FOUND, "the race between schemes"),
    Property("comparison", COMPARISON, "each scheme over the network as it is said to be"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Recommendation:
    """Which scheme serves a page best: the sentence, the race behind it, and a table."""

    page: Page
    imported: ImportedPage | None
    """How the page was made of a recording; None where it was a page already."""
    fidelity: Fidelity | None
    """How well its replay fits its recording; None where it was not recorded."""
    found: SearchResult
    comparison: Comparison
    """Each scheme over the network as it is said to be."""
    network_within: float

    @property
    def sentence(self) -> str:
        """Which scheme serves the page best, by how much, and how sure that is.

        Over a recording only as far as its replay fits that.
        """
        return gated(self._verdict, [self.fidelity])

    @property
    def _verdict(self) -> str:
        found, name = self.found, self.page.name
        behind = [row for row in found.rows[1:] if row.is_worse]
        if len(found.rows) == 1:
            return f"Nothing was compared: {found.best} is the only scheme."
        if level := found.level_with_best:
            names = _listed((found.best, *level))
            head = f"Cannot tell which of {names} serves {name} best"
            if not behind:
                return f"{head}."
        else:
            head = f"{found.best} serves {name} best"
        other = next((row for row in behind if row.scheme == found.baseline), behind[0])
        of = "above the fold" if found.which == "atf" else "of all resources"
        better = f"{_less(other.ratio):.1f} % less ByteIndex {of} than with {other.scheme}"
        near = [row.scheme for row in behind if row.ratio < _NEAR and row is not other]
        close = f"; {_listed(near)} within {100 * (_NEAR - 1):.0f} %" if near else ""
        return f"{head}: {better}{self._how_sure(other)}{close}."

    def _how_sure(self, row: SearchRow) -> str:
        """Return the interval of a difference, over the networks that were tried."""
        if row.low is None or row.high is None or row.pairs < _FEW:
            return ""
        where = "over networks like the recorded one" if self.network_within > 1 else "over seeds"
        sure = f"sure at {100 * self.found.confidence:g} %"
        return f" ({_less(row.low):.1f} to {_less(row.high):.1f} % {where}, {sure})"

    def to_dict(self) -> dict[str, Any]:
        """Return it as a document of format `h3sim-advice/2`."""
        return ADVICE.write(self, version=__version__)

    def __repr__(self) -> str:
        return f"<Recommendation: {self.sentence}>"

    def _repr_html_(self) -> str:
        judged = [] if self.fidelity is None else self.fidelity.lines()
        lines = [*judged, self.sentence]
        told = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
        return told + self.comparison._repr_html_()


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _less(ratio: float) -> float:
    """Return by how many per cent 1 is less than *ratio*."""
    return 100 * (1 - 1 / ratio)


def read_subject(
    path: str | Path,
    *,
    host: str | None = None,
    page: int = 1,
    above_the_fold: str | Path = "heuristic",
) -> tuple[Page, ImportedPage | None]:
    """Return the page at *path*, shipped of that name, or made of the recording there.

    Raises:
        UnknownNameError: if there is no such page, and no file.
        InputError: listing every mistake in the file.
    """
    # os.path, unlike pathlib, says no to what cannot be a path at all.
    is_there = os.path.exists(path)  # noqa: PTH110
    is_name = not is_there and Path(path).suffix in ("", ".json")
    if is_name or (is_there and _is_page_file(path)):
        return catalog.load_page(path), None
    imported = import_page(path, host=host, page=page, above_the_fold=above_the_fold)
    return imported.page, imported


def _is_page_file(path: str | Path) -> bool:
    if Path(path).is_dir():
        return False
    with open_input(path, InputError) as file:
        return _PAGE_FILE in file.read(_HEAD_BYTES)


@with_options
def recommend(
    page: PageLike | ImportedPage,
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = DEPLOYABLE,
    baseline: SchemeLike = "chrome-eps",
    which: Which | None = None,
    n_seeds: int = 20,
    confidence: float = 0.95,
    network_within: float = 2,
    keep_loads: bool = False,
    config: LoadConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Recommendation:
    """Return which of *schemes* serves *page*, a page or a recording such as a HAR, best.

    What is compared is the ByteIndex above the fold, *which* "atf", or on "all" where nothing is
    known to be above it. The network is the one of the recording, and counts as a guess: `find`
    races the schemes over networks of up to *network_within* times its RTT and rate, or so small a
    part. `comparison` is over the estimated one, and holds its loads with *keep_loads*.

    Raises:
        InputError: listing every mistake in what was given.
        UnknownNameError, NothingToMeasureError: if only a name is not known, or no byte counts.

    >>> advice = recommend("davies-meenan", schemes=["fifo", "chrome-eps", "h3sim-1"], n_seeds=4)
    >>> advice.sentence.partition(":")[0]
    'fifo serves davies-meenan best'
    """
    racing: dict[str, Any] = {"n_seeds": n_seeds, "confidence": confidence}
    racing["network_within"] = network_within
    of = {} if which is None else {"which": which}
    with ErrorCollector() as mistakes:
        subject, imported = mistakes.of("page", lambda: _subject(page), instead=(None, None))
        given = mistakes.of("", partial(config_of, options, known=_ARGUMENTS, changed=config))
        racing = mistakes.of("", lambda: check_race(progress=progress, **of, **racing))
        mistakes.of("", lambda: check_arguments(InputError, keep_loads=(Flag(), keep_loads)))
        what = mistakes.of("", lambda: _schemes(schemes, baseline))
    what["config"] = given = config_for(subject, given)
    racing |= {"progress": progress}
    racing.setdefault("which", "all" if subject.nothing_visible_reason else "atf")
    return Recommendation(
        page=subject,
        imported=imported,
        fidelity=fidelity(subject),
        found=search(subject, networks=None, **racing, **what),
        comparison=compare(
            subject, send_buffers_kb=[given.send_buffer_kb], keep_loads=keep_loads, **what
        ),
        network_within=racing["network_within"],
    )


def _schemes(schemes: SchemeLike | Iterable[SchemeLike], baseline: SchemeLike) -> dict[str, Any]:
    """Return what is compared with what, the baseline among it."""
    with ErrorCollector() as mistakes:
        wanted = mistakes.of("schemes", lambda: resolve_schemes(schemes), instead=[])
        base = mistakes.of("baseline", lambda: baseline_of(baseline, wanted))
    return {"schemes": wanted + ([] if base in wanted else [base]), "baseline": base}


def _subject(page: PageLike | ImportedPage) -> tuple[Page, ImportedPage | None]:
    """Return the page, with how it was made of a recording."""
    if isinstance(page, Page):
        return page, None
    if isinstance(page, ImportedPage):
        return page.page, page
    check_arguments(InputError, page=(PATH, page))
    return read_subject(page)
