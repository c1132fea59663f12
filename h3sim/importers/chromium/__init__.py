"""The recorder: loads pages in an installed Chromium and records resources, times and causes."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
