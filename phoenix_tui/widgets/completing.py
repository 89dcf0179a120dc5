"""The completions of the dock: shown above the composer, moved through and taken by its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from phoenix_tui.keys.esc_hint import CLOSES
from phoenix_tui.widgets.completion_popup import Completion, CompletionPopup, as_shown, token_of
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.opened import Opened
from phoenix_tui.widgets.readline import replace_at

if TYPE_CHECKING:
    from textual.widget import Widget as _Base

    from phoenix_tui.widgets.completer import Completer
else:
    _Base = object  # Textual inherits CSS along the first Widget base alone, as in `still.Still`


class Chosen(Message, namespace="dock"):
    """A command was chosen that needs nothing more."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Completing(_Base):
    """A part of the dock."""

    composer: Composer
    popup: CompletionPopup
    completer: Completer

    def move_completion(self, by: int) -> None:
        """Move the selection of the open completions."""
        self.popup.move(by)

    async def take_completion(self, *, send: bool) -> None:
        """Put the chosen completion into the text; with `send`, a whole command is run at once.

        The composer awaits it: keys typed behind Tab or Enter are read when it is done, never overwritten by it.
        """
        text = self.composer.text
        settled = await self.completer.settled()
        if self.composer.text != text:
            return  # another draft came into view meanwhile
        if not settled:
            if send:
                self.composer.keys.hand_over()
            return
        chosen = self.popup.choice
        if chosen is not None and chosen.hint and not send:
            self.popup.move(1)
            chosen = self.popup.choice
        self.offer([])
        if chosen is None or chosen.hint:
            if send:
                self.composer.keys.hand_over()
            return
        self._take(chosen, send=send)

    def _take(self, chosen: Completion, *, send: bool) -> None:
        token, line = token_of(self.composer), self.composer.document.get_line(0)
        argument = token.row == 0 and line.startswith("/") and not chosen.text.startswith(("/", "@"))
        start = line.index(" ") + 1 if argument else token.start
        if send and chosen.runs:
            self.composer.take()
            self.post_message(Chosen(line[:start] + chosen.text if argument else chosen.text))
            return
        end = "" if chosen.goes_on and not send else " "
        replace_at(self.composer, chosen.text + end, (token.row, start), (token.row, token.end))

    def offer(self, completions: Sequence[Completion], chosen: int = 0) -> None:
        """Show completions; none closes. One that would insert more text than its row shows is not offered."""
        completions = as_shown(completions)
        takeable = any(not one.hint for one in completions)
        if self.composer.keys.completing != takeable:
            self.post_message(Opened(CLOSES if takeable else ""))
            self.composer.vim.tell()  # Tab has another action in a shell line
        self.popup.show(completions, chosen)
        self.composer.keys.completing = takeable
