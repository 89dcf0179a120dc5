"""Form of a paste: text made harmless, a long one folded to a mark, a dropped image path an image."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from phoenix_tui.keys.active_keys import hint
from tools.clean import clean
from tools.wording import pluralize

FOLD_ABOVE: Final = 4_000
"""Characters a paste may have before it is folded; wrapping megabytes in the composer would freeze it."""
FOLD_LINES: Final = 60
SLICE: Final = 65_536
MEGABYTE: Final = 1_000_000

KEY_PREFIXES: Final[tuple[tuple[str, str], ...]] = (("sk-ant-", "anthropic"), ("sk-", "openai"))
SHORTEST_KEY: Final = 20
"""Characters; a shorter text with such a prefix is taken for text."""

CHARACTERS_PER_TOKEN: Final = 4
BINARY_SHARE: Final = 20
"""Divisor: a paste is a binary when one character in this many is no text."""

_LINE_END: Final = "\r\n?"
_MARK: Final = r"\[pasted \d+: [^\]\n]*\]"
_NUMBER: Final = r"\d+"
_NO_TEXT: Final = "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\ud800-\udfff]"
"""Patterns, compiled with the first paste: this module is loaded with the first frame."""


def provider_of(key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        return ""
    return next((provider for prefix, provider in KEY_PREFIXES if key.startswith(prefix)), "")


class Pasted(Struct, frozen=True):
    """A paste as it goes into the text, and how many of its characters were no text."""

    text: str
    removed: int = 0

    @property
    def is_binary(self) -> bool:
        """True when so much of it was no text that it can hardly be meant as one."""
        return self.removed * BINARY_SHARE > len(self.text) + self.removed


class PastedKey(Struct, frozen=True):
    """An API key alone, which is shown nowhere."""

    key: str


class PastedImages(Struct, frozen=True):
    """Paths of images, pasted or dropped."""

    paths: tuple[Path, ...]


Paste: TypeAlias = Pasted | PastedKey | PastedImages


class PasteStore:
    """Long texts behind marks in the composer. A removed text stays: undo may bring its mark back."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        if len(text) <= FOLD_ABOVE and text.count("\n") < FOLD_LINES:
            return text
        return self._mark(text, len(self._texts) + 1)

    def unfold(self, text: str) -> str:
        return re.sub(_MARK, lambda mark: self._texts.get(mark[0], mark[0]), text) if self._texts else text

    def marks(self, line: str) -> list[tuple[int, int]]:
        return [mark.span() for mark in re.finditer(_MARK, line) if mark[0] in self._texts] if self._texts else []

    def at(self, line: str, column: int) -> str:
        return next((line[start:end] for start, end in self.marks(line) if start <= column < end), "")

    def text_of(self, mark: str) -> str:
        return self._texts.get(mark, "")

    def change(self, mark: str, text: str) -> str:
        """Replacement of this mark for another text: a mark of the same number, or the text if it is short."""
        number = next(iter(re.findall(_NUMBER, mark)), "1")
        is_long = len(text) > FOLD_ABOVE or text.count("\n") >= FOLD_LINES
        return self._mark(text, int(number)) if is_long else text

    def folds(self, text: str) -> tuple[tuple[int, int], ...]:
        """Position and length, in the whole text, of the text of each mark in `text`."""
        found: list[tuple[int, int]] = []
        grown = 0
        for mark in re.finditer(_MARK, text):
            if mark[0] in self._texts:
                length = len(self._texts[mark[0]])
                found.append((mark.start() + grown, length))
                grown += length - len(mark[0])
        return tuple(found)

    def refold(self, whole: str, folds: Sequence[tuple[int, int]]) -> str:
        """Fold a whole text with its former marks; without any, a long one becomes one mark."""
        if not folds:
            return self.fold(whole)
        parts: list[str] = []
        end = 0
        for start, length in folds:
            parts += [whole[end:start], self._mark(whole[start : start + length], len(self._texts) + 1)]
            end = start + length
        return "".join([*parts, self.fold(whole[end:])])

    def clear(self) -> None:
        self._texts.clear()

    def _mark(self, text: str, number: int) -> str:
        lines = pluralize(text.count("\n") + (not text.endswith("\n")), "line")
        size = pluralize(len(text), "character")
        if len(text) >= MEGABYTE:
            size = f"{len(text) / MEGABYTE:.1f} M characters"
        mark = f"[pasted {number}: {lines}, {size}]"
        self._texts[mark] = text
        return mark


async def paste_of(text: str, *, into_empty: bool) -> Paste:
    """Classify a paste: images, a key in an empty composer, else text."""
    from phoenix_tui.features.composing import parse_dropped_images  # noqa: PLC0415 - not for the first frame

    if paths := parse_dropped_images(text):
        return PastedImages(paths)
    word = text.strip()
    if into_empty and len(word) >= SHORTEST_KEY and provider_of(word):
        return PastedKey(word)
    return await clean_paste(text)


async def clean_paste(text: str) -> Pasted:
    """A paste with uniform line ends and without terminal control.

    Works in slices that end at a line where there is one, so that ten megabytes leave the loop free.
    """
    parts: list[str] = []
    start = removed = 0
    while start < len(text):
        end = len(text) if len(text) - start <= SLICE else text.rfind("\n", start, start + SLICE) + 1 or start + SLICE
        part = re.sub(_LINE_END, "\n", text[start:end])
        parts.append(clean(part))
        if parts[-1] is not part:
            removed += len(re.findall(_NO_TEXT, part))
        start = end
        if start < len(text):
            await asyncio.sleep(0)
    return Pasted("".join(parts), removed)


def remark_on(text: Pasted, original_length: int, window: int) -> str:
    """Remark about a paste: it was no text, parts of it were removed, it exceeds the model's window."""
    said: list[str] = []
    if text.is_binary:
        share = f"{text.removed:,} of {original_length:,} characters were removed"
        said.append(f"The paste is not text: {share}. Use @ to name a file instead.")
    elif text.removed:
        said.append(f"{text.removed:,} control characters were removed from the paste.")
    tokens = len(text.text) // CHARACTERS_PER_TOKEN
    if window and tokens > window:
        remedy = f"open it, {hint(('paste_file', 'replaces it with a file'))} that the agent can search"
        said.append(f"The paste has about {tokens:,} tokens, the model reads {window:,}: {remedy}.")
    return " ".join(said)
