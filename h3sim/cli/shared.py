"""Arguments that several commands share: pages, schemes and the options of a load.

The options of a load are generated from the declarations of `LoadConfig`; none is named here.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.cli import output
from h3sim.cli.command import Argument, ArgumentSet, Options
from h3sim.load import LoadConfig, resolve_pages, resolve_schemes
from h3sim.load.load_config import unknown_option
from h3sim.load.network_path import resolve_path
from h3sim.load.options import flags_of, option_of, switch_of
from h3sim.load.run import resolve_page, resolve_scheme, with_scheduler
from h3sim.page import Page
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schema import format_value, read_text
from h3sim.schema.fields import fields_of
from h3sim.schema.values import Choice, Flag, Integer, Number, Share, share
from h3sim.transport.congestion import controller_named
from h3sim.values.errors import InputError, UnknownNameError, ValidationIssue
from h3sim.values.table import format_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from h3sim.schedulers import DriverScheduler
    from h3sim.schema.arguments import ErrorCollector
    from h3sim.schema.fields import FieldSpec
    from h3sim.schemes import Scheme


_LOOK_UP_BY_OPTION: dict[str, Callable[[str], object]] = {
    "network": lambda name: name == RECORDED_NETWORK or catalog.load_network(name),
    "transport_profile": catalog.load_profile,
    "cc": controller_named,
}
"""Functions that look up the names of options."""
_SETTINGS_ATTRIBUTE = "settings"
"""Attribute of the options with the values of `--set`."""


class LoadOptions(ArgumentSet):
    """Options of network, transport, server and browser, read into `options.config`.

    Without *are_all*, only the common ones are options of their own; `--set KEY=VALUE` sets the
    others. *given* are defaults of this command; options in *but* are defined by the command
    itself; those in *hidden* are common, but shown by `--help-all` only.
    """

    def __init__(
        self,
        *,
        are_all: bool = False,
        but: Sequence[str] = (),
        hidden: Sequence[str] = (),
        **given: Any,
    ) -> None:
        self.is_rare = are_all
        self._but, self._hidden, self._given = but, hidden, given

    def add(self, parser: argparse.ArgumentParser, *, shows_all: bool) -> None:
        """Add the options to *parser*; rare ones are in its help only with *shows_all*."""
        groups: dict[str, Any] = {}
        for entry, option in _load_options():
            if entry.attribute in self._but or not (option.is_common or self.is_rare):
                continue
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group)
            is_common = option.is_common and entry.attribute not in self._hidden
            is_shown = is_common or shows_all
            target = groups[option.group]
            if option.switches:
                target = target.add_mutually_exclusive_group()
            for flag, value, about in option.switches:
                target.add_argument(
                    flag,
                    dest=entry.attribute,
                    action="store_const",
                    const=value,
                    help=about if is_shown else argparse.SUPPRESS,
                )
            if not option.switches:
                (flag,) = flags_of(LoadConfig)[entry.attribute]
                keys = self._keys(entry, option.metavar)
                if not is_shown:
                    keys["help"] = argparse.SUPPRESS
                target.add_argument(flag, dest=entry.attribute, **keys)
        if not self.is_rare:
            parser.add_argument(
                "--set",
                dest=_SETTINGS_ATTRIBUTE,
                action=_SettingsAction,
                metavar="KEY=VALUE",
                help="set another option of the load (repeatable); --set help lists them",
            )

    def _keys(self, entry: FieldSpec, metavar: str) -> dict[str, str]:
        default = self._given.get(entry.attribute, entry.default)
        default_text = "" if default is None else f" (default: {_format_default(default)})"
        if isinstance(entry.kind, Choice):
            # Other values are refused by the config, together with all other errors.
            metavar = metavar or f"{{{','.join(entry.kind.options)}}}"
        return {"help": (entry.about + default_text).replace("%", "%%"), "metavar": metavar}

    def read_into(self, options: Options, errors: ErrorCollector) -> None:
        """Read `options.config`, and check it for each page that was read before.

        `options.words_of_load` are the attributes of single options, which `call_with` must not
        pass on, since their values are in the config.
        """
        options.words_of_load = {entry.attribute for entry, _ in _load_options()} - {*self._but}
        given = dict(self._given)
        keys: dict[str, str] = {}
        for text in getattr(options, _SETTINGS_ATTRIBUTE, None) or ():
            errors.collect("", partial(_read_setting, text, given, keys))
        for entry, _ in _load_options():
            if entry.attribute not in self._but and entry.attribute in options.given:
                given[entry.attribute] = _parse_value(entry, getattr(options, entry.attribute))
                keys[entry.attribute] = switch_of(
                    LoadConfig, entry.attribute, given[entry.attribute]
                )
        # Unknown names and wrong numbers are reported together.
        names = {key: given[key] for key in _LOOK_UP_BY_OPTION if key in given}
        numbers = {key: given[key] for key in given if key not in names}
        errors.collect("", partial(_make_config, numbers, keys))
        flags = {key: flag for key, flag in keys.items() if flag != "--network"}  # as of a page
        found = [
            errors.collect(flags.get(key, ""), partial(_LOOK_UP_BY_OPTION[key], name))
            for key, name in names.items()
        ]
        options.config = None
        if None not in found:
            pages = _pages_in(options)
            options.config = errors.collect("", partial(_make_config, given, keys, pages))


class _SettingsAction(argparse.Action):
    """Action that appends each `KEY=VALUE`; "help" prints the keys instead."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, text: Any, _: Any = None
    ) -> None:
        if text == "help":
            print("\n".join(_settings_help()))
            parser.exit()
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), text])


