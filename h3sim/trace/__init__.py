"""What happened in a load: flat rows, in the order in which they happened."""

from h3sim.trace.activity import Activity, Work
from h3sim.trace.delivery import (
    ConnectionOrder,
    DeliveryTimes,
    Receiver,
    RecordOrder,
    StreamOrder,
    rows_of,
)
from h3sim.trace.in_order import delivered_in_one_order, delivered_per_stream, with_delivery
from h3sim.trace.model import Delivery, Packet, RecoveryRow, Request, SignalSent, Trace, WireRow
from h3sim.trace.rows import Rows

__all__ = [
    "Activity",
    "ConnectionOrder",
    "Delivery",
    "DeliveryTimes",
    "Packet",
    "Receiver",
    "RecordOrder",
    "RecoveryRow",
    "Request",
    "Rows",
    "SignalSent",
    "StreamOrder",
    "Trace",
    "WireRow",
    "Work",
    "delivered_in_one_order",
    "delivered_per_stream",
    "rows_of",
    "with_delivery",
]
