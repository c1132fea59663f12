"""Synthetic pages, for sweeps over their structure.

Sizes are log-normal; they and the shares of kinds were fitted to recordings of 59 real pages from
2012 to 2018. `docs/page-format.md` has the numbers, and the command that compares synthetic with
recorded pages.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from h3sim.page.model import Page
from h3sim.page.resource import MAX_STREAM_BYTES, Discovery, Kind, Resource, TriggerEvent
from h3sim.schema import format_value
from h3sim.schema.arguments import check_arguments
from h3sim.schema.values import Integer, Number
from h3sim.values import rng
from h3sim.values.errors import PageError, ValidationIssue
from h3sim.values.units import ms

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence


SIZES: dict[Kind, tuple[int, float]] = {
    Kind.DOCUMENT: (14_000, 1.2),
    Kind.STYLESHEET: (5_200, 1.9),
    Kind.SCRIPT: (5_800, 1.9),
    Kind.IMAGE: (2_700, 2.0),
    Kind.FONT: (16_000, 1.0),
    Kind.FETCH: (390, 2.7),
}
"""Median body size in bytes by kind, and the standard deviation of its logarithm."""
_STYLE_CHILD_KINDS = (Kind.FONT, Kind.IMAGE, Kind.STYLESHEET)
"""Kinds that stylesheets reference."""
_RESOURCE_COUNT = (44, 0.9)
"""Median number of resources, and the standard deviation of its logarithm."""
_KIND_WEIGHTS = {Kind.IMAGE: 0.58, Kind.STYLESHEET: 0.06, Kind.FONT: 0.03, Kind.FETCH: 0.05}
"""Relative frequencies of kinds other than scripts."""
_DEPTH_WEIGHTS = (0.60, 0.23, 0.10, 0.05, 0.02)
"""Shares of resources by depth below the document, from 1."""
_MIN_RESOURCES, _MAX_RESOURCES = 10, 214
"""The range of Marx 2019's pages."""
_MAX_BODY_BYTES = 4_000_000
"""Bound of a drawn size, since a log-normal distribution has none."""
_RESPONSE_HEADER_BYTES = 200
"""Size of the response headers of every synthetic resource, as compressed."""
_REQUEST_BYTES = 100
"""Size of the request for every synthetic resource, as compressed."""
_ASYNC_SHARE = 0.25
"""Share of the document's scripts that are async."""
_DEFER_SHARE = 0.10
"""Share of the document's scripts that are deferred."""
_HEAD_SCRIPT_SHARE = 0.4
"""Share of the document's scripts that are in its head."""
_EXECUTE_MS_PER_KB = 1.1
_VISIBLE_IMAGE_SHARE = 0.3
"""The share of images, from the start of the document, that are above the fold."""
_MAX_VIEWPORT_SHARE = 0.05
"""Largest share of the viewport of an image that is not the hero."""
_BODY_SIZE = Integer(low=0, high=MAX_STREAM_BYTES)
_ARGUMENT_BOUNDS = {
    "seed": Integer(low=0),
    "n_resources": Integer(low=1, high=100_000),
    "total_bytes": _BODY_SIZE,
    "max_depth": Integer(low=1, high=len(_DEPTH_WEIGHTS)),
    "script_share": Number(low=0, high=1),
    "html_bytes": _BODY_SIZE,
    "hero_bytes": _BODY_SIZE,
}
"""The bounds of the arguments of `synthetic`."""
_DRAWN_ARGUMENTS = ("n_resources", "total_bytes", "html_bytes", "hero_bytes")
"""The arguments that are drawn if they are None."""


