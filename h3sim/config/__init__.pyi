"""The public names of `h3sim.config`, each loaded when it is first used."""

from h3sim.config.load_config import LoadConfig as LoadConfig

__all__: list[str]
