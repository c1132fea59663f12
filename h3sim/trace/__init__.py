"""What happened in a load: flat rows, in the order in which they happened."""

from h3sim.trace.activity import Activity, Work
from h3sim.trace.delivery import (
    ConnectionOrder,
    DeliveryTimes,
    Receiver,
    RecordOrder,
    StreamOrder,
)
from h3sim.trace.in_order import delivered_in_one_order, delivered_per_stream, with_delivery
from h3sim.trace.merged import in_order_requested, merged_trace
from h3sim.trace.model import (
    ConnectionPacket,
    Delivery,
    Packet,
    RecoveryRow,
    Request,
    SignalSent,
    Trace,
    WireRow,
)
from h3sim.trace.packet_rows import PacketColumns, PacketRow, PacketRows, SentRow, rows_of
from h3sim.trace.recorder import RowRecorder, SteadyRecorder
from h3sim.trace.rows import Rows

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
    "WireRow",
    "Work",
    "delivered_in_one_order",
    "delivered_per_stream",
    "in_order_requested",
    "merged_trace",
    "rows_of",
    "with_delivery",
]
