"""The catalog: what is shipped, by name, and what people bring, by path."""

from h3sim.catalog.catalog import (
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

__all__ = [
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
    "schemas",
    "scheme_set",
    "scheme_set_names",
    "text_of",
]
