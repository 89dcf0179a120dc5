"""A request in words: nothing hidden, runs of blanks folded and counted; for both front ends."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final, assert_never

from engine.updates import Question
from tools.contract import AgentsDisplay, DiffDisplay, Display, ImageDisplay, PlainDisplay, TerminalDisplay
from tools.look_alikes import remarks

MOST_BLANK: Final = 3
"""Consecutive blank lines that stay unchanged."""
LONGEST: Final = 32_000
"""Characters of a command that are laid out, its beginning and its end: a quarter of a shell's limit."""
END: Final = 4
"""The share of the laid-out part, as a divisor, that is taken from the end."""
_NOTHING: Final = re.compile(r"[\s␠␉␍␋␌]*+")
_REPEATED: Final = re.compile(r"([␠␉␍␋␌]|⟨U\+[0-9A-F]{4,6}⟩)\1{39,}+")


def text_asked(question: Question) -> str:
    """The command, or another description in words, unchanged."""
    request = question.request
    return _text_of(request.preview) if request.preview else request.command or request.summary


def odd_in(question: Question) -> list[str]:
    """Warnings about the letters of a command, or of the name of a file."""
    preview = question.request.preview
    return remarks(preview.path if isinstance(preview, DiffDisplay) else text_asked(question)[:LONGEST])


def folded(text: str) -> str:
    """Revealed text whose blank lines and repeated blanks are counted where they would push the rest out of sight."""
    text = _REPEATED.sub(lambda run: f"{run[1]}⟨{len(run[0]) // len(run[1]):,} times⟩", text)
    out: list[str] = []
    for blank, lines in groupby(text.split("\n"), key=lambda line: _NOTHING.fullmatch(line) is not None):
        run = list(lines)
        out += [f"⟨{len(run):,} blank lines⟩"] if blank and len(run) > MOST_BLANK else run
    return "\n".join(out)


def both_ends(text: str, most: int) -> tuple[str, int]:
    """The beginning and the end of a text, and how many characters between them are left out."""
    left_out = len(text) - most
    if left_out <= 0:
        return text, 0
    end = most // END
    return f"{text[: most - end]}⟨and {left_out:,} more⟩{text[-end:]}", left_out


def _text_of(preview: Display) -> str:
    match preview:
        case PlainDisplay(text=text):
            return text
        case TerminalDisplay(output=output):
            return output
        case DiffDisplay(diff=diff):
            return diff
        case ImageDisplay(name=name, width=width, height=height):
            return f"{name} {width}×{height}"
        case AgentsDisplay(agents=agents):
            return "\n".join(agent.task for agent in agents)
        case _:
            assert_never(preview)
