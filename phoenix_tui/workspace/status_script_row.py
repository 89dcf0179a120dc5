"""Puts the row of the user's status line program on the screen and wakes the program; loaded only for one."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from engine.ports.services import ServiceRunner
from phoenix_tui.features.status_facts import status_facts
from phoenix_tui.widgets.script_row import ScriptRow
from phoenix_tui.workspace.status_script import StatusScript
from tools.contract import JsonObject

if TYPE_CHECKING:
    from textual.content import Content

    from phoenix_tui.config.status_line import StatusLineSettings
    from phoenix_tui.workspace.active_conversation import ActiveConversation
    from phoenix_tui.workspace.screen import WorkspaceScreen


class StatusScriptRow:
    """Joins widget, program and the conversation in view."""

    def __init__(
        self,
        screen: WorkspaceScreen,
        active: ActiveConversation,
        settings: StatusLineSettings,
        programs: ServiceRunner,
    ) -> None:
        self._screen = screen
        self._active = active
        self._row = ScriptRow(settings.padding)
        self._seen: object = None
        self.script = StatusScript(
            settings, programs, screen.launch.config_file.parent, self._facts, self._show, self._start
        )

    async def start(self) -> None:
        """Show the row below the status line, and follow it."""
        await self._screen.mount(self._row, after=self._active.parts.status)
        self._screen.watch(self._active.parts.status, "status", self._look)

    def _look(self) -> None:
        """Wake the program where state, turn, mode, model, context or cost changed; a key or a tick is no change."""
        status, conversation = self._active.parts.status.status, self._active.conversation
        seen = (
            conversation.id if conversation is not None else "",
            type(status.state),
            status.mode,
            status.model,
            status.effort,
            status.context.tokens,
            status.cost_usd,
        )
        if seen != self._seen:
            self._seen = seen
            self.script.wake()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it as a worker: it ends with the screen."""
        self._screen.run_worker(work, group="status script")

    def _facts(self) -> tuple[JsonObject, int]:
        active = self._active
        facts = status_facts(active.conversation, self._screen.launch.cwd, active.model, active.index.count)
        return facts, max(self._row.size.width, 1)

    def _show(self, text: Content | None, failing: bool) -> None:
        if self._row.is_attached:
            self._row.show(text, failing=failing)
