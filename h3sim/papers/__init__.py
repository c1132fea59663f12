"""What the papers found: their experiments again, figures beside theirs, and verdicts."""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
