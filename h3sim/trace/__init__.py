"""What happened in a load: flat rows, in the order in which they happened."""

from h3sim.trace.model import Delivery, Packet, Request, SignalSent, Trace
from h3sim.trace.rows import Rows

__all__ = ["Delivery", "Packet", "Request", "Rows", "SignalSent", "Trace"]
