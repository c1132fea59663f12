"""The catalog: shipped pages, networks, schemes and profiles by name, and files by path.

It may import what it returns, and no engine. Begin with `catalog.py`.
"""

from h3sim.catalog.catalog import (
    is_recording,
    list_networks,
    list_pages,
    list_profiles,
    list_schemes,
    load_network,
    load_page,
    load_profile,
    load_scheme,
    page_set,
    page_set_names,
    scheme_set,
    scheme_set_names,
    text_of,
)
from h3sim.catalog.formats import schemas
from h3sim.catalog.resources import page_summaries

__all__ = [
    "is_recording",
    "list_networks",
    "list_pages",
    "list_profiles",
    "list_schemes",
    "load_network",
    "load_page",
    "load_profile",
    "load_scheme",
    "page_set",
    "page_set_names",
    "page_summaries",
    "schemas",
    "scheme_set",
    "scheme_set_names",
    "text_of",
]
