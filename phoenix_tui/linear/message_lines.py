"""Messages as lines: first the speaker; the Markdown signs of an answer become words or go."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from engine.machine.messages import ImageBlock, Origin, Role, TextBlock, attached_in
from engine.records import StoredMessage
from phoenix_tui.text.agent_text import marks
from tools.clean import clean, clean_line

YOU: Final = "You"
ASSISTANT: Final = "Assistant"
SIGNS_INSIDE: Final = 2
"""Levels of nested Markdown signs: code in emphasis."""
LONG_PARAGRAPH: Final = 300
"""Characters after which an incomplete paragraph is printed up to its last sentence."""
LONGEST_SIGNED: Final = 2_000
"""Characters of a line whose signs are looked for: the time grows with their square. A longer line keeps them."""
LONGEST_HELD: Final = 8_000
"""Characters of a line without a sentence that wait for its end; then they are a line."""
_FENCE: Final = re.compile(r"\s*+(?:```|~~~)\s*+([\w+#.-]*+)\s*+$")
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)")
_SIGNS: Final = re.compile(
    r"(?:\*\*(?=\S)(.+?)(?<=\S)\*\*|\*(?=\S)(.+?)(?<=\S)\*|(?<!\w)__(?=\S)(.+?)(?<=\S)__(?!\w)|`([^`]+)`)"
)
_TABLE_ROW: Final = re.compile(r"\s*\|(.*)\|\s*")
_TABLE_RULE: Final = re.compile(r"[\s|:-]+")


@dataclass(slots=True)
class AnswerLines:
    """The answer that arrives, cut into whole lines; Markdown signs become words or go."""

    rest: str = ""
    begun: bool = False
    in_code: bool = False

    def add(self, text: str) -> list[str]:
        """Whole lines so far."""
        *whole, self.rest = (self.rest + text).split("\n")
        if len(self.rest) > LONG_PARAGRAPH and not self.in_code:
            sentence, stop, rest = self.rest.rpartition(". ")
            whole, self.rest = ([*whole, f"{sentence}."], rest) if stop else (whole, self.rest)
        if len(self.rest) > LONGEST_HELD:
            whole, self.rest = [*whole, self.rest], ""
        return [line for one in whole for line in self._line(one)]

    def end(self) -> list[str]:
        """Return the rest, and reset for the next answer."""
        lines = self._line(self.rest) if self.rest else []
        self.rest, self.begun, self.in_code = "", False, False
        return lines

    def _line(self, line: str) -> list[str]:
        text = self._words(clean(line).replace("\n", " "))
        if not text.strip() and not self.in_code:
            return []
        lead = "" if self.begun else f"{ASSISTANT}: "
        self.begun = True
        return [f"{lead}{text}"]

    def _words(self, line: str) -> str:
        if fence := _FENCE.fullmatch(line):
            self.in_code = not self.in_code
            return f"Code{f', {fence[1]}' if fence[1] else ''}:" if self.in_code else "End of code."
        if self.in_code:
            return line
        if heading := _HEADING.match(line):
            line = f"Heading: {heading[2]}"
        if row := _TABLE_ROW.fullmatch(line):
            line = "" if _TABLE_RULE.fullmatch(row[1]) else "; ".join(cell.strip() for cell in row[1].split("|"))
        for _ in range(SIGNS_INSIDE if len(line) <= LONGEST_SIGNED else 0):
            line = _SIGNS.sub(lambda found: found[found.lastindex or 0], line)
        return line


def message_lines(who: str, text: str) -> list[str]:
    """A whole message; an answer loses its Markdown signs."""
    if who == ASSISTANT:
        answer = AnswerLines()
        return [*answer.add(text), *answer.end()]
    first, *rest = clean(text).split("\n")
    return [f"{who}: {first}", *rest]


def message_text(message: StoredMessage) -> str:
    """The words of a message, and descriptions of its images and attached files; a silent one has none."""
    if message.silent:
        return ""
    is_human = message.origin is Origin.HUMAN
    own = [block for block in message.blocks if isinstance(block, TextBlock) and not (is_human and block.attached)]
    images = [block for block in message.blocks if isinstance(block, ImageBlock)]
    parts = [block.text for block in own]
    return "\n".join([*parts, *(f"Image, {image.width} by {image.height}." for image in images), *attached(message)])


def attached(message: StoredMessage) -> list[str]:
    """Files and conversations that a message of the user attaches, those that it could not, and remarks on it."""
    words = (clean_line(block.attached) for block in attached_in(message.blocks))
    if message.origin is not Origin.HUMAN:
        return []
    files = [f"N{one[1:]}." if one.startswith("not attached") else f"Attached: {one}." for one in words]
    return [*files, *(f"{mark[:1].upper()}{mark[1:]}." for mark in marks(message))]


def speaker(message: StoredMessage) -> str:
    """Speaker of a message."""
    return {Role.USER: YOU, Role.ASSISTANT: ASSISTANT}.get(message.role, "Note")
