"""What the workspace hands to everything that is made behind its first frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from phoenix_tui.lifecycle.launch import Launch
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.widgets.conversation_list import ConversationList
    from phoenix_tui.workspace.startup import Startup
    from phoenix_tui.workspace.toasts import Toasts
    from phoenix_tui.workspace.widgets import WorkspaceWidgets


class WorkspaceParts(Struct, frozen=True, eq=False):
    """The widgets and objects it owns; of the screen itself only what every screen can do."""

    screen: PhoenixScreen[None]
    """For sheets, workers, timers and the app."""
    launch: Launch
    parts: WorkspaceWidgets
    rows: ConversationList
    toasts: Toasts
    startup: Startup
