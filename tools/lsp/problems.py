"""Problems as a language server sends them, made into bounded values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from msgspec import Struct

from tools.clean import clean_line

ERROR: Final = 1
WARNING: Final = 2
MOST: Final = 2_000
"""Problems of one file that are looked at."""
LONGEST_MESSAGE: Final = 400
LONGEST_NAME: Final = 60
_KNOWN_SEVERITIES: Final = range(1, 5)
_MOST_PLACE: Final = 2**31 - 1


class ServerProblem(Struct, frozen=True):
    """One problem of a file; places are those of the protocol, from 0."""

    line: int
    character: int
    """Place in the units that were agreed with the server."""
    severity: int
    message: str
    source: str = ""
    code: str = ""

    @property
    def kind(self) -> tuple[int, str, str, str]:
        """Facts that are equal for the same problem on another line."""
        return (self.severity, self.source, self.code, self.message)


def problems_of(items: object, *, passed_over: Sequence[str] = ()) -> tuple[ServerProblem, ...]:
    """The problems of a list, without what is none of them; `passed_over` are codes that do not count."""
    if not isinstance(items, list):
        return ()
    found = (_problem(item) for item in cast("list[object]", items)[:MOST])
    return tuple(one for one in found if one is not None and one.code not in passed_over)


def _problem(item: object) -> ServerProblem | None:
    if not isinstance(item, dict):
        return None
    fields = cast("dict[str, object]", item)
    start = _table(_table(fields.get("range")).get("start"))
    line, character = start.get("line"), start.get("character")
    severity = fields.get("severity", ERROR)
    message = _text(fields.get("message"), LONGEST_MESSAGE)
    if not _is_place(line) or not _is_place(character) or severity not in _KNOWN_SEVERITIES or not message:
        return None
    source, code = _text(fields.get("source"), LONGEST_NAME), _text(fields.get("code"), LONGEST_NAME)
    return ServerProblem(cast("int", line), cast("int", character), cast("int", severity), message, source, code)


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_PLACE


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object, longest: int) -> str:
    """One cleaned line, cut; a message may also be markup with a `value`."""
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("value")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST_PLACE:
        value = str(value)
    if not isinstance(value, str):
        return ""
    text = " ".join(clean_line(value[: 4 * longest].encode("utf-8", "replace").decode()).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
