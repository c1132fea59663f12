"""Rewrites the recorded loads: `python -m tests.golden.rewrite`."""

from __future__ import annotations

from tests.golden.cells import RECORDED, compute, text_of


def main() -> None:
    """Write what the loads come to now."""
    RECORDED.write_text(text_of(compute()), "utf-8")
    print(f"wrote {RECORDED.name}")


if __name__ == "__main__":
    main()
