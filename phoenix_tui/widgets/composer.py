"""Composer: the box the user writes in. Posts what was asked for; knows no engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from msgspec import Struct
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from phoenix_tui.drafts import PromptHistory
from phoenix_tui.image_files import dropped_images
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.keys_in_force import meanings
from phoenix_tui.still import Still
from phoenix_tui.widgets import composer_messages as messages
from phoenix_tui.widgets.composer_keys import ComposerKeys
from phoenix_tui.widgets.in_order import edit_at_once
from phoenix_tui.widgets.paste_marks import PasteMarks
from phoenix_tui.widgets.pasting import SHORTEST_KEY, Shelf, pasted, provider_of
from phoenix_tui.widgets.readline import Readline

if TYPE_CHECKING:
    from phoenix_tui.widgets.vim_keys import VimKeys

MOST_ROWS: Final = 12
TYPING_PAUSE: Final = 0.5
"""Seconds without typing before a letter may answer a question (LOOK.md 7)."""
ANSWERS: Final = {
    "answer_once": "y",
    "answer_conversation": "s",
    "answer_always": "a",
    "answer_no": "n",
    "answer_reason": "r",
}


class Token(Struct, frozen=True):
    """The word under the cursor that a completion may finish; `start` is its column in `row`."""

    text: str
    row: int
    start: int
    end: int


class Composer(Still, ComposerKeys, PasteMarks, TextArea):
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

    Submitted: TypeAlias = messages.Submitted
    KeyPasted: TypeAlias = messages.KeyPasted
    CompletionMoved: TypeAlias = messages.CompletionMoved
    CompletionTaken: TypeAlias = messages.CompletionTaken
    ImagesDropped: TypeAlias = messages.ImagesDropped
    QueueWanted: TypeAlias = messages.QueueWanted
    PasteOpened: TypeAlias = messages.PasteOpened
    PasteTaken: TypeAlias = messages.PasteTaken
    ChoiceWanted: TypeAlias = messages.ChoiceWanted
    HelpWanted: TypeAlias = messages.HelpWanted
    ImageDropped: TypeAlias = messages.ImageDropped
    LeaveWanted: TypeAlias = messages.LeaveWanted
    ModeChanged: TypeAlias = messages.ModeChanged

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(soft_wrap=True, tab_behavior="focus", placeholder="Type to start")
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.history_of_prompts: PromptHistory | None = None
        """Set by the screen, as the nine below."""
        self.answers = ANSWERS
        """Actions whose keys answer on an empty line while something is asked, and the letters of the answers."""
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
        self.above: Callable[[], Widget | None] = lambda: None
        """What Up on the first row gives the keys to."""
        self.catch_up: Callable[[], None] = lambda: None
        """Offers what completes the text as it stands now: keys of one read come ahead of the messages of change."""
        self.answer: Callable[[str], None] = lambda _letter: None
        """Answers the open question, at once: it may open a line that the next key is meant for."""
        self.shelf = Shelf()
        self.readline = Readline(self, self.shelf.marks)
        self.vim: VimKeys | None = None
        """Where the user wants it: set by the dock."""
        self._clock = clock
        self._typed_at = 0.0

    @property
    def content(self) -> str:
        """The whole text, with every folded paste in its place."""
        return self.shelf.unfold(self.text)

    @property
    def folds(self) -> tuple[tuple[int, int], ...]:
        """Place and length, in the content, of every folded paste."""
        return self.shelf.folds(self.text)

    def load(self, text: str, folds: Sequence[tuple[int, int]] = ()) -> None:
        """Show a draft, cursor at its end."""
        self.shelf.clear()
        self.begin()
        self.load_text(self.shelf.refold(text, folds))
        self.move_cursor(self.document.end)

    def put(self, text: str) -> None:
        """Show another text in place of the draft; undo brings the draft back."""
        self.edit_at(self.shelf.fold(text), (0, 0), self.document.end)

    def take(self) -> str:
        """Give the whole text and empty the box; undo brings it back."""
        text = self.content
        self.begin()
        self.clear()
        if self.history_of_prompts is not None:
            self.history_of_prompts.leave()
        return text

    def begin(self) -> None:
        """Another text comes: vim writes it."""
        if self.vim is not None:
            self.vim.begin()

    @property
    def inserts(self) -> bool:
        """Whether Esc leaves vim's INSERT, or what was begun in another mode, before it does anything else."""
        return self.vim is not None and self.has_focus and self.vim.takes_escape

    def escape(self) -> bool:
        """Leave it; False where it is left."""
        return self.inserts and self.vim is not None and self.vim.escape()

    def tell_mode(self) -> None:
        """Vim's mode, or whether the keys are its, is another now."""
        self.post_message(self.ModeChanged())

    def on_focus(self) -> None:
        """Esc is vim's, or no longer."""
        if self.vim is not None:
            self.tell_mode()

    on_blur = on_focus

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
        taken = await pasted(text)
        self.edit_at(self.shelf.fold(taken.text), *self.selection)
        self.post_message(self.PasteTaken(taken, len(text)))

    def fit(self) -> None:
        """Be as tall as the text, up to twelve rows and a third of the screen."""
        most = max(min(MOST_ROWS, (self.room or self.screen.size.height) // 3), 1)
        rows = min(max(self.wrapped_document.height, 1), most)
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def on_text_area_changed(self) -> None:
        """Grow or shrink with the number of lines."""
        self.note_change()
        self.fit()

    async def _on_key(self, event: events.Key) -> None:
        """Let a letter answer, `?` help and Backspace drop an image before they become text."""
        now, before = self._clock(), self._typed_at
        if event.is_printable:
            self._typed_at = now
            self.leave_mark()
        typing_ended = self.question_since is not None and now - max(self.question_since, before) >= TYPING_PAUSE
        message = None if self.text else _meaning_when_empty(event)
        letter = meanings(self.answers).get(event.key) if typing_ended and not self.text else None
        if letter is not None:
            event.stop()
            event.prevent_default()
            self.answer(letter)
        elif message is not None:
            event.stop()
            event.prevent_default()
            self.post_message(message)
        elif self.vim is not None and self.vim.take(event):
            event.stop()
            event.prevent_default()
            self.leave_mark()
        elif self.text and edit_at_once(self, event):
            self.leave_mark()  # not when the message of the move arrives: the next key may be here before it

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._typed_at = self._clock()
        await self.insert_pasted(event.text)


def _meaning_when_empty(event: events.Key) -> Message | None:
    """What a key asks for while nothing is written; None where it is text."""
    if event.character == "?":
        return Composer.HelpWanted()
    return Composer.ImageDropped() if event.key == "backspace" else None
