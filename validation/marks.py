"""Holds the inferred marks of what is above the fold against what Chromium saw, over the corpus.

`python -m validation.marks` prints, by kind, how many marks are right, wrong and lacking.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from h3sim import catalog
from h3sim.browser import infer_above_the_fold
from h3sim.values.table import Table

__all__ = ["agreement", "main"]


def agreement(names: tuple[str, ...]) -> dict[str, Counter[str]]:
    """Return by kind how many resources of the pages are marked by both, or by one alone.

    "both" were seen and inferred, "inferred" were not seen, "seen" were not inferred.
    """
    counts: dict[str, Counter[str]] = {}
    for name in names:
        page = catalog.load_page(name)
        # Most recordings have neither the largest paint nor the share of the viewport of an image.
        blind = replace(page, layout=None).with_resources(
            replace(each, viewport=None, hero=False) for each in page.resources
        )
        inferred = infer_above_the_fold(blind)
        for message, guess in zip(page.resources, inferred.resources, strict=True):
            count = counts.setdefault(message.kind.value, Counter())
            if message.above_the_fold or guess.above_the_fold:
                both = message.above_the_fold and guess.above_the_fold
                alone = "seen" if message.above_the_fold else "inferred"
                count["both" if both else alone] += 1
    return counts


def main() -> None:
    """Print the table."""
    counts = agreement(catalog.page_set("corpus") or ())
    counts["all"] = sum(counts.values(), Counter())
    rows = [
        (
            *(kind, count["both"], count["inferred"], count["seen"]),
            f"{100 * count['both'] / max(1, count['both'] + count['inferred']):.0f}",
            f"{100 * count['both'] / max(1, count['both'] + count['seen']):.0f}",
        )
        for kind, count in counts.items()
        if count
    ]
    headers = ("kind", "both", "only inferred", "only seen", "precision %", "recall %")
    print(Table(headers, rows))


if __name__ == "__main__":
    main()
