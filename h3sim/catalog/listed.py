"""What `h3sim list --json` writes: what is shipped, a row each, with the facts of its kind."""

from __future__ import annotations

from h3sim.documents.values import ListOf
from h3sim.documents.written import COUNT, NUMBER, TEXT, Key, Keys, WrittenFormat

__all__ = ["LIST"]

_FACTS = {
    "title": TEXT,
    "mechanism": TEXT,
    "signalling": TEXT,
    "placeholders": COUNT,
    "down_mbps": NUMBER,
    "up_mbps": NUMBER,
    "rtt_ms": NUMBER,
    "loss": NUMBER,
    "burst": NUMBER,
    "jitter": TEXT,
    "transport": TEXT,
    "cc": TEXT,
    "retransmit": TEXT,
    "from": TEXT,
    "resources": COUNT,
    "bytes": COUNT,
    "above_the_fold": COUNT,
    "of": TEXT,
    "names": ListOf(TEXT, "names"),
    "source": TEXT,
}
"""What is said of one kind or another; what a row has none of is left out."""
LIST = WrittenFormat(
    "h3sim-list/1",
    "What is shipped, by name",
    Key("version", TEXT, "of h3sim"),
    Key("of", TEXT, "which list it is"),
    Key(
        "rows",
        ListOf(
            Keys(
                Key("name", TEXT),
                *(Key(name, kind, is_optional=True) for name, kind in _FACTS.items()),
            ),
            "rows",
        ),
        "one for each; what it has none of is left out",
    ),
)
