"""What the keys of the workspace do."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import BindingType

from phoenix_tui.caps import caps_for
from phoenix_tui.commands.catalogue import is_command, is_shell_line
from phoenix_tui.drafts import ENTRY_LIMIT, remember
from phoenix_tui.keymap import Scope, bindings
from phoenix_tui.keys_in_force import hint, key
from phoenix_tui.screens.stage import Stage
from phoenix_tui.way_out import CLOSES
from phoenix_tui.widgets.composer import Composer

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from phoenix_tui.screens.desk import Desk
    from phoenix_tui.surface import ConversationSurface

DOUBLE: Final = 0.6
"""Seconds within which a second Esc makes a pair."""
AGAIN: Final = 1.5
"""Seconds within which a second Ctrl+C quits."""

NEVER: Final = float("-inf")
PAGES: Final = {"page_up": -10, "page_down": 10}
"""Rows that a page of a question is."""


class WorkspaceKeys(Stage):
    """Esc closes the innermost open thing, else stops the run; the rest as `keymap.KEYS` says."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.WORKSPACE)
    escaped_at = NEVER
    """When the first Esc of a pair was pressed; any other key ends the pair."""
    _interrupted_at = NEVER
    clock = staticmethod(time.monotonic)
    """Tells how far apart two keys were pressed."""

    def action_stop(self) -> None:
        """Esc, from any focus and in every state."""
        if self._close_innermost() or self.parts.dock.composer.escape() or self.stop_run():
            return
        self.clear_selection()
        if self.rows.has_focus:
            self.set_focus(self.parts.dock.composer)
            return
        if self.parts.status.status.family.is_agent and not self.parts.dock.composer.text:
            self.action_command("agents parent")  # it has ended
            return
        notice, composer = self.parts.dock.notice, self.parts.dock.composer
        if notice.standing is not None and not self.parts.status.status.read_only:
            notice.standing = None
            return
        now = self.clock()
        if now - self.escaped_at >= DOUBLE:
            self.escaped_at = now
            return
        self.escaped_at = NEVER  # a third one begins another pair
        if composer.text:
            self._clear_draft()
        else:
            self.action_command("rewind")

    def _close_innermost(self) -> bool:
        if self.rows.leave():
            return True
        if self.parts.dock.close():
            self.set_focus(self.parts.dock.composer)
            return True
        if self.has_class("-list-over") and self.has_class("-narrow"):
            self._close_list()
            self.set_focus(self.parts.dock.composer)
            return True
        if self.parts.view is not None and self.parts.view.leave_blocks():
            return True
        return self.welcoming is not None and self.welcoming.stop()

    def _clear_draft(self) -> None:
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

    def interrupt(self) -> bool:
        """Ctrl+C: copy a selection, else stop, else clear the draft; True when it asks to quit."""
        composer = self.parts.dock.composer
        selected = composer.selected_text or self.get_selected_text()
        if selected:
            self.when_ready(lambda bench: bench.deeds.copy(bench, selected))
        elif self._close_innermost() or self.stop_run():
            pass
        elif composer.text:
            self._clear_draft()
        else:
            now = self.clock()
            again, self._interrupted_at = now - self._interrupted_at < AGAIN, now
            if not again:
                self.tell(f"Press {key('interrupt')} again to quit.")
            return again
        return False

    def action_list(self) -> None:
        """To the list and back."""
        composer = self.parts.dock.composer
        if self.rows.has_focus:
            self._close_list()
            self.set_focus(composer)
            return
        narrow = self.has_class("-narrow")
        self.set_class(narrow, "-list-over")
        self.say_way_out(CLOSES if narrow else "")
        self.set_focus(self.rows)
        self.when_ready(lambda bench: bench.desk.overview.reload())  # another Phoenix may have been at work

    def on_resize(self) -> None:
        """The list over a narrow screen may stand beside the conversation now."""
        self.call_after_refresh(self._say_again)

    def _say_again(self) -> None:
        # A screen under a sheet is current too, but Esc closes the sheet.
        is_open = self.app.screen is self and not self.parts.dock.composer.completing
        if is_open and self.parts.status.status.way_out == CLOSES:
            self.say_way_out(self.list_way_out)

    @property
    def list_way_out(self) -> str:
        """The list over a narrow screen may still be there."""
        return CLOSES if self.has_class("-list-over") and self.has_class("-narrow") else ""

    def _close_list(self) -> None:
        self.remove_class("-list-over")
        self.say_way_out("")

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
        transcript = self.parts.view
        if transcript is None:
            return
        moves: dict[str, Callable[[], object]] = {
            "page_up": transcript.action_page_up,
            "page_down": transcript.action_page_down,
            "top": transcript.action_scroll_home,
            "bottom": transcript.action_scroll_end,
            "details": transcript.action_toggle_details,
            "blocks": transcript.take_blocks,
            "prompt_above": partial(transcript.go_prompt, -1),
            "prompt_below": partial(transcript.go_prompt, 1),
        }
        moves[what]()

    def action_go(self, number: int) -> None:
        """The conversation at this place of the list."""
        order = self.rows.model.order
        if number <= len(order):
            if self.rows.has_focus:
                self._close_list()
                self.set_focus(self.parts.dock.composer)
            self.when_ready(lambda bench: bench.desk.open(order[number - 1]))

    def action_paste_clipboard(self) -> None:
        """An image or text from the clipboard."""
        self.when_ready(lambda bench: bench.deeds.paste(bench))

    def action_editor(self) -> None:
        """Write the draft in $EDITOR."""
        self.when_ready(lambda bench: bench.deeds.edit(bench))


def _send_queued(desk: Desk, conversation: ConversationSurface) -> Awaitable[object]:
    return conversation.queue.send_now("", caps_for(desk, conversation))
