"""The user's status line program: run after a change, one at a time, and its row on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from textual.content import Content

from phoenix_tui.cli.blocks import encode
from phoenix_tui.config.settings import StatusLineSettings
from phoenix_tui.features.status_facts import status_facts
from phoenix_tui.widgets.script_row import ScriptRow, first_line
from tools.clock import SYSTEM_CLOCK, Clock
from tools.contract import JsonObject
from tools.process.workspace_watch import trouble_at
from tools.services import ProgramLimits, ServiceCommand

if TYPE_CHECKING:
    from phoenix_tui.workspace.active_conversation import ActiveConversation
    from phoenix_tui.workspace.screen import WorkspaceScreen
    from tools.process.service import SupervisedServices


LOOK: Final = 10
"""An interval is at least so many times the look before a run: no workspace is looked at all the time."""
KEPT: Final = 16 * 1024
"""Bytes kept of its output; the rest is read and dropped."""
Show: TypeAlias = Callable[[Content | None, bool], None]
"""Shows a text, or None for the last good one; True while the program fails."""


class StatusScript:
    """The program of `[status_line]`. Each run gets the facts of its moment as JSON on stdin."""

    def __init__(
        self,
        settings: StatusLineSettings,
        programs: SupervisedServices,
        folder: Path,
        facts: Callable[[], tuple[JsonObject, int]],
        show: Show,
        start: Callable[[Coroutine[Any, Any, None]], object],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._settings = settings
        self._programs = programs
        self._folder = folder
        """Working directory: never the folder of a conversation, whose files could name programs for it."""
        self._facts = facts
        """Facts, and the columns of the terminal."""
        self._show = show
        self._clock = clock
        self._changed = False
        self._start = start
        """Starts the work in the background; cancelling that ends a run with its whole tree."""
        self._works = False
        self.runs = 0
        """Number of runs begun."""

    def wake(self) -> None:
        """Note a change: a run follows, at once or when the one before and its interval are over."""
        self._changed = True
        if not self._works:
            self._works = True
            self._start(self._work())

    async def _work(self) -> None:
        try:
            while self._changed:
                self._changed = False
                self.runs += 1
                began, (facts, columns) = self._clock.monotonic(), self._facts()
                trouble = await asyncio.to_thread(trouble_at, Path(str(facts["cwd"])))  # most programs run git there
                looked = self._clock.monotonic() - began
                if trouble:
                    self._show(None, True)
                else:
                    await self._run(facts, columns)
                interval = max(self._settings.min_interval_ms / 1000, LOOK * looked)
                rest = began + interval - self._clock.monotonic()
                await asyncio.sleep(max(rest, 0.0))
        finally:
            self._works = False

    async def _run(self, facts: JsonObject, columns: int) -> None:
        command = ServiceCommand(("/bin/sh", "-c", self._settings.command), self._folder, {"COLUMNS": str(columns)})
        limits = ProgramLimits(self._settings.timeout_ms / 1000, KEPT)
        try:
            result = await self._programs.run_program(command, encode(facts).encode(), limits)
        except OSError:
            self._show(None, True)
            return
        if result.timed_out or result.exit_code != 0:
            self._show(None, True)
        else:
            self._show(first_line(result.stdout.head or result.stdout.tail), False)


class StatusScriptRow:
    """Joins widget, program and the conversation in view."""

    def __init__(
        self,
        screen: WorkspaceScreen,
        active: ActiveConversation,
        settings: StatusLineSettings,
        programs: SupervisedServices,
    ) -> None:
        self._screen = screen
        self._active = active
        self._row = ScriptRow(settings.padding)
        self._seen: object = None
        self.script = StatusScript(
            settings, programs, screen.launch.config_file.parent, self._facts, self._show, self._start
        )

    async def start(self) -> None:
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
        self._screen.run_worker(work, group="status script")

    def _facts(self) -> tuple[JsonObject, int]:
        active = self._active
        facts = status_facts(active.conversation, self._screen.launch.cwd, active.model, active.index.count)
        return facts, max(self._row.size.width, 1)

    def _show(self, text: Content | None, failing: bool) -> None:
        if self._row.is_attached:
            self._row.show(text, failing=failing)
