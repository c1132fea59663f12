"""Browsers that compute their loads come out as they were recorded."""

from __future__ import annotations

import json

from tests.golden import browsers
from tests.golden.cells import COMMAND


def test_browsers_come_out_as_recorded() -> None:
    recorded = json.loads(browsers.RECORDED.read_text("utf-8"))
    computed = browsers.compute()
    differing = [
        f"{page}: {setting}"
        for page, loads in computed.items()
        for setting in loads
        if loads[setting] != recorded.get(page, {}).get(setting)
    ]
    assert computed == recorded, (
        f"not as recorded: {differing}; if that is meant, rewrite the record with: {COMMAND}"
    )
