"""What `import h3sim` costs and needs; each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import HANG_S

CHECKOUT = Path(__file__).resolve().parents[2]
HEAVY = ("numpy", "networkx", "matplotlib", "pandas", "tqdm", "scipy", "jsonschema")


def python(code: str, cwd: Path) -> str:
    """Return what *code* prints in a new process, with warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("do", "loaded"),
    [
        ("pass", "h3sim lazy_loader"),
        ("h3sim.simulate('davies-meenan').byte_index()", "h3sim lazy_loader simpy"),
    ],
)
def test_import_and_numbers_load_little_beside_the_standard_library(
    tmp_path: Path, do: str, loaded: str
) -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport h3sim\n"
        f"{do}\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        # The compiled build is one module with a made-up name.
        "compiled = {name for name in loaded if name.endswith('__mypyc')}\n"
        "print(*sorted(loaded - compiled - set(sys.stdlib_module_names)))"
    )
    # Not counted: what the interpreter has loaded before, such as the hook of an editable install.
    assert python(code, tmp_path) == loaded


def test_every_public_name_is_there_once_it_is_requested(tmp_path: Path) -> None:
    code = (
        "import h3sim\n"
        "print(all(getattr(h3sim, name) is not None for name in h3sim.__all__),"
        " set(h3sim.__all__) <= set(dir(h3sim)), h3sim.page.Page is h3sim.Page,"
        " callable(h3sim.compare))"
    )
    assert python(code, tmp_path) == "True True True True"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import h3sim

    with pytest.raises(AttributeError, match="attribute simulat"):
        _ = h3sim.simulat  # type: ignore[attr-defined]


def test_none_of_the_heavy_libraries_is_loaded(tmp_path: Path) -> None:
    code = f"import sys, h3sim\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    assert python(code, tmp_path) == ""


@pytest.mark.parametrize("folder", [CHECKOUT, CHECKOUT / "tests", CHECKOUT / "h3sim"])
def test_it_works_from_inside_the_checkout(folder: Path) -> None:
    code = "import h3sim; print(h3sim.simulate('davies-meenan', scheme='fifo').page_load_ms)"
    assert python(code, folder) == "4580.0"


def test_importing_changes_nothing_in_the_process(tmp_path: Path) -> None:
    code = (
        "import random, locale, sys, warnings, logging\n"
        "random.seed(1)\n"
        "def state():\n"
        "    return (random.getstate(), locale.setlocale(locale.LC_ALL), sys.getrecursionlimit(),\n"
        "            list(warnings.filters), logging.root.level, list(logging.root.handlers))\n"
        "before = state()\n"
        "import h3sim\n"
        "h3sim.simulate('davies-meenan', reorder='4:1-3')\n"
        "print(state() == before)"
    )
    assert python(code, tmp_path) == "True"


def test_a_load_is_the_same_in_any_process(tmp_path: Path) -> None:
    code = (
        "import h3sim\n"
        "load = h3sim.simulate('http2rulez', scheme='firefox', reorder='4:1-3', seed=7)\n"
        "print(load.trace.digest())"
    )
    assert python(code, tmp_path) == python(code, CHECKOUT)


def test_the_module_runs_as_a_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "h3sim", "list", "pages"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "http2rulez" in done.stdout


def test_a_prompt_completes_public_names_and_no_helper() -> None:
    import h3sim

    offered = {name for name in dir(h3sim) if not name.startswith("__")}
    assert offered >= {"simulate", "list_schemes", "schedulers"}
    assert not offered & {"Any", "TYPE_CHECKING", "annotations", "importlib", "lazy", "provide"}


def test_the_help_of_the_package_names_only_what_there_is() -> None:
    import h3sim

    assert h3sim.__doc__
    named = re.findall(r"`(?:help\(h3sim\.)?(\w+)\)?`", h3sim.__doc__)
    assert len(named) > 20
    assert [name for name in named if name not in dir(h3sim)] == []
