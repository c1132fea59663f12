"""Resources above the fold, inferred for pages whose file does not mark any.

The rules, as far as the page file has the data:

- what `--browser parse` needs for its first paint: the document, and the stylesheets and scripts of
  its head that block the parser or rendering;
- the fonts that those stylesheets reference, or that a link preloads: text is set in them;
- the images with a share of the viewport, if those were recorded; otherwise those that Chrome
  raised to High, if it raised any: it does so for those that it has laid out in the viewport.
  Otherwise the first five images of the document, in its order, that are neither lazy nor have
  fetchpriority=low nor are as small as a tracking pixel: Chrome assumes that these are visible
  before layout (Chromium 118's boost of images); those with fetchpriority=high are added. The
  image of the largest paint is added, if it is known;
- the ancestors of any of these;
- never favicons, beacons, pixels, trackers and challenges (`unseen`).

Which images are above the fold is a guess, unless the layout was recorded. `guesses` has the others
that would be as good, under which a result must hold to be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.document import DocumentParser, Styles, references, scripts_in_order
from h3sim.browser.requests import first_paint_gates, is_lazy
from h3sim.browser.unseen import is_never_seen
from h3sim.page import FetchPriority, Kind, Level, MarksFrom
from h3sim.page.model import marked, parts_of, read_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from h3sim.page import Page, Resource


HEURISTIC, NONE = "heuristic", "none"
"""The accepted values in place of a file of labels."""
GUESSES = (
    "no image above the fold",
    "the first image above the fold",
    "the first ten images above the fold",
    "all images above the fold",
)
"""The guesses that `guesses` returns, in its order."""
_N_GUESSED_IMAGES = (0, 1, 10, None)
"""Number of images of each guess; None for all."""
_N_LIKELY_IMAGES = 5
"""The images of a document that Chrome assumes to be visible before layout."""
_VISIBLE_LEVELS = (Level.HIGH, Level.VERY_HIGH)
"""The levels to which Chrome raises images that it has laid out in the viewport."""


def needed_for_first_paint(page: Page) -> list[int]:
    """Return the indices of the resources that the first paint of a rendering browser needs.

    These are each root, the stylesheets in its head that block rendering, with their imports, the
    scripts in its head that block the parser, and what the recorded paint waited for.

    >>> from h3sim.page import TriggerEvent, Discovery, Page, Resource
    >>> found = Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=50)
    >>> page = Page(name="p", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=100),
    ...     Resource(id="a.js", kind=Kind.SCRIPT, size_bytes=9, in_head=True, discovered=found),
    ...     Resource(id="b.js", kind=Kind.SCRIPT, size_bytes=9, is_defer=True, discovered=found),
    ... ))
    >>> needed_for_first_paint(page)
    [0, 1]
    """
    return sorted(
        part.indices[index]
        for part in parts_of(page)
        for index in _needed_for_first_paint(part.page)
    )


def _needed_for_first_paint(page: Page) -> dict[int, None]:
    """Return the resources that the first paint needs, for a page with one root."""
    styles, in_order = Styles(page), scripts_in_order(page)
    head_bytes = DocumentParser(page, cost_ns=0).head_bytes
    # The parser passes the head one byte after it, and reads the references there as well.
    met = [index for at, index in references(page) if at <= head_bytes + 1]
    needed: dict[int, None] = dict.fromkeys((page.root, *first_paint_gates(page)))
    for index in met:
        resource = page.resources[index]
        if resource.kind is Kind.STYLESHEET:
            if styles.blocks(index):
                needed |= dict.fromkeys(styles.with_imports(index))
        elif index in in_order and not resource.is_deferred:
            needed[index] = None
    return needed


def infer_above_the_fold(page: Page) -> Page:
    """Return *page* with marks above the fold inferred by the rules of this module.

    The page records that these marks are inferred; tables, reports and JSON show it.

    >>> from h3sim.page import Page, Resource
    >>> page = Page(name="p", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> inferred = infer_above_the_fold(page)
    >>> inferred.resources[0].above_the_fold, inferred.above_the_fold_from.value
    (True, 'heuristic')
    """
    seen = [part.indices[index] for part in parts_of(page) for index in _likely_visible(part.page)]
    return _marked(page, seen, MarksFrom.HEURISTIC)


def _likely_visible(page: Page) -> set[int]:
    """Return the resources that are likely visible, for a page with one root."""
    blocking = [i for i, resource in enumerate(page.resources) if resource.render_blocking]
    needed = {
        index: None
        for index in (*sorted(_needed_for_first_paint(page)), *blocking)
        if index == page.root or not is_never_seen(page.resources[index])
    }
    return {*needed, *_fonts(page, needed), *_visible_images(page, needed)}


def guesses(page: Page) -> list[frozenset[int]] | None:
    """Return what would be above the fold by each of `GUESSES`, as indices of resources.

    The image of the largest paint, images that Chrome raised and those with `fetchpriority=high`
    are always among them: they are no guesses. None is returned if nothing was guessed: if the
    marks were seen, or the shares of the viewport.

    >>> from h3sim.page import Discovery, Page, Resource, TriggerEvent
    >>> by = Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=5)
    >>> page = Page(name="p", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),
    ...     Resource(id="a.png", kind=Kind.IMAGE, size_bytes=900, discovered=by),
    ...     Resource(id="b.png", kind=Kind.IMAGE, size_bytes=900, discovered=by)))
    >>> [sorted(guess) for guess in guesses(infer_above_the_fold(page))]
    [[0], [0, 1], [0, 1, 2], [0, 1, 2]]
    >>> guesses(page) is None
    True
    """
    if not page.above_the_fold_from.is_inferred:
        return None
    if any(resource.viewport is not None for resource in page.resources):
        return None
    found: list[set[int]] = [set() for _ in GUESSES]
    for part in parts_of(page):
        likely, images = _guessed(part.page)
        for seen, n_images in zip(found, _N_GUESSED_IMAGES, strict=True):
            seen |= {part.indices[index] for index in (*likely, *images[:n_images])}
    return [frozenset(_add_ancestors(page, seen)) for seen in found]


def guessed_images(page: Page) -> frozenset[int]:
    """Return the images of which it is a guess whether they are above the fold.

    >>> from h3sim.page import Page, Resource
    >>> page = Page(name="p", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> guessed_images(page)
    frozenset()
    """
    of_page = guesses(page)
    if not of_page:
        return frozenset()
    unsure = frozenset.union(*of_page) - frozenset.intersection(*of_page)
    return frozenset(index for index in unsure if page.resources[index].kind is Kind.IMAGE)


def _guessed(page: Page) -> tuple[set[int], list[int]]:
    """Return what is surely or probably visible apart from guessed images, and all images.

    The images are in the order in which they are likely to be visible.
    """
    images = _images(page)
    visible = _likely_visible(page)
    known = {i for i in images if _is_known_to_be_seen(page.resources[i])}
    in_order = [index for _, index in references(page) if index in {*images}]
    rest = [index for index in images if index not in {*in_order}]
    ordered = [*in_order, *rest]
    likely = [index for index in ordered if _may_be_seen(page.resources[index])]
    return (visible - {*images}) | known, [*likely, *(i for i in ordered if i not in {*likely})]


def _is_known_to_be_seen(resource: Resource) -> bool:
    """Return whether the recording or the author says that an image is visible."""
    is_hinted = resource.fetchpriority is FetchPriority.HIGH
    return resource.hero or is_hinted or _was_raised(resource)


def mark_critical_path(page: Page) -> Page:
    """Return *page* with its critical resources and their ancestors marked as above the fold."""
    critical = (i for i, resource in enumerate(page.resources) if resource.critical)
    return _marked(page, critical, MarksFrom.CRITICAL_PATH)


def _marked(page: Page, indices: Iterable[int], source: MarksFrom) -> Page:
    """Return *page* with exactly these resources and their ancestors marked as above the fold."""
    return marked(page, {page.resources[i].id for i in _add_ancestors(page, indices)}, source)


def with_marks(page: Page, choice: str | Path) -> Page:
    """Return *page* with the marks of *choice*: "heuristic", "none", or the path of a file.

    Raises:
        InputError: if the file cannot be read, or listing every line that names no resource.
    """
    if choice == HEURISTIC:
        return infer_above_the_fold(page)
    return marked(page, (), MarksFrom.PAGE) if choice == NONE else read_marks(choice, page)


def _fonts(page: Page, needed: Iterable[int]) -> Iterator[int]:
    """Yield the fonts that are preloaded, or that a resource of the first paint references."""
    needed_ids = {page.resources[index].id for index in needed}
    for index, resource in enumerate(page.resources):
        if resource.kind is Kind.FONT and (resource.preload or _parent(resource) in needed_ids):
            yield index


def _images(page: Page) -> list[int]:
    """Return the images that may be above the fold."""
    return [
        i
        for i, resource in enumerate(page.resources)
        if resource.kind is Kind.IMAGE and not is_never_seen(resource)
    ]


def _visible_images(page: Page, needed: Iterable[int]) -> list[int]:
    """Return the images that are probably above the fold."""
    images = _images(page)
    largest = [i for i in images if page.resources[i].hero]
    measured = [i for i in images if page.resources[i].viewport]
    raised = [i for i in images if _was_raised(page.resources[i])]
    if measured or raised:
        return [*(measured or raised), *largest]
    order = [index for _, index in references(page)]
    # After the images of the document those of its stylesheets, in request order.
    needed_ids = {page.resources[index].id for index in needed}
    order += [i for i in images if i not in set(order) and _parent(page.resources[i]) in needed_ids]
    likely = [i for i in order if i in set(images) and _may_be_seen(page.resources[i])]
    hinted = [i for i in images if page.resources[i].fetchpriority is FetchPriority.HIGH]
    return [*likely[:_N_LIKELY_IMAGES], *hinted, *largest]


def _was_raised(resource: Resource) -> bool:
    """Return whether Chrome gave an image a level that it reserves for visible ones.

    An image with fetchpriority=high has that level from the start, visible or not.
    """
    is_hinted = resource.fetchpriority is FetchPriority.HIGH
    return not is_hinted and any(entry.level in _VISIBLE_LEVELS for entry in resource.recorded)


def _may_be_seen(resource: Resource) -> bool:
    """Return whether the author did not mark an image as unimportant at first."""
    is_low = resource.fetchpriority is FetchPriority.LOW
    return not is_lazy(resource) and not is_low


def _parent(resource: Resource) -> str | None:
    """Return the id of the resource that led to this one; None for a root."""
    return None if resource.discovered is None else resource.discovered.first_parent


def _add_ancestors(page: Page, indices: Iterable[int]) -> set[int]:
    """Return resources with all that led to them."""
    with_ancestors: set[int] = set()
    for index in indices:
        at: int | None = index
        while at is not None and at not in with_ancestors:
            with_ancestors.add(at)
            parent = _parent(page.resources[at])
            at = None if parent is None else page.index[parent]
    return with_ancestors
