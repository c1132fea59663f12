"""Options that several commands share: pages, schemes, network, transport and browser.

Each is generated from the declaration of a field of `LoadConfig`; none is named here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.config import LoadConfig
from h3sim.config.load_config import RECORDED, WITHOUT_RECORDING, config_for
from h3sim.config.options import option_of
from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import read_text
from h3sim.schema.fields import fields_of
from h3sim.schema.values import Choice, Number, Whole
from h3sim.study import resolve_pages, resolve_schemes
from h3sim.study.run import resolve_page

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.cli.parsing import ErrorList
    from h3sim.config.options import Option
    from h3sim.page import Page
    from h3sim.schema.fields import FieldSpec
    from h3sim.schemes import Scheme
    from h3sim.transport import Network


_LONGEST_SAMPLE_MS = 1e9
_AS_IN_A_NETWORK = {"loss_burst": "mean_loss_burst"}
"""Keys of a network file whose option has another name."""


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of network, transport and browser."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for entry in fields_of(LoadConfig):
        how = option_of(LoadConfig, entry.attribute)
        if how.is_own:
            continue
        if how.group not in groups:
            groups[how.group] = parser.add_argument_group(how.group)
        group = groups[how.group]
        if how.switches:
            either = group.add_mutually_exclusive_group()
            for flag, value, text in how.switches:
                either.add_argument(
                    flag, dest=entry.attribute, action="store_const", const=value, help=text
                )
            group.set_defaults(**{entry.attribute: entry.default})
        else:
            group.add_argument(
                switch(entry.attribute), default=entry.default, **_argument(entry, how)
            )


def add_buffer_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for a single send buffer."""
    parser.add_argument(
        "--send-buffer-kb",
        type=partial(_or_text, float),
        default=0.0,
        metavar="KB",
        help="the server's send buffer in kB (1000 bytes) (default: none)",
    )


def add_sample_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that also shows sampled ByteIndexes."""
    parser.add_argument(
        "--sample-ms",
        type=float,
        metavar="MS",
        help="also show ByteIndexes sampled at this interval; use 100 to compare with Marx 2019",
    )


def check_sample_option(options: argparse.Namespace) -> None:
    """Refuse a sampling interval of 0 or less, or one that is too long.

    Raises:
        InputError: if it is out of range.
    """
    if options.sample_ms is not None and not 0 < options.sample_ms <= _LONGEST_SAMPLE_MS:
        message = f"must be more than 0, at most {_LONGEST_SAMPLE_MS:g}, is {options.sample_ms:g}"
        raise InputError([ValidationIssue(key="--sample-ms", message=message)])


def switch(key: str) -> str:
    """Return the option of the command line for a field of `LoadConfig`, or a key of a network.

    >>> switch("rtt_ms"), switch("loss_burst")
    ('--rtt-ms', '--mean-loss-burst')
    """
    name = key.partition(".")[0]
    return "--" + _AS_IN_A_NETWORK.get(name, name).replace("_", "-")


def switch_of(key: str, given: Mapping[str, Any]) -> str:
    """Return the option that set a field of `LoadConfig`; for flags, the one given.

    >>> switch_of("handshake", {"handshake": "0-rtt"}), switch_of("rtt_ms", {})
    ('--zero-rtt', '--rtt-ms')
    """
    for entry in fields_of(LoadConfig):
        if entry.attribute == key:
            for flag, value, _ in option_of(LoadConfig, key).switches:
                if given[key] == value:
                    return flag
    return switch(key)


def _argument(entry: FieldSpec, how: Option) -> dict[str, Any]:
    usual = "" if entry.default is None else " (default: %(default)s)"
    argument: dict[str, Any] = {"help": entry.about.replace("%", "%%") + usual}
    if isinstance(entry.kind, Choice):
        # Other values are refused by the config, together with all other errors.
        return {**argument, "metavar": how.metavar or f"{{{','.join(entry.kind.options)}}}"}
    if how.is_share:
        argument["type"] = partial(_or_text, share)
    elif isinstance(entry.kind, Number):
        argument["type"] = partial(_or_text, int if isinstance(entry.kind, Whole) else float)
    return {**argument, "metavar": how.metavar}


def _or_text(read: Callable[[str], float], text: str) -> float | str:
    """Return *text* converted by *read*, or unchanged: the config then refuses it."""
    try:
        return read(text)
    except ValueError:
        return text


def share(text: str) -> float:
    """Parse a share, "0.02" or "2%"; per cent shift the decimal point by two digits.

    >>> share("2%"), share("0.02"), share("0.07%")
    (0.02, 0.02, 0.0007)
    """
    if not text.endswith("%"):
        return float(text)
    from decimal import Decimal  # lazy: keeps startup fast

    # Dividing floats would give 0.0007000000000000001 for 0.07 %: another load to a study.
    return float(Decimal(repr(float(text[:-1]))) / 100)


def read_config(
    options: argparse.Namespace,
    mistakes: ErrorList,
    *,
    send_buffer_kb: float,
    pages: Sequence[Page | None] = (),
) -> LoadConfig | None:
    """Return the config that the options describe, or None after collecting every error.

    An option that has no effect with the network of one of *pages* is an error, too.
    """
    network: Network | str | None = options.network
    if network != RECORDED:
        network = mistakes.collect(lambda: catalog.load_network(options.network))
    instead = WITHOUT_RECORDING if network is None else network
    config = mistakes.collect(lambda: _config(options, instead, send_buffer_kb, pages))
    return None if network is None else config


def _config(
    options: argparse.Namespace,
    network: Network | str,
    send_buffer_kb: float,
    pages: Sequence[Page | None],
) -> LoadConfig:
    """Return the config; errors name the options of the command line."""
    given = {entry.attribute: getattr(options, entry.attribute) for entry in fields_of(LoadConfig)}
    try:
        config = LoadConfig(**{**given, "network": network, "send_buffer_kb": send_buffer_kb})
        for page in pages:
            if page is not None:  # otherwise its error is already collected
                config_for(page, config)
    except InputError as error:
        if error.source:
            raise
        problems = (
            ValidationIssue(key=switch_of(problem.key, given), message=problem.message)
            for problem in error.problems
        )
        raise InputError(problems) from error
    return config


_SCHEMES = "marx-2019"


def add_pages(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names pages."""
    parser.add_argument(
        "pages",
        metavar="PAGE",
        nargs="+",
        help="shipped pages, page sets, page files (.json) or recordings",
    )
    add_marks(parser)


