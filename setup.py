"""Compiles the core by mypyc where H3SIM_COMPILE=1 says so, and notes the commit in what it builds.

setup.cfg says everything else.
"""

import ast
import configparser
import os
import re
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
    found = mypycify([*options, *names], opt_level=level, debug_level="0")
    docstrings = docstrings_of(names)
    for source in {Path(name) for extension in found for name in extension.sources}:
        text = source.read_text(encoding="utf-8")
        source.write_text(with_docstrings(text, docstrings), encoding="utf-8")
    return found


def docstrings_of(names: list[str]) -> dict[str, str]:
    """Return the docstrings of modules, classes and functions by what mypyc calls these in C.

    That is the end of the module's name that no other module has, the class and the function; here
    are all ends, of which those of several modules are never asked for.
    """
    found = {}
    for name in names:
        tree = ast.parse((FOLDER / name).read_text(encoding="utf-8"))
        parts = name.removesuffix(".py").split("/")
        ends = ["___".join(parts[place:]) for place in range(len(parts))]
        found[".".join(parts)] = ast.get_docstring(tree) or ""
        for node in tree.body:
            inner = node.body if isinstance(node, ast.ClassDef) else []
            for path in ((node,), *((node, below) for below in inner)):
                if isinstance(path[-1], ast.FunctionDef | ast.ClassDef):
                    own = "___".join(each.name for each in path)
                    found |= {f"{end}___{own}": ast.get_docstring(path[-1]) or "" for end in ends}
    return found


def with_docstrings(text: str, docstrings: dict[str, str]) -> str:
    """Return C code of mypyc, which leaves docstrings out, with those of its tables filled in."""

    def behind(match: re.Match[str]) -> str:
        return f'{match[1]}{in_c(docstrings.get(match[2], ""))}")'

    def instead(match: re.Match[str]) -> str:
        told = docstrings.get(match[2].replace("_get_", "___", 1), "")
        return f'{match[1]}"{in_c(told)}"{match[3]}' if told else match[0]

    # There is no signature where a default cannot be written as text.
    text = text.replace("PyDoc_STR(NULL)", 'PyDoc_STR("")')
    string = r'PyDoc_STR\("(?:[^"\\]|\\.)*'
    text = re.sub(rf'(\(PyCFunction\)CPyPy_(\w+),[\w|\s]+,\s*{string})"\)', behind, text)
    text = re.sub(rf'(CPyType_(\w+)_template_ = {{[^}}]*?\.tp_doc = {string})"\)', behind, text)
    text = re.sub(r"(\(getter\)(\w+),\s*(?:NULL|\(setter\)\w+),\s*)NULL(,\s*NULL})", instead, text)
    return re.sub(r'("([\w.]+)",\s*)NULL(, /\* docstring \*/)', instead, text)


def in_c(text: str) -> str:
    """Return text as it stands between the quotes of a string in C."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
        for byte in text.encode("utf-8")
    )


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
