"""Digests of the settings that have rules of their own, for cache keys and for rows.

Rows have only the names of networks, transport profiles, controllers, header codecs and schemes,
and their most important values. By these digests, rows of joined studies show whether two of one
name are the same (`h3sim.study.pairing`).
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from h3sim.browser import BrowserModel
from h3sim.schema.fields import write_table
from h3sim.schemes import CustomScheduler, Scheme
from h3sim.transport import Network, TransportProfile, network_to_dict, profile_to_dict
from h3sim.transport.congestion.registry import BUILT_IN, REGISTRY, controller_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from h3sim.headers import HeaderCompression
    from h3sim.load.network_path import ResolvedPath
    from h3sim.study.code_identity import CodeDigests


KEY_BYTES = 16
"""Length of the key of a load, without collisions in practice."""
_COLUMN_BYTES = 6
"""Length of a digest in a row, where it distinguishes a few versions of one name."""
_DESCRIPTION_KEYS = ("title", "source", "notes", "caveat")
"""Keys of networks, profiles and schemes that affect no load."""
_SEPARATE_NETWORK_KEYS = ("name", "profile", "cc")
"""Keys of a network that do not describe its links. Its profile and controller affect a load only
through the resolved transport profile."""
_MAX_CACHED_NETWORKS = 256


def digest(*parts: str) -> bytes:
    """Return a digest of these texts in this order."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=KEY_BYTES).digest()


def setting_digests(
    path: ResolvedPath, codec: HeaderCompression | None, codes: CodeDigests
) -> dict[str, str | None]:
    """Return the digests that the row of a load has, by column; None for what does not apply.

    `network_digest` and `profile_digest` are those of the network and the transport profile as
    named, since options that change them have columns; `path_digest` is that of the network with
    these changes, which may also change the uplink. `controller_digest` identifies the code of a
    congestion controller that is not h3sim's.
    """
    has_ends = path.network.down is not None and path.profile is not None
    profile = path.profile if has_ends else None
    named_profile = path.named_profile if has_ends else None
    code = None if profile is None else _controller_code(profile, codes)
    return {
        "network_digest": _network_digest(path.named),
        "path_digest": _network_digest(path.network),
        "profile_digest": None if named_profile is None else _column(_profile_text(named_profile)),
        "controller_digest": None if code is None else _column(code),
        "codec_digest": None if codec is None else _column(repr(codec)),
    }


def scheme_column(scheme: Scheme, codes: CodeDigests) -> str:
    """Return the digest of a scheme as given, without the changes of options, for its rows."""
    return scheme_digest(scheme, codes)[:_COLUMN_BYTES].hex()


def scheme_digest(scheme: Scheme, codes: CodeDigests) -> bytes:
    """Return a digest of a scheme, with the code of a scheduler that is not h3sim's."""
    mechanism = scheme.mechanism
    code = []
    if isinstance(mechanism, CustomScheduler):
        code = [codes.digest_of(mechanism.factory, scheme.name)]
    return digest(json.dumps([_rules(write_table(scheme)), *code]))


def process_name(process: Callable[..., Any]) -> str:
    """Return the name of a function that makes a process."""
    return str(getattr(process, "__name__", type(process).__name__))


def processes_column(processes: Iterable[Callable[..., Any]], codes: CodeDigests) -> str:
    """Return the value of the column of the processes beside a load: names with digests of code."""
    names = (
        f"{process_name(each)} {codes.digest_of(each, process_name(each))[: 2 * _COLUMN_BYTES]}"
        for each in processes
    )
    return ", ".join(names)


def network_text(network: Network) -> str:
    """Return what describes the links of a network, as text."""
    return json.dumps(_rules(network_to_dict(network), without=_SEPARATE_NETWORK_KEYS))


def settings_text(options: Mapping[str, Any], codes: CodeDigests) -> str:
    """Return options of a load as text, sorted by name."""
    return json.dumps({name: _plain_value(value, codes) for name, value in sorted(options.items())})


def plain_text(value: Any, codes: CodeDigests) -> str:
    """Return a value of a configuration as text, with the digest of users' code."""
    return json.dumps(_plain_value(value, codes))


def _plain_value(value: Any, codes: CodeDigests) -> Any:
    """Return a value of a configuration as JSON can hold it."""
    if isinstance(value, Network):
        return network_to_dict(value)
    if isinstance(value, TransportProfile):
        code = _controller_code(value, codes)
        return [profile_to_dict(value), *([] if code is None else [code])]
    if isinstance(value, BrowserModel):
        return repr(value)
    if callable(value):
        return codes.digest_of(value, controller_named(value)[0])
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _controller_code(profile: TransportProfile, codes: CodeDigests) -> str | None:
    """Return the digest of the code of a profile's controller; None if it is h3sim's."""
    controller = profile.controller
    if controller is None and profile.cc not in BUILT_IN:
        controller = REGISTRY.named(profile.cc)
    return None if controller is None else codes.digest_of(controller, profile.cc)


def _profile_text(profile: TransportProfile) -> str:
    return json.dumps(_rules(profile_to_dict(profile), without=("name",)))


def _rules(document: Mapping[str, Any], *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return a document without the keys that affect no load, and *without* others."""
    ignored = {*_DESCRIPTION_KEYS, *without}
    return {key: document[key] for key in document if key not in ignored}


@lru_cache(maxsize=_MAX_CACHED_NETWORKS)  # networks may have traces of many packets
def _network_digest(network: Network) -> str:
    return _column(network_text(network))


def _column(text: str) -> str:
    return digest(text)[:_COLUMN_BYTES].hex()
