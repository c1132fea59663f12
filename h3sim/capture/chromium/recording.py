"""Records a page: serves it where it is a folder, loads it in Chromium, makes a page file of it."""

from __future__ import annotations

import datetime
import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from h3sim._version import __version__
from h3sim.capture.chromium.browser import find_chromium, running_chromium
from h3sim.capture.chromium.page_builder import Recorded, recorded_of
from h3sim.capture.chromium.repeat import differences, merged
from h3sim.capture.chromium.visit import Patience, visit
from h3sim.capture.chromium.web_server import COMPRESSIONS, Site, address_of, served
from h3sim.capture.markup.media import HEIGHT_PX, WIDTH_PX
from h3sim.documents import shown_path
from h3sim.documents.arguments import check_arguments
from h3sim.documents.values import Choice, Whole
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from h3sim.page import Page

__all__ = ["PageRecording", "RecordedSource", "record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSource:
    """What is to be recorded: an address, or a file below a folder that is served on this machine.

    Raises:
        InputError: saying what is wrong with it.
    """

    url: str = ""
    root: Path | None = None
    path: str = ""

    @classmethod
    def of(cls, what: str, root: str | None = None) -> RecordedSource:
        """Return the source that a person names: an address, a folder or a file.

        *root* is the folder to serve where that is not the one of the file.
        """
        if urlsplit(what).scheme in ("http", "https"):
            if root is not None:
                raise InputError([Problem(key="--root", message="goes only with a file")])
            return cls(url=what)
        # os.path, unlike pathlib, says no to what cannot be a path at all.
        file = Path(what, "index.html") if os.path.isdir(what) else Path(what)  # noqa: PTH112
        if not os.path.isfile(file):  # noqa: PTH113
            message = "is neither an http(s) address nor an HTML file nor a folder with index.html"
            raise InputError([Problem(key="", message=message)], shown_path(what))
        folder = Path(root) if root is not None else file.parent
        try:
            path = file.resolve().relative_to(folder.resolve())
        except ValueError:
            message = f"{what} does not lie below {root}"
            raise InputError([Problem(key="--root", message=message)]) from None
        return cls(root=folder, path=path.as_posix())

    @property
    def name(self) -> str:
        """What the page is called if nobody says otherwise."""
        if self.root is None:
            return urlsplit(self.url).netloc
        parts = Path(self.path)
        return parts.stem if parts.stem != "index" else (parts.parent.name or "index")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecording:
    """The page, the loads it was taken from, which of them it follows, and where they differ."""

    page: Page
    loads: tuple[Recorded, ...]
    chosen: int
    differences: tuple[str, ...]

    @property
    def load(self) -> Recorded:
        """The load whose graph, sizes and order the page has."""
        return self.loads[self.chosen]


def record(
    source: RecordedSource,
    *,
    name: str = "",
    repeat: int = 1,
    compression: str = "gzip",
    chromium: str | None = None,
    provenance: Mapping[str, str] | None = None,
    patience: Patience | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PageRecording:
    """Return the page at *source*, loaded *repeat* times, each time in a fresh Chromium.

    A folder is served on this machine with *compression* ("gzip", "br", "none"), and no other host
    is contacted. *provenance* is added to what the recording knows of itself: date, tool, notes.

    Raises:
        InputError: for a number of repeats below 1, or an unknown compression.
        MissingExtraError: if a library of the extra `record` is not installed.
        ChromiumError: if there is no Chromium, or the page does not load.
    """
    check_arguments(
        InputError, repeat=(Whole(low=1), repeat), compression=(Choice(COMPRESSIONS), compression)
    )
    program = find_chromium(chromium)
    name = name or source.name
    loads = []
    with ExitStack() as stack:
        url = source.url
        if source.root is not None:
            base = stack.enter_context(served(Site(source.root, compression)))
            url = address_of(base, source.path)
        for done in range(repeat):
            with running_chromium(program, local_only=source.root is not None) as address:
                seen = visit(address, url, patience or Patience())
            shown_url = "" if source.root is not None else url.partition("?")[0]
            loads.append(recorded_of(seen, name, url=shown_url))
            if progress is not None:
                progress(done + 1, repeat)
    page, chosen = merged([load.page for load in loads])
    found = {**_provenance(source, loads[chosen], compression, repeat), **(provenance or {})}
    return PageRecording(
        page=replace(page, provenance=found),
        loads=tuple(loads),
        chosen=chosen,
        differences=tuple(differences([load.page for load in loads], chosen)),
    )


def _provenance(
    source: RecordedSource, load: Recorded, compression: str, repeat: int
) -> dict[str, str]:
    served_with = "" if source.root is None else f", served on the same machine with {compression}"
    screen = f"{WIDTH_PX}x{HEIGHT_PX}"
    times = "" if repeat == 1 else f", times are medians of {repeat} loads"
    return {
        "source": source.path if source.root is not None else source.url.partition("?")[0],
        "recorded": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "tool": f"h3sim {__version__} record, {load.browser}, {screen}{served_with}{times}",
        "hosts": load.page.provenance["hosts"],
        **({"notes": "; ".join(load.notes)} if load.notes else {}),
    }
