"""The result of a load: its figures, and the same as a document."""

from h3sim.results.load import Hol, Load, PacketCount, ResourceTiming

__all__ = ["Hol", "Load", "PacketCount", "ResourceTiming"]
