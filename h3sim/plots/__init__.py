"""Figures of loads: who was sent when, and what that did to the page. Loads matplotlib."""

from h3sim.plots.load_plots import LoadPlots

__all__ = ["LoadPlots"]
