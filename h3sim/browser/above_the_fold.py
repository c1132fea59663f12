"""Resources above the fold, inferred for pages whose file does not mark any.

The rules, as far as the page file has the data:

- what `--browser parse` needs for its first paint: the document, and the stylesheets and scripts of
  its head that block the parser or rendering;
- the fonts that those stylesheets reference, or that a link preloads: text is set in them;
- the images with a share of the viewport, if those were recorded; otherwise those that Chrome
  raised to High, if it raised any: it does so for those that it has laid out in the viewport.
  Otherwise the first five images of the document, in its order, that are neither lazy nor have
  fetchpriority=low nor are as small as a tracking pixel: Chrome assumes that these are visible
  before layout (Chromium 117's boost of images); those with fetchpriority=high are added. The
  image of the largest paint is added, if it is known;
- the ancestors of any of these;
- never favicons, beacons, pixels, trackers and challenges (`unseen`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.document import DocumentParser, Styles, references, scripts_in_order
from h3sim.browser.requests import is_lazy
from h3sim.browser.unseen import is_never_seen
from h3sim.page import FetchPriority, Kind, Level, MarksFrom
from h3sim.page.model import marked, parts_of, read_marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from h3sim.page import Page, Resource


HEURISTIC, NONE = "heuristic", "none"
"""The accepted values in place of a file of labels."""
_N_LIKELY_IMAGES = 5
"""The images of a document that Chrome assumes to be visible before layout."""
_VISIBLE_LEVELS = (Level.HIGH, Level.VERY_HIGH)
"""The levels to which Chrome raises images that it has laid out in the viewport."""


def needed_for_first_paint(page: Page) -> list[int]:
    """Return the indices of the resources that the first paint of a rendering browser needs.

    These are each root, the stylesheets in its head that block rendering, with their imports, and
    the scripts in its head that block the parser.

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
    needed: dict[int, None] = {page.root: None}
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


def _visible_images(page: Page, needed: Iterable[int]) -> list[int]:
    """Return the images that are probably above the fold."""
    images = [
        i
        for i, resource in enumerate(page.resources)
        if resource.kind is Kind.IMAGE and not is_never_seen(resource)
    ]
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
