"""Composer: the box the user writes in, and the actions of its keys. It posts requests and knows no engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, assert_never, cast

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from phoenix_tui.features.catalogue import is_command, is_shell_line
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.keys.keymap import Scope, bindings
from phoenix_tui.widgets.answer_keys import TYPING_PAUSE, Answering, ComposerHost, Entered, StrayLetter
from phoenix_tui.widgets.bases import Still
from phoenix_tui.widgets.pasting import Pasted, PastedImages, PastedKey, PasteStore, paste_of
from phoenix_tui.widgets.readline import DraftText, PasteMarks, Readline, ShellKeys, edit_at_once, replace_at

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App

    from phoenix_tui.widgets.vim import VimKeys


def is_prose(text: str) -> bool:
    """True for prose: no command, no line for the shell, not empty."""
    return bool(text.strip()) and not is_command(text) and not is_shell_line(text)


class VimMode:
    """Vim's keys as an option; without them every key is the text area's."""

    def __init__(self, area: TextArea) -> None:
        self._area = area
        self.keys: VimKeys | None = None

    def use(self, keys: VimKeys | None) -> None:
        self.keys = keys
        self.tell()

    def tell(self) -> None:
        """Let the rule above be written again: the mode, the keys, or where a shell line runs is another now."""
        self._area.post_message(Composer.ModeChanged())

    @property
    def takes_escape(self) -> bool:
        """True when Esc leaves INSERT, or an unfinished command, before any other action."""
        return bool(self.esc_hint)

    @property
    def esc_hint(self) -> str:
        """Action of Esc on the mode, or on an unfinished command, before any other; empty for none."""
        return self.keys.esc_hint if self.keys is not None and self._area.has_focus else ""

    def escape(self) -> bool:
        return self.takes_escape and self.keys is not None and self.keys.escape()

    def take(self, event: events.Key) -> bool:
        return self.keys is not None and self.keys.take(event)

    def redo(self) -> bool:
        return self.keys is not None and self.keys.redo()

    def begin(self) -> None:
        if self.keys is not None:
            self.keys.begin()


class ComposerKeys:
    """The orders of one text area; the dock and the workspace set the values they depend on."""

    def __init__(self, area: TextArea, marks: PasteMarks, vim: VimMode, answering: Answering, draft: DraftText) -> None:
        self._area = area
        self._marks = marks
        self._vim = vim
        self._answering = answering
        self._draft = draft
        self.host = ComposerHost()
        self.completing = False
        """True while completions are open."""
        self.busy = False
        """True while the agent works: Tab queues the draft."""
        self.sending = 0
        """Messages that were sent and are not taken yet: the agent is as good as busy."""
        self.has_queue = False
        """True while messages are queued: Up on an empty line leads there."""
        self.suggested = ""
        """Completion of an empty text."""
        self.examples: Sequence[str] = ()
        """Messages to begin with: an empty text, or one of them, becomes the next."""
        self.starting = True
        """True until the first frame: Ctrl+J is an Enter typed before raw mode (docs/decisions/textual.md)."""
        self.orders: Mapping[str, Callable[[], Awaitable[None] | None]] = {
            "send": self._send,
            "newline": self._newline,
            "older": self._older,
            "newer": self._newer,
            "complete": self._complete,
            "history": self._history,
            "steer": self._steer,
            "leave": self._leave,
        }
        """Actions by their names in `keymap.KEYS`."""

    def end_start(self) -> None:
        """Take line breaks as text from now on: all early input has been inserted."""
        self.starting = False

    def submit(self) -> None:
        text = self.take()
        self.sending += is_prose(text) or is_shell_line(text)
        # Straight to the screen: each of the five parents between costs the request a round of the loop.
        self._area.screen.post_message(Composer.Submitted(text))

    def take(self) -> str:
        text = self._draft.content
        self._vim.begin()
        self._area.clear()
        self._draft.leave_prompts()
        return text

    async def _send(self) -> None:
        """Accept the chosen completion, or send."""
        self.host.catch_up()
        if self.completing:
            await self.host.take_completion(send=True)
        elif mark := self._marks.here:
            self._area.screen.post_message(Composer.PasteOpened(mark))
        elif self._ends_in_backslash:
            row, column = self._area.cursor_location
            replace_at(self._area, "\n", (row, column - 1), (row, column))
        else:
            self.hand_over()

    def hand_over(self) -> None:
        """Answer the question with the text, or with nothing the lit answer of it, or send a message."""
        text = self._draft.content
        gave = not text and self._answering.enter_nothing()
        self._answering.note_enter()
        if gave:
            return
        entered = self._answering.enter(text) if is_prose(text) else Entered.MESSAGE
        match entered:
            case Entered.MESSAGE:
                self.submit()
            case Entered.ANSWER:
                self.take()
            case Entered.AGREED:
                self._area.screen.post_message(Composer.QueueWanted(self.take(), steer=True))
            case Entered.KEPT:
                pass
            case Entered.HELD:
                again = hint(("send", "again denies with this reason"), ("complete", "queues it"))
                why = f"The question appeared while you were typing; {again}."
                self._area.screen.post_message(Composer.KeyRefused(why))
            case _:
                assert_never(entered)

    @property
    def _ends_in_backslash(self) -> bool:
        """True when the cursor is at the end of a line behind a lone backslash, which breaks it as in a shell."""
        row, column = self._area.cursor_location
        line = self._area.document.get_line(row)
        return column == len(line) and line.endswith("\\") and not line.endswith("\\\\")

    async def _newline(self) -> None:
        if self.starting:
            await self._send()
        else:
            replace_at(self._area, "\n", *self._area.selection)

    @property
    def _row(self) -> int:
        return self._area.wrapped_document.location_to_offset(self._area.cursor_location).y

    def _older(self) -> None:
        """Completions, else the text, else the open question, the queue, older prompts."""
        self.host.catch_up()
        if self.completing:
            self.host.move_completion(-1)
        elif self._row > 0:
            self._area.action_cursor_up()
        elif (above := self.host.above()) is not None:
            self._area.screen.set_focus(above)
        else:
            self._draft.walk(-1)

    def _newer(self) -> None:
        """Completions, else the text, else newer prompts."""
        self.host.catch_up()
        if self.completing:
            self.host.move_completion(1)
        elif self._row < self._area.wrapped_document.height - 1:
            self._area.action_cursor_down()
        elif not self._area.text and (below := self.host.below()) is not None:
            self._area.screen.set_focus(below)
        else:
            self._draft.walk(1)

    async def _complete(self) -> None:
        """Accept the chosen completion; while the agent works the draft waits for its end; `!` becomes `!!`.

        With text it never moves the focus: later keys are meant for the text.
        """
        self.host.catch_up()
        if self.completing:
            await self.host.take_completion(send=False)
        elif self._area.text.startswith("!"):
            row, column = self._area.cursor_location
            by = -1 if self._area.text.startswith("!!") else 1
            self._area.replace("!" if by < 0 else "!!", (0, 0), (0, 2 if by < 0 else 1))
            self._area.move_cursor((row, max(column + by, 0) if row == 0 else column))
        elif self.suggested and not self._area.text:
            self._draft.put(self.suggested)
        elif self.examples and self._area.text in {"", *self.examples}:
            place = self.examples.index(self._area.text) + 1 if self._area.text in self.examples else 0
            self._draft.put(self.examples[place % len(self.examples)])
        elif not self._area.text:
            if not (self.busy or self.sending or self.has_queue):
                self._area.screen.focus_next()
        elif not (self.busy or self.sending or self.has_queue):
            why = f"Nothing to complete: {hint(('send', 'sends'), ('list', 'goes to the list'))}."
            self._area.screen.post_message(Composer.KeyRefused(why))
        elif self._area.text.strip():
            self._area.screen.post_message(Composer.QueueWanted(self.take()))

    async def _steer(self) -> None:
        """Give the text to the running turn; without one, and for a command, this is Enter."""
        self.host.catch_up()
        if not (self.busy or self.sending) or not is_prose(self._area.text):
            await self._send()
        else:
            self._area.screen.post_message(Composer.QueueWanted(self.take(), steer=True))

    async def _history(self) -> None:
        """Search older prompts; redo in vim's NORMAL."""
        if not self._vim.redo():
            await self._area.run_action("screen.command('history')")

    def _leave(self) -> None:
        if self._area.text:
            self._area.action_delete_right()
        else:
            self._area.post_message(Composer.LeaveWanted())


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

    class ImagesDropped(Message):
        """Paths of images were pasted or dropped."""

        def __init__(self, paths: tuple[Path, ...]) -> None:
            super().__init__()
            self.paths = paths

    class QueueWanted(Message):
        """Tab while the agent works: the whole text waits its turn; already out of the box. `steer`: the running turn
        reads it with its next tool results.
        """

        def __init__(self, text: str, *, steer: bool = False) -> None:
            super().__init__()
            self.text = text
            self.steer = steer

    class PasteOpened(Message):
        """Enter or a click on the mark of a long paste."""

        def __init__(self, mark: str) -> None:
            super().__init__()
            self.mark = mark

    class PasteTaken(Message):
        """Posted after a paste that may need a remark."""

        def __init__(self, taken: Pasted, length: int) -> None:
            super().__init__()
            self.taken = taken
            self.length = length

    class KeyRefused(Message):
        """A key had no effect on the text; `why` also names the key that has one."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    class AlwaysQueueWanted(Message):
        """The key that queues a refused message, and from now on every one that Enter sends while the agent works."""

    class HelpWanted(Message):
        """`?` on an empty line."""

    class ImageDropped(Message):
        """Backspace at the start of an empty text: the last image goes."""

    class LeaveWanted(Message):
        """Ctrl+D on an empty text."""

    class ModeChanged(Message):
        """Vim's mode, or whether its keys are the composer's, is another now."""

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
        return self.draft.content

    @property
    def folds(self) -> tuple[tuple[int, int], ...]:
        return self.bulk.folds(self.text)

    def load(self, text: str, folds: Sequence[tuple[int, int]] = ()) -> None:
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
        self.draft.put(text)

    def add(self, text: str) -> None:
        """Insert a text at the cursor, or over the selection; a long one as its mark."""
        replace_at(self, self.bulk.fold(text), *self.selection)

    def take(self) -> str:
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
        most = max(min(MOST_ROWS, (self.room or self.screen.size.height) // 3), 1)
        rows = min(max(self.wrapped_document.height, 1), most)
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows

    def on_focus(self) -> None:
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
        if not self.marks.delete(-1):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        if not self.marks.delete(1):
            super().action_delete_right()

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        if self.bulk.marks(line.plain):
            app = cast("App[object]", self.app)
            self.marks.show_in(line, app.theme_variables.get("accent"))
        return line

    def on_text_area_changed(self) -> None:
        self.marks.note_change()
        self.fit()

    def on_text_area_selection_changed(self) -> None:
        """The cursor moved, by a key or by the mouse."""
        self.marks.step_out()

    def on_click(self, event: events.Click) -> None:
        if mark := self.marks.at(self.get_target_document_location(event)):
            self.screen.post_message(Composer.PasteOpened(mark))

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

    def is_blank_for(self, event: events.Key) -> bool:
        """True where a letter may answer: the text is empty, or is this letter alone, which came too early to do so."""
        return not self.text or self.text == event.character

    def _answers(self, event: events.Key) -> bool:
        """Answer the question; a letter counts only without text typed behind it."""
        writes, is_blank = event.is_printable, self.is_blank_for(event)
        if writes and event is not self.answering.settled:
            self.answering.note_typing()
        elif letter := self.answering.letter_of(event.key, writes=writes, is_empty=is_blank):
            if self.keys.host.answer(letter) and self.text == event.character:
                self.keys.take()
            return True
        if event.is_printable and not self.text:
            self.answering.begin()
            if (stray := self.answering.note_stray(event.key)) is not None:
                self.set_timer(TYPING_PAUSE, partial(self._try_again, event.character or "", stray))
        return False

    def _try_again(self, text: str, stray: StrayLetter) -> None:
        """Take a letter that stands alone out of the text, as the answer that it was meant for."""
        if self.text == text and self.answering.try_again(stray):
            self.keys.take()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if not self.text:
            self.answering.begin()
        self.answering.note_typing()
        await self.insert_pasted(event.text)


def _meaning_when_empty(event: events.Key) -> Message | None:
    if event.character == "?":
        return Composer.HelpWanted()
    return Composer.ImageDropped() if event.key == "backspace" else None
