"""Where the study of several hosts puts what shipped pages took from others."""

from __future__ import annotations

import h3sim
from validation import hosts


def test_fonts_and_libraries_go_back_to_hosts_of_their_own() -> None:
    page = hosts.with_hosts(h3sim.load_page("agency"))
    of = {resource.id.rsplit("/", 1)[-1]: resource.host for resource in page.resources}
    assert of["index.html"] == of["styles.css"] == ""
    assert of["bootstrap.bundle.min.js"] == of["all.js"] == "libraries"
    assert of["joined-8e86719e.css"] == "font-styles"
    assert of["montserrat-latin-400-normal.woff2"] == "font-files"


def test_connections_of_their_own_cost_a_page_of_libraries_time() -> None:
    page = hosts.with_hosts(h3sim.load_page("freelancer"))
    assert hosts.cost(page, "chrome-eps") > 1.1
    alone = h3sim.load_page("uikit-slider")
    assert hosts.cost(alone, "chrome-eps") == 1
