"""What happened in a load: flat rows, in the order in which they happened."""

from h3sim.trace.activity import Activity, Work
from h3sim.trace.model import Delivery, Packet, RecoveryRow, Request, SignalSent, Trace, WireRow
from h3sim.trace.rows import Rows

__all__ = [
    "Activity",
    "Delivery",
    "Packet",
    "RecoveryRow",
    "Request",
    "Rows",
    "SignalSent",
    "Trace",
    "WireRow",
    "Work",
]
