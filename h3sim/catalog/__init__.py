"""The catalog: what is shipped, by name, and what people bring, by path."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
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
    from h3sim.catalog.summaries import page_summaries

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

__getattr__, __dir__ = attach(
    __name__,
    catalog="is_recording list_networks list_pages list_profiles list_schemes load_network"
    " load_page load_profile load_scheme page_set page_set_names scheme_set scheme_set_names"
    " text_of",
    formats="schemas",
    summaries="page_summaries",
)
