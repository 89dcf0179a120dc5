"""Inline Markdown tokens -> lines of spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from markdown_it.token import Token

from phoenix_tui.markdown.lines import PLAIN, QUIET, Span, Surface, TextStyle, TextTone, altered

SCHEMES: Final = frozenset({"http", "https", "mailto"})
"""Schemes of addresses that a click may open (FAULTS 58)."""
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`{}|\\^\[\]]*[^\s<>\"'`{}|\\^\[\].,;:!?)*_~]")
_NEVER: Final = re.compile(r"(?!)")


def link_action(target: str) -> str:
    """The click action that opens `target`, empty unless it is an address a person may open.

    Outside text enters an action string through `repr` alone.
    """
    try:
        scheme = urlsplit(target).scheme
    except ValueError:
        return ""
    return f"open_link({target!r})" if scheme in SCHEMES and target.isprintable() else ""


class Inline:
    """Collects the spans of one paragraph, a list per source line."""

    def __init__(self, look: TextStyle) -> None:
        self.lines: list[list[Span]] = [[]]
        self._looks = [look]
        self._targets: list[tuple[str, str, int, int]] = []

    def add_all(self, tokens: Sequence[Token]) -> None:
        """Take every token of a paragraph."""
        for token in tokens:
            self._add(token)

    def _add(self, token: Token) -> None:
        look = self._looks[-1]
        match token.type:
            case "text":
                self._text(token.content, look)
            case "code_inline":
                self._put(token.content, altered(look, surface=Surface.CODE))
            case "softbreak" | "hardbreak":
                self.lines.append([])
            case "link_open":
                self._open_link(str(token.attrs.get("href", "")))
            case "link_close":
                self._close_link()
            case "image":
                self._put(f"[image: {token.content}]", altered(look, tone=TextTone.QUIET))
                self._put(f" ({token.attrs.get('src', '')})", QUIET)
            case "strong_open" | "em_open" | "s_open" as mark:
                emphasis = altered(look, bold=mark == "strong_open", italic=mark == "em_open", strike=mark == "s_open")
                self._looks.append(emphasis)
            case "strong_close" | "em_close" | "s_close":
                self._looks.pop()
            case _:
                self._put(token.content, look)

    def _put(self, text: str, look: TextStyle, action: str = "") -> None:
        if not text:
            return
        action = action or (self._targets[-1][1] if self._targets else "")
        # A tab has no width of its own; in prose it is a blank.
        self.lines[-1].append(Span(text.replace("\t", " "), look, action))

    def _text(self, text: str, look: TextStyle) -> None:
        """Text, in which bare addresses are links too."""
        position = 0
        for match in (_NEVER if self._targets or "://" not in text else _ADDRESS).finditer(text):
            self._put(text[position : match.start()], look)
            self._put(match.group(), altered(look, tone=TextTone.YOU, underline=True), link_action(match.group()))
            position = match.end()
        self._put(text[position:], look)

    def _open_link(self, target: str) -> None:
        action = link_action(target)
        self._targets.append((target, action, len(self.lines) - 1, len(self.lines[-1])))
        look = self._looks[-1]
        self._looks.append(altered(look, tone=TextTone.YOU, underline=True) if action else look)

    def _close_link(self) -> None:
        """End a link; its real target is shown wherever the text does not already say it."""
        target, action, line, first = self._targets.pop()
        self._looks.pop()
        shown = "".join(span.text for span in self.lines[line][first:])
        if shown not in {target, target.removeprefix("mailto:")}:
            self.lines[-1].append(Span(f" ({target})", QUIET, action))


def inline_lines(tokens: Sequence[Token], look: TextStyle = PLAIN) -> list[list[Span]]:
    """The source lines of one paragraph, heading or cell as spans."""
    inline = Inline(look)
    inline.add_all(tokens)
    return inline.lines
