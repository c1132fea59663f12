"""Replications of the papers: experiments, comparisons with published numbers, and verdicts."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
