"""What the keys of the composer do: send, queue, complete, walk through older prompts, edit as in a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from phoenix_tui.drafts import PromptHistory
from phoenix_tui.widgets import composer_messages as messages
from phoenix_tui.widgets.readline import Readline

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.widgets import TextArea as _Base

    from phoenix_tui.widgets.vim_keys import VimKeys
else:
    _Base = object  # Textual inherits CSS along the first Widget base alone, as in `still.Still`


class ComposerKeys(_Base):
    """Actions alone; the composer holds the text and what the screen tells it.

    The app runs priority bindings itself, ahead of keys that still wait in this widget's queue: each action stands in
    line behind them before it looks at the text.
    """

    completing: bool
    busy: bool
    has_queue: bool
    starting: bool
    above: Callable[[], Widget | None]
    catch_up: Callable[[], None]
    history_of_prompts: PromptHistory | None
    readline: Readline
    vim: VimKeys | None

    if TYPE_CHECKING:

        @property
        def mark_here(self) -> str: ...
        @property
        def content(self) -> str: ...
        def put(self, text: str) -> None: ...
        def take(self) -> str: ...
        def edit_at(self, text: str, start: tuple[int, int], end: tuple[int, int]) -> None: ...

    def started(self) -> None:
        """What was typed ahead stands here: a line break is one from now on."""
        self.starting = False

    def action_send(self) -> None:
        """Enter: accept the chosen completion, or send."""
        self.call_later(self._send)

    def _send(self) -> None:
        self.catch_up()
        if self.completing:
            self.post_message(messages.CompletionTaken(send=True))
        elif mark := self.mark_here:
            self.screen.post_message(messages.PasteOpened(mark))
        elif self._ends_in_backslash:
            row, column = self.cursor_location
            self.edit_at("\n", (row, column - 1), (row, column))
        else:
            self.submit()

    @property
    def _ends_in_backslash(self) -> bool:
        """Whether the cursor stands at the end of a line behind a lone backslash, which breaks it as in a shell."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        return column == len(line) and line.endswith("\\") and not line.endswith("\\\\")

    def submit(self) -> None:
        """Give the whole text away as it stands."""
        # Straight to the screen: each of the five parents between would cost the request a round of the loop.
        self.screen.post_message(messages.Submitted(self.take()))

    def action_newline(self) -> None:
        """Break the line; before the first frame this is an Enter."""
        self.call_later(self._send if self.starting else lambda: self.edit_at("\n", *self.selection))

    def action_edit(self, name: str) -> None:
        """One of the shell's editing keys."""
        self.call_later(self.readline.run, name)

    def action_older(self) -> None:
        """Up: completions, else the text, else the open question, the queue, older prompts."""
        self.call_later(self._older)

    def _older(self) -> None:
        self.catch_up()
        if self.completing:
            self.post_message(messages.CompletionMoved(-1))
        elif self.wrapped_document.location_to_offset(self.cursor_location).y > 0:
            self.action_cursor_up()
        elif (above := self.above()) is not None:
            self.screen.set_focus(above)
        else:
            self.walk_history(-1)

    def action_newer(self) -> None:
        """Down: completions, else the text, else newer prompts."""
        self.call_later(self._newer)

    def _newer(self) -> None:
        self.catch_up()
        if self.completing:
            self.post_message(messages.CompletionMoved(1))
        elif self.wrapped_document.location_to_offset(self.cursor_location).y < self.wrapped_document.height - 1:
            self.action_cursor_down()
        else:
            self.walk_history(1)

    def walk_history(self, by: int) -> None:
        """Show an older prompt, or a newer one."""
        history = self.history_of_prompts
        text = None if history is None else history.older(self.content) if by < 0 else history.newer()
        if text is not None:
            self.put(text)

    def action_complete(self) -> None:
        """Tab: accept the chosen completion; while the agent works the draft waits for its end; `!` becomes `!!`."""
        self.call_later(self._complete)

    def _complete(self) -> None:
        self.catch_up()
        if self.completing:
            self.post_message(messages.CompletionTaken(send=False))
        elif self.text.startswith("!"):
            self._switch_sending()
        elif not (self.busy or self.has_queue):
            if not self.text:
                self.post_message(messages.ChoiceWanted())
            self.screen.focus_next()
        elif self.text.strip():
            self.screen.post_message(messages.QueueWanted(self.take()))

    def _switch_sending(self) -> None:
        """Whether the model gets the output of a shell command: one `!` or two."""
        row, column = self.cursor_location
        by = -1 if self.text.startswith("!!") else 1
        self.replace("!" if by < 0 else "!!", (0, 0), (0, 2 if by < 0 else 1))
        self.move_cursor((row, max(column + by, 0) if row == 0 else column))

    def action_history(self) -> None:
        """Ctrl+R: search older prompts; in vim's NORMAL what was undone comes back."""
        self.call_later(self._history)

    async def _history(self) -> None:
        if self.vim is None or not self.vim.redo():
            await self.run_action("screen.command('history')")

    def action_leave(self) -> None:
        """Ctrl+D: quit on an empty text, else delete to the right."""
        self.call_later(self._leave)

    def _leave(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(messages.LeaveWanted())
