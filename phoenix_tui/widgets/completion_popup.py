"""The completions above the composer: grows upwards, never takes the focus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from phoenix_tui.labels import Tone
from tools.clean import clean_line

MOST_ROWS: Final = 8


class Completion(Struct, frozen=True):
    """One choice: what is put into the text, and a few words about it."""

    text: str
    meaning: str = ""
    runs: bool = False
    """Whether Enter sends at once: a command that needs nothing more."""


class CompletionPopup(Widget):
    """Up to eight choices, the best one on top, and how many more there are."""

    DEFAULT_CSS = """
    CompletionPopup { height: auto; max-height: 9; display: none; background: $surface; padding: 0 1; }
    """
    chosen: reactive[int] = reactive(0)
    """The row that Tab or Enter takes."""

    def __init__(self) -> None:
        super().__init__()
        self._completions: tuple[Completion, ...] = ()

    def show(self, completions: Sequence[Completion]) -> None:
        """Offer these; none closes."""
        if not completions and not self._completions:
            return  # at nearly every key: a layout of the whole screen for nothing
        self._completions = tuple(completions)
        self.chosen = 0
        self.display = bool(completions)
        self.refresh(layout=True)

    @property
    def choice(self) -> Completion | None:
        """What would be taken."""
        return self._completions[self.chosen] if self._completions else None

    def move(self, by: int) -> None:
        """Choose another one, round the ends."""
        if self._completions:
            self.chosen = (self.chosen + by) % len(self._completions)

    def render(self) -> Content:
        """The rows round the chosen one."""
        first = max(min(self.chosen - MOST_ROWS + 1, len(self._completions) - MOST_ROWS), 0)
        width = max(self.size.width, 1)
        shown = self._completions[first : first + MOST_ROWS]
        longest = max((len(one.text) for one in shown), default=0)
        lines: list[Content] = []
        for place, one in enumerate(shown, start=first):
            text = clean_line(one.text)
            line = Content.assemble(
                (text, "bold"), " " * (longest - len(one.text) + 2), (one.meaning, Tone.QUIET.value)
            )
            line = line.truncate(width, ellipsis=True, pad=True)
            lines.append(Content.styled(line.plain, "reverse") if place == self.chosen else line)
        if more := len(self._completions) - len(shown):
            lines.append(Content.styled(f"+{more} more", Tone.QUIET.value))
        return Content("\n").join(lines)
