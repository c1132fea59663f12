"""Options that several commands share: pages, schemes, network, transport and browser.

Each comes of the declaration of a field of `LoadConfig`; none is named here.
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
"""Keys of a network file that the command line calls otherwise."""


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say over what a page is loaded."""
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
    """Add the option that gives the server one send buffer."""
    parser.add_argument(
        "--send-buffer-kb",
        type=partial(_or_text, float),
        default=0.0,
        metavar="KB",
        help="the send buffer, in kB of 1000 bytes (default: none)",
    )


def add_sample_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that shows sampled ByteIndexes, too."""
    parser.add_argument(
        "--sample-ms",
        type=float,
        metavar="MS",
        help="show ByteIndexes sampled so often, too: 100 as in Marx 2019, to compare with that"
        " paper",
    )


def check_sample_option(options: argparse.Namespace) -> None:
    """Refuse an interval of nothing.

    Raises:
        InputError: if it is not more than 0.
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
    """Return the option that gave the value of a field of `LoadConfig`: of flags, the one set.

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
        # The config refuses what is none of them, and tells it with all that is wrong besides.
        return {**argument, "metavar": f"{{{','.join(entry.kind.options)}}}"}
    if how.is_share:
        argument["type"] = partial(_or_text, share)
    elif isinstance(entry.kind, Number):
        argument["type"] = partial(_or_text, int if isinstance(entry.kind, Whole) else float)
    return {**argument, "metavar": how.metavar}


def _or_text(read: Callable[[str], float], text: str) -> float | str:
    """Return what *read* makes of *text*, or the text, which the config refuses with the rest."""
    try:
        return read(text)
    except ValueError:
        return text


def share(text: str) -> float:
    """Return the share that *text* says: 0.02, or 2%; per cent as if two digits stood behind.

    >>> share("2%"), share("0.02"), share("0.07%")
    (0.02, 0.02, 0.0007)
    """
    if not text.endswith("%"):
        return float(text)
    from decimal import Decimal  # on use: starting should stay quick

    # Not divided as floats: of 0.07 that leaves 0.0007000000000000001, another load for a study.
    return float(Decimal(repr(float(text[:-1]))) / 100)


def read_config(
    options: argparse.Namespace,
    mistakes: ErrorList,
    *,
    send_buffer_kb: float,
    pages: Sequence[Page | None] = (),
) -> LoadConfig | None:
    """Return the config that the options say, or None after noting every mistake in them.

    What the network of one of *pages* has no use for is a mistake, too.
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
    """Return the config; mistakes are told by the names of the command line."""
    given = {entry.attribute: getattr(options, entry.attribute) for entry in fields_of(LoadConfig)}
    try:
        config = LoadConfig(**{**given, "network": network, "send_buffer_kb": send_buffer_kb})
        for page in pages:
            if page is not None:  # one that could not be read is told already
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
        help="shipped pages, sets of them, files.json, or recordings",
    )
    add_marks(parser)


def add_marks(
    parser: argparse.ArgumentParser, *, usual: str | None = None, shown: str = "as the page says"
) -> None:
    """Add the option that says what is above the fold; *shown* is what happens without it."""
    shown = shown if usual is None else f"{usual}, where the recording does not know"
    parser.add_argument(
        "--above-the-fold",
        metavar="FILE|heuristic|none",
        default=usual,
        help="what is above the fold: the ids or globs in FILE, one a line; or what markup and"
        f" order make likely; or nothing (default: {shown})",
    )


def add_schemes(parser: argparse.ArgumentParser, *, usual: str = _SCHEMES) -> None:
    """Add the option that names schemes; it may stand more than once."""
    parser.add_argument(
        "--scheme",
        metavar="NAMES",
        action="append",
        help=f"schemes, sets of them, or files.toml, with commas between (default: {usual})",
    )


def read_pages(options: argparse.Namespace, mistakes: ErrorList) -> list[Page]:
    """Return the pages that are meant, in the order given, after noting every unknown one."""
    groups = [
        mistakes.collect(partial(named_pages, name, options.above_the_fold))
        for name in options.pages
    ]
    return [page for group in groups for page in group or ()]


def named_pages(name: str, above_the_fold: str | None) -> list[Page]:
    """Return the pages of that name, with the marks that are asked for.

    Raises:
        InputError: listing every mistake in a page, or in the file of marks.
        UnknownNameError: if there is none.
    """
    return [with_choice(page, above_the_fold) for page in resolve_pages(name)]


def named_page(name: str, above_the_fold: str | None) -> Page:
    """Return the page of that name, no set of them, with the marks that are asked for.

    Raises:
        InputError: listing every mistake in the page, or in the file of marks.
        UnknownNameError: if there is none.
    """
    return with_choice(resolve_page(name), above_the_fold)


def with_choice(page: Page, above_the_fold: str | None) -> Page:
    """Return *page* with the marks that are asked for, its own where none are.

    Raises:
        InputError: listing every mistake in the file of marks.
    """
    if above_the_fold is None:
        return page
    from h3sim.browser import with_marks  # on use: starting should stay quick

    return with_marks(page, above_the_fold)


def check_choice(above_the_fold: str | None) -> None:
    """Refuse a file of marks that cannot be read, before there is a page that it could mark.

    Raises:
        InputError: if it cannot be read.
    """
    from h3sim.browser.above_the_fold import HEURISTIC, NONE  # on use: starting should stay quick

    if above_the_fold not in (None, HEURISTIC, NONE):
        read_text(above_the_fold, InputError)


def read_schemes(
    options: argparse.Namespace, mistakes: ErrorList, *, usual: str = _SCHEMES
) -> list[Scheme]:
    """Return the schemes that are meant, each once, after noting every unknown one."""
    names = [name for given in options.scheme or [usual] for name in given.split(",")]
    groups = [mistakes.collect(partial(resolve_schemes, name)) for name in names]
    return list(dict.fromkeys(scheme for group in groups for scheme in group or ()))
