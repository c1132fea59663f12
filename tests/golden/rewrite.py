"""Rewrites what is recorded: `python -m tests.golden.rewrite`."""

from __future__ import annotations

from tests.golden import (
    browsers,
    cells,
    controllers,
    figures,
    links,
    pages,
    parts,
    reproduced,
    rules,
)


def main() -> None:
    """Write what loads, figures, the tiny reproduction, pages and controllers come to now."""
    for each in (browsers, cells, controllers, figures, links, pages, parts, reproduced, rules):
        each.RECORDED.write_text(each.text_of(each.compute()), "utf-8")
        print(f"wrote {each.RECORDED.name}")


if __name__ == "__main__":
    main()
