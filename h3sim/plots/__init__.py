"""Figures of loads and of studies: who was sent when, what that did. Loads matplotlib."""

from h3sim.plots.load_plots import LoadPlots
from h3sim.plots.study_plots import StudyPlots

__all__ = ["LoadPlots", "StudyPlots"]
