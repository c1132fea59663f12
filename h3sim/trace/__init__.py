"""Traces: flat rows of the events of a load, in order.

It may import signals, values and schema only. Begin with `model.py` (the rows), then `delivery.py`
(which bytes an application gets, and when).
"""

from h3sim.trace.delivery import (
    ConnectionOrder,
    DeliveryTimes,
    Receiver,
    RecordOrder,
    StreamOrder,
)
from h3sim.trace.delivery_reconstruction import (
    delivered_in_one_order,
    delivered_per_stream,
    with_delivery,
)
from h3sim.trace.model import (
    Activity,
    ConnectionPacket,
    Delivery,
    Packet,
    RecoveryRow,
    Request,
    SignalSent,
    Trace,
    UplinkCount,
    WireRow,
    Work,
    in_order_requested,
    merged_trace,
)
from h3sim.trace.packets import (
    PacketColumns,
    PacketRow,
    PacketRows,
    RowRecorder,
    SentRow,
    SteadyRecorder,
    rows_of,
)
from h3sim.values.table import Rows

__all__ = [
    "Activity",
    "ConnectionOrder",
    "ConnectionPacket",
    "Delivery",
    "DeliveryTimes",
    "Packet",
    "PacketColumns",
    "PacketRow",
    "PacketRows",
    "Receiver",
    "RecordOrder",
    "RecoveryRow",
    "Request",
    "RowRecorder",
    "Rows",
    "SentRow",
    "SignalSent",
    "SteadyRecorder",
    "StreamOrder",
    "Trace",
    "UplinkCount",
    "WireRow",
    "Work",
    "delivered_in_one_order",
    "delivered_per_stream",
    "in_order_requested",
    "merged_trace",
    "rows_of",
    "with_delivery",
]