def synthetic(
    *,
    seed: int = 0,
    n_resources: int | None = None,
    total_bytes: int | None = None,
    max_depth: int = 4,
    script_share: float = 0.27,
    html_bytes: int | None = None,
    hero_bytes: int | None = None,
) -> Page:
    """Return a synthetic page.

    *n_resources* and the sizes are drawn at random unless given. *total_bytes* scales the bodies to
    that sum, except those of the document and the hero image if they are given. *max_depth* is the
    number of levels below the document, *script_share* the share of scripts. *hero_bytes* is the
    size of a large image above the fold; 0 means none.

    Raises:
        PageError: listing every value that is out of range.

    >>> page = synthetic(seed=1, n_resources=30, total_bytes=800_000, hero_bytes=200_000)
    >>> len(page.resources), page.total_bytes
    (30, 800000)
    """
    _check(
        seed=seed,
        n_resources=n_resources,
        total_bytes=total_bytes,
        max_depth=max_depth,
        script_share=script_share,
        html_bytes=html_bytes,
        hero_bytes=hero_bytes,
    )
    source = rng.substream(seed, "page")
    # Drawn even if a number is given, so that later draws do not depend on it.
    n_drawn = round(_draw_log_normal(source, _RESOURCE_COUNT, _MIN_RESOURCES, _MAX_RESOURCES))
    drafts = _make_drafts(source, n_resources or n_drawn, max_depth, script_share, hero_bytes)
    if html_bytes is not None:
        drafts[0].set_size(html_bytes)
    if total_bytes is not None:
        _scale(drafts, total_bytes)
    return Page(
        name=f"synthetic-{seed}",
        resources=tuple(_finish(source, drafts)),
        provenance={"source": "made up by h3sim.page.synthetic", "notes": f"seed {seed}"},
    )


_PARAMETER = "page."
"""Start of the keys in a page's provenance, and of columns, that have parameters of generators."""


def generate(generator: Callable[..., Page], /, **parameters: Any) -> list[Page]:
    """Return the page of *generator* for each combination of its *parameters*.

    A parameter is a value, or several in a list, tuple or range. Pages are named after the ones
    with several, and rows of studies have a column for each parameter: `page.n_resources`.

    Raises:
        PageError: if the generator refuses a value, or if one is not a number, text or Boolean.

    >>> pages = generate(synthetic, n_resources=[10, 40], seed=1)
    >>> [(page.name, len(page.resources)) for page in pages]
    [('synthetic n_resources=10', 10), ('synthetic n_resources=40', 40)]
    >>> parameters_of(pages[1])
    {'page.n_resources': 40, 'page.seed': 1}
    """
    values = {
        name: [*value] if isinstance(value, list | tuple | range) else [value]
        for name, value in parameters.items()
    }
    pages = []
    for chosen in itertools.product(*values.values()):
        arguments = dict(zip(values, chosen, strict=True))
        for name, value in arguments.items():
            if not isinstance(value, str | int | float | None):
                message = f"must be a number, text or Boolean, is {format_value(value)}"
                raise PageError([ValidationIssue(key=name, message=message)], generator.__name__)
        page = generator(**arguments)
        several = (f"{name}={arguments[name]}" for name in values if len(values[name]) > 1)
        kept = {f"{_PARAMETER}{name}": json.dumps(value) for name, value in arguments.items()}
        name = " ".join((generator.__name__, *several))
        pages.append(replace(page, name=name, provenance={**page.provenance, **kept}))
    return pages


def parameters_of(page: Page) -> dict[str, Any]:
    """Return the parameters of the generator of a page, by the columns that they are in rows."""
    found: dict[str, Any] = {}
    for name, text in page.provenance.items():
        if name.startswith(_PARAMETER):
            found[name] = text
            with contextlib.suppress(ValueError):  # a text in a file that somebody wrote
                found[name] = json.loads(text)
    return found


def _check(**given: float | None) -> None:
    kinds = {
        key: value
        for key, value in given.items()
        if value is not None or key not in _DRAWN_ARGUMENTS
    }
    check_arguments(
        PageError, **{key: (_ARGUMENT_BOUNDS[key], value) for key, value in kinds.items()}
    )


@dataclass(slots=True)
class _Draft:
    """A resource under construction, at a known index in the page."""

    kind: Kind
    size_bytes: int
    parent: int | None = None
    level: int = 0
    is_hero: bool = False
    is_fixed: bool = False
    """True if its size was given."""

    def set_size(self, n_bytes: int) -> None:
        self.size_bytes, self.is_fixed = n_bytes, True


