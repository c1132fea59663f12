"""Formats of others: fact tables of recorded pages, recordings and sites."""

from h3sim.formats.facts import FactsReport, ReadFacts, facts_from_dict, read_facts

__all__ = ["FactsReport", "ReadFacts", "facts_from_dict", "read_facts"]
