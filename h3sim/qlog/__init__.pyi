"""The public names of `h3sim.qlog`, each loaded when it is first used."""

from h3sim.qlog.container import LogError as LogError
from h3sim.qlog.reader import MeasuredLog as MeasuredLog
from h3sim.qlog.reader import MeasuredResource as MeasuredResource
from h3sim.qlog.reader import read_qlog as read_qlog
from h3sim.qlog.timeline import Entry as Entry
from h3sim.qlog.timeline import EntryKind as EntryKind
from h3sim.qlog.timeline import SenderView as SenderView
from h3sim.qlog.timeline import TimelineLog as TimelineLog
from h3sim.qlog.timeline import read_timeline as read_timeline
from h3sim.qlog.writer import DIALECTS as DIALECTS
from h3sim.qlog.writer import LoggedResource as LoggedResource
from h3sim.qlog.writer import check_qlog_path as check_qlog_path
from h3sim.qlog.writer import qlog_document as qlog_document
from h3sim.qlog.writer import write_qlog as write_qlog

__all__: list[str]
