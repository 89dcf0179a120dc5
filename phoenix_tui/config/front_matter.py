"""Front matter of Markdown files: the part of YAML that profiles, skills, commands and agents use.

Scalars (plain, quoted), `|` and `>` blocks, lists in brackets or with dashes, and maps of one level, in braces or
indented. Every scalar is text: what it means is the reader's business. Where a value cannot be read so, that on the
line of its key is taken as it stands; where that leaves lines over (maps in maps, lists of maps), the key is left out
and the others stay. Linear in the length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

FrontMatterValue: TypeAlias = "str | tuple[str, ...] | Mapping[str, str]"

FENCE: Final = "---"
LARGEST: Final = 64 * 1024
"""Bytes of front matter."""
MOST_KEYS: Final = 200
MOST_ITEMS: Final = 2_000
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_NAME: Final = r"[A-Za-z_][\w.-]{0,99}|\"[^\"\\]{1,100}\"|'[^']{1,100}'"
_KEY: Final = re.compile(rf"(?P<key>{_NAME})[ \t]*:(?:[ \t]+(?P<value>.*))?")
_BLOCK: Final = re.compile(r"(?P<style>[|>])(?P<chomp>[+-]?)[1-9]?(?P<chomp2>[+-]?)\s*(?:#.*)?")
_SINGLE: Final = re.compile(r"'((?:[^']|'')*)'")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_FLOW_PLAIN: Final = re.compile(r"[^,\[\]{}\n]*")
_COMMENT: Final = re.compile(r"(?:^|[ \t])#.*")
_RESERVED: Final = ("&", "*", "!", "%", "@", "`")


class FrontMatter(Struct, frozen=True):
    """Values and lines of the keys, and the text behind the closing fence."""

    values: Mapping[str, FrontMatterValue]
    lines: Mapping[str, int]
    """Line of each key in the file, from 1."""
    body: str
    left_out: Mapping[str, FrontMatterError] = {}
    """Faults of the keys whose values cannot be read; an empty key stands for lines that belong to none."""


class FrontMatterError(ValueError):
    """A fault of one file: a sentence without the file's name, and its line."""

    def __init__(self, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.line = line


def read_front_matter(text: str) -> FrontMatter:
    """Read the front matter of a file; a file without one has no values.

    Raises:
        FrontMatterError: it has no end, or is too large.
    """
    lines = _NEWLINE.split(text.removeprefix("\ufeff"))
    if lines[0].rstrip() != FENCE:
        return FrontMatter({}, {}, "\n".join(lines))
    size, end = 0, 0
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in {FENCE, "..."}:
            end = number
            break
        size += len(line.encode("utf-8", "replace")) + 1
        if size > LARGEST:
            raise FrontMatterError(f"the front matter is larger than {LARGEST // 1024} KB.", number + 1)
    if not end:
        raise FrontMatterError(f"the front matter that starts here has no closing '{FENCE}'.", 1)
    inner, body = lines[1:end], "\n".join(lines[end + 1 :])
    reader = _Reader(inner)
    return FrontMatter(reader.read(), reader.places, body, reader.left_out)


class _Reader:
    """Reads the lines of one front matter, key by key: a value that cannot be read costs its key alone."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._literal = False
        """True while a value is taken as it stands, after reading it as YAML has failed."""
        self._place = 0
        self.places: dict[str, int] = {}
        self.left_out: dict[str, FrontMatterError] = {}

    def read(self) -> dict[str, FrontMatterValue]:
        values: dict[str, FrontMatterValue] = {}
        while (line := self._next()) is not None:
            key, start = "", self._place
            try:
                if line[0] in " \t":
                    raise self._wrong("is indented, but belongs to no key above")
                key, text = self._key(line)
                if key in values:
                    raise self._wrong(f"gives '{key}' a second time")
                if len(values) == MOST_KEYS:
                    raise self._wrong(f"is one key too many; at most {MOST_KEYS} are read")
                self.places[key] = start + 2
                values[key] = self._read_value(text)
            except FrontMatterError as fault:
                self.left_out.setdefault(key, fault)
                if key not in values:
                    self.places.pop(key, None)
                self._place = start + 1
                self._skip()
        return values

    def _read_value(self, text: str) -> FrontMatterValue:
        """The value behind a key, or the text on its line as it stands: an unquoted colon is the common mistake.

        Raises:
            FrontMatterError: neither ends where the next key begins.
        """
        start = self._place = self._place + 1
        try:
            value = self._value(text)
            self._check_end()
        except FrontMatterError as first:
            self._place, self._literal = start, True
            try:
                value = self._value(text)
                self._check_end()
            except FrontMatterError:
                raise first from None
            finally:
                self._literal = False
        return value

    def _check_end(self) -> None:
        line = self._next()
        if line is not None and line[0] in " \t":
            raise self._wrong("is indented, but belongs to no key above")

    def _skip(self) -> None:
        """Go on to the next key at the beginning of a line."""
        while self._place < len(self._lines):
            line = self._lines[self._place]
            if line[:1] not in {"", " ", "\t", "-", "]", "}", "#"} and _KEY.fullmatch(line.strip()):
                return
            self._place += 1

    def _next(self) -> str | None:
        """The next line that is neither empty nor a comment."""
        while self._place < len(self._lines):
            line = self._lines[self._place]
            if line.strip() and not line.lstrip().startswith("#"):
                return line
            self._place += 1
        return None

    def _key(self, line: str) -> tuple[str, str]:
        found = _KEY.fullmatch(line.strip())
        if found is None:
            raise self._wrong("is not 'key: value'")
        key = found["key"]
        return (key[1:-1] if key[0] in "'\"" else key), (found["value"] or "").strip()

    def _value(self, text: str) -> FrontMatterValue:
        block = _BLOCK.fullmatch(text)
        if block is not None:
            return self._block(block["style"], block["chomp"] or block["chomp2"])
        if text and not text.startswith("#"):
            if self._literal:
                try:
                    return self._flow(text) if text[0] in "[{" else self._scalar(text)
                except FrontMatterError:
                    return text
            return self._flow(self._join_indented(text)) if text[0] in "[{" else self._scalar(self._join_indented(text))
        line = self._next()
        if line is None:
            return ""
        bare = line.strip()
        if bare == "-" or bare.startswith("- "):
            return self._items()
        return self._map() if line[0] in " \t" else ""

    def _join_indented(self, text: str) -> str:
        """The value with the indented lines below it, which go on with it."""
        parts = [text]
        while self._place < len(self._lines):
            line = self._lines[self._place]
            closes = text[0] in "[{" and line.strip() in {"]", "}"}
            if line[:1] not in {" ", "\t"} and not closes:
                break
            bare = line.strip()
            if text[0] not in "[{\"'" and _KEY.fullmatch(bare):
                raise self._wrong("is a key below a key that has a value already")
            parts += [bare] if bare and not bare.startswith("#") else []
            self._place += 1
        return " ".join(parts)

    def _block(self, style: str, chomp: str) -> str:
        found: list[str] = []
        while self._place < len(self._lines):
            line = self._lines[self._place]
            if line.strip() and line[0] not in " \t":
                break
            found.append(line)
            self._place += 1
        indents = [len(line) - len(line.lstrip(" \t")) for line in found if line.strip()]
        indent = min(indents, default=0)
        texts = [line[indent:].rstrip() if line.strip() else "" for line in found]
        whole = "\n".join(texts) if style == "|" else _fold_lines(texts)
        stripped = whole.rstrip("\n")
        return f"{whole}\n" if chomp == "+" else stripped if chomp == "-" or not stripped else f"{stripped}\n"

    def _items(self) -> tuple[str, ...]:
        items: list[str] = []
        while (line := self._next()) is not None:
            bare = line.strip()
            if bare != "-" and not bare.startswith("- "):
                if line[0] in " \t":
                    raise self._wrong("is not '- item'")
                break
            if len(items) == MOST_ITEMS:
                raise self._wrong(f"is one item too many; at most {MOST_ITEMS:,} are read")
            text = bare[1:].strip()
            items.append(self._item(text) if self._literal else self._scalar(text))
            self._place += 1
        return tuple(items)

    def _item(self, text: str) -> str:
        try:
            return self._scalar(text)
        except FrontMatterError:
            return text

    def _map(self) -> dict[str, str]:
        found: dict[str, str] = {}
        depth = -1
        while (line := self._next()) is not None and line[0] in " \t":
            indent = len(line) - len(line.lstrip(" \t"))
            depth = indent if depth < 0 else depth
            key, text = self._key(line)
            if indent != depth or not text or _BLOCK.fullmatch(text):
                raise self._wrong("is nested more deeply than one level")
            if key in found or len(found) == MOST_KEYS:
                raise self._wrong(f"gives '{key}' a second time, or is one key too many")
            found[key] = self._item(text) if self._literal else self._scalar(text)
            self._place += 1
        return found

    def _scalar(self, text: str) -> str:
        """One value without quotes and comment."""
        if text[:1] in {'"', "'"}:
            quoted, rest = self._read_quoted(text, 0)
            if text[rest:].strip() and not _COMMENT.match(text[rest:]):
                raise self._wrong("has words behind a closing quote")
            return quoted
        bare = _COMMENT.sub("", text, count=1).strip()
        if bare.startswith(_RESERVED):
            raise self._wrong(f"begins with {bare[0]}; put the value in quotes")
        if ": " in bare or bare.endswith(":"):
            raise self._wrong("has a second colon; put the value in quotes")
        return bare

    def _read_quoted(self, text: str, start: int) -> tuple[str, int]:
        """A quoted text, and the place behind it."""
        found = (_DOUBLE if text[start] == '"' else _SINGLE).match(text, start)
        if found is None:
            raise self._wrong("has a quote that is not closed")
        if text[start] == "'":
            return found[1].replace("''", "'"), found.end()
        try:
            return str(json.loads(found.group(), strict=False)), found.end()
        except ValueError:
            raise self._wrong("has an unknown escape in double quotes") from None

    def _flow(self, text: str) -> FrontMatterValue:
        """A list in brackets, or a map in braces."""
        closing, place = ("]" if text[0] == "[" else "}"), 1
        parts: list[str] = []
        while True:
            part, place = self._flow_part(text, place)
            sign = text[place : place + 1]
            if sign not in {",", closing}:
                raise self._wrong(f"has no closing '{closing}', or a list inside a list")
            parts += [part] if part or sign == "," else []
            place += 1
            if sign == closing:
                break
            if len(parts) > MOST_ITEMS:
                raise self._wrong(f"has more than {MOST_ITEMS:,} items")
        if text[place:].strip() and not _COMMENT.match(text[place:]):
            raise self._wrong(f"has words behind '{closing}'")
        return tuple(parts) if closing == "]" else self._flow_map(parts)

    def _flow_part(self, text: str, place: int) -> tuple[str, int]:
        while text[place : place + 1] in {" ", "\t"}:
            place += 1
        if text[place : place + 1] in {'"', "'"}:
            part, place = self._read_quoted(text, place)
            while text[place : place + 1] in {" ", "\t"}:
                place += 1
            return part, place
        found = _FLOW_PLAIN.match(text, place)
        return ("", place) if found is None else (found.group().strip(), found.end())

    def _flow_map(self, parts: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in parts:
            key, colon, value = part.partition(":")
            if not colon or key.strip() in found:
                raise self._wrong("has no 'key: value', or a key twice, in braces")
            found[key.strip()] = self._item(value.strip())
        return found

    def _wrong(self, what: str) -> FrontMatterError:
        number = min(self._place, max(len(self._lines) - 1, 0))
        return FrontMatterError(f"this line {what}.", number + 2)


def _fold_lines(lines: list[str]) -> str:
    """Lines joined by blanks; an empty line is a line end."""
    folded: list[str] = []
    for line in lines:
        if not line:
            folded.append("\n")
        elif folded and folded[-1] != "\n":
            folded.append(f" {line}")
        else:
            folded.append(line)
    return "".join(folded)