def _load_options() -> Iterator[tuple[FieldSpec, Any]]:
    """Yield each option of a load: its field in `LoadConfig`, and its form on the command line."""
    for entry in fields_of(LoadConfig):
        yield entry, option_of(LoadConfig, entry.attribute)


def _format_default(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def _parse_value(entry: FieldSpec, text: Any) -> Any:
    """Return the value of *text*, or *text* itself if it is invalid: the config then refuses it."""
    if not isinstance(text, str):
        return text
    if isinstance(entry.kind, Share):
        read: Any = share
    elif isinstance(entry.kind, Number):
        read = int if isinstance(entry.kind, Integer) else float
    elif isinstance(entry.kind, Flag):
        read = {"true": True, "false": False}.__getitem__
    else:
        return text
    try:
        return read(text)
    except (ValueError, KeyError):
        return text


def _read_setting(text: str, given: dict[str, Any], keys: dict[str, str]) -> None:
    """Add the value of `KEY=VALUE` to *given*, and to *keys* the name of its option."""
    key, sign, value = text.partition("=")
    entries = {entry.attribute: entry for entry, _ in _load_options()}
    if not sign:
        raise InputError.at("--set", f"must be KEY=VALUE, is {text!r}; --set help lists the keys")
    key = key.strip().replace("-", "_")
    if key not in entries:
        issue = unknown_option(key, tuple(entries))
        raise InputError.at(f"--set {key}", issue.message)
    given[key], keys[key] = _parse_value(entries[key], value.strip()), f"--set {key}"


def _settings_help() -> Iterator[str]:
    """Yield a line per option of a load: its key, values and meaning."""
    for group in dict.fromkeys(option.group for _, option in _load_options()):
        rows = [
            (entry.attribute, f"{entry.about}{_describe_choices(entry)}")
            for entry, option in _load_options()
            if option.group == group
        ]
        yield f"{group}:\n{format_pairs(rows, width=output.terminal_width())}\n"


def _describe_choices(entry: FieldSpec) -> str:
    if isinstance(entry.kind, Choice):
        return f" ({', '.join(entry.kind.options)})"
    return " (true, false)" if isinstance(entry.kind, Flag) else ""


def _pages_in(options: Options) -> list[Page]:
    values = [value for value in vars(options).values() if isinstance(value, Page | list)]
    words = [word for value in values for word in (value if isinstance(value, list) else [value])]
    return [word for word in words if isinstance(word, Page)]


def _make_config(
    given: dict[str, Any], keys: dict[str, str], pages: Sequence[Page] = ()
) -> LoadConfig:
    """Return the config; errors name the options of the command line."""
    try:
        config = LoadConfig(**given)
        for page in pages:
            resolve_path(page, config)
    except UnknownNameError as error:
        error.argument = keys.get(error.argument, error.argument)
        raise
    except InputError as error:
        if error.source:
            raise
        raise InputError(
            ValidationIssue(
                key=keys.get(problem.key) or switch_of(LoadConfig, problem.key, None),
                message=problem.message,
            )
            for problem in error.problems
        ) from error
    return config


def marks(
    default: str | None = None, shown: str = "as marked in the page", *, is_rare: bool = False
) -> Argument:
    """Return the option for resources above the fold; *shown* describes its default."""
    shown = shown if default is None else f"{default} if the recording has no marks"
    return Argument(
        "--above-the-fold FILE|heuristic|none",
        "resources above the fold: ids or globs from FILE, one per line; guessed from markup"
        f" and order; or none (default: {shown})",
        default=default,
        is_rare=is_rare,
    )


def with_marks(page: Page, above_the_fold: str | None) -> Page:
    """Return *page* with the requested marks, or with its own if none are requested.

    Raises:
        InputError: listing every error in the file of marks.
    """
    if above_the_fold is None:
        return page
    from h3sim import browser  # lazy: keeps startup fast

    return browser.with_marks(page, above_the_fold)


def check_marks(options: Options) -> None:
    """Refuse an unreadable file of marks before any page is read.

    Raises:
        InputError: if it cannot be read.
    """
    from h3sim.browser.above_the_fold import HEURISTIC, NONE  # lazy: keeps startup fast

    if options.above_the_fold not in (None, HEURISTIC, NONE):
        read_text(options.above_the_fold, InputError)


def read_page(name: str, options: Options) -> Page:
    """Return the page of that name (not a set), with the requested marks."""
    return with_marks(resolve_page(name), options.above_the_fold)


def read_pages(name: str, options: Options) -> list[Page]:
    """Return the pages of that name, with the requested marks."""
    return [with_marks(page, options.above_the_fold) for page in resolve_pages(name)]


def read_scheme(name: str, _: Options) -> Scheme:
    """Return the scheme of that name or file."""
    return resolve_scheme(name)


def read_schemes(name: str, _: Options) -> list[Scheme]:
    """Return the schemes of that name, set or file."""
    return resolve_schemes(name)


def read_network(name: str, _: Options) -> str:
    """Return *name*, if it is the name of a network."""
    catalog.load_network(name)
    return name


PAGES = Argument(
    "PAGE",
    "shipped pages, page sets, page files (.json) or recordings",
    dest="pages",
    nargs="+",
    many="words",
    read=read_pages,
)


def scheme(
    default: str = "rr",
    about: str = "a shipped scheme or a file (.toml)",
    read: Callable[[str, Options], Scheme] = read_scheme,
) -> Argument:
    """Return the option that names one scheme."""
    return Argument("--scheme NAME", about, default=default, read=read)


def read_driver(command: str, _: Options) -> DriverScheduler:
    """Return the scheduler that runs as *command*, once it has answered.

    Raises:
        InputError: if the command cannot be started.
        SchedulerError: if it does not speak the protocol.
    """
    from h3sim.schedulers import DriverScheduler  # lazy: starting processes imports much

    driver = DriverScheduler(command)
    driver.start()
    return driver


def with_process(scheme: Scheme, driver: DriverScheduler) -> Scheme:
    """Return *scheme* scheduled by *driver* and named after it; the clients stay the same."""
    name = driver.start().get("name")
    name = name if isinstance(name, str) and name else Path(driver.command[0]).name
    return with_scheduler(scheme, driver, name=name)


def scheduler_process(about: str, *, is_rare: bool = False) -> Argument:
    """Return the option of a driver that replaces a scheme's scheduler."""
    return Argument("--scheduler-process COMMAND", about, read=read_driver, is_rare=is_rare)


def schemes(default: str = "marx-2019") -> Argument:
    """Return the option that names schemes; it may be repeated."""
    return Argument(
        "--scheme NAMES",
        "schemes, scheme sets or scheme files (.toml), comma-separated",
        default=default,
        action="append",
        many="commas",
        read=read_schemes,
        dest="schemes",
    )


class Halves(ArgumentSet):
    """Options `--client` and `--server`: schemes that are a client before a server.

    With *is_single* there is one, instead of `--scheme`; otherwise they join the schemes given.
    """

    def __init__(self, *, is_single: bool = False) -> None:
        self._is_single = is_single

    def add(self, parser: argparse.ArgumentParser, *, shows_all: bool) -> None:
        """Add the options to *parser*."""
        del shows_all
        noun = "NAME" if self._is_single else "NAMES"
        several = "" if self._is_single else "s, comma-separated, or all"
        defaults = {"client": catalog.DEFAULT_CLIENT, "server": catalog.DEFAULT_SERVER}
        for half, default in defaults.items():
            about = f"{half}{several or ' or its file'} (default beside the other: {default})"
            parser.add_argument(f"--{half}", metavar=noun, help=about)

    def read_into(self, options: Options, errors: ErrorCollector) -> None:
        """Read the pairs into `options.scheme` or `options.schemes`."""
        halves = [name and name.split(",") for name in (options.client, options.server)]
        options.given_server, options.client, options.server = options.server, None, None
        options.halves = []
        if halves == [None, None]:
            return
        pairs = [
            errors.collect("", partial(catalog.load_scheme, name))
            for name in errors.collect("", partial(catalog.pair_names, *halves), default=())
        ]
        if pairs and None not in pairs:
            loads = (catalog.load_client, catalog.load_server)
            options.halves = [
                load(name)
                for load, names in zip(loads, halves, strict=True)
                for name in names or ()
                if name != "all"
            ]
        if not self._is_single:
            options.schemes = [
                *((options.schemes or ()) if "schemes" in options.given else ()),
                *pairs,
            ]
            return
        options.scheme = pairs[0] if pairs else None
        if "scheme" in options.given:
            message = "names a client before a server: it does not go with --client or --server"
            errors.collect("", partial(_refuse_at, "--scheme", message))
        if len(pairs) > 1:
            message = f"must be one client before one server, names {len(pairs)} pairs"
            errors.collect("", partial(_refuse_at, "--server", message))


def _refuse_at(key: str, message: str) -> None:
    raise InputError.at(key, message)


def check_names(options: Options) -> None:
    """Refuse different pages or schemes with the same name."""
    from h3sim.study import check_names as check  # on use: a single load needs no study

    check(pages=options.pages, schemes=options.schemes)


def read_values(option: str, given: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of each KEY=VALUES that *option* has.

    >>> read_values("--param", ["turn_packets=1,4", "classes.all.incremental=true"])
    {'turn_packets': [1, 4], 'classes.all.incremental': [True]}
    """
    wrong = [text for text in given if not all(text.partition("=")[::2])]
    if wrong:
        raise InputError.at(option, f"must be like KEY=1,4, is {format_value(wrong[0])}")
    pairs = [text.partition("=")[::2] for text in given]
    keys = [key for key, _ in pairs]
    for key in dict.fromkeys(keys):
        if keys.count(key) > 1:
            raise InputError.at(option, f"{key}: is given twice: put its values in one list")
    return {key: [_read_value(text) for text in values.split(",")] for key, values in pairs}


def _read_value(text: str) -> Any:
    """Return the value of *text* in a file: a number, true, false, or text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text
