"""Reasoning that a server leaves in the text, between `<think>` tags, separated from the answer on arrival. Pure."""

from __future__ import annotations

import re

from msgspec import Struct

_TAGS = ("think", "thinking", "thought", "reasoning")
_OPENINGS = tuple(f"<{tag}>" for tag in _TAGS)
_OPENING = re.compile(rf"<({'|'.join(_TAGS)})>", re.IGNORECASE)
_FENCES = ("```", "~~~")
_LONGEST_WAIT = 200
"""Characters at the beginning of a line that may wait for classification: blanks have no end."""


class TaggedPiece(Struct, frozen=True):
    """A piece of the answer, or of the reasoning."""

    text: str
    is_thinking: bool = False


class ThinkingSplitter:
    """Feed it the text of one reply, in any pieces.

    A tag counts at the beginning of a line outside code: elsewhere the model writes about tags.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._closing = ""
        """The tag that ends the reasoning under way."""
        self.unclosed = ""
        """The tag that began it, as it was written; empty where it has ended."""
        self._in_code = False
        self._at_line = True
        """True when the next character begins a line."""
        self._trims = False
        """True while blanks are dropped: the reasoning has just ended."""

    def feed(self, text: str) -> list[TaggedPiece]:
        """Feed `text`; returns the pieces classified by now, the rest waits for more."""
        self._rest += text
        found: list[TaggedPiece] = []
        while self._rest and self._next(found):
            pass
        return found

    def finish(self) -> list[TaggedPiece]:
        """Return the text still held."""
        rest, self._rest = self._rest, ""
        return [TaggedPiece(rest, bool(self._closing))] if rest else []

    def _next(self, found: list[TaggedPiece]) -> bool:
        """Take one step; False where more must come first."""
        if self._closing:
            return self._think(found)
        if self._trims:
            self._rest = self._rest.lstrip()
            self._trims = not self._rest
            return bool(self._rest)
        if self._at_line:
            return self._begin_line()
        line, newline, rest = self._rest.partition("\n")
        found.append(TaggedPiece(line + newline))
        self._rest, self._at_line = rest, bool(newline)
        return True

    def _begin_line(self) -> bool:
        head = self._rest.lstrip(" \t")
        start = head[:16].lower()
        opening = None if self._in_code else _OPENING.match(head)
        if opening is not None:
            self._rest, self._closing = head[opening.end() :], f"</{opening[1].lower()}>"
            self.unclosed = opening[0]
            return True
        begins = _FENCES if self._in_code else (*_FENCES, *_OPENINGS)
        if len(self._rest) <= _LONGEST_WAIT and any(
            mark.startswith(start) for mark in begins if len(start) < len(mark)
        ):
            return False
        self._in_code ^= start.startswith(_FENCES)
        self._at_line = False
        return True

    def _think(self, found: list[TaggedPiece]) -> bool:
        at = self._rest.lower().find(self._closing)
        if at < 0:
            keep = _overlap(self._rest, self._closing)
            shown, self._rest = self._rest[: len(self._rest) - keep], self._rest[len(self._rest) - keep :]
            found += [TaggedPiece(shown, True)] if shown else []
            return False
        found += [TaggedPiece(self._rest[:at], True)] if at else []
        self._rest, self._closing = self._rest[at + len(self._closing) :], ""
        self.unclosed = ""
        self._trims = self._at_line = True
        return bool(self._rest)


def split_at_closing(text: str) -> tuple[str, str]:
    """Reasoning and answer of a text whose opening tag was in the prompt (DeepSeek, Qwen); all answer without one."""
    for tag in _TAGS:
        head, closing, rest = text.partition(f"</{tag}>")
        if closing and f"<{tag}" not in head and head.count("`") % 2 == 0 and head.count("```") % 2 == 0:
            return head.strip(), rest.lstrip()
    return "", text


def _overlap(text: str, mark: str) -> int:
    """Number of characters at the end of `text` that may begin `mark`."""
    end = text[-len(mark) :].lower()
    return next((size for size in range(min(len(mark) - 1, len(end)), 0, -1) if mark.startswith(end[-size:])), 0)
