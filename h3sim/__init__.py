"""Replays web pages through every HTTP/2 and HTTP/3 prioritization scheme, without sockets.

>>> import h3sim
>>> load = h3sim.simulate("davies-meenan", scheme="bucket-html")
>>> load.byte_index("atf") < h3sim.simulate("davies-meenan", scheme="rr").byte_index("atf")
True

Importing this loads SimPy and the standard library only; figures and tables load what they need
when they are made.
"""

from h3sim._version import __version__
from h3sim.catalog import (
    list_networks,
    list_pages,
    list_profiles,
    list_schemes,
    load_network,
    load_page,
    load_profile,
    load_scheme,
)
from h3sim.engine import Load
from h3sim.errors import H3SimError
from h3sim.page import Page, Resource, read_page
from h3sim.schemes import Scheme, read_scheme
from h3sim.study import Comparison, Setting, compare, simulate
from h3sim.transport import Network, read_network

__all__ = [
    "Comparison",
    "H3SimError",
    "Load",
    "Network",
    "Page",
    "Resource",
    "Scheme",
    "Setting",
    "__version__",
    "compare",
    "list_networks",
    "list_pages",
    "list_profiles",
    "list_schemes",
    "load_network",
    "load_page",
    "load_profile",
    "load_scheme",
    "read_network",
    "read_page",
    "read_scheme",
    "simulate",
]
