"""The public names of `h3sim.reporting`, each loaded when it is first used."""

from h3sim.reporting.build import report as report
from h3sim.reporting.document import Report as Report
from h3sim.reporting.load_plots import LoadPlots as LoadPlots
from h3sim.reporting.output import alt_text as alt_text
from h3sim.reporting.page_plots import PagePlots as PagePlots
from h3sim.reporting.qlog_plots import IdentificationPlots as IdentificationPlots
from h3sim.reporting.qlog_plots import LogPlots as LogPlots
from h3sim.reporting.study_plots import OptimalityPlots as OptimalityPlots
from h3sim.reporting.study_plots import StudyPlots as StudyPlots

__all__: list[str]
