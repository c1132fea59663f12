"""The public names of `h3sim.transport.congestion`, each loaded when it is first used."""

from h3sim.transport.congestion.bbr import BbrController as BbrController
from h3sim.transport.congestion.bbr import BbrState as BbrState
from h3sim.transport.congestion.bbr1 import Bbr1Controller as Bbr1Controller
from h3sim.transport.congestion.bbr1 import Bbr1State as Bbr1State
from h3sim.transport.congestion.controller import CongestionController as CongestionController
from h3sim.transport.congestion.loss_based import ConstantRateController as ConstantRateController
from h3sim.transport.congestion.loss_based import CubicController as CubicController
from h3sim.transport.congestion.slow_start import HyStart as HyStart
from h3sim.transport.congestion.loss_based import NewRenoController as NewRenoController
from h3sim.transport.congestion.quicly import QuiclyCubicController as QuiclyCubicController
from h3sim.transport.congestion.quicly import QuiclyRenoController as QuiclyRenoController
from h3sim.transport.congestion.registry import controller_named as controller_named
from h3sim.transport.congestion.registry import controller_names as controller_names
from h3sim.transport.congestion.registry import is_controller as is_controller
from h3sim.transport.congestion.registry import make_controller as make_controller
from h3sim.transport.congestion.registry import responds_to_ecn as responds_to_ecn
from h3sim.transport.congestion.registry import ControllerSettings as ControllerSettings

__all__: list[str]
