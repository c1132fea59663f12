"""Importers: pages from recordings of page loads, static sites and an installed Chromium."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
