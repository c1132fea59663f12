"""Commands as declarations: arguments with their readers, and the parser made of them.

`@command` makes a function a command: it lists the arguments, and the docstring is the help. The
parser, the reading of values and the list of errors follow from it. Options of a load are those of
`LoadConfig`: `LoadOptions` adds all, or the common ones and `--set KEY=VALUE` for the others.
"""

from __future__ import annotations

import argparse
import inspect
import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from h3sim.cli import output
from h3sim.cli.output import progress_bar as progress_bar  # validation/ imports it from here
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector, check_arguments
from h3sim.schema.values import Integer, Number, Share, share
from h3sim.values.errors import InputError, UnknownNameError, ValidationIssue
from h3sim.values.likeness import did_you_mean, names_like
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.schema.values import ValueType

    FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


Options = argparse.Namespace
"""Values of all arguments of a command, by attribute."""
FAILED = 1
"""Exit code of a run that failed."""
BAD_INPUT = 2
"""Exit code of bad usage or bad input."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps examples as typed and finds its width without importing shutil.

    argparse makes a formatter for every argument, so importing shutil would slow every start.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=output.terminal_width() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs to the terminal; keep examples as typed."""
        import textwrap  # for help only

        return "".join(
            textwrap.indent(part if "\n  " in part else textwrap.fill(part, width), indent) + "\n\n"
            for part in text.strip("\n").split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """Argument parser that reports every error, one per line, and points to help."""

    def __init__(self, **keys: Any) -> None:
        # Collected, so that all are reported at once.
        self._errors_by_name: dict[str, str] = {}
        super().__init__(**{"formatter_class": HelpFormatter} | keys)

    def parse_known_args(  # type: ignore[override]  # the signature that subparsers call
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Options, list[str]]:
        """Refuse unknown arguments here, where the command's name and options are known."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = _hint_for_flag(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        if "" in self._errors_by_name:
            self.error(self._errors_by_name.pop(""))
        # The command reports the others, with all errors that it finds itself.
        options.refused = getattr(options, "refused", {}) | self._errors_by_name
        return options, unknown

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return the value of a word; report a bad one after all others have been checked."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            expected = _TYPE_DESCRIPTIONS.get(getattr(action.type, "__name__", ""))
            message = (
                error.message
                if expected is None
                else f"must be {expected}, is {format_value(arg_string)}"
            )
            self._errors_by_name[_display_name(action)] = message
            return _REFUSED_VALUE

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Collect a value that is not one of the choices, instead of exiting."""
        if value is _REFUSED_VALUE or action.choices is None or value in action.choices:
            return
        message = f"{format_value(value)} is not one of {', '.join(map(str, action.choices))}"
        hint = did_you_mean(str(value), action.choices)
        name = _display_name(action)
        if action.nargs == argparse.PARSER:  # a command: nothing else can be read
            self.error(f"no {name} is called {format_value(value)}{hint}")
        self._errors_by_name[name] = f"{message}{hint}"

    def error(self, message: str) -> NoReturn:
        """Exit with 2 after one line per error; the last line points to help."""
        refused = (f"{name}: {text}" for name, text in self._errors_by_name.items())
        lines = [f"{self.prog}: {escape_control(line)}" for line in (*refused, message)]
        self.exit(BAD_INPUT, "\n".join(lines) + f" (see `{self.prog} --help`)\n")


_REFUSED_VALUE: Any = object()
"""Placeholder for the value of a refused word."""
_TYPE_DESCRIPTIONS = {
    "int": "a whole number",
    "float": "a number",
    "share": "a share (0.02, or 2%)",
}
"""Names of the values of argparse types in messages, by the name of the type's function."""


def _display_name(action: argparse.Action) -> str:
    """Return the display name of an argument: its longest switch, or its metavar."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.nargs == argparse.PARSER:
        return metavar.lower()
    return max(action.option_strings, key=len, default="" if action.choices else metavar)


def _hint_for_flag(flag: str, known: Mapping[str, Any]) -> str:
    """Return a hint on an unknown flag for the end of a message: similar flags."""
    from h3sim.load.load_config import LoadConfig  # lazy, as below: needed for errors only
    from h3sim.load.options import flags_of

    if flag == "--set" and "--help-all" in known:
        return "; each option of a load is an option of its own here: see --help-all"
    settings = flags_of(LoadConfig) if "--set" in known else {}
    for key, values in settings.items():
        if flag in values:
            return f"; use --set {key}={values[flag] or 'VALUE'}"
    shown = {name: name for name in known} | {
        key: f"--set {key}=VALUE" for key, values in settings.items() if not values.keys() & known
    }
    near = [shown[name] for name in names_like(flag, shown)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


class Argument:
    """Argument of a command: its form on the command line, its help and its reader.

    *form* is `PAGE`, `--scheme NAME`, `-j --workers N` or, for a flag, `--json`. A value is checked
    by *kind* and then passed to *read* with all options. With *many* "words" or "commas", each
    word, or part between commas, is read separately, and the value is a list without duplicates.
    *output* has the suffixes of a file to be written, () for any. The argument is valid only with
    the option *needs*, and not with *not_with*. A rare argument is in the help of `--help-all`
    only. *keys* are argparse's.
    """

    def __init__(
        self,
        form: str,
        about: str,
        kind: ValueType | None = None,
        *,
        default: Any = None,
        read: Callable[[Any, Options], Any] | None = None,
        many: str = "",
        output: Sequence[str] | None = None,
        needs: str = "",
        not_with: str = "",
        is_rare: bool = False,
        group: str = "",
        **keys: Any,
    ) -> None:
        *flags, last = form.split()
        self.flags = (*flags, last) if last.startswith("-") else (*flags,)
        self.metavar = "" if last.startswith("-") else last
        self.name = max(self.flags, key=len, default=last)
        self.dest = keys.pop("dest", _attribute_name(self.name))
        self.about, self.kind, self.default, self.many = about, kind, default, many
        self.output, self.needs, self.not_with = output, needs, not_with
        self.is_rare, self.group, self._read, self._keys = is_rare, group, read, keys

    def add(self, parser: argparse.ArgumentParser, *, shows_all: bool = True) -> None:
        """Add the argument to *parser*; rare ones are in its help only with *shows_all*."""
        target: Any = parser
        if self.group:
            groups = {group.title: group for group in parser._action_groups}
            target = groups.get(self.group) or parser.add_argument_group(self.group)
        keys: dict[str, Any] = {**self._argparse_type(), **self._keys}
        keys["help"] = argparse.SUPPRESS if self.is_rare and not shows_all else self._help_text()
        if self.metavar and "choices" not in keys:
            keys["metavar"] = self.metavar
        if self.flags:
            target.add_argument(*self.flags, dest=self.dest, **keys)
        else:
            target.add_argument(self.dest, **{"metavar": self.metavar} | keys)

    @property
    def _is_switch(self) -> bool:
        return not self.metavar and "action" not in self._keys

    def _argparse_type(self) -> dict[str, Any]:
        if not self.metavar:
            return {"action": "store_true", "default": None}
        if self.many or not isinstance(self.kind, Number):
            return {}
        return {"type": _number_parser(self.kind)}

    def _help_text(self) -> str:
        text, default = self.about, self.default
        if default not in (None, "", ()) and "default" not in text:
            shown = f"{default:g}" if isinstance(default, float) else str(default)
            text = f"{text} (default: {shown})"
        return text.replace("%", "%%")  # as argparse formats it

    @property
    def usage(self) -> str:
        """Part of the line of usage: required arguments."""
        if self.flags:
            return " ".join((*self.flags[:1], self.metavar)) if self._keys.get("required") else ""
        several = {"+": " [{0} ...]", "*": " ..."}.get(self._keys.get("nargs", ""), "")
        return f"{self.metavar}{several.format(self.metavar)}"

    def read_into(self, options: Options, errors: ErrorCollector) -> None:
        """Replace the word in *options* by the value, or by None after collecting errors."""
        value = getattr(options, self.dest)
        if self.dest in options.given:
            errors.collect("", partial(self._refuse_wrong, options))
        if value is None or (not self.flags and value == []):
            if self._is_switch:
                setattr(options, self.dest, False)
            return
        if not self.many:
            value = errors.collect("", partial(self._read_value, value, options))
        else:
            # A dictionary, unlike a set, keeps the order.
            values: dict[Any, None] = {}
            for word in self._split_words(value):
                read = errors.collect("", partial(self._read_value, word, options))
                values |= dict.fromkeys(read if isinstance(read, list) else [read])
            value = [each for each in values if each is not None]  # None: an error was collected
        setattr(options, self.dest, value)

    def _split_words(self, value: Any) -> list[str]:
        words = value if isinstance(value, list) else [value]
        if self.many != "commas":
            return words
        return [part.strip() for word in words for part in word.split(",")]

    def _read_value(self, value: Any, options: Options) -> Any:
        """Return the value of an argument as the command uses it."""
        if self.kind is not None:
            number = _parse_number(value, self.kind) if isinstance(self.kind, Number) else value
            value = check_arguments(InputError, **{self.name: (self.kind, number)})[self.name]
        if self.output is not None:
            output.check_output_path(value, self.output, key=self.name)
        try:
            return value if self._read is None else self._read(value, options)
        except UnknownNameError as error:
            error.argument = ""  # a message about a name needs no option
            raise

    def _refuse_wrong(self, options: Options) -> None:
        """Refuse a word that is not a valid value, and options that exclude each other."""
        if self.name in options.refused:
            raise InputError.at(self.name, options.refused[self.name])
        if self.needs and _attribute_name(self.needs) not in options.given:
            raise InputError.at(self.name, f"goes only with {self.needs}")
        if self.not_with and _attribute_name(self.not_with) in options.given:
            raise InputError.at(self.name, f"does not go with {self.not_with}")


def _attribute_name(name: str) -> str:
    """Return the attribute of an option or an argument."""
    return name.strip("-").replace("-", "_").lower()


def group(title: str, *arguments: Argument, needs: str = "") -> Sequence[Argument]:
    """Return *arguments* with their own heading; all are valid only with the option *needs*."""
    for argument in arguments:
        argument.group, argument.needs = title, argument.needs or needs
    return arguments


def _number_parser(kind: Number) -> Callable[[str], float]:
    return share if isinstance(kind, Share) else int if isinstance(kind, Integer) else float


def _parse_number(value: Any, kind: Number) -> Any:
    """Return the number that *value* spells, or *value* itself, which is then rejected."""
    try:
        return _number_parser(kind)(value) if isinstance(value, str) else value
    except ValueError:
        return value


class ArgumentSet:
    """Group of arguments that are read together."""

    def add(self, parser: argparse.ArgumentParser, *, shows_all: bool) -> None:
        """Add the arguments to *parser*."""
        raise NotImplementedError

    def read_into(self, options: Options, errors: ErrorCollector) -> None:
        """Replace the words in *options* by values, after collecting errors."""
        raise NotImplementedError

    usage = ""
    is_rare = False


class Command(NamedTuple):
    """Command: its function, its arguments and its help.

    *function* is called with the options for which it has parameters; a parameter `options` gets
    all. If there is a function *of*, that is called instead, and *function* shows its result.
    """

    function: Callable[..., Any] | None = None
    """None if the command has only actions, such as `store list`."""
    arguments: Sequence[Argument | ArgumentSet] = ()
    about: str = ""
    """The help: a description, examples and remarks."""
    of: Callable[..., Any] | None = None
    checks: Sequence[Callable[[Options], object]] = ()
    """Functions that raise `InputError` for wrong options; invalid ones are None."""
    document: Callable[[Any, Options], Any] = lambda found, _: found.to_dict()
    """Returns the result of *of* as JSON data, for `--json`."""
    progress: str = "load"
    """Unit of the progress bar."""

    def add_to(self, parser: Parser, name: str, *, shows_all: bool) -> None:
        """Add the help, and the arguments or actions, to *parser*."""
        parser.description, _, parser.epilog = self.about.partition("\n\n")
        if self.function is None:
            actions = parser.add_subparsers(required=True, metavar="ACTION", parser_class=Parser)
            for full_name, action in COMMANDS.items():
                if full_name.startswith(f"{name} "):
                    subparser = actions.add_parser(
                        full_name.removeprefix(f"{name} "), help=action.about
                    )
                    action.add_to(subparser, full_name, shows_all=shows_all)
            return
        if any(argument.is_rare for argument in self.arguments):
            parser.add_argument("--help-all", action="help", help="show all options and exit")
        for argument in self.arguments:
            argument.add(parser, shows_all=shows_all)
        words = (argument.usage for argument in self.arguments)
        parser.usage = " ".join(filter(None, (parser.prog, "[OPTION ...]", *words)))
        parser.set_defaults(command=self)  # `main` runs it

    def run(self, options: Options) -> int:
        """Read the arguments, call the function and show its result; return the exit code.

        Raises:
            InputError: listing every error in the arguments.
        """
        outputs = [a for a in self.arguments if isinstance(a, Argument) and a.output is not None]
        # Before words are replaced by values, and defaults are set.
        words = [*_input_words(options, but=[argument.dest for argument in outputs])]
        options.given = {
            name for name, value in vars(options).items() if value not in (None, [])
        } - {"command", "arguments", "refused"}
        options.width = None if getattr(options, "no_truncate", False) else output.terminal_width()
        for name in [name for name, value in vars(options).items() if value is _REFUSED_VALUE]:
            setattr(options, name, None)
        for argument in self.arguments:
            if isinstance(argument, Argument) and argument.dest not in options.given:
                setattr(options, argument.dest, argument.default)
        with ErrorCollector() as errors:
            for argument in self.arguments:
                argument.read_into(options, errors)
            errors.collect("", lambda: check_outputs_differ(options, words, outputs))
            for check in self.checks:
                errors.collect("", partial(check, options))
        assert self.function is not None, "a command with actions is not run"  # noqa: S101
        with progress_bar(self.progress) as options.progress:
            found = call_with(self.of or self.function, options)
        if self.of is None:
            return found or 0
        if options.json:
            output.print_json(self.document(found, options))
            return 0
        return self.function(found, options) or 0


COMMANDS: dict[str, Command] = {}
"""Every command whose module is imported, by name; "store list" is an action of "store"."""


def command(
    name: str, *arguments: Argument | ArgumentSet, about: str = "", **more: Any
) -> Callable[[FunctionT], FunctionT]:
    """Make the decorated function a command with these *arguments*; *more* are its other fields.

    Its help is *about*, or else the docstring.
    """

    def add(function: FunctionT) -> FunctionT:
        text = about or inspect.cleandoc(function.__doc__ or "")
        text = text.replace("\n\nExamples:\n", "\n\nexamples:\n")
        if " " in name:  # the list of actions and the help of an action have one phrase
            text = text[0].lower() + text[1:].removesuffix(".")
        COMMANDS[name] = Command(function, arguments, text, **more)
        return function

    return add


def call_with(function: Callable[..., Any], options: Options, /, **more: Any) -> Any:
    """Call *function* with *more*, and with the options that it has parameters for.

    Options that are None are left out if the function has a default; those of a load are in
    `config`, with their types. A parameter `options` gets all of them.
    """
    values = {"options": options} | vars(options)
    own = {*more, *getattr(options, "words_of_load", ())}
    given = {
        parameter.name: values.get(parameter.name)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        and parameter.name not in own
        and (values.get(parameter.name) is not None or parameter.default is parameter.empty)
    }
    return function(**given, **more)


def refuse(problems: Iterable[tuple[str, str]]) -> None:
    """Refuse the command line if there are *problems*: names of options, each with a message.

    Raises:
        InputError: with one issue per problem.
    """
    issues = [ValidationIssue(key=key, message=message) for key, message in problems]
    if issues:
        raise InputError(issues)


def check_outputs_differ(
    options: Options, words: Iterable[str], outputs: Iterable[Argument]
) -> None:
    """Refuse, before anything runs, outputs that would overwrite an input or each other.

    *words* are those of the command line that do not name an output.

    Raises:
        InputError: with one issue per conflicting path.
    """
    taken = {_resolved_path(path): "an input file" for path in words if os.path.isfile(path)}  # noqa: PTH113 - words and paths alike
    problems = []
    for argument in outputs:
        path = getattr(options, argument.dest)
        # A device such as /dev/null may be written to twice.
        if not isinstance(path, str) or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113
            continue
        if (other := taken.get(_resolved_path(path))) is not None:
            message = f"{format_value(path)} is also {other}: choose another file"
            problems.append((argument.name, message))
        taken[_resolved_path(path)] = argument.name
    refuse(problems)


def _input_words(options: Options, but: Sequence[str]) -> Iterator[str]:
    """Yield each word of the command line, except those of options *but*."""
    for name, value in vars(options).items():
        # "arguments" is the whole command line, with outputs.
        if name not in (*but, "arguments"):
            words = value if isinstance(value, list) else [value]
            yield from (word for word in words if isinstance(word, str))


def _resolved_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a loop of links or a NUL, refused when it is opened
        return path
