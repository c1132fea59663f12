"""Figures, animations and self-contained HTML reports of loads, studies and logs.

The only room that loads matplotlib; it may import loads, studies and advice. Begin with
`load_plots.py` (the methods of `load.plot`) and `build.py` (reports).
"""

from h3sim.reporting.build import report
from h3sim.reporting.document import Report
from h3sim.reporting.load_plots import LoadPlots
from h3sim.reporting.output import alt_text
from h3sim.reporting.page_plots import PagePlots
from h3sim.reporting.qlog_plots import IdentificationPlots, LogPlots
from h3sim.reporting.study_plots import OptimalityPlots, StudyPlots

__all__ = [
    "IdentificationPlots",
    "LoadPlots",
    "LogPlots",
    "OptimalityPlots",
    "PagePlots",
    "Report",
    "StudyPlots",
    "alt_text",
    "report",
]
