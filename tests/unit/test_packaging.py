"""What setup.cfg ships: the list is by hand, so it is checked against the folders."""

from __future__ import annotations

import ast
import configparser
import importlib
import os
import re
import sys
from pathlib import Path, PurePosixPath

import pytest

import h3sim
from h3sim.values.versions import build

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = {"h3sim.models": "models", "h3sim.corpora": "corpora"}


def config() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(CHECKOUT / "setup.cfg", encoding="utf-8")
    return parser


def lines(section: str, option: str) -> list[str]:
    return [line for line in config()[section][option].splitlines() if line.strip()]


def is_shipped(path: Path, folder: Path, patterns: str) -> bool:
    """Return whether a pattern of package_data takes the file in; `**` stands for any folders."""
    name = PurePosixPath(path.relative_to(folder).as_posix())
    for pattern in re.split(r"[,\s]+", patterns.strip()):
        regex = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if re.fullmatch(regex, str(name)):
            return True
    return False


def test_every_package_is_listed_and_every_listed_one_is_there() -> None:
    folders = {
        ".".join(path.parent.relative_to(CHECKOUT).parts)
        for path in (CHECKOUT / "h3sim").rglob("__init__.py")
    }
    assert folders | set(DATA) == set(lines("options", "packages"))


def test_data_packages_are_the_folders_at_the_top() -> None:
    mapping = dict(line.replace(" ", "").split("=") for line in lines("options", "package_dir"))
    assert mapping == {"h3sim": "h3sim", **DATA}
    for folder in DATA.values():
        # An editable install finds the data only where the folder is a package.
        assert (CHECKOUT / folder / "__init__.py").is_file()


@pytest.mark.parametrize(("package", "folder"), DATA.items())
def test_every_data_file_is_shipped(package: str, folder: str) -> None:
    patterns = config()["options.package_data"][package]
    files = [
        path
        for path in (CHECKOUT / folder).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    assert files
    assert [path for path in files if not is_shipped(path, CHECKOUT / folder, patterns)] == []


def test_every_file_of_the_code_that_is_not_python_is_shipped() -> None:
    data = config()["options.package_data"]
    for path in (CHECKOUT / "h3sim").rglob("*"):
        if path.is_dir() or path.suffix in (".py", ".pyc"):
            continue
        folder = next(each for each in path.parents if (each / "__init__.py").exists())
        package = ".".join(folder.relative_to(CHECKOUT).parts)
        patterns = " ".join(data.get(key, "") for key in ("*", package))
        assert is_shipped(path, folder, patterns), path


def test_the_patterns_are_read_as_setuptools_reads_them() -> None:
    folder = Path("models")
    assert is_shipped(folder / "sets.toml", folder, "**/*.toml")
    assert is_shipped(folder / "a" / "b" / "x.toml", folder, "*.json, **/*.toml")
    assert not is_shipped(folder / "a" / "x.yaml", folder, "**/*.toml")
    assert not is_shipped(folder / "a" / "x.toml", folder, "*.toml")


def test_the_command_leads_to_main() -> None:
    (entry,) = lines("options.entry_points", "console_scripts")
    name, _, target = entry.replace(" ", "").partition("=")
    module, _, function = target.partition(":")
    assert name == "h3sim"
    assert callable(getattr(importlib.import_module(module), function))


def test_the_version_is_stated_once() -> None:
    assert config()["metadata"]["version"] == "attr: h3sim._version.__version__"
    assert re.fullmatch(r"\d+\.\d+\.\d+", h3sim.__version__)


def test_the_licence_is_there() -> None:
    assert (CHECKOUT / config()["metadata"]["license_files"]).is_file()


def test_the_citation_names_this_software_and_its_version() -> None:
    text = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^([a-z-]+):[ ]*(.*)$", text, flags=re.MULTILINE))
    assert entries["cff-version"].strip("\"'") == "1.2.0"
    assert entries["version"].strip("\"'") == h3sim.__version__
    assert {"message", "title", "authors"} <= set(entries)
    assert "\t" not in text


def test_the_source_distribution_has_all_that_is_checked() -> None:
    """`make test` goes over these folders, in an unpacked distribution as in a checkout."""
    text = (CHECKOUT / "MANIFEST.in").read_text(encoding="utf-8")
    folders = re.split(r",\s*", config()["mypy"]["files"].strip())
    assert [name for name in folders if f"\ngraft {name}\n" not in text] == []


def test_public_names_exist() -> None:
    assert [name for name in h3sim.__all__ if not hasattr(h3sim, name)] == []


def test_the_demo_installs_no_tools_of_developers() -> None:
    text = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^([a-z-]+|\$\(\w+\)): ([^\n#]*)", text, flags=re.MULTILINE))
    assert rules["demo"].split() == ["$(READY)"]
    (installs,) = re.findall(r"^\$\(READY\):.*?(?=^\S)", text, flags=re.MULTILINE | re.DOTALL)
    assert "[dev]" not in installs
    assert rules["lint"].split() == ["$(DEV)"]


def test_every_library_that_is_imported_is_required() -> None:
    asked_for = {
        re.match(r"[A-Za-z0-9_-]+", line)[0].replace("-", "_").lower()
        for option in ("install_requires",)
        for line in lines("options", option)
    }
    for extra in config()["options.extras_require"]:
        for line in lines("options.extras_require", extra):
            asked_for.add(re.match(r"[A-Za-z0-9_-]+", line)[0].replace("-", "_").lower())
    asked_for |= {"websocket", "_pytest", "h3sim", "mpl_toolkits", "PIL"}
    found: dict[str, Path] = {}
    for path in (CHECKOUT / "h3sim").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module or "")
            found |= {name.partition(".")[0]: path for name in names}
    strangers = {name for name in found if name not in sys.stdlib_module_names}
    assert strangers - asked_for == set()
    # What is needed for a first figure is there without an extra.
    assert {"simpy", "numpy", "matplotlib", "networkx"} <= strangers


def test_what_is_compiled_is_there_once_and_in_order() -> None:
    names = (CHECKOUT / "compiled.txt").read_text("utf-8").split()
    assert names == sorted(set(names))
    assert [name for name in names if not (CHECKOUT / name).is_file()] == []


def test_what_a_quick_check_leaves_out_is_there_once_and_in_order() -> None:
    names = (CHECKOUT / "tests/long.txt").read_text("utf-8").split()
    assert names == sorted(set(names))
    files = [CHECKOUT / f"tests/unit/test_{name}.py" for name in names]
    assert [file.name for file in files if not file.is_file()] == []


def test_compiled_modules_hold_no_values_and_no_runtime_protocols() -> None:
    """mypyc checks the fields of dataclasses by their types, and `isinstance` knows no traits."""
    for name in (CHECKOUT / "compiled.txt").read_text("utf-8").split():
        text = (CHECKOUT / name).read_text("utf-8")
        assert "@dataclass" not in text, name
        assert "runtime_checkable" not in text, name


def test_what_is_compiled_passes_no_options_on_to_the_class_above() -> None:
    """mypyc takes the options of `super().__init__(*arguments, **options)` for the first one."""
    for name in (CHECKOUT / "compiled.txt").read_text("utf-8").split():
        assert "super().__init__(*" not in (CHECKOUT / name).read_text("utf-8"), name


def test_a_run_that_is_meant_for_the_compiled_build_is_one_of_it() -> None:
    if os.environ.get("H3SIM_COMPILE") == "1":
        assert build() == "compiled"
