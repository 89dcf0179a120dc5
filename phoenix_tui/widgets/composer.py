"""Composer: the box the user writes in. Posts what was asked for; knows no engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from msgspec import Struct
from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from phoenix_tui.drafts import PromptHistory
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.still import Still
from phoenix_tui.widgets.pasting import SHORTEST_KEY, Shelf, dropped_images, pasted_text, provider_of
from phoenix_tui.widgets.readline import Readline

MOST_ROWS: Final = 12
TYPING_PAUSE: Final = 0.5
"""Seconds without typing before a letter may answer a question (LOOK.md 7)."""
ANSWER_KEYS: Final = frozenset("ysanr")


class Token(Struct, frozen=True):
    """The word under the cursor that a completion may finish; `start` is its column in `row`."""

    text: str
    row: int
    start: int
    end: int


class Composer(Still, TextArea):
    """Multi-line input that grows upwards. Enter sends, Ctrl+J breaks the line."""

    DEFAULT_CSS = """
    Composer {
        height: 1; border: none; padding: 0 1; background: $background; scrollbar-size-vertical: 1;
        border-left: heavy $text-muted;
        &:focus { border: none; border-left: heavy $accent; background: $background; }
        & .text-area--placeholder { color: $text-muted; }
        &.-waiting { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.COMPOSER)
    HELP = "Write here. Enter sends, Ctrl+J breaks the line, / lists commands, @ names a file, ! runs a command."

    class Submitted(Message):
        """Enter: the whole text, long pastes included, already out of the box; empty when nothing was written."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class KeyPasted(Message):
        """An API key alone was pasted into the empty box; it has not been shown."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class AnswerPressed(Message):
        """A letter that answers the open question."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class CompletionMoved(Message):
        """Up or Down while completions are open."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class CompletionTaken(Message):
        """Tab or Enter while completions are open."""

        def __init__(self, send: bool) -> None:
            super().__init__()
            self.send = send

    class ImagesDropped(Message):
        """Paths of images were pasted or dropped."""

        def __init__(self, paths: tuple[Path, ...]) -> None:
            super().__init__()
            self.paths = paths

    class QueueWanted(Message):
        """Tab while the agent works: the whole text waits its turn; already out of the box."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class QueueEntered(Message):
        """Up on an empty line while something waits in the queue."""

    class QuestionWanted(Message):
        """Up on the first line while a question is open."""

    class ChoiceWanted(Message):
        """Tab on an empty line: what the panel above offers is chosen."""

    class HelpWanted(Message):
        """`?` on an empty line."""

    class ImageDropped(Message):
        """Backspace at the start of an empty text: the last image goes."""

    class LeaveWanted(Message):
        """Ctrl+D on an empty text."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(soft_wrap=True, tab_behavior="focus", placeholder="Type to start")
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.history_of_prompts: PromptHistory | None = None
        """Set by the screen, as the six below."""
        self.completing = False
        self.question_since: float | None = None
        """Monotonic time at which the open question appeared."""
        self.busy = False
        """Whether the agent works: Tab queues the draft."""
        self.has_queue = False
        """Whether something is queued: Up on an empty line leads there."""
        self.starting = True
        """Until the first frame: Ctrl+J is then an Enter typed before the terminal was raw (SPIKE.md 4c)."""
        self.room = 0
        """Rows of the pane it stands in; 0 for the whole screen."""
        self.shelf = Shelf()
        self.readline = Readline(self)
        self._clock = clock
        self._typed_at = 0.0

    @property
    def content(self) -> str:
        """The whole text, with every folded paste in its place."""
        return self.shelf.unfold(self.text)

    def load(self, text: str) -> None:
        """Show a draft, cursor at its end."""
        self.shelf.clear()
        self.load_text(self.shelf.fold(text))
        self.move_cursor(self.document.end)

    def take(self) -> str:
        """Give the whole text and empty the box; undo brings it back."""
        text = self.content
        self.clear()
        if self.history_of_prompts is not None:
            self.history_of_prompts.leave()
        return text

    def token(self) -> Token:
        """The word left of the cursor."""
        row, column = self.cursor_location
        line = self.get_line(row).plain
        start = line.rfind(" ", 0, column) + 1
        return Token(line[start:column], row, start, column)

    def edit_at(self, text: str, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Replace a range and stand behind it."""
        self.move_cursor(self.replace(text, start, end).end_location)

    async def insert_pasted(self, text: str) -> None:
        """Take pasted text: an image path becomes an image, long text one mark."""
        if paths := dropped_images(text):
            self.post_message(self.ImagesDropped(paths))
            return
        if not self.text and len(text.strip()) >= SHORTEST_KEY and provider_of(text.strip()):
            self.post_message(self.KeyPasted(text.strip()))
            return
        self.edit_at(self.shelf.fold(await pasted_text(text)), *self.selection)

    def fit(self) -> None:
        """Be as tall as the text, up to twelve rows and a third of the screen."""
        most = max(min(MOST_ROWS, (self.room or self.screen.size.height) // 3), 1)
        rows = min(max(self.wrapped_document.height, 1), most)
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def on_text_area_changed(self) -> None:
        """Grow or shrink with the number of lines."""
        self.fit()

    async def _on_key(self, event: events.Key) -> None:
        """Let a letter answer, `?` help and Backspace drop an image before they become text."""
        now, before = self._clock(), self._typed_at
        if event.is_printable:
            self._typed_at = now
        message = None if self.text else _meaning_when_empty(event, self.question_since, now, before)
        if message is not None:
            event.stop()
            event.prevent_default()
            self.post_message(message)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._typed_at = self._clock()
        await self.insert_pasted(event.text)

    def action_send(self) -> None:
        """Enter: accept the chosen completion, or send."""
        # The app runs priority bindings itself, ahead of letters that still wait in this widget's queue.
        self.call_later(self._send)

    def _send(self) -> None:
        if self.completing:
            self.post_message(self.CompletionTaken(send=True))
        else:
            # Straight to the screen: each of the five parents between would cost the request a round of the loop.
            self.screen.post_message(self.Submitted(self.take()))

    def action_newline(self) -> None:
        """Break the line; before the first frame this is an Enter."""
        self.call_later(self._send if self.starting else lambda: self.edit_at("\n", *self.selection))

    def action_edit(self, name: str) -> None:
        """One of the shell's editing keys."""
        self.call_later(self.readline.run, name)  # behind the letters typed before it, as in `action_send`

    def action_older(self) -> None:
        """Up: completions, else the text, else the open question, else older prompts."""
        if self.completing:
            self.post_message(self.CompletionMoved(-1))
        elif self.wrapped_document.location_to_offset(self.cursor_location).y > 0:
            self.action_cursor_up()
        elif self.question_since is not None:
            self.post_message(self.QuestionWanted())
        elif self.has_queue and not self.text:
            self.post_message(self.QueueEntered())
        else:
            self.walk_history(-1)

    def action_newer(self) -> None:
        """Down: completions, else the text, else newer prompts."""
        if self.completing:
            self.post_message(self.CompletionMoved(1))
        elif self.wrapped_document.location_to_offset(self.cursor_location).y < self.wrapped_document.height - 1:
            self.action_cursor_down()
        else:
            self.walk_history(1)

    def walk_history(self, by: int) -> None:
        """Show an older prompt, or a newer one."""
        history = self.history_of_prompts
        text = None if history is None else history.older(self.content) if by < 0 else history.newer()
        if text is not None:
            self.load(text)

    def action_complete(self) -> None:
        """Tab: accept the chosen completion; while the agent works the draft waits for its end."""
        if self.completing or self.busy or self.has_queue:
            self.call_later(self._complete_or_queue)
            return
        if not self.text:
            self.post_message(self.ChoiceWanted())
        raise SkipAction

    def _complete_or_queue(self) -> None:
        if self.completing:
            self.post_message(self.CompletionTaken(send=False))
        elif self.text.strip():
            self.screen.post_message(self.QueueWanted(self.take()))

    def action_leave(self) -> None:
        """Ctrl+D: quit on an empty text, else delete to the right."""
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.LeaveWanted())


def _meaning_when_empty(event: events.Key, question_since: float | None, now: float, before: float) -> Message | None:
    """What a key means while nothing is written; None where it is text."""
    typing_ended = question_since is not None and now - max(question_since, before) >= TYPING_PAUSE
    if typing_ended and event.character in ANSWER_KEYS:
        return Composer.AnswerPressed(event.character or "")
    if event.character == "?":
        return Composer.HelpWanted()
    return Composer.ImageDropped() if event.key == "backspace" else None
