"""File names as text a model can read and give back: odd ones in the shell's `$'…'` notation.

The notation carries newlines, escapes and bytes that are not UTF-8 through JSON, and bash reads it too.
"""

from __future__ import annotations

import os
import re

from tools.clean import clean_line
from tools.contract import ToolInputError

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"e": b"\x1b"}


def quoted(name: str) -> str:
    """`name` as it is when that is safe to show and to type, else as `$'…'`."""
    if name.startswith("-"):
        return quoted(f"./{name}")
    if clean_line(name) == name and name.isprintable() and name == name.strip() and not name.startswith("$'"):
        return name
    return "$'" + "".join(_quoted_character(character) for character in name) + "'"


def unquoted(text: str) -> str:
    """The file name that `quoted` showed, or that a model wrote plainly.

    Raises:
        ToolInputError: no file can have this name.
    """
    if text.startswith("$'") and text.endswith("'") and len(text) > 2:
        text = os.fsdecode(_ESCAPE.sub(_unescaped, os.fsencode(text[2:-1])))
    if not text:
        raise ToolInputError("The path is empty.")
    if "\0" in text:
        raise ToolInputError("The path contains a NUL character; no file has such a name.")
    return text


def _quoted_character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character == "\n":
        return "\\n"
    if character.isprintable() and clean_line(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    return _LETTERS.get(match[2], match[2])
