"""Data for scripts in HTML."""

from __future__ import annotations

import json


def data_element(data: object, id_: str = "") -> str:
    """Return an element with data for a script, as JSON."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # `</script>` would end the element, even in a quoted name.
    text = text.replace("<", "\\u003c")
    name = f' id="{id_}"' if id_ else ""
    return f'<script type="application/json"{name}>{text}</script>'
