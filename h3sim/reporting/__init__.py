"""Reports: loads, studies and logs as one file of HTML, for people who were not there."""

from h3sim.reporting.document import Report
from h3sim.reporting.making import report

__all__ = ["Report", "report"]
