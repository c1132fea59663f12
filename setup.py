"""Compiles the core by mypyc where H3SIM_COMPILE=1 says so, and notes the commit in what it builds.

setup.cfg says everything else.
"""

import configparser
import os
import runpy
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

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
    # Tests of what it computes are as good without optimization, which takes most of the time.
    level = os.environ.get("H3SIM_OPT_LEVEL", "2")
    return mypycify([*options, *names], opt_level=level, debug_level="0")


def write_commit(package: Path) -> None:
    """Write the commit of this source into the package that is being built."""
    commit = runpy.run_path(str(FOLDER / "h3sim" / "_version.py"))["commit"]()
    (package / "commit.txt").write_text(f"{commit}\n", encoding="utf-8")


class Build(build_py):
    """Builds the package with its commit; one that is installed in editable mode asks Git."""

    def run(self) -> None:
        """Build, then write the commit beside what was built."""
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib) / "h3sim")


class Source(sdist):
    """Makes the source distribution with its commit: there is no Git in what is unpacked."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the source, then write the commit into the copy."""
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir) / "h3sim")


COMMANDS = {"build_py": Build, "sdist": Source}
if os.environ.get("H3SIM_COMPILE") == "1":
    setup(cmdclass=COMMANDS, setup_requires=compiler(), ext_modules=extensions())
else:
    setup(cmdclass=COMMANDS)
