"""What a worker does for a sweep: loads a page as a cell says, and returns the row of the load."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from h3sim import engine
from h3sim._version import __version__
from h3sim.compression.exchanges import HeaderLists
from h3sim.results.figures import columns_of
from h3sim.study.config import LoadConfig, config_for
from h3sim.study.run import resolve_config
from h3sim.study.work import StudyWork

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from h3sim.results import Load
    from h3sim.schemes import Scheme
    from h3sim.study.design import Cell, Design

__all__ = ["LoadWork", "row_of"]


@dataclass(kw_only=True)
class LoadWork(StudyWork):
    """The loads of a sweep."""

    design: Design
    has_resources: bool = False
    stand_in: Callable[[Cell], dict[str, Any]] | None = None
    """Takes the place of loading, for tests of the machinery."""
    _resolved: tuple[tuple[int, int], LoadConfig | Exception] | None = field(
        default=None, repr=False
    )

    def row(self, index: int) -> tuple[str, str | None]:
        """Return the row of the load at *index*, and those of its resources if they are kept."""
        if self.stand_in is not None:
            return json.dumps(self.stand_in(self.design[index])), None
        page, setting, scheme, seed = self.design.indices(index)
        config, seeded = self._config(setting, page), self.design.seeds[seed]
        subject, scheme_of = self.design.pages[page], self.design.schemes[scheme]
        named = _as_named(self.design.settings[setting], config)
        if isinstance(subject, HeaderLists):
            return self._of_lists(subject, scheme_of, config, named, seeded)
        spec = resolve_config(subject, scheme_of, config)
        load = engine.simulate(replace(spec, seed=seeded))
        row = row_of(load, metrics=self.design.metrics) | named
        rows = [timing._asdict() for timing in load.timings] if self.has_resources else None
        text = None if rows is None else json.dumps(rows, allow_nan=False)
        return json.dumps(row, allow_nan=False), text

    def _of_lists(
        self,
        lists: HeaderLists,
        scheme: Scheme,
        config: LoadConfig,
        named: dict[str, Any],
        seed: int,
    ) -> tuple[str, str | None]:
        from h3sim.study.header_loads import header_row  # on use: most studies load pages

        row, waited = header_row(lists, scheme, config, named, seed=seed)
        text = json.dumps(waited, allow_nan=False) if self.has_resources else None
        return json.dumps(row, allow_nan=False), text

    def _config(self, index: int, page: int) -> LoadConfig:
        """Return the setting at *index* over the page's network; neighbours share one."""
        # Cells of a batch are neighbours: seeds and schemes go faster than settings.
        if self._resolved is None or self._resolved[0] != (index, page):
            found: LoadConfig | Exception
            try:
                given = LoadConfig(**self.design.settings[index])
                found = config_for(self.design.pages[page], given)
            except Exception as caught:  # noqa: BLE001 - told of each cell that has it
                # Kept like an answer: the neighbours have the same error, and need not look for it.
                found = caught
            self._resolved = ((index, page), found)
        known = self._resolved[1]
        if isinstance(known, Exception):
            raise known
        return known


def _as_named(given: dict[str, Any], setting: LoadConfig) -> dict[str, Any]:
    """Return the columns that say what was asked for, so that rows are found by it again."""
    network = given.get("network", setting.network)
    named = {"network": getattr(network, "name", str(network))}
    # A load has no codec where "none" was asked for, and an axis of codecs needs a name for that.
    codec = setting.header_compression
    if codec is not None:
        named["header_compression"] = getattr(codec, "name", codec)
    return named


def row_of(load: Load, *, metrics: Collection[str] = ()) -> dict[str, Any]:
    """Return the row of *load*: what it was run with, column by column, and its figures.

    Of those that are had on demand, those of *metrics*.
    """
    return {
        "page": load.page.name,
        "page_digest": load.page.digest,
        "page_bytes": load.page.total_bytes,
        "page_atf_bytes": sum(r.size_bytes for r in load.page.resources if r.above_the_fold),
        "scheme": load.scheme.name,
        **load.configuration,
        "version": __version__,
        **columns_of(load, asked=metrics),
    }
