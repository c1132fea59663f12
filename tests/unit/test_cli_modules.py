"""What a command imports: what it needs, so that a small page is loaded in no time."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from h3sim.cli import main

_PROBE = """\
import sys
from h3sim.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""
HEAVY = ("numpy", "matplotlib", "pandas", "networkx", "tqdm", "hypothesis")
"""What takes longer to import than a small page takes to load."""
OTHERS = (
    *("h3sim.importers", "h3sim.conformance", "h3sim.reporting", "h3sim.qlog.reader"),
    *("h3sim.cli.compare", "h3sim.cli.pages", "h3sim.cli.qlog"),
)
STUDIES = ("h3sim.study.compare", "h3sim.study.sweep", "h3sim.study.store")
ENDPOINTS = (
    *("h3sim.transport.quic.endpoint", "h3sim.transport.tcp.endpoint", "h3sim.transport.link"),
    *("h3sim.transport.congestion.bbr", "h3sim.transport.congestion.loss_based"),
)

RARE = (
    *("h3sim.headers.registry", "h3sim.browser.rendering", "h3sim.page.synthetic"),
    *("difflib", "html"),
)
"""What few loads need. SimPy itself imports modules that read packages and mails."""
OVER_LINKS = (
    *("h3sim.transport.profile", "h3sim.transport.quic.settings", "h3sim.transport.tcp.settings"),
    *("h3sim.engine.endpoints", "h3sim.http.header_senders", "h3sim.http.header_senders"),
)
OTHER_MECHANISMS = (
    *("h3sim.schedulers.tree.scheduler", "h3sim.schedulers.buckets", "h3sim.schedulers.strict"),
    *(
        "h3sim.schedulers.static_priority",
        "h3sim.schedulers.adapters",
    ),
)
OTHER_OUTPUTS = ("h3sim.export.har", "h3sim.metrics.multiplexing")
MOST_FOR_A_LOAD = 152
"""So many modules of h3sim `h3sim run` may import for a page at a constant rate."""


def modules_of(*arguments: str) -> set[str]:
    """Return what is imported once the command is through."""
    probe = _PROBE.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (("--version",), (*HEAVY, *OTHERS, "simpy", "h3sim.study", "h3sim.catalog")),
        (("run", "davies-meenan"), (*HEAVY, *OTHERS, *ENDPOINTS, *STUDIES, *RARE)),
        (("run", "davies-meenan"), (*OVER_LINKS, *OTHER_MECHANISMS, *OTHER_OUTPUTS)),
        (("list", "pages"), (*HEAVY, "h3sim.page", "h3sim.schemes", "h3sim.transport.network")),
        (("list", "networks"), (*HEAVY, *OTHERS, *ENDPOINTS, "simpy", "h3sim.engine")),
        (("show", "scheme", "rr"), (*HEAVY, *OTHERS, *ENDPOINTS, "simpy", "h3sim.engine")),
    ],
)
def test_a_command_imports_what_it_needs(
    arguments: tuple[str, ...], forbidden: tuple[str, ...]
) -> None:
    imported = modules_of(*arguments)
    assert "h3sim.cli.main" in imported
    assert sorted(imported & set(forbidden)) == []


def test_a_small_page_takes_few_modules() -> None:
    imported = modules_of("run", "davies-meenan")
    assert sum(name.startswith("h3sim") for name in imported) <= MOST_FOR_A_LOAD


def test_whoever_calls_the_command_line_as_a_function_keeps_its_garbage_collector() -> None:
    n_frozen, was_enabled = gc.get_freeze_count(), gc.isenabled()
    assert main(["list", "sets"]) == 0
    # Objects that the tests froze may be freed meanwhile; the command freezes none.
    assert gc.get_freeze_count() <= n_frozen
    assert gc.isenabled() == was_enabled


def test_a_function_goes_before_the_module_of_its_name() -> None:
    code = (
        "import h3sim.study.compare as module; from h3sim.study import compare;"
        "import h3sim.study; print(callable(compare), h3sim.study.compare is compare, module)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert done.startswith("True True")