def add_marks(
    parser: argparse.ArgumentParser,
    *,
    usual: str | None = None,
    shown: str = "as marked in the page",
) -> None:
    """Add the option for resources above the fold; *shown* describes its default."""
    shown = shown if usual is None else f"{usual} if the recording has no marks"
    parser.add_argument(
        "--above-the-fold",
        metavar="FILE|heuristic|none",
        default=usual,
        help="resources above the fold: ids or globs from FILE, one per line; guessed from markup"
        f" and order; or none (default: {shown})",
    )


def add_schemes(parser: argparse.ArgumentParser, *, usual: str = _SCHEMES) -> None:
    """Add the option that names schemes; it may be repeated."""
    parser.add_argument(
        "--scheme",
        metavar="NAMES",
        action="append",
        help=f"schemes, scheme sets or scheme files (.toml), comma-separated (default: {usual})",
    )


def read_pages(options: argparse.Namespace, mistakes: ErrorList) -> list[Page]:
    """Return the named pages in the order given, after collecting an error for each unknown one."""
    groups = [
        mistakes.collect(partial(named_pages, name, options.above_the_fold))
        for name in options.pages
    ]
    return [page for group in groups for page in group or ()]


def named_pages(name: str, above_the_fold: str | None) -> list[Page]:
    """Return the pages of that name, with the requested marks.

    Raises:
        InputError: listing every error in a page, or in the file of marks.
        UnknownNameError: if there is none.
    """
    return [with_choice(page, above_the_fold) for page in resolve_pages(name)]


def named_page(name: str, above_the_fold: str | None) -> Page:
    """Return the single page of that name (not a set), with the requested marks.

    Raises:
        InputError: listing every error in the page, or in the file of marks.
        UnknownNameError: if there is none.
    """
    return with_choice(resolve_page(name), above_the_fold)


def with_choice(page: Page, above_the_fold: str | None) -> Page:
    """Return *page* with the requested marks, or with its own if none are requested.

    Raises:
        InputError: listing every error in the file of marks.
    """
    if above_the_fold is None:
        return page
    from h3sim.browser import with_marks  # lazy: keeps startup fast

    return with_marks(page, above_the_fold)


def check_choice(above_the_fold: str | None) -> None:
    """Refuse an unreadable file of marks before any page is read.

    Raises:
        InputError: if it cannot be read.
    """
    from h3sim.browser.above_the_fold import HEURISTIC, NONE  # lazy: keeps startup fast

    if above_the_fold not in (None, HEURISTIC, NONE):
        read_text(above_the_fold, InputError)


def read_schemes(
    options: argparse.Namespace, mistakes: ErrorList, *, usual: str = _SCHEMES
) -> list[Scheme]:
    """Return the named schemes, each once, after collecting an error for each unknown one."""
    names = [name for given in options.scheme or [usual] for name in given.split(",")]
    groups = [mistakes.collect(partial(resolve_schemes, name)) for name in names]
    return list(dict.fromkeys(scheme for group in groups for scheme in group or ()))
