"""The public names of `h3sim.catalog`, each loaded when it is first used."""

from h3sim.catalog.catalog import is_recording as is_recording
from h3sim.catalog.catalog import list_networks as list_networks
from h3sim.catalog.catalog import list_pages as list_pages
from h3sim.catalog.catalog import list_profiles as list_profiles
from h3sim.catalog.catalog import list_schemes as list_schemes
from h3sim.catalog.catalog import load_network as load_network
from h3sim.catalog.catalog import load_page as load_page
from h3sim.catalog.catalog import load_profile as load_profile
from h3sim.catalog.catalog import load_scheme as load_scheme
from h3sim.catalog.catalog import page_set as page_set
from h3sim.catalog.catalog import page_set_names as page_set_names
from h3sim.catalog.catalog import scheme_set as scheme_set
from h3sim.catalog.catalog import scheme_set_names as scheme_set_names
from h3sim.catalog.catalog import text_of as text_of
from h3sim.catalog.formats import schemas as schemas
from h3sim.catalog.resources import page_summaries as page_summaries

__all__: list[str]
