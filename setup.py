"""Compiles the core by mypyc where H3SIM_COMPILE=1 says so; setup.cfg says everything else."""

import configparser
import os
import sys
from pathlib import Path

from setuptools import setup

FOLDER = Path(__file__).resolve().parent


def compiler() -> list[str]:
    """Return what brings mypyc, which is the mypy that checks the types, and SimPy.

    A class whose base mypyc does not see would be compiled as if it had none.
    """
    config = configparser.ConfigParser()
    config.read(FOLDER / "setup.cfg", encoding="utf-8")
    tools, libraries = (
        config["options.extras_require"]["dev"],
        config["options"]["install_requires"],
    )
    packages = [*tools.split(), *libraries.split()]
    return [package for package in packages if package.startswith(("mypy==", "simpy"))]


def extensions() -> list:
    """Return the modules of compiled.txt as extensions; none while pip asks what it needs."""
    try:
        import simpy  # noqa: F401 - mypyc has to see it
        from mypyc.build import mypycify
    except ImportError:
        if "egg_info" in sys.argv:
            return []
        raise
    names = (FOLDER / "compiled.txt").read_text(encoding="utf-8").split()
    # Of the types of libraries only those matter that are there; `make lint` checks them all.
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    return mypycify([*options, *names], opt_level="2", debug_level="0")


if os.environ.get("H3SIM_COMPILE") == "1":
    setup(setup_requires=compiler(), ext_modules=extensions())
else:
    setup()
