"""Rewrites what is recorded: `python -m tests.golden.rewrite`."""

from __future__ import annotations

from tests.golden import cells, figures, reproduced


def main() -> None:
    """Write what the loads, their figures, and the tiny reproduction, come to now."""
    for part in (cells, figures, reproduced):
        part.RECORDED.write_text(part.text_of(part.compute()), "utf-8")
        print(f"wrote {part.RECORDED.name}")


if __name__ == "__main__":
    main()
