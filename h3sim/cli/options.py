"""The options by which several commands change network, transport and browser.

Each comes of the declaration of a field of `LoadConfig`; none is named here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.documents.declared import declared
from h3sim.documents.values import Choice, Number, Whole
from h3sim.errors import InputError, Problem
from h3sim.study import LoadConfig
from h3sim.study.config import config_for
from h3sim.study.load_option import option_of
from h3sim.study.recorded_network import RECORDED, WITHOUT_RECORDING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.cli.parsing import Mistakes
    from h3sim.documents.declared import Declared
    from h3sim.page import Page
    from h3sim.study.load_option import Option
    from h3sim.transport import Network

__all__ = ["add_buffer_option", "add_load_options", "read_config", "share", "switch", "switch_of"]

_LONGEST_SAMPLE_MS = 1e9
_AS_IN_A_NETWORK = {"loss_burst": "mean_loss_burst"}
"""Keys of a network file that the command line calls otherwise."""


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say over what a page is loaded."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for entry in declared(LoadConfig):
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
        raise InputError([Problem(key="--sample-ms", message=message)])


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
    for entry in declared(LoadConfig):
        if entry.attribute == key:
            for flag, value, _ in option_of(LoadConfig, key).switches:
                if given[key] == value:
                    return flag
    return switch(key)


def _argument(entry: Declared, how: Option) -> dict[str, Any]:
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
    mistakes: Mistakes,
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
    given = {entry.attribute: getattr(options, entry.attribute) for entry in declared(LoadConfig)}
    try:
        config = LoadConfig(**{**given, "network": network, "send_buffer_kb": send_buffer_kb})
        for page in pages:
            if page is not None:  # one that could not be read is told already
                config_for(page, config)
    except InputError as error:
        if error.source:
            raise
        problems = (
            Problem(key=switch_of(problem.key, given), message=problem.message)
            for problem in error.problems
        )
        raise InputError(problems) from error
    return config
