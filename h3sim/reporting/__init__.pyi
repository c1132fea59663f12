"""The public names of `h3sim.reporting`, each loaded when it is first used."""

from .build import report as report
from .document import Report as Report
from .load_plots import LoadPlots as LoadPlots
from .output import alt_text as alt_text
from .page_plots import PagePlots as PagePlots
from .qlog_plots import IdentificationPlots as IdentificationPlots
from .qlog_plots import LogPlots as LogPlots
from .study_plots import OptimalityPlots as OptimalityPlots
from .study_plots import StudyPlots as StudyPlots

__all__: list[str]
