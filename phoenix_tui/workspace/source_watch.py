"""Looks at the files that extend Phoenix while the screen is open, and says what is not used."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from phoenix_tui.commands.command_context import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.trust import AFTER_A_PROMPT, SourceWatch
from tools.clean import clean

NOTICE_SECONDS: Final = 20.0
"""Seconds that the notice stays: a user who reads something else meets it later."""


class LastingNotices(ScreenFrontEnd):
    """The screen, with notices that stay long enough for a user who reads something else."""

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say it in a toast of its own duration."""
        app = self._ctx.screen.app
        app.notify(clean(text), severity="error" if bad else "warning", timeout=NOTICE_SECONDS, markup=False)


class ScreenSourceWatch:
    """Looks after the first frame, at each run, when the terminal gets the focus and in another folder."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx
        self._watch = SourceWatch(LastingNotices(ctx))
        self._folder: Path | None = None

    def start(self) -> None:
        """Look soon, and from then on."""
        screen, active = self._ctx.screen, self._ctx.active
        if active.services.trust is None:
            return
        active.services.engine.watch(self._watch.noticed)
        self._folder = active.folder
        self._watch.look(active.folder, AFTER_A_PROMPT)
        screen.watch(screen.app, "app_focus", self._focused, init=False)
        screen.watch(active.parts.title, "heading", self._in_view, init=False)

    def _focused(self, focused: bool) -> None:
        if focused:
            self._watch.look(self._ctx.active.folder)

    def _in_view(self, _: object) -> None:
        """Look at the folder of another conversation."""
        if self._ctx.active.folder != self._folder:
            self._folder = self._ctx.active.folder
            self._watch.look(self._folder)
