"""The catalog: shipped pages, networks, schemes and profiles by name, and files by path.

It may import what it returns, and no engine. Begin with `catalog.py`.
"""

from h3sim.catalog.catalog import (
    DEFAULT_CLIENT,
    DEFAULT_SERVER,
    HalfLike,
    is_recording,
    list_clients,
    list_networks,
    list_pages,
    list_profiles,
    list_schemes,
    list_servers,
    load_client,
    load_network,
    load_page,
    load_profile,
    load_scheme,
    load_server,
    page_set,
    page_set_names,
    pair_names,
    read_scheme,
    scheme_from_toml,
    scheme_set,
    scheme_set_names,
    text_of,
)
from h3sim.catalog.formats import schemas
from h3sim.catalog.resources import page_summaries

__all__ = [
    "DEFAULT_CLIENT",
    "DEFAULT_SERVER",
    "HalfLike",
    "is_recording",
    "list_clients",
    "list_networks",
    "list_pages",
    "list_profiles",
    "list_schemes",
    "list_servers",
    "load_client",
    "load_network",
    "load_page",
    "load_profile",
    "load_scheme",
    "load_server",
    "page_set",
    "page_set_names",
    "page_summaries",
    "pair_names",
    "read_scheme",
    "schemas",
    "scheme_from_toml",
    "scheme_set",
    "scheme_set_names",
    "text_of",
]
