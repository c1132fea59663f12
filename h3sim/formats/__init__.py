"""Formats of others: logs out and in, fact tables of recorded pages in."""

from h3sim.formats.facts import FactsReport, ReadFacts, facts_from_dict, read_facts
from h3sim.formats.qlog import (
    DEFAULT_REQUEST_BYTES,
    LogError,
    LoggedResource,
    MeasuredLog,
    MeasuredResource,
    check_qlog_path,
    qlog_document,
    read_qlog,
    write_qlog,
)
from h3sim.formats.qlog import (
    DIALECTS as QLOG_DIALECTS,
)

__all__ = [
    "DEFAULT_REQUEST_BYTES",
    "QLOG_DIALECTS",
    "FactsReport",
    "LogError",
    "LoggedResource",
    "MeasuredLog",
    "MeasuredResource",
    "ReadFacts",
    "check_qlog_path",
    "facts_from_dict",
    "qlog_document",
    "read_facts",
    "read_qlog",
    "write_qlog",
]
