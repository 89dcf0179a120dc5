"""The screen as a front end of the use cases: asks in sheets and says in toasts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual.content import Content

from engine.executor.requests import EngineError
from engine.ports.mcp import SignInAddress
from engine.records import PermissionMode
from phoenix_tui.commands.run import CommandContext, CommandFunction
from phoenix_tui.features.front_end import FrontEnd, Option, PageReader
from phoenix_tui.keys import active_keys
from phoenix_tui.lifecycle.launch import Launch
from phoenix_tui.modals.page_sheet import PageSheet
from phoenix_tui.modals.rows_sheet import PickerRow, PickerSheet
from phoenix_tui.terminal.lending import open_outside
from tools.clean import clean_line
from tools.contract import SandboxMode

NO_EDITOR: Final = "The editor cannot be started; set VISUAL or EDITOR."


class ScreenFrontEnd(FrontEnd):
    """A `FrontEnd` over the context of a command."""

    most_options: ClassVar = 5_000
    """/search finds the words of all conversations."""

    def __init__(self, ctx: CommandContext) -> None:
        super().__init__(ctx.active)
        self._ctx = ctx

    def prefer(
        self,
        *,
        launch: Launch | None = None,
        model: str = "",
        mode: PermissionMode | None = None,
        sandbox: SandboxMode | None = None,
    ) -> None:
        """Set and show the options of the next new conversation."""
        super().prefer(launch=launch, model=model, mode=mode, sandbox=sandbox)
        self._ctx.active.prefer()

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say it in a toast."""
        self._ctx.tell(text, bad=bad)

    def confirm_change(self, text: str) -> None:
        """Do nothing: the status line shows the present settings."""

    def read(self, heading: str, text: str, *, hang: int = 0) -> None:
        """Show a longer text in a sheet."""
        self._ctx.sheets.read(heading, Content(text), hang)

    async def review(self, heading: str, text: str) -> None:
        """Show a longer text in a sheet until it is closed."""
        await self._ctx.sheets.review(heading, Content(text))

    async def pick(self, heading: str, options: Sequence[Option], *, current: str = "") -> str:
        """Ask in a sheet that is narrowed by typing."""
        rows = [PickerRow(one.key, one.words, " · ".join(one.facts)) for one in options]
        takes = "" if current else "Enter selects"
        return await self._ctx.sheets.show(PickerSheet(heading, rows, current=current, takes=takes)) or ""

    async def ask_line(self, heading: str, text: str = "") -> str:
        """Ask in a sheet with one line."""
        return await self._ctx.sheets.ask_line(heading, text) or ""

    async def confirm(self, question: str, yes: str, no: str) -> bool:
        """Ask in a sheet with two answers."""
        return await self._ctx.sheets.confirm(question, yes, no)

    async def show(self, read: PageReader, argument: str = "") -> None:
        """Show a page in a sheet that stays open over its actions."""
        sheet = PageSheet(self, await read(), read)
        await self._ctx.sheets.show(sheet)
        if sheet.last is not None:
            await sheet.last.run()

    async def edit(self, path: Path, invitation: str = "", *, line: int = 1) -> None:
        """Open the user's own editor on the terminal."""
        if not await open_outside(self._ctx.screen.app, path, line):
            raise EngineError(f"{NO_EDITOR} The file is {clean_line(str(path))}.")

    async def sign_in(self, name: str, address: SignInAddress) -> str:
        """Show the address in a sheet, which closes once the server is connected."""
        from phoenix_tui.modals.sign_in_sheet import SignInSheet  # noqa: PLC0415 - loaded when it is shown

        self._ctx.screen.app.push_screen(SignInSheet(self, name, address, self._ctx.clipboard))
        return ""

    def name_way(self, key: str, command: str) -> str:
        """The key."""
        return active_keys.key(key)

    async def open(self, conversation_id: str) -> None:
        """Bring another conversation into view. Raises EngineError."""
        await self._ctx.active.open(conversation_id)

    async def begin_anew(self) -> None:
        """Replace an empty conversation by a new one; the text in the dock stays."""
        dock = self._ctx.dock
        async with self._ctx.active.changing:
            text, folds, images = dock.composer.content, dock.composer.folds, dock.chips.images
            dock.load("")
            dock.chips.images = ()
            await self._ctx.active.begin()
            dock.composer.load(text + dock.composer.content, folds)
            dock.chips.images = images

    def stop(self) -> bool:
        """Stop the run in view; False where there was none."""
        return self._ctx.sending.stop()


def on_screen(use_case: Callable[[FrontEnd, str], Awaitable[None]], *, listed: bool = False) -> CommandFunction:
    """A use case as a command of the screen; `listed`: the list of conversations is read again afterwards."""

    async def run(ctx: CommandContext, argument: str) -> None:
        await use_case(ScreenFrontEnd(ctx), argument)
        if listed:
            await ctx.active.index.reload()

    return run
