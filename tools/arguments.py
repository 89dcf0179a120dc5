"""Arguments of tools, read strictly from what a model sent, and failures of tools in one sentence."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence

from tools.clean import reveal_name
from tools.contract import JsonObject, JsonValue, ToolInputError, ToolOutput

_SURROGATE = re.compile("[\ud800-\udfff]")

HUGE = 1e300
"""Smallest magnitude that cannot be shown as a float."""


def object_schema(properties: JsonObject, required: Sequence[str] = ()) -> JsonObject:
    """The JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


class Arguments:
    """The arguments of one call, read field by field."""

    def __init__(self, args: JsonObject, known: Sequence[str], where: str = "") -> None:
        """Refuse any field not in `known`; `where` names a nested object in messages, such as `edits[0].`.

        Raises:
            ToolInputError: an unknown field.
        """
        self._args = args
        self._where = where
        for name in args:
            if name not in known:
                shown = _SURROGATE.sub("\ufffd", name)
                raise ToolInputError(f"Unknown argument {where}{shown}; known are: {', '.join(known)}.")

    def text(self, name: str, default: str | None = None) -> str:
        """A string; required without a default.

        Raises:
            ToolInputError: missing, not a string, or not valid Unicode.
        """
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        if _SURROGATE.search(value):
            raise ToolInputError(f"{self._where}{name} contains half a character (a lone surrogate).")
        return value

    def flag(self, name: str) -> bool:
        """A boolean; False without one.

        Raises:
            ToolInputError: not a boolean.
        """
        value = self._value(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number within bounds, both included.

        Raises:
            ToolInputError: not a number, or out of bounds.
        """
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number", value)
        if not low <= value <= high:
            shown = f"{value:g}" if abs(value) < HUGE else "a number with hundreds of digits"
            raise ToolInputError(f"{self._where}{name} must be between {low:g} and {high:g}, not {shown}.")
        return float(value)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number within bounds, both included.

        Raises:
            ToolInputError: not a whole number, or out of bounds.
        """
        value = self.number(name, default, low, high)
        if not value.is_integer():
            raise self._wrong(name, "a whole number", value)
        return int(value)

    def wholes(self, name: str, low: int, high: int) -> list[int]:
        """A list of whole numbers within bounds, both included.

        Raises:
            ToolInputError: missing, or something else.
        """
        value = self._value(name, None)
        if not isinstance(value, list):
            raise self._wrong(name, "a list of whole numbers", value)
        each = [Arguments({"item": item}, ("item",), f"{self._where}{name}: ") for item in value]
        return [one.whole("item", low, low, high) for one in each]

    def texts(self, name: str, most: int) -> list[str]:
        """A list of at most `most` texts.

        Raises:
            ToolInputError: missing, longer, or something else.
        """
        value = self._value(name, None)
        if not isinstance(value, list) or len(value) > most:
            raise self._wrong(name, f"a list of at most {most} texts", value)
        each = [Arguments({"item": item}, ("item",), f"{self._where}{name}: ") for item in value]
        return [one.text("item") for one in each]

    def objects(self, name: str) -> list[JsonObject]:
        """A list of objects with at least one in it.

        Raises:
            ToolInputError: missing, empty, or something else.
        """
        value = self._value(name, None)
        if not isinstance(value, list) or not value:
            raise self._wrong(name, "a list with at least one object", value)
        found: list[JsonObject] = []
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                raise self._wrong(f"{name}[{index}]", "an object", item)
            found.append(item)
        return found

    def has(self, name: str) -> bool:
        """True when the model sent this field with a value."""
        return self._args.get(name) is not None

    def _value(self, name: str, default: JsonValue) -> JsonValue:
        value = self._args.get(name)
        if value is None:
            value = default
        if value is None:
            raise ToolInputError(f"The argument {self._where}{name} is missing.")
        return value

    def _wrong(self, name: str, wanted: str, value: JsonValue) -> ToolInputError:
        return ToolInputError(f"{self._where}{name} must be {wanted}, not {_kind(value)}.")


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return f"the number {value:g}" if abs(value) < 1e15 else "a number"  # noqa: PLR2004 - keeps the sentence short
        case str():
            return "a string"
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "an object"


class ToolFailure(Exception):
    """The call cannot be done; the message is written for the model."""


_SENTENCES = {
    errno.ENOENT: "{name} does not exist.",
    errno.ENOTDIR: "A part of the path {name} is not a folder.",
    errno.EISDIR: "{name} is a folder, not a file.",
    errno.EACCES: "No permission to open {name}.",
    errno.EPERM: "No permission to change {name}.",
    errno.EROFS: "{name} is on a read-only file system.",
    errno.ENOSPC: "The disk is full: {name} is unchanged.",
    errno.EDQUOT: "The disk quota is used up: {name} is unchanged.",
    errno.ENAMETOOLONG: "The name {name} is too long for this file system.",
    errno.ENXIO: "{name} is not a regular file but a pipe, device or socket.",
    errno.ELOOP: "{name} is, or runs through, a symbolic link that changed while it was opened.",
}


def explain(error: OSError, name: str) -> str:
    """One sentence for a system error about the file `name`."""
    name = reveal_name(name)  # a name that overwrites itself would show another file
    sentence = _SENTENCES.get(error.errno or 0)
    return sentence.format(name=name) if sentence else f"{name}: {error.strerror or error}."


def failure_output(sentence: str) -> ToolOutput:
    """The output of a call that failed."""
    return ToolOutput(text=sentence, is_error=True)
