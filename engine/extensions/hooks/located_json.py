"""JSON whose objects know their lines, for errors in files that people write; no name may be there twice."""

from __future__ import annotations

import json
import json.decoder
import json.scanner
from bisect import bisect_right
from typing import Any, Final, cast

_OBJECT: Final[Any] = vars(json.decoder)["JSONObject"]
_SCANNER: Final[Any] = vars(json.scanner)["py_make_scanner"]
"""The reader of the standard library in Python, which tells where an object begins; the one in C does not."""


class LocatedError(Exception):
    """Raised for a text that is no JSON, or holds a name twice; a clause for people, and the line."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


class LocatedObject(dict[str, object]):
    """A JSON object, and the line of its opening brace."""

    line: int = 1


def located(content: bytes) -> object:
    """The value of a JSON text in UTF-8.

    Raises:
        LocatedError: it is none.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LocatedError("it is not UTF-8", content.count(b"\n", 0, error.start) + 1) from error
    try:
        return cast("object", _Decoder(text).decode(text))
    except json.JSONDecodeError as error:
        raise LocatedError(f"it is no JSON ({error.msg})", error.lineno) from error
    except RecursionError as error:
        raise LocatedError("it is nested too deeply", 1) from error


class _Twice(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Decoder(json.JSONDecoder):
    def __init__(self, text: str) -> None:
        super().__init__(object_pairs_hook=_once, parse_constant=_refuse)
        self._breaks = [place for place, character in enumerate(text) if character == "\n"]
        self.parse_object: Any = self._object
        self.scan_once: Any = _SCANNER(self)

    def _object(self, begin: tuple[str, int], *arguments: Any) -> tuple[object, int]:
        line = bisect_right(self._breaks, begin[1] - 1) + 1
        try:
            value, end = _OBJECT(begin, *arguments)
        except _Twice as error:
            raise LocatedError(f"it has {json.dumps(error.name[:60])} twice in one object", line) from error
        value.line = line
        return value, end


def _once(pairs: list[tuple[str, object]]) -> LocatedObject:
    found = LocatedObject()
    for name, value in pairs:
        if name in found:
            raise _Twice(name)
        found[name] = value
    return found


def _refuse(name: str) -> object:
    raise json.JSONDecodeError(f"{name} is no JSON value", "", 0)
