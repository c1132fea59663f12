"""Reports: loads, studies and logs as one file of HTML, for people who were not there."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
