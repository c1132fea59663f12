"""Figures of loads and of studies: who was sent when, what that did.

What draws loads matplotlib; `lanes`, `paints`, `palette` and `window` do without it, for pictures
that something else draws.
"""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.plots.load_plots import LoadPlots
    from h3sim.plots.regret_plots import RegretPlots
    from h3sim.plots.study_plots import StudyPlots

__all__ = ["LoadPlots", "RegretPlots", "StudyPlots"]

__getattr__, __dir__ = attach(
    __name__,
    load_plots="LoadPlots",
    regret_plots="RegretPlots",
    study_plots="StudyPlots",
)
