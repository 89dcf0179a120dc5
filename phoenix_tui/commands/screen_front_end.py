"""The screen as a front end of the use cases: asks in sheets and says in toasts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from textual.content import Content

from engine.api.conversation import ConversationApi
from engine.records import PermissionMode
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.lifecycle.launch import Launch, Services
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from tools.contract import SandboxMode


class ScreenFrontEnd:
    """A `FrontEnd` over the context of a command."""

    most_options = 5_000
    """/search finds the words of all conversations."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx
        self.tell = ctx.tell

    @property
    def launch(self) -> Launch:
        """What new conversations begin with."""
        return self._ctx.active.launch

    @property
    def services(self) -> Services:
        """The engine and what stands beside it."""
        return self._ctx.active.services

    @property
    def conversation(self) -> ConversationApi | None:
        """The conversation in view."""
        return self._ctx.active.conversation

    @property
    def model(self) -> str:
        """The model of the conversation in view, or of the next one."""
        return self.conversation.record.model if self.conversation is not None else self._ctx.active.model

    @property
    def mode(self) -> PermissionMode:
        """The mode of the conversation in view, or of the next one."""
        return self.conversation.record.permission_mode if self.conversation is not None else self._ctx.active.mode

    @property
    def sandbox(self) -> SandboxMode:
        """The sandbox of the conversation in view, or of the next one."""
        if self.conversation is not None:
            return self.conversation.record.sandbox
        return self._ctx.active.sandbox or self.launch.sandbox

    def prefer(
        self,
        *,
        launch: Launch | None = None,
        model: str = "",
        mode: PermissionMode | None = None,
        sandbox: SandboxMode | None = None,
    ) -> None:
        """Set with what the next new conversation begins."""
        active = self._ctx.active
        active.launch = launch or active.launch
        if active.conversation is None:
            active.sandbox = sandbox or active.sandbox
        active.prefer(model=model, mode=mode)

    def confirm_change(self, text: str) -> None:
        """Say nothing: the status line shows what is in force."""

    def read(self, heading: str, text: str, *, hang: int = 0) -> None:
        """Show a longer text in a sheet."""
        self._ctx.sheets.read(heading, Content(text), hang)

    async def pick(self, heading: str, options: Sequence[Option], *, current: str = "", free: bool = False) -> str:
        """Ask in a sheet that is narrowed by typing."""
        rows = [PickerRow(one.key, one.words, " · ".join(one.facts)) for one in options]
        return await self._ctx.sheets.show(PickerSheet(heading, rows, current=current, free=free)) or ""

    async def ask_line(self, heading: str, text: str = "") -> str:
        """Ask in a sheet with one line."""
        return await self._ctx.sheets.ask_line(heading, text) or ""

    async def confirm(self, question: str, yes: str, no: str) -> bool:
        """Ask in a sheet with two answers."""
        return await self._ctx.sheets.confirm(question, yes, no)

    async def current(self) -> ConversationApi:
        """The conversation in view, created now if there is none. Raises EngineError."""
        return await self._ctx.active.current()

    async def open(self, conversation_id: str) -> None:
        """Bring another conversation into view. Raises EngineError."""
        await self._ctx.active.open(conversation_id)

    async def begin_anew(self) -> None:
        """Put a new conversation in the place of an empty one; what is written in the dock stays."""
        dock = self._ctx.dock
        text, folds, images = dock.composer.content, dock.composer.folds, dock.chips.images
        dock.load("")
        dock.chips.images = ()
        await self._ctx.active.begin()
        dock.load(text, folds)
        dock.chips.images = images

    def stop(self) -> bool:
        """Stop the run in view; False where there was none."""
        return self._ctx.sending.stop()


def on_screen(use_case: Callable[[FrontEnd, str], Awaitable[None]], *, listed: bool = False) -> Run:
    """A use case as a command of the screen; `listed`: the list of conversations is read anew behind it."""

    async def run(ctx: CommandContext, argument: str) -> None:
        await use_case(ScreenFrontEnd(ctx), argument)
        if listed:
            await ctx.active.index.reload()

    return run
