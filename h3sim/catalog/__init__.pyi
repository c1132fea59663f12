"""The public names of `h3sim.catalog`, each loaded when it is first used."""

from h3sim.catalog.catalog import (
    is_recording as is_recording,
    list_networks as list_networks,
    list_pages as list_pages,
    list_profiles as list_profiles,
    list_schemes as list_schemes,
    load_network as load_network,
    load_page as load_page,
    load_profile as load_profile,
    load_scheme as load_scheme,
    page_set as page_set,
    page_set_names as page_set_names,
    scheme_set as scheme_set,
    scheme_set_names as scheme_set_names,
    text_of as text_of,
)
from h3sim.catalog.formats import schemas as schemas
from h3sim.catalog.summaries import page_summaries as page_summaries

__all__: list[str]
