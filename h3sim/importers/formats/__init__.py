"""Readers of recordings, one for each family of dialects, and of static sites."""

from h3sim.importers.formats.fact_table import facts_from_dict

__all__ = [
    "facts_from_dict",
]