def _make_drafts(
    source: random.Random,
    n_resources: int,
    max_depth: int,
    script_share: float,
    hero_bytes: int | None,
) -> list[_Draft]:
    """Return the document and then the others, parents before their children."""
    drafts = [_Draft(Kind.DOCUMENT, _draw_size(source, Kind.DOCUMENT))]
    n_others = n_resources - 1
    n_scripts = round(script_share * n_others)
    kinds = [Kind.SCRIPT] * n_scripts
    kinds += source.choices(
        list(_KIND_WEIGHTS), list(_KIND_WEIGHTS.values()), k=n_others - n_scripts
    )
    source.shuffle(kinds)
    # By level: the indices of possible parents, of kinds that stylesheets reference (True) and of
    # others (False).
    parents: list[dict[bool, list[int]]] = [{} for _ in range(max_depth + 1)]
    parents[0] = {True: [0], False: [0]}  # the document
    levels = source.choices(range(1, max_depth + 1), _DEPTH_WEIGHTS[:max_depth], k=n_others)
    # Sorted by level only, so that parents come first; the stable sort keeps kinds shuffled.
    for level, kind in sorted(zip(levels, kinds, strict=True), key=itemgetter(0)):
        candidates = parents[level - 1].get(kind in _STYLE_CHILD_KINDS, [])
        parent = source.choice(candidates) if candidates else 0
        draft = _Draft(kind, _draw_size(source, kind), parent, drafts[parent].level + 1)
        for of_style in _child_groups(kind):
            parents[draft.level].setdefault(of_style, []).append(len(drafts))
        drafts.append(draft)
    heroes = [draft for draft in drafts if draft.kind is Kind.IMAGE and draft.level == 1]
    if hero_bytes and n_others:
        hero = heroes[0] if heroes else drafts[-1]
        hero.kind, hero.parent, hero.level, hero.is_hero = Kind.IMAGE, 0, 1, True
        hero.set_size(hero_bytes)
    elif hero_bytes is None and heroes:
        max(heroes, key=lambda draft: draft.size_bytes).is_hero = True
    return drafts


def _child_groups(kind: Kind) -> tuple[bool, ...]:
    """Return the groups of possible children: kinds of stylesheets (True), others (False)."""
    if kind is Kind.STYLESHEET:
        return (True,)
    return (True, False) if kind is Kind.SCRIPT else ()


def _scale(drafts: Sequence[_Draft], total_bytes: int) -> None:
    """Scale the sizes that were not given so that the sum is *total_bytes*."""
    free = [draft for draft in drafts if not draft.is_fixed]
    remaining_bytes = total_bytes - sum(draft.size_bytes for draft in drafts if draft.is_fixed)
    if remaining_bytes < 0:
        message = "is less than the sum of html_bytes and hero_bytes"
        raise PageError([ValidationIssue(key="total_bytes", message=message)], "synthetic")
    if remaining_bytes and not free:
        message = "cannot be reached: html_bytes and hero_bytes fix all sizes"
        raise PageError([ValidationIssue(key="total_bytes", message=message)], "synthetic")
    drawn_bytes = sum(draft.size_bytes for draft in free)
    start = drawn_end = 0
    for draft in free:
        # Offsets are scaled, not sizes, so that rounding errors do not add up.
        drawn_end += draft.size_bytes
        end = remaining_bytes * drawn_end // drawn_bytes
        draft.size_bytes, start = end - start, end


