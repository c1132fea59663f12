"""The scheduler behind a log: its picks are compared with those of every known mechanism.

It may import schedulers, qlog and importers, and needs no load. Begin with `identification.py`,
which lists the mechanisms and judges them; `send_order.py` reads the picks of a log.
"""

from h3sim.identification.identification import Identification, identify

__all__ = [
    "Identification",
    "identify",
]
