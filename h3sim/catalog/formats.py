"""File formats by name."""

from __future__ import annotations

from typing import Any

from h3sim.page import schema
from h3sim.page.model import FORMAT as PAGE
from h3sim.schema.output import schema_of
from h3sim.schemes import Client, Scheme, Server
from h3sim.schemes.halves import CLIENT, SERVER
from h3sim.schemes.model import FORMAT as SCHEME
from h3sim.transport import Network, TransportProfile
from h3sim.transport.network import FORMAT as NETWORK
from h3sim.transport.profile import FORMAT as PROFILE


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each format; those of TOML files apply to the parsed document.

    They are generated from the declarations of the files. Rules between values are checked only
    when a file is read.

    >>> [*schemas()]  # doctest: +NORMALIZE_WHITESPACE
    ['h3sim-page/1', 'h3sim-scheme/1', 'h3sim-client/1', 'h3sim-server/1', 'h3sim-network/1',
    'h3sim-profile/1']
    """
    return {
        PAGE: schema(),
        SCHEME: _with_named_halves(schema_of(Scheme, SCHEME, title="A scheme for h3sim")),
        CLIENT: schema_of(Client, CLIENT, title="A client for h3sim"),
        SERVER: schema_of(Server, SERVER, title="A server for h3sim"),
        NETWORK: schema_of(Network, NETWORK, title="A network for h3sim"),
        PROFILE: schema_of(TransportProfile, PROFILE, title="A transport profile for h3sim"),
    }


_HALVES = {
    "client": {"type": "string", "description": "the client whose classes and signals it has"},
    "server": {"type": "string", "description": "the server whose mechanism it has"},
}
_KEYS_OF_HALVES = {"signalling": "client", "classes": "client", "mechanism": "server"}
"""The keys that a scheme file needs where it does not name that half."""


def _with_named_halves(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of scheme files, in which a name may replace the keys of a half."""
    schema["properties"] |= _HALVES
    schema["required"] = [key for key in schema["required"] if key not in _KEYS_OF_HALVES]
    schema["allOf"] = [
        {"anyOf": [{"required": [key]}, {"required": [half]}]}
        for key, half in _KEYS_OF_HALVES.items()
    ]
    return schema
