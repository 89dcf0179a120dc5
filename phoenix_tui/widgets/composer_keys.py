"""Actions of the composer's keys: send, queue, complete, walk through older prompts, answer the question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from textual import events
from textual.widgets import TextArea

from phoenix_tui.features.catalogue import is_command, is_shell_line
from phoenix_tui.widgets import composer_messages as messages
from phoenix_tui.widgets.answer_keys import Answering, ComposerHost, Entered, NoHost
from phoenix_tui.widgets.draft_text import DraftText
from phoenix_tui.widgets.paste_marks import PasteMarks
from phoenix_tui.widgets.readline import replace_at

if TYPE_CHECKING:
    from phoenix_tui.widgets.vim_keys import VimKeys


def _next_of(examples: Sequence[str], text: str) -> str:
    return examples[(examples.index(text) + 1) % len(examples) if text in examples else 0]


def is_prose(text: str) -> bool:
    """True for prose: no command, no line for the shell, not empty."""
    return bool(text.strip()) and not is_command(text) and not is_shell_line(text)


class VimMode:
    """Vim's keys as an option; without them every key is the text area's."""

    def __init__(self, area: TextArea) -> None:
        self._area = area
        self.keys: VimKeys | None = None

    def use(self, keys: VimKeys | None) -> None:
        """Use these keys from now on, or none."""
        self.keys = keys
        self.tell()

    def tell(self) -> None:
        """Let the rule above be written again: the mode, the keys, or where a shell line runs is another now."""
        self._area.post_message(messages.ModeChanged())

    @property
    def takes_escape(self) -> bool:
        """True when Esc leaves INSERT, or an unfinished command, before any other action."""
        return bool(self.esc_hint)

    @property
    def esc_hint(self) -> str:
        """Action of Esc on the mode, or on an unfinished command, before any other; empty for none."""
        return self.keys.esc_hint if self.keys is not None and self._area.has_focus else ""

    def escape(self) -> bool:
        """Leave it; False where it is left."""
        return self.takes_escape and self.keys is not None and self.keys.escape()

    def take(self, event: events.Key) -> bool:
        """Carry out a key; False where the text area shall have it."""
        return self.keys is not None and self.keys.take(event)

    def redo(self) -> bool:
        """Redo; False where Ctrl+R has another action."""
        return self.keys is not None and self.keys.redo()

    def begin(self) -> None:
        """Another text comes: it is written, not edited."""
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
        self.host: ComposerHost = NoHost()
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

    def started(self) -> None:
        """Take line breaks as text from now on: all early input has been inserted."""
        self.starting = False

    def submit(self) -> None:
        """Send the whole text unchanged."""
        text = self.take()
        self.sending += is_prose(text) or is_shell_line(text)
        # Straight to the screen: each of the five parents between costs the request a round of the loop.
        self._area.screen.post_message(messages.Submitted(text))

    def take(self) -> str:
        """Give the whole text and empty the box; undo brings it back."""
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
            self._area.screen.post_message(messages.PasteOpened(mark))
        elif self._ends_in_backslash:
            row, column = self._area.cursor_location
            replace_at(self._area, "\n", (row, column - 1), (row, column))
        else:
            self.hand_over()

    def hand_over(self) -> None:
        """Answer the question with the text, or send it as a message."""
        text = self._draft.content
        entered = self._answering.enter(text) if is_prose(text) else Entered.MESSAGE
        match entered:
            case Entered.MESSAGE:
                self.submit()
            case Entered.ANSWER:
                self.take()
            case Entered.HELD:
                self._area.screen.post_message(messages.DraftHeld())
            case _:
                assert_never(entered)

    @property
    def _ends_in_backslash(self) -> bool:
        """True when the cursor is at the end of a line behind a lone backslash, which breaks it as in a shell."""
        row, column = self._area.cursor_location
        line = self._area.document.get_line(row)
        return column == len(line) and line.endswith("\\") and not line.endswith("\\\\")

    async def _newline(self) -> None:
        """Break the line; before the first frame this is an Enter."""
        if self.starting:
            await self._send()
        else:
            replace_at(self._area, "\n", *self._area.selection)

    @property
    def _row(self) -> int:
        """The row of the cursor, wrapped lines counted."""
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
            self._switch_sending()
        elif self.suggested and not self._area.text:
            self._draft.put(self.suggested)
        elif self.examples and self._area.text in {"", *self.examples}:
            self._draft.put(_next_of(self.examples, self._area.text))
        elif not self._area.text:
            if not (self.busy or self.sending or self.has_queue):
                self._area.screen.focus_next()
        elif not (self.busy or self.sending or self.has_queue):
            self._area.screen.post_message(messages.NothingToComplete())
        elif self._area.text.strip():
            self._area.screen.post_message(messages.QueueWanted(self.take()))

    async def _steer(self) -> None:
        """Give the text to the running turn; without one, and for a command, this is Enter."""
        self.host.catch_up()
        if not (self.busy or self.sending) or not is_prose(self._area.text):
            await self._send()
        else:
            self._area.screen.post_message(messages.QueueWanted(self.take(), steer=True))

    def _switch_sending(self) -> None:
        """Switch between `!` and `!!`, which decide if the model gets the output of the shell command."""
        row, column = self._area.cursor_location
        by = -1 if self._area.text.startswith("!!") else 1
        self._area.replace("!" if by < 0 else "!!", (0, 0), (0, 2 if by < 0 else 1))
        self._area.move_cursor((row, max(column + by, 0) if row == 0 else column))

    async def _history(self) -> None:
        """Search older prompts; redo in vim's NORMAL."""
        if not self._vim.redo():
            await self._area.run_action("screen.command('history')")

    def _leave(self) -> None:
        """Quit on an empty text, else delete to the right."""
        if self._area.text:
            self._area.action_delete_right()
        else:
            self._area.post_message(messages.LeaveWanted())
