"""Context of a command: the conversation in view, the sheets, the toasts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from engine.ports import ConversationChanges
from phoenix_tui.terminal.clipboard import Clipboard
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.workspace.active_conversation import ActiveConversation
from phoenix_tui.workspace.sending import Sending

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.modals.opening import Sheets
    from phoenix_tui.workspace.environment import Environment


class UndoStep(Struct, frozen=True):
    """One archive or delete of one or many, and its undo."""

    ids: tuple[str, ...]
    changes: ConversationChanges


class CommandContext(Struct, frozen=True):
    """Objects that a command may use."""

    screen: PhoenixScreen[None]
    active: ActiveConversation
    sending: Sending
    dock: Dock
    sheets: Sheets
    toasts: Notifier
    clipboard: Clipboard
    keymap: Mapping[str, str]
    environment: Environment
    offered: list[str] = msgspec.field(default_factory=list[str])
    """Conversation that Enter on an empty line opens: it was open when Phoenix ended unexpectedly."""
    undo: list[UndoStep] = msgspec.field(default_factory=list[UndoStep])
    """Steps that u in the list undoes, the newest last."""

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Show a toast; the text may come from outside."""
        self.toasts.tell(text, bad=bad)


CommandFunction: TypeAlias = Callable[[CommandContext, str], Awaitable[None]]
