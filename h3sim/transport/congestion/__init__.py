"""Congestion control: how much may be in flight, and how fast it leaves.

Begin with `controller.py`, the contract, and `loss_based.py`.
"""

from h3sim.transport.congestion.bbr import BbrController
from h3sim.transport.congestion.bbr1 import Bbr1Controller, Bbr1State
from h3sim.transport.congestion.bbr_output import BbrState
from h3sim.transport.congestion.controller import CongestionController
from h3sim.transport.congestion.loss_based import (
    ConstantRateController,
    CubicController,
    NewRenoController,
)
from h3sim.transport.congestion.quicly import QuiclyCubicController, QuiclyRenoController
from h3sim.transport.congestion.registry import (
    ControllerSettings,
    controller_named,
    controller_names,
    is_controller,
    make_controller,
    responds_to_ecn,
)
from h3sim.transport.congestion.slow_start import HyStart

__all__ = [
    "Bbr1Controller",
    "Bbr1State",
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
    "controller_named",
    "controller_names",
    "is_controller",
    "make_controller",
    "responds_to_ecn",
]
