"""What a command works with: the desk, the sheets and the words to say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec
from msgspec import Struct
from textual.content import Content

from engine.ports import ConversationChanges
from phoenix_tui.clipboard import Clipboard
from phoenix_tui.screens.base import Result, Sheet
from phoenix_tui.screens.desk import Desk
from phoenix_tui.screens.parts import Teller
from phoenix_tui.screens.sending import Sending
from phoenix_tui.widgets.dock import Dock

if TYPE_CHECKING:
    from phoenix_tui.screens.deeds import Deeds
    from phoenix_tui.screens.surroundings import Surroundings


class Sheets(Protocol):
    """Opens something over the workspace and waits for its answer."""

    async def pick(self, sheet: Sheet[str]) -> str | None:
        """What a sheet gives, such as the key of the chosen row; None where Esc was pressed."""
        ...

    async def show(self, sheet: Sheet[Result]) -> Result | None:
        """What a sheet of any kind gives back."""
        ...

    async def ask_line(self, heading: str, text: str = "", *, secret: bool = False) -> str | None:
        """One line, None where Esc was pressed."""
        ...

    def read(self, heading: str, text: Content, hang: int = 0) -> None:
        """Show text to read; a row that goes on does so `hang` cells in."""
        ...

    def choose_theme(self, name: str) -> None:
        """Change the colours."""
        ...

    def themes(self) -> tuple[str, ...]:
        """Their names, the one in use first."""
        ...

    async def leave(self) -> None:
        """Quit, after asking where something runs."""
        ...


class UndoStep(Struct, frozen=True):
    """One archive or delete of one or many, and what takes it back."""

    ids: tuple[str, ...]
    changes: ConversationChanges


class Bench(Struct, frozen=True):
    """Everything a command may touch."""

    desk: Desk
    sending: Sending
    dock: Dock
    sheets: Sheets
    tell: Teller
    clipboard: Clipboard
    keymap: Mapping[str, str]
    make_deeds: Callable[[], Deeds]
    around: Surroundings
    undo: list[UndoStep] = msgspec.field(default_factory=list[UndoStep])
    """What u in the list takes back, the newest last."""

    @property
    def deeds(self) -> Deeds:
        """What is done for the keys and widgets of the workspace; loaded with the first of it."""
        return self.make_deeds()


Run: TypeAlias = Callable[[Bench, str], Awaitable[None]]
