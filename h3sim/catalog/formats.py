"""The formats of files, each by its name."""

from __future__ import annotations

from typing import Any

from h3sim.documents.schema import schema_of
from h3sim.page import schema
from h3sim.page.model import FORMAT as PAGE
from h3sim.schemes import Scheme
from h3sim.schemes.reader import FORMAT as SCHEME
from h3sim.transport import Network, TransportProfile
from h3sim.transport.profile import FORMAT as PROFILE
from h3sim.transport.reader import FORMAT as NETWORK

__all__ = ["schemas"]


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each format; those of TOML files hold for the parsed document.

    They come of the declarations that files are read by. What must hold between values is checked
    when a file is read.

    >>> list(schemas())
    ['h3sim-page/1', 'h3sim-scheme/1', 'h3sim-network/1', 'h3sim-profile/1']
    """
    return {
        PAGE: schema(),
        SCHEME: schema_of(Scheme, SCHEME, title="A scheme for h3sim"),
        NETWORK: schema_of(Network, NETWORK, title="A network for h3sim"),
        PROFILE: schema_of(TransportProfile, PROFILE, title="A transport profile for h3sim"),
    }
