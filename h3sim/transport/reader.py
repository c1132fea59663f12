"""Network files (`h3sim-network/1`), and the traces that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.documents import parse_toml, read_text, shown
from h3sim.documents.declared import read_document, write_table
from h3sim.documents.refused import RefusedError
from h3sim.errors import NetworkError
from h3sim.transport.network import Network

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMAT", "network_from_dict", "network_from_toml", "network_to_dict", "read_network"]

FORMAT = "h3sim-network/1"
_MAX_DIGITS = 15


def read_network(path: str | Path) -> Network:
    """Return the network that the file at *path* describes.

    Raises:
        NetworkError: if the file cannot be read, or listing every mistake in it.
    """
    text = read_text(path, NetworkError)
    return network_from_toml(text, source=str(path), folder=Path(path).parent)


def network_from_toml(text: str, *, source: str, folder: Path | None = None) -> Network:
    """Return the network that *text* describes; *folder* and errors as `network_from_dict`."""
    document = parse_toml(text, NetworkError, source=source)
    return network_from_dict(document, source=source, folder=folder)


def network_from_dict(
    document: Mapping[str, Any], *, source: str = "network", folder: Path | None = None
) -> Network:
    """Return the network that *document*, a parsed network file, describes.

    The files that it names are looked for in *folder*, or where the process stands.

    Raises:
        NetworkError: listing every mistake in it.
    """
    tables: Any = document
    if isinstance(document, dict):
        tables = {key: _with_trace(entry, folder or Path()) for key, entry in document.items()}
    return read_document(Network, tables, NetworkError, source=source, format_=FORMAT)


def network_to_dict(network: Network) -> dict[str, Any]:
    """Return *network* as a network file has it; reading it back gives an equal network.

    >>> network = network_from_dict(
    ...     {"format": "h3sim-network/1", "name": "x", "down": {"rate_mbps": 2, "loss": 0.02}}
    ... )
    >>> network_to_dict(network)["down"]
    {'rate_mbps': 2.0, 'loss': 0.02}
    """
    return {"format": FORMAT, **write_table(network)}


def _with_trace(entry: Any, folder: Path) -> Any:
    """Return a table with a trace in place of the path of one."""
    if isinstance(entry, dict) and isinstance(entry.get("mahimahi"), str):
        return {**entry, "mahimahi": _trace(folder / entry["mahimahi"])}
    return entry


def _trace(path: Path) -> list[int] | RefusedError:
    """Return the milliseconds of a Mahimahi trace, or what is wrong with the file."""
    try:
        lines = read_text(path, NetworkError).splitlines()
    except NetworkError as error:
        return RefusedError(str(error))
    found: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not (line.isascii() and line.isdigit() and len(line) <= _MAX_DIGITS):
            message = f"{path}, line {number}: must be whole milliseconds, is {shown(line)}"
            return RefusedError(message)
        found.append(int(line))
    return found
