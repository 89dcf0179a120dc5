"""Composer: the box the user writes in. Posts requests; knows no engine.

The methods that Textual calls pass to the owned objects: `keys` the orders, `answering` letters that answer a question,
`marks` and `bulk` long pastes, `readline` and `vim` editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, assert_never, cast

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from phoenix_tui.keys.keymap import bindings
from phoenix_tui.keys.scopes import Scope
from phoenix_tui.widgets import composer_messages as messages
from phoenix_tui.widgets.answer_keys import Answering
from phoenix_tui.widgets.composer_keys import ComposerKeys, VimMode
from phoenix_tui.widgets.draft_text import DraftText
from phoenix_tui.widgets.in_order import edit_at_once
from phoenix_tui.widgets.paste_marks import PasteMarks
from phoenix_tui.widgets.pasting import Pasted, PastedImages, PastedKey, PasteStore, paste_of
from phoenix_tui.widgets.readline import Readline, ShellKeys, replace_at
from phoenix_tui.widgets.still import Still

if TYPE_CHECKING:
    from textual.app import App

MOST_ROWS: Final = 12


JOINERS: Final = frozenset("\u200d\ufe0f\ufe0e")
"""Characters that join an emoji of several parts, or select its form; keyboards send them as separate keys."""


class Composer(Still, ShellKeys, TextArea):
    """Multi-line input that grows upwards. Enter sends, Ctrl+J breaks the line."""

    DEFAULT_CSS = """
    Composer {
        height: 1; border: none; padding: 0 1; background: $background; scrollbar-size-vertical: 1;
        border-left: heavy $text-muted;
        &:focus { border: none; border-left: heavy $accent; background: $background; }
        & .text-area--placeholder { color: $text-muted; }
        & .text-area--selection { background: $screen-selection-background; }
        &.-waiting { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.COMPOSER)
    HELP = "Type here. Enter sends, Ctrl+J breaks the line, / lists commands, @ names a file, ! runs a command."

    Submitted: TypeAlias = messages.Submitted
    KeyPasted: TypeAlias = messages.KeyPasted
    ImagesDropped: TypeAlias = messages.ImagesDropped
    QueueWanted: TypeAlias = messages.QueueWanted
    PasteOpened: TypeAlias = messages.PasteOpened
    PasteTaken: TypeAlias = messages.PasteTaken
    HelpWanted: TypeAlias = messages.HelpWanted
    ImageDropped: TypeAlias = messages.ImageDropped
    LeaveWanted: TypeAlias = messages.LeaveWanted
    ModeChanged: TypeAlias = messages.ModeChanged
    DraftHeld: TypeAlias = messages.DraftHeld
    NothingToComplete: TypeAlias = messages.NothingToComplete

    def __init__(self) -> None:
        super().__init__(soft_wrap=True, tab_behavior="focus", placeholder="Type to start")
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.room = 0
        """Rows of its pane; 0 for the whole screen."""
        self.bulk = PasteStore()
        self.marks = PasteMarks(self, self.bulk)
        self.vim = VimMode(self)
        self.answering = Answering()
        self.draft = DraftText(self, self.bulk, self.answering)
        self.keys = ComposerKeys(self, self.marks, self.vim, self.answering, self.draft)
        self.readline = Readline(self, self.bulk)

    def _recompute_cursor_offset(self) -> None:
        """Locate the cursor in the wrapped text, where that still has its line.

        Undo and redo show or hide the scrollbar before they move the cursor, which then is computed again.
        """
        if self.cursor_location[0] < self.document.line_count:
            super()._recompute_cursor_offset()  # type: ignore[no-untyped-call]  # Textual gives it no types

    @property
    def content(self) -> str:
        """The whole text, with every folded paste in its place."""
        return self.draft.content

    @property
    def folds(self) -> tuple[tuple[int, int], ...]:
        """Place and length, in the content, of every folded paste."""
        return self.bulk.folds(self.text)

    def load(self, text: str, folds: Sequence[tuple[int, int]] = ()) -> None:
        """Show a draft, cursor at its end."""
        self.answering.begin(by_hand=False)
        self.bulk.clear()
        self.vim.begin()
        self.load_text(self.bulk.refold(text, folds))
        self.move_cursor(self.document.end)

    def give_back(self, text: str) -> None:
        """Show a text that was not sent before what was typed meanwhile; the cursor stays at its letter."""
        if not self.text:
            self.load(text)
            return
        self.answering.begin(by_hand=False)
        self.insert(f"{self.bulk.fold(text)}\n", (0, 0), maintain_selection_offset=True)

    def put(self, text: str) -> None:
        """Show another text in place of the draft; undo brings the draft back."""
        self.draft.put(text)

    def add(self, text: str) -> None:
        """Insert a text at the cursor, or over the selection; a long one as its mark."""
        replace_at(self, self.bulk.fold(text), *self.selection)

    def take(self) -> str:
        """Give the whole text and empty the box; undo brings it back."""
        return self.keys.take()

    async def insert_pasted(self, text: str) -> None:
        """Take pasted text: an image path becomes an image, long text one mark."""
        paste = await paste_of(text, into_empty=not self.text)
        match paste:
            case PastedImages(paths):
                self.post_message(self.ImagesDropped(paths))
            case PastedKey(key):
                self.post_message(self.KeyPasted(key))
            case Pasted():
                self.add(paste.text)
                self.post_message(self.PasteTaken(paste, len(text)))
            case _:
                assert_never(paste)

    def fit(self) -> None:
        """Be as tall as the text, up to twelve rows and a third of the screen."""
        most = max(min(MOST_ROWS, (self.room or self.screen.size.height) // 3), 1)
        rows = min(max(self.wrapped_document.height, 1), most)
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def on_focus(self) -> None:
        """Esc is vim's, or no longer."""
        if self.vim.keys is not None:
            self.vim.tell()

    on_blur = on_focus

    def action_order(self, name: str) -> None:
        """Run a key of the composer.

        The app runs priority bindings itself, ahead of keys that still wait in this widget's queue: each call queues
        behind them before it reads the text.
        """
        self.call_later(self.keys.orders[name])

    def action_delete_left(self) -> None:
        """Backspace behind a mark deletes all of it."""
        if not self.marks.delete(-1):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """Delete on a mark deletes all of it."""
        if not self.marks.delete(1):
            super().action_delete_right()

    def get_line(self, line_index: int) -> Text:
        """The line with its marks in the colour of the user."""
        line = super().get_line(line_index)
        if self.bulk.marks(line.plain):
            app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual leaves it open
            self.marks.show_in(line, app.theme_variables.get("accent"))
        return line

    def on_text_area_changed(self) -> None:
        """Grow or shrink with the number of lines."""
        self.marks.note_change()
        self.fit()

    def on_text_area_selection_changed(self) -> None:
        """The cursor moved, by a key or by the mouse."""
        self.marks.step_out()

    def on_click(self, event: events.Click) -> None:
        """A click on a mark opens it."""
        if mark := self.marks.at(self.get_target_document_location(event)):
            self.screen.post_message(messages.PasteOpened(mark))

    async def _on_key(self, event: events.Key) -> None:
        """Let a letter answer, `?` help and Backspace drop an image before they become text."""
        if event.is_printable:
            self.marks.step_out()
        if self._answers(event):
            pass
        elif event.character in JOINERS and self.text:
            replace_at(self, event.character or "", *self.selection)  # no letter for Textual, and part of an emoji
        elif not self.text and (message := _meaning_when_empty(event)) is not None:
            self.post_message(message)
        elif self.vim.take(event) or (self.text and edit_at_once(self, event)):
            self.marks.step_out()  # not when the message of the move arrives: the next key may be earlier
        else:
            return
        event.stop()
        event.prevent_default()

    def _answers(self, event: events.Key) -> bool:
        """Answer the question; a letter counts only without text typed behind it."""
        if event.is_printable and event is not self.answering.settled:
            self.answering.typed()
        elif self.answering.press(event.key, writes=event.is_printable, is_empty=not self.text):
            return True
        if event.is_printable and not self.text:
            self.answering.begin()
        return False

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if not self.text:
            self.answering.begin()
        self.answering.typed()
        await self.insert_pasted(event.text)


def _meaning_when_empty(event: events.Key) -> Message | None:
    """Action of a key in an empty composer; None for text."""
    if event.character == "?":
        return Composer.HelpWanted()
    return Composer.ImageDropped() if event.key == "backspace" else None
