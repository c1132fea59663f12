"""The public names of `h3sim.plots`, each loaded when it is first used."""

from h3sim.plots.files import alt_text as alt_text
from h3sim.plots.load_plots import LoadPlots as LoadPlots
from h3sim.plots.log_plots import LogPlots as LogPlots
from h3sim.plots.page_plots import PagePlots as PagePlots
from h3sim.plots.regret_plots import RegretPlots as RegretPlots
from h3sim.plots.study_plots import StudyPlots as StudyPlots

__all__: list[str]
