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
    scheme_set,
)

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
    "scheme_set",
]
