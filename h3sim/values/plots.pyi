"""Types of the attribute `plot` of pages, loads and results, which are above all that have it.

Only type checkers read it: nothing below `h3sim.reporting` imports it when h3sim runs.
"""

from h3sim.reporting import IdentificationPlots as IdentificationPlots
from h3sim.reporting import LoadPlots as LoadPlots
from h3sim.reporting import LogPlots as LogPlots
from h3sim.reporting import OptimalityPlots as OptimalityPlots
from h3sim.reporting import PagePlots as PagePlots
from h3sim.reporting import StudyPlots as StudyPlots
