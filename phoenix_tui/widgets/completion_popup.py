"""The completions above the composer: grows upwards, never takes the focus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import TextArea

from phoenix_tui.text.labels import Tone
from tools.clean import clean_line

MOST_ROWS: Final = 8
LONGEST_NAME: Final = 256
"""Characters of a name in quotation marks; a longer one is prose, and a search for it would be slow."""
OPENED: Final = '@"'
"""Prefix of a file whose name has blanks."""


class Completion(Struct, frozen=True):
    """One choice: the inserted text, and a few words about it."""

    text: str
    meaning: str = ""
    runs: bool = False
    """True when Enter sends at once: a complete command."""
    marks: tuple[int, ...] = ()
    """Places in `text` of the letters that were looked for."""
    goes_on: bool = False
    """True when more may follow without a space: a folder."""
    hint: bool = False
    """True for a row of information; it cannot be taken."""
    shown: str = ""
    """Text of the row instead of `text`; the part behind `text` is dimmed."""
    section: str = ""
    """Heading of its group, at the right end of the first row of each."""


class Token(Struct, frozen=True):
    """The word under the cursor that a completion may finish; `start` is its column in `row`."""

    text: str
    row: int
    start: int
    end: int


def token_of(area: TextArea) -> Token:
    """The word left of the cursor; behind `@"`, and in a shell line behind a backslash, it includes blanks."""
    row, column = area.cursor_location
    line = area.document.get_line(row)
    if area.text.startswith("!") and not line[:column].rpartition(" ")[2].startswith("@"):
        from phoenix_tui.text.shell_words import word_at  # noqa: PLC0415 - the first frame needs none of it

        start = word_at(line, column).start
        return Token(line[start:column], row, start, column)
    start = line.rfind(" ", 0, column) + 1
    opened = line.rfind(OPENED, max(column - LONGEST_NAME, 0), column)
    if opened >= 0 and line[:opened][-1:] in {"", " "} and '"' not in line[opened + len(OPENED) : column]:
        start = opened
    return Token(line[start:column], row, start, column)


def drop_disguised(completions: Sequence[Completion]) -> list[Completion]:
    """Completions that insert exactly the text of their row: names come from servers and repositories too."""
    return [one for one in completions if clean_line(one.text) == one.text]


class CompletionPopup(Widget):
    """Popup of up to eight choices, the best one on top, and the number of further ones."""

    DEFAULT_CSS = """
    CompletionPopup { height: auto; max-height: 9; display: none; background: $surface; padding: 0 1 0 2; }
    """
    chosen: reactive[int] = reactive(0)
    """The row that Tab or Enter takes."""

    def __init__(self) -> None:
        super().__init__()
        self._completions: tuple[Completion, ...] = ()

    def show(self, completions: Sequence[Completion], chosen: int = 0) -> None:
        if not completions and not self._completions:
            return  # at nearly every key: an unnecessary layout of the whole screen
        self._completions = tuple(completions)
        self.chosen = chosen
        self.display = bool(completions)
        self.refresh(layout=True)

    @property
    def choice(self) -> Completion | None:
        return self._completions[self.chosen] if self._completions else None

    def move(self, by: int) -> None:
        if self._completions:
            self.chosen = (self.chosen + by) % len(self._completions)

    def render(self) -> Content:
        first = max(min(self.chosen - MOST_ROWS + 1, len(self._completions) - MOST_ROWS), 0)
        width = max(self.size.width, 1)
        shown = self._completions[first : first + MOST_ROWS]
        words = [_words(one) for one in shown]
        column = max((one.cell_length for one in words), default=0) + 2
        lines: list[Content] = []
        section = ""
        for place, (one, text) in enumerate(zip(shown, words, strict=True), start=first):
            gap = " " * (column - text.cell_length)
            line = Content.assemble(text, gap, (clean_line(one.meaning), Tone.QUIET.value))
            heading = f"  {one.section}" if one.section != section else ""
            section = one.section
            line = line.truncate(width - len(heading), ellipsis=True, pad=True) + Content.styled(
                heading, Tone.YOU.value
            )
            lines.append(Content.styled(line.plain, "reverse") if place == self.chosen and not one.hint else line)
        if len(self._completions) > len(shown):
            below = len(self._completions) - first - len(shown)
            lines.append(
                Content.styled(f"+{below} more" if below else f"{len(self._completions)} in all", Tone.QUIET.value)
            )
        return Content("\n").join(lines)


def _words(completion: Completion) -> Content:
    text = clean_line(completion.shown or completion.text)
    if completion.hint:
        return Content.styled(text, Tone.QUIET.value)
    own = clean_line(completion.text)
    rest = text[len(own) :] if text.startswith(f"{own} ") else ""
    words = Content.assemble((text[: len(text) - len(rest)], "bold"), (rest, Tone.QUIET.value))
    for place in completion.marks if len(text) == len(completion.shown or completion.text) else ():
        words = words.stylize(Tone.YOU.value, place, place + 1)
    return words
