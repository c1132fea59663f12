"""HAR 1.2 as a JSON Schema, written from http://www.softwareishard.com/blog/har-12-spec/.

The specification allows more fields in any object if their names begin with an underscore; other
fields that it does not name are mistakes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["HAR_SCHEMA"]

_TEXT: dict[str, Any] = {"type": "string"}
_DATE: dict[str, Any] = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
}
_DURATION: dict[str, Any] = {"type": "number", "minimum": 0}
_UNKNOWN_OR_DURATION: dict[str, Any] = {"anyOf": [_DURATION, {"const": -1}]}
_SIZE: dict[str, Any] = {"type": "integer", "minimum": -1}
_URL: dict[str, Any] = {"type": "string", "pattern": r"^https?://[^\s<>\"]+$"}


def _object(needed: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(needed),
        "properties": {**needed, **optional, "comment": _TEXT},
        "patternProperties": {"^_": True},
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_NAMED = _object({"name": _TEXT, "value": _TEXT})
_COOKIE = _object({"name": _TEXT, "value": _TEXT})
_CACHED = {"type": ["object", "null"]}
_MESSAGE = {
    "httpVersion": _TEXT,
    "cookies": _list(_COOKIE),
    "headers": _list(_NAMED),
    "headersSize": _SIZE,
    "bodySize": _SIZE,
}
_REQUEST = _object(
    {"method": _TEXT, "url": _URL, **_MESSAGE, "queryString": _list(_NAMED)},
    postData={"type": "object"},
)
_CONTENT = _object(
    {"size": {"type": "integer", "minimum": 0}, "mimeType": _TEXT},
    compression={"type": "integer"},
    text=_TEXT,
    encoding=_TEXT,
)
_RESPONSE = _object(
    {
        "status": {"type": "integer"},
        "statusText": _TEXT,
        **_MESSAGE,
        "content": _CONTENT,
        "redirectURL": _TEXT,
    }
)
_TIMINGS = _object(
    {"send": _DURATION, "wait": _DURATION, "receive": _DURATION},
    blocked=_UNKNOWN_OR_DURATION,
    dns=_UNKNOWN_OR_DURATION,
    connect=_UNKNOWN_OR_DURATION,
    ssl=_UNKNOWN_OR_DURATION,
)
_ENTRY = _object(
    {
        "startedDateTime": _DATE,
        "time": _DURATION,
        "request": _REQUEST,
        "response": _RESPONSE,
        "cache": _object({}, beforeRequest=_CACHED, afterRequest=_CACHED),
        "timings": _TIMINGS,
    },
    pageref=_TEXT,
    serverIPAddress=_TEXT,
    connection=_TEXT,
)
_PAGE = _object(
    {
        "startedDateTime": _DATE,
        "id": _TEXT,
        "title": _TEXT,
        "pageTimings": _object({}, onContentLoad=_UNKNOWN_OR_DURATION, onLoad=_UNKNOWN_OR_DURATION),
    }
)
_SOFTWARE = _object({"name": _TEXT, "version": _TEXT})

HAR_SCHEMA = _object(
    {
        "log": _object(
            {"version": {"const": "1.2"}, "creator": _SOFTWARE, "entries": _list(_ENTRY)},
            browser=_SOFTWARE,
            pages=_list(_PAGE),
        )
    }
)
"""What a HAR 1.2 is."""
