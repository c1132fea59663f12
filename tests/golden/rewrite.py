"""Rewrites what is recorded: `python -m tests.golden.rewrite`."""

from __future__ import annotations

from tests.golden import cells, controllers, figures, links, pages, reproduced, rules


def main() -> None:
    """Write what loads, figures, the tiny reproduction, pages and controllers come to now."""
    for part in (cells, controllers, figures, links, pages, reproduced, rules):
        part.RECORDED.write_text(part.text_of(part.compute()), "utf-8")
        print(f"wrote {part.RECORDED.name}")


if __name__ == "__main__":
    main()