def _finish(source: random.Random, drafts: Sequence[_Draft]) -> Iterator[Resource]:
    """Yield the resources in a usual document order: those of the head first."""
    in_document = [index for index, draft in enumerate(drafts) if draft.level == 1]
    head = {
        index
        for index in in_document
        if drafts[index].kind is Kind.STYLESHEET
        or (drafts[index].kind is Kind.SCRIPT and source.random() < _HEAD_SCRIPT_SHARE)
    }
    order = [
        *(index for index in in_document if index in head),
        *(index for index in in_document if index not in head),
    ]
    position = {index: number for number, index in enumerate(order)}
    images = [index for index in order if drafts[index].kind is Kind.IMAGE]
    visible = set(images[: math.ceil(_VISIBLE_IMAGE_SHARE * len(images))])
    first_image = position[images[0]] if images else len(order)
    for index, draft in enumerate(drafts):
        yield (
            _make_resource(
                source,
                f"r{index}",
                draft,
                discovered=_draw_discovery(
                    drafts, draft, (position.get(index, 0) + 1) / (len(order) + 1)
                ),
                in_head=index in head,
                is_seen=draft.is_hero
                or index in visible
                or draft.kind in (Kind.DOCUMENT, Kind.FONT),
                is_late=position.get(index, 0) > first_image,
            )
            if index
            else _make_root(draft)
        )


def _make_root(draft: _Draft) -> Resource:
    """Return the document of the page."""
    return Resource(
        id="r0",
        kind=Kind.DOCUMENT,
        size_bytes=draft.size_bytes,
        header_bytes=_RESPONSE_HEADER_BYTES,
        request_bytes=_REQUEST_BYTES,
        above_the_fold=True,
        parse_ns=ms(draft.size_bytes / 1000 * _EXECUTE_MS_PER_KB),
    )


def _make_resource(
    source: random.Random,
    id_: str,
    draft: _Draft,
    *,
    discovered: Discovery,
    in_head: bool,
    is_seen: bool,
    is_late: bool,
) -> Resource:
    """Return the finished resource; *is_late*: after the first image of the document."""
    is_script = draft.kind is Kind.SCRIPT
    # Decides whether the document's script is async, deferred or neither, as all others are.
    loading = source.random() if is_script and draft.level == 1 else 1.0
    blocks = in_head and loading >= _ASYNC_SHARE + _DEFER_SHARE
    return Resource(
        id=id_,
        kind=draft.kind,
        size_bytes=draft.size_bytes,
        header_bytes=_RESPONSE_HEADER_BYTES,
        request_bytes=_REQUEST_BYTES,
        discovered=discovered,
        in_head=in_head,
        is_async=loading < _ASYNC_SHARE,
        is_defer=_ASYNC_SHARE <= loading < _ASYNC_SHARE + _DEFER_SHARE,
        render_blocking=blocks,
        critical=blocks,
        after_first_image=draft.level == 1 and is_late,
        above_the_fold=is_seen or blocks,
        hero=draft.is_hero,
        viewport=_draw_viewport(source, draft) if is_seen and draft.kind is Kind.IMAGE else None,
        execute_ns=ms(draft.size_bytes / 1000 * _EXECUTE_MS_PER_KB) if is_script else 0,
    )


def _draw_discovery(drafts: Sequence[_Draft], draft: _Draft, share: float) -> Discovery:
    """Return the trigger of a resource; the document references it at *share* of its bytes."""
    if not draft.parent:
        offset_bytes = int(share * drafts[0].size_bytes)
        return Discovery(at=TriggerEvent.OFFSET, by="r0", offset_bytes=offset_bytes)
    parent = drafts[draft.parent]
    at = TriggerEvent.EXECUTED if parent.kind is Kind.SCRIPT else TriggerEvent.COMPLETE
    return Discovery(at=at, by=f"r{draft.parent}")


def _draw_viewport(source: random.Random, draft: _Draft) -> float:
    return 0.25 if draft.is_hero else round(source.uniform(0, _MAX_VIEWPORT_SHARE), 3)


def _draw_size(source: random.Random, kind: Kind) -> int:
    return round(_draw_log_normal(source, SIZES[kind], 1, _MAX_BODY_BYTES))


def _draw_log_normal(
    source: random.Random, law: tuple[int, float], low: float, high: float
) -> float:
    """Return a log-normal draw, clamped; *law* is (median, standard deviation of the logarithm)."""
    median, deviation = law
    return min(high, max(low, source.lognormvariate(math.log(median), deviation)))
