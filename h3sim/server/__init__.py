"""The server: scheduler and send buffer put together."""

from h3sim.server.server import RETENTION_NS, Retransmit, Server

__all__ = ["RETENTION_NS", "Retransmit", "Server"]
