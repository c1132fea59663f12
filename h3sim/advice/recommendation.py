"""A recommendation: from a recording to the scheme that suits its page best."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from h3sim import catalog
from h3sim._version import __version__
from h3sim.advice.search import (
    DEPLOYABLE,
    FOUND,
    ROBUSTNESS_NETWORKS,
    search,
)
from h3sim.importers import ImportedPage, import_page
from h3sim.importers.result import IMPORT
from h3sim.load.selection import HalvesLike, SchedulersLike, add_schedulers, resolve_schemes
from h3sim.page import Page
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.files import read_head
from h3sim.schema.output import TEXT, VERSION, OutputSchema, Property
from h3sim.schema.values import Flag, ListOf, OrNone
from h3sim.study.compare import COMPARISON, Comparison, compare
from h3sim.study.fidelity import FIDELITY, Fidelity
from h3sim.study.rows import NETWORK_WITHIN
from h3sim.study.runner import read_options, shows_loads
from h3sim.study.subjects import baseline_of
from h3sim.values.errors import InputError
from h3sim.values.table import RichDisplay, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from h3sim.advice.search import SearchResult
    from h3sim.load.load import Which
    from h3sim.load.load_config import LoadConfig
    from h3sim.load.run import PageLike, SchemeLike
    from h3sim.study.study_keywords import StudyKeywords


EXAMPLE = "one load of each scheme, as an example (the verdict rests on the pairs)"
"""Caption of the comparison in a recommendation."""
_PAGE_FORMAT = b"h3sim-page/"
"""Part of the beginning of a page file."""


ADVICE = OutputSchema(
    "h3sim-advice/2",
    "Which scheme serves a page best",
    VERSION,
    Property("page", TEXT, "the page's name", of="page.name"),
    Property("page_digest", TEXT, "SHA-256 of the page's resources", of="page.digest"),
    Property(
        "sentence", TEXT, "the verdict of the search, as far as the replay fits", of="found.verdict"
    ),
    Property("best", TEXT, "the scheme that came in first", of="found.best"),
    Property("level_with_best", ListOf(TEXT, "names"), "those as good", of="found.level_with_best"),
    NETWORK_WITHIN._replace(of="found.network_within"),
    Property("above_the_fold_from", TEXT, "who says what is", of="page.above_the_fold_from.value"),
    Property("fidelity", OrNone(FIDELITY, none=None), "how well its replay fits its recording"),
    Property("import", OrNone(IMPORT, none=None), "how it was made of a recording", of="imported"),
    Property("found", FOUND, "the race between schemes"),
    Property(
        "comparison",
        COMPARISON,
        "one load per scheme, over the network as it is said to be: an example",
    ),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Recommendation(RichDisplay):
    """Result of `recommend`: a search, the import of the recording, and example loads."""

    page: Page
    imported: ImportedPage | None
    """Report of the import of a recording; None for a page file or shipped page."""
    found: SearchResult
    """Result of `h3sim.search` for the page."""
    comparison: Comparison
    """One load per scheme over the network as estimated: examples, not the evidence."""

    @property
    def fidelity(self) -> Fidelity | None:
        """Fit of the replay to the recording; None without a recording."""
        return self.found.fidelity.get(self.page.name)

    @property
    def network_within(self) -> float:
        """The factor by which RTT and rate may be wrong."""
        return self.found.network_within

    @property
    def sentence(self) -> str:
        """The verdict of the search: result, uncertainty, reason."""
        return self.found.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return it as a document of format `h3sim-advice/2`."""
        return ADVICE.write(self, version=__version__)

    def __repr__(self) -> str:
        return f"<Recommendation: {self.sentence}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        yield from () if self.fidelity is None else self.fidelity.lines()
        yield from self.found._display()


def read_subject(
    path: str | Path,
    *,
    host: str | None = None,
    page: int = 1,
    above_the_fold: str | Path = "heuristic",
) -> tuple[Page, ImportedPage | None]:
    """Return the page of the file at *path* or the shipped one of that name, or import a recording.

    Raises:
        UnknownNameError: if there is no such page, and no file.
        InputError: listing every error in the file.
    """
    # os.path, unlike pathlib, returns False for invalid paths.
    exists = os.path.exists(path)  # noqa: PTH110
    is_name = not exists and Path(path).suffix in ("", ".json")
    if is_name or (exists and _is_page_file(path)):
        return catalog.load_page(path), None
    imported = import_page(path, host=host, page=page, above_the_fold=above_the_fold)
    return imported.page, imported


def _is_page_file(path: str | Path) -> bool:
    """Return whether an existing file begins like a page file, not a recording."""
    return not Path(path).is_dir() and _PAGE_FORMAT in read_head(path, InputError)


@shows_loads
def recommend(
    page: PageLike | ImportedPage,
    *,
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    client: HalvesLike = None,
    server: HalvesLike = None,
    scheduler: SchedulersLike | None = None,
    signals: SchemeLike | None = None,
    baseline: SchemeLike = "chrome-eps",
    which: Which | None = None,
    n_seeds: int = 30,
    confidence: float = 0.95,
    networks: Sequence[str] | None = ROBUSTNESS_NETWORKS,
    network_within: float | None = None,
    keep_loads: bool = False,
    first_result: Callable[[str], None] | None = None,
    config: LoadConfig | None = None,
    **options: Unpack[StudyKeywords],
) -> Recommendation:
    """Find which of *schemes* suits *page*, a page or a recording such as a HAR, best.

    The recording is imported; `found` is the result of `h3sim.search` for the page, with the same
    arguments and defaults. `comparison` has an example load of each scheme over the network as it
    was estimated; with *keep_loads* it has the loads themselves.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        NothingToMeasureError: if the page has no bytes that count.

    >>> advice = recommend("davies-meenan", schemes=["fifo", "chrome-eps", "h3sim-1"], n_seeds=4)
    >>> advice.sentence.partition(":")[0]
    'fifo is the best scheme for davies-meenan'
    """
    race_options: dict[str, Any] = {"which": which, "n_seeds": n_seeds, "confidence": confidence}
    race_options |= {"network_within": network_within, "first_result": first_result}
    if schemes is None and client is None and server is None:
        schemes = DEPLOYABLE
    check_arguments(InputError, keep_loads=(Flag(), keep_loads))
    execution, changed = read_options(recommend, options, config)
    subject, imported = subject_of(page)
    resolved = resolve_schemes(
        add_schedulers(schemes, scheduler, signals, client=client, server=server)
    )
    base = baseline_of(baseline, resolved)
    compared = resolved if base in resolved else [*resolved, base]
    common: dict[str, Any] = {"schemes": compared, "baseline": base, "config": changed}
    execution_options = vars(execution)
    return Recommendation(
        page=subject,
        imported=imported,
        found=search(subject, networks=networks, **race_options, **common, **execution_options),
        comparison=compare(
            subject,
            send_buffers_kb=[changed.send_buffer_kb],
            keep_loads=keep_loads,
            **common,
            **(execution_options | {"progress": False}),
        ),
    )


def subject_of(page: PageLike | ImportedPage) -> tuple[Page, ImportedPage | None]:
    """Return the page and, if it is from a recording, the report of the import."""
    if isinstance(page, Page):
        return page, None
    if isinstance(page, ImportedPage):
        return page.page, page
    check_arguments(InputError, page=(PATH, page))
    return read_subject(page)
