"""Sheets over the workspace, opened and waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tools.shedding import garbage

if TYPE_CHECKING:
    from textual.content import Content

    from phoenix_tui.modals.base import PhoenixScreen, Result, Sheet


KILOBYTES: Final = 150
"""Kilobytes of a closed sheet."""


class Sheets:
    """Opens one over a screen; a sheet's module is loaded when it is shown."""

    def __init__(self, screen: PhoenixScreen[None]) -> None:
        self._screen = screen

    async def show(self, sheet: Sheet[Result]) -> Result | None:
        """Show a sheet and return its result, such as the key of the selected row; None after Esc."""
        try:
            return await self._screen.app.push_screen_wait(sheet)
        finally:
            garbage.note_end(KILOBYTES)

    async def ask_line(self, heading: str, text: str = "", *, secret: bool = False) -> str | None:
        """One line, None where Esc was pressed."""
        from phoenix_tui.modals.text_sheet import LineSheet  # noqa: PLC0415 - loaded when it is shown

        return await self.show(LineSheet(heading, text, secret=secret))

    async def confirm(self, question: str, yes: str, no: str) -> bool:
        """Ask yes or no; Esc is no. The words name both actions."""
        from phoenix_tui.modals.text_sheet import ConfirmSheet  # noqa: PLC0415 - as above

        return await self.show(ConfirmSheet(question, yes, no)) is True

    async def review(self, heading: str, text: Content) -> None:
        """Show text until it is closed."""
        from phoenix_tui.modals.text_sheet import TextSheet  # noqa: PLC0415 - as above

        await self.show(TextSheet(heading, text))

    def read(self, heading: str, text: Content, hang: int = 0) -> None:
        """Show text to read; a wrapped row continues `hang` cells in."""
        from phoenix_tui.modals.text_sheet import TextSheet  # noqa: PLC0415 - as above

        self._screen.app.push_screen(TextSheet(heading, text, hang), lambda _: garbage.note_end(KILOBYTES))
