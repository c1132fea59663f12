"""Congestion control: how much may be in flight, and how fast it leaves."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.transport.congestion.bbr import BbrController, BbrState
    from h3sim.transport.congestion.constant import ConstantRateController
    from h3sim.transport.congestion.controller import CongestionController
    from h3sim.transport.congestion.cubic import CubicController
    from h3sim.transport.congestion.hystart import HyStart
    from h3sim.transport.congestion.quicly import QuiclyCubicController, QuiclyRenoController
    from h3sim.transport.congestion.registry import (
        controller_names,
        is_controller,
        make_controller,
    )
    from h3sim.transport.congestion.reno import NewRenoController
    from h3sim.transport.congestion.settings import ControllerSettings

__all__ = [
    "BbrController",
    "BbrState",
    "CongestionController",
    "ConstantRateController",
    "ControllerSettings",
    "CubicController",
    "HyStart",
    "NewRenoController",
    "QuiclyCubicController",
    "QuiclyRenoController",
    "controller_names",
    "is_controller",
    "make_controller",
]

__getattr__, __dir__ = attach(
    __name__,
    bbr="BbrController BbrState",
    constant="ConstantRateController",
    controller="CongestionController",
    cubic="CubicController",
    hystart="HyStart",
    quicly="QuiclyCubicController QuiclyRenoController",
    registry="controller_names is_controller make_controller",
    reno="NewRenoController",
    settings="ControllerSettings",
)
