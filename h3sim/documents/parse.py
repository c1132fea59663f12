"""Text as a document: TOML and JSON, with what breaks their parsers told in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from h3sim.documents.shown import shown
from h3sim.documents.toml_limits import exceeded_limit
from h3sim.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.errors import InputError

__all__ = ["parse_json", "parse_toml"]


def parse_toml(text: str, error: type[InputError], *, source: str) -> dict[str, Any]:
    """Return the TOML document that *text* is.

    Raises:
        error: if it is not TOML, exceeds a limit of `toml_limits`, or holds a number of thousands
            of digits.
    """
    import tomllib  # on use: importing h3sim should stay quick

    try:
        message = exceeded_limit(text)
        if not message:
            return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as caught:
        message = f"is not TOML: {caught}"
    except RecursionError:
        message = "is nested too deeply"
    except ValueError:  # int() refuses it; CPython's limit is 4,300 digits
        message = "is not TOML that can be used: a number has thousands of digits"
    except (AttributeError, TypeError):
        message = f"must be text, is {shown(text)}"
    raise error([Problem(key="", message=message)], source)


def parse_json(text: str, error: type[InputError], *, source: str) -> object:
    """Return the JSON document that *text* is; its objects know which keys stood in them twice.

    Raises:
        error: if it is not JSON, is nested too deeply, or holds a number of thousands of digits.
    """
    try:
        document: object = json.loads(text, object_pairs_hook=_Object, parse_constant=_NotANumber)
    except json.JSONDecodeError as caught:
        message = f"is not JSON: {caught.msg} at line {caught.lineno}, column {caught.colno}"
    except RecursionError:
        message = "is nested too deeply"
    except ValueError as caught:
        message = f"is not JSON that can be used: {caught}"
    except TypeError:
        message = f"must be text, is {shown(text)}"
    else:
        return document
    raise error([Problem(key="", message=message)], source)


class _Object(dict[str, object]):
    """A JSON object that remembers which keys stood in it twice."""

    def __init__(self, pairs: Iterable[tuple[str, object]]) -> None:
        super().__init__()
        self.twice: list[str] = []
        for key, value in pairs:
            if key in self:
                self.twice.append(key)
            self[key] = value


class _NotANumber:
    """NaN or Infinity, which Python's parser takes and JSON does not have: no field accepts it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text
