"""The same gate as `clean`, for the words of a model while they arrive: each piece is read once.

A model's words are no output of a program, so nothing in them writes over another: a carriage return ends the line, as
CommonMark has it, and erasures do nothing. What is given is the same however the text was cut.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tools.clean import SURROGATE, compile_hidden_pattern, terminal_sequences

MOST_ARGUMENTS: Final = 256
"""Characters of the arguments of a control sequence; one with more ends there and the rest is text."""
LONGEST_STRING: Final = 4_096
"""Characters of an operating system command and its kin that are waited for until they end: a link has 2,000."""
_PLAIN: Final = re.compile(r"[\n\t -~]*+")
_LOOKED_BACK: Final = 2
"""Characters that the pattern of hidden ones looks back."""


@cache
def _acting() -> re.Pattern[str]:
    most = terminal_sequences(arguments=f"{{0,{MOST_ARGUMENTS}}}", body=f"{{0,{LONGEST_STRING}}}")
    return re.compile(rf"(?P<ending>\r\n?)|\x08|{most}")


@cache
def _compile_unfinished() -> re.Pattern[str]:
    # Incomplete sequences at the end, held until the next characters complete them.
    arguments, body = f"{{0,{MOST_ARGUMENTS}}}+", rf"[^\x07\x1b\x80-\x9f]{{0,{LONGEST_STRING}}}+"
    return re.compile(
        rf"(?:\r|\x1b[\x20-\x2f]{arguments}|(?:\x1b\[|\x9b)[\x30-\x3f]{arguments}[\x20-\x2f]{arguments}"
        rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f]){body}\x1b?)\Z"
    )


class PieceCleaner:
    """Cleans one text that comes in pieces; holds back at most what a control sequence may have."""

    __slots__ = ("_before", "_joiner", "_waiting")

    def __init__(self) -> None:
        self._waiting = ""
        """Unread rest: it may continue."""
        self._before = ""
        """Characters before the next one, hidden ones included."""
        self._joiner = ""
        """A joiner at the end: only with another emoji behind it does it stay."""

    def feed(self, piece: str) -> str:
        """Return the text that can be shown now."""
        text = self._waiting + piece if self._waiting else piece
        if not self._joiner and _PLAIN.fullmatch(text):
            self._waiting, self._before = "", (self._before + text[-_LOOKED_BACK:])[-_LOOKED_BACK:]
            return text
        unfinished = _compile_unfinished().search(text)
        end = len(text) if unfinished is None else unfinished.start()
        self._waiting = text[end:]
        return self._show_text(text[:end], final=False)

    def end(self) -> str:
        """Return the held text at the end."""
        text, self._waiting = self._waiting, ""
        shown = self._show_text(text, final=True)
        self._before = ""
        return shown

    def _show_text(self, text: str, *, final: bool) -> str:
        start = len(self._before)
        text = self._before + self._joiner + _acting().sub(_effect, text)
        self._joiner = "\u200d" if text.endswith("\u200d", start) and not final else ""
        text = text.removesuffix(self._joiner)
        self._before = text[-_LOOKED_BACK:]
        kept: list[str] = []
        for match in compile_hidden_pattern().finditer(text, start):
            kept.append(text[start : match.start()])
            start = match.end()
        return SURROGATE.sub("\ufffd", "".join(kept) + text[start:])


def _effect(match: re.Match[str]) -> str:
    return "\n" if match["ending"] or match["newline"] else ""


def clean_words(text: str) -> str:
    """Give the whole of a model's words at once, as `PieceCleaner` does in pieces."""
    cleaner = PieceCleaner()
    return cleaner.feed(text) + cleaner.end()
