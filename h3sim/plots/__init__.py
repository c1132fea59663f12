"""Figures of loads, of pages and of studies: who was sent when, what that did.

What draws loads matplotlib; `lanes`, `paints`, `palette` and `window` do without it, for pictures
that something else draws.
"""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.plots.files import alt_text
    from h3sim.plots.load_plots import LoadPlots
    from h3sim.plots.log_plots import LogPlots
    from h3sim.plots.page_plots import PagePlots
    from h3sim.plots.regret_plots import RegretPlots
    from h3sim.plots.study_plots import StudyPlots

__all__ = ["LoadPlots", "LogPlots", "PagePlots", "RegretPlots", "StudyPlots", "alt_text"]

__getattr__, __dir__ = attach(
    __name__,
    files="alt_text",
    load_plots="LoadPlots",
    log_plots="LogPlots",
    page_plots="PagePlots",
    regret_plots="RegretPlots",
    study_plots="StudyPlots",
)
