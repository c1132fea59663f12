"""The pages, schemes and baseline of a study, whose names must tell them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.load.options import check_some, refuse
from h3sim.load.run import resolve_scheme
from h3sim.load.selection import resolve_pages, resolve_schemes
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.load.run import PageLike, SchemeLike
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.transport import Network, TransportProfile


class Subjects(NamedTuple):
    """Pages and schemes of a comparison."""

    pages: list[Page]
    schemes: list[Scheme]


def resolve_subjects(
    pages: PageLike | Iterable[PageLike], schemes: SchemeLike | Iterable[SchemeLike]
) -> Subjects:
    """Return the pages and schemes, whose names must be unique.

    A set of schemes and one of its members may both be named.

    Raises:
        InputError: if there are none, two of one name, or a scheme is named twice.
        UnknownNameError: if a name is unknown.
    """
    resolved_pages, resolved_schemes = resolve_pages(pages), resolve_schemes(schemes)
    check_some(pages=resolved_pages, schemes=resolved_schemes)
    check_names(pages=resolved_pages, schemes=resolved_schemes)
    return Subjects(resolved_pages, resolved_schemes)


def resolve_compared(
    pages: PageLike | Iterable[PageLike],
    schemes: SchemeLike | Iterable[SchemeLike],
    baseline: SchemeLike,
) -> tuple[Subjects, Scheme]:
    """Return the pages and schemes, and the scheme of *baseline*.

    Raises:
        InputError, UnknownNameError: as `resolve_subjects` and `baseline_of`.
    """
    subjects = resolve_subjects(pages, schemes)
    return subjects, baseline_of(baseline, subjects.schemes)


def baseline_of(baseline: SchemeLike, schemes: Sequence[Scheme]) -> Scheme:
    """Return the scheme of the baseline: that of *schemes* with this name, if there is one.

    Raises:
        InputError: if it is another scheme with the name of one of *schemes*.
        UnknownNameError: if it is an unknown name.
    """
    scheme_by_name = {scheme.name: scheme for scheme in schemes}
    if isinstance(baseline, str) and baseline in scheme_by_name:
        return scheme_by_name[baseline]
    scheme = resolve_scheme(baseline)
    if scheme_by_name.get(scheme.name, scheme) != scheme:
        message = f"is called {scheme.name!r} like one of the schemes, and is another: rename one"
        raise InputError.at("baseline", message)
    return scheme


def without_marks(pages: Iterable[Page]) -> dict[str, str]:
    """Return a phrase that names the pages without a figure above the fold; empty without any.

    It is an entry of the words that describe the loads of a table.
    """
    reasons = {page.name: page.nothing_visible_reason for page in pages}
    named = ", ".join(f"{name} ({reason})" for name, reason in reasons.items() if reason)
    return {"above_the_fold": f"nothing above the fold for {named}"} if named else {}


def check_names(**given: Iterable[Page | Scheme | Network | TransportProfile]) -> None:
    """Refuse duplicate names, which rows could not distinguish: *given* by kind, `pages=[...]`.

    Raises:
        InputError: listing the duplicate names of each kind.
    """
    issues: list[ValidationIssue] = []
    for key, values in given.items():
        names = [value.name for value in values]
        duplicates = dict.fromkeys(name for name in names if names.count(name) > 1)
        noun = f"{key.removesuffix('s')}s".replace("_", " ")
        messages = (f"two {noun} are called {name!r}" for name in duplicates)
        issues += (ValidationIssue(key=key, message=message) for message in messages)
    refuse(issues)
