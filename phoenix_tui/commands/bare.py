"""A command without an argument: its sheet, or a sheet with the reason that there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual.content import Content

from engine.executor.requests import ENGINE_ERRORS
from phoenix_tui.commands.run import CommandContext, CommandFunction
from phoenix_tui.features.catalogue import SlashCommand
from phoenix_tui.modals.opening import Sheets

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen, Result, Sheet
    from phoenix_tui.widgets.notices import Notifier

ACTING: Final = frozenset({"new", "archive", "quit"})
"""Commands that act at once, and confirm it in a notice."""
ACTING_ON_CONVERSATION: Final = frozenset({"fork", "export", "rename"})
"""The same once there is a conversation to act on; a text that was typed makes one."""


class NoticeSheets(Sheets):
    """Sheets and notices of a command. Notices before its first sheet are kept, to be one where none comes."""

    def __init__(self, screen: PhoenixScreen[None], toasts: Notifier) -> None:
        super().__init__(screen)
        self._toasts = toasts
        self._notices: list[str] = []
        self.is_open = False
        """True once there is a sheet, or the command has ended."""

    async def show(self, sheet: Sheet[Result]) -> Result | None:
        """Show a sheet and return its result."""
        self.open()
        return await super().show(sheet)

    def read(self, heading: str, text: Content, hang: int = 0) -> None:
        """Show text to read."""
        self.open()
        super().read(heading, text, hang)

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Show a notice, or keep it."""
        if self.is_open:
            self._toasts.tell(text, bad=bad)
        else:
            self._notices.append(text)

    def finish(self, command: SlashCommand) -> None:
        """Show the notices that no sheet followed, with the meaning of the command."""
        if not self.is_open and (notices := self.take_notices()):
            meaning = f"{command.meaning[:1].upper()}{command.meaning[1:]}."
            self.read(f"/{command.name}", Content(f"{meaning}\n\n{notices}"))
        self.is_open = True

    def take_notices(self) -> str:
        """The notices that were kept, a line each, which are shown by who takes them."""
        text = "\n".join(self._notices)
        self._notices.clear()
        return text

    def open(self) -> None:
        """Note that a sheet comes: what was kept is shown beside it, as is all that is said from now on."""
        self.is_open = True
        if notices := self.take_notices():
            self._toasts.tell(notices)


async def run_bare(ctx: CommandContext, command: SlashCommand, run: CommandFunction) -> None:
    """Run a listed command without an argument; what it would answer in place of a sheet is the text of one."""
    conversation = ctx.active.conversation
    acts = command.name in ACTING or (conversation is not None and command.name in ACTING_ON_CONVERSATION)
    if acts or (command.is_long and conversation is not None and conversation.record.message_count):
        await run(ctx, "")
        return
    sheets = NoticeSheets(ctx.screen, ctx.toasts)
    try:
        await run(replace(ctx, sheets=sheets, toasts=sheets), "")
    except ENGINE_ERRORS as error:
        sheets.tell(str(error), bad=True)
    sheets.finish(command)
