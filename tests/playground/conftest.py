"""What the tests of the built playground stand on: `make test-playground` builds it for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from h3sim.importers.chromium import find_chromium
from tests.playground.browsing import Tab, open_playground
from tools.playground import PARTS, fetch_package

if TYPE_CHECKING:
    from collections.abc import Iterator

AXE = "axe-core@4.14.1"


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built playground."""
    folder = os.environ.get("H3SIM_PLAYGROUND")
    if folder is None:
        pytest.skip("make test-playground builds the playground and runs this")
    return Path(folder)


@pytest.fixture(scope="session")
def tab(site: Path) -> Iterator[Tab]:
    """A tab of a real Chromium with the playground in it."""
    with open_playground(site, find_chromium()) as opened:
        yield opened


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which finds what hinders those who do not see or use no mouse."""
    fetch_package(AXE, ("axe.min.js",), PARTS / "axe-core")
    return (PARTS / "axe-core" / "axe.min.js").read_text("utf-8")
