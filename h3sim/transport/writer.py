"""Writes transport profiles as documents; reading them back gives equal values."""

from __future__ import annotations

import enum
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from h3sim.transport.profile import FORMAT as PROFILE_FORMAT
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.transport.profile import TransportProfile

__all__ = ["profile_to_dict"]


def profile_to_dict(profile: TransportProfile) -> dict[str, Any]:
    """Return *profile* as a profile file has it.

    >>> from h3sim.transport import TransportProfile
    >>> profile_to_dict(TransportProfile(name="x"))["quic"]["max_ack_delay_ms"]
    25.0
    """
    document: dict[str, Any] = {"format": PROFILE_FORMAT}
    for field in fields(profile):
        value = getattr(profile, field.name)
        if hasattr(value, "__dataclass_fields__"):
            document[field.name] = _settings(value)
        elif value is not None:
            document[field.name] = _plain(value)
    return document


def _settings(settings: Any) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name.endswith("_ns"):
            table[field.name.removesuffix("_ns") + "_ms"] = to_ms(value)
        else:
            table[field.name] = "none" if value is None else _plain(value)
    return table


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value
