"""The public names of `h3sim.transport.congestion`, each loaded when it is first used."""

from h3sim.transport.congestion.bbr import (
    BbrController as BbrController,
    BbrState as BbrState,
)
from h3sim.transport.congestion.constant import ConstantRateController as ConstantRateController
from h3sim.transport.congestion.controller import CongestionController as CongestionController
from h3sim.transport.congestion.cubic import CubicController as CubicController
from h3sim.transport.congestion.hystart import HyStart as HyStart
from h3sim.transport.congestion.quicly import (
    QuiclyCubicController as QuiclyCubicController,
    QuiclyRenoController as QuiclyRenoController,
)
from h3sim.transport.congestion.registry import (
    controller_names as controller_names,
    is_controller as is_controller,
    make_controller as make_controller,
)
from h3sim.transport.congestion.reno import NewRenoController as NewRenoController
from h3sim.transport.congestion.settings import ControllerSettings as ControllerSettings

__all__: list[str]
