"""What the keys of the workspace do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import BindingType

from phoenix_tui.caps import caps_for
from phoenix_tui.commands.catalogue import is_command, is_shell_line
from phoenix_tui.drafts import ENTRY_LIMIT, remember
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.keys_in_force import hint
from phoenix_tui.screens.list_drawer import ListDrawer
from phoenix_tui.screens.stage import Stage
from phoenix_tui.screens.ways_out import WaysOut
from phoenix_tui.way_out import CLOSES
from phoenix_tui.widgets.composer import Composer

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from phoenix_tui.screens.desk import Desk
    from phoenix_tui.surface import ConversationSurface, Launch

PAGES: Final = {"page_up": -10, "page_down": 10}
"""Rows that a page of a question is."""


class WorkspaceKeys(Stage):
    """As `keymap.KEYS` says."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.WORKSPACE)

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self.drawer = ListDrawer(self, self.rows, self.parts.dock.composer)
        self.ways_out = WaysOut(self, self.drawer)

    def list_width(self, columns: int) -> int:
        """Cells that the list takes of a screen that wide."""
        return self.drawer.width(columns)

    def action_stop(self) -> None:
        """Esc, from any focus and in every state."""
        self.ways_out.escape()

    def clear_draft(self) -> None:
        """Empty the composer; the history keeps what stood there."""
        composer = self.parts.dock.composer
        text = composer.take()
        if len(text) > ENTRY_LIMIT:
            self.tell(f"Too long for the history; {hint(('undo', 'brings it back'))}.")
        elif composer.history_of_prompts is not None:
            self.remember(text)

    def remember(self, text: str) -> None:
        """Keep a prompt in the history of this folder."""
        if trouble := remember(self.parts.dock.composer.history_of_prompts, text):
            self.tell(trouble, bad=True)

    def action_list(self) -> None:
        """To the list and back."""
        if self.rows.has_focus:
            self.drawer.leave()
            return
        self.drawer.take()
        self.when_ready(lambda bench: bench.desk.overview.reload())  # another Phoenix may have been at work

    def on_resize(self) -> None:
        """The list over a narrow screen may stand beside the conversation now."""
        self.call_after_refresh(self._say_again)

    def _say_again(self) -> None:
        # A screen under a sheet is current too, but Esc closes the sheet.
        is_open = self.app.screen is self and not self.parts.dock.composer.completing
        if is_open and self.parts.status.status.way_out == CLOSES:
            self.say_way_out(self.drawer.way_out)

    def action_command(self, name: str) -> None:
        """A command by key."""
        self.when_ready(lambda bench: bench.deeds.command(bench, name))

    def action_palette(self) -> None:
        """Every command."""
        self.when_ready(lambda bench: bench.deeds.palette(bench))

    def action_cycle_mode(self) -> None:
        """The next permission mode."""
        self.when_ready(lambda bench: bench.deeds.next_mode(bench))

    def action_send_now(self) -> None:
        """Stop what runs and send."""
        self.parts.dock.composer.call_later(self._send_now)  # behind the letters typed before it

    def _send_now(self) -> None:
        text = self.parts.dock.composer.take()
        if is_command(text):
            self.post_message(Composer.Submitted(text))
        elif is_shell_line(text):
            self.when_ready(lambda bench: bench.sending.shell(text, now=True))
        elif text.strip():
            self.when_ready(lambda bench: bench.sending.send(text, interrupt=True))
        elif self.parts.dock.queue.waiting:
            self.when_ready(lambda bench: bench.desk.attempt(partial(_send_queued, bench.desk)))

    def action_view(self, what: str) -> None:
        """Move or unfold the transcript from any focus; a question in focus scrolls itself."""
        question = self.parts.dock.question
        if question.has_focus_within and what in PAGES:
            question.action_scroll_asked(PAGES[what])
            return
        if self.parts.view is not None:
            self.parts.view.action_view(what)

    def action_go(self, number: int) -> None:
        """The conversation at this place of the list."""
        order = self.rows.model.order
        if number <= len(order):
            if self.rows.has_focus:
                self.drawer.leave()
            self.when_ready(lambda bench: bench.desk.open(order[number - 1]))

    def action_paste_clipboard(self) -> None:
        """An image or text from the clipboard."""
        self.when_ready(lambda bench: bench.deeds.paste(bench))

    def action_editor(self) -> None:
        """Write the draft in $EDITOR."""
        self.when_ready(lambda bench: bench.deeds.edit(bench))


def _send_queued(desk: Desk, conversation: ConversationSurface) -> Awaitable[object]:
    return conversation.queue.send_now("", caps_for(desk, conversation))
