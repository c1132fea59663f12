"""The public names of `h3sim.qlog`, each loaded when it is first used."""

from h3sim.qlog.reader import (
    MeasuredLog as MeasuredLog,
    MeasuredResource as MeasuredResource,
    read_qlog as read_qlog,
)
from h3sim.qlog.source import LogError as LogError
from h3sim.qlog.writer import (
    DIALECTS as DIALECTS,
    LoggedResource as LoggedResource,
    check_qlog_path as check_qlog_path,
    qlog_document as qlog_document,
    write_qlog as write_qlog,
)

__all__: list[str]
