"""The user's status line program: run after a change, one at a time, and its row on the screen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rich.text import Text
from textual.content import Content
from textual.widget import Widget

from phoenix_tui.cli.blocks import encode
from phoenix_tui.config.settings import StatusLineSettings
from phoenix_tui.features.status_facts import status_facts
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import Still
from tools.clean import clean_line
from tools.clock import SYSTEM_CLOCK, Clock
from tools.contract import JsonObject
from tools.process.workspace_watch import trouble_at
from tools.services import ProgramLimits, ServiceCommand

if TYPE_CHECKING:
    from phoenix_tui.workspace.active_conversation import ActiveConversation
    from phoenix_tui.workspace.screen import WorkspaceScreen
    from tools.process.service import SupervisedServices


LONGEST: Final = 4096
"""Characters of a line that are looked at."""
_COLOURING: Final = re.compile(r"\x1b\[([0-9;]{0,64})m")
_PLAIN: Final = frozenset({0, 1, 2, 22, 39, 49, *range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108)})
"""Reset, bold, dim and colours; no blinking, reversed or hidden text."""
_EXTENDED: Final = frozenset({38, 48})
_ARGUMENTS: Final = {5: 1, 2: 3}
"""Numbers behind 38 or 48: an index of the palette, or red, green and blue."""
_MOST: Final = 255


def first_line(output: bytes) -> Content:
    """The first line; empty where there is none."""
    line = output[: LONGEST * 4].decode("utf-8", "replace").lstrip("\r\n").partition("\n")[0][:LONGEST]
    pieces = _COLOURING.split(line)
    kept = [clean_line(piece) if place % 2 == 0 else _colours(piece) for place, piece in enumerate(pieces)]
    return Content.from_rich_text(Text.from_ansi("".join(kept), end=""))


def _colours(numbers: str) -> str:
    """The part of a sequence that sets colours; empty where there is none."""
    values = [min(int(one or 0), 9999) for one in numbers.split(";")]
    kept: list[int] = []
    while values:
        value = values.pop(0)
        if value in _EXTENDED:
            count = _ARGUMENTS.get(values[0], 0) if values else 0
            behind, values = values[: count + 1], values[count + 1 :]
            if count and len(behind) == count + 1 and max(behind) <= _MOST:
                kept += [value, *behind]
        elif value in _PLAIN:
            kept.append(value)
    return f"\x1b[{';'.join(map(str, kept))}m" if kept else ""


FAILING = "! "


class ScriptRow(Still, Widget):
    """One row: the last good text, cut to the width, with a mark while the program fails."""

    DEFAULT_CSS = """
    ScriptRow { height: 1; width: 1fr; background: $background; color: $foreground; padding: 0 1; }
    """

    def __init__(self, padding: int) -> None:
        super().__init__()
        self._padding = padding
        self._shown: tuple[Content, bool] = Content(""), False

    def show(self, text: Content | None, *, failing: bool) -> None:
        shown = (self._shown[0] if text is None else text), failing
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Content:
        text, failing = self._shown
        mark = (FAILING if failing else "", Tone.BAD.value)
        return Content.assemble(" " * self._padding, mark, text).truncate(max(self.size.width, 1), ellipsis=True)


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
