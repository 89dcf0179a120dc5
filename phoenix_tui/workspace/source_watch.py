"""Looks at the files that extend Phoenix while the screen is open, and says what is not used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.trust import AFTER_A_PROMPT, SourceWatch
from tools.clean import clean

if TYPE_CHECKING:
    from textual.signal import Signal

NOTICE_SECONDS: Final = 20.0
"""Seconds that a toast stays: a user who reads something else meets it later."""


class ScreenSourceWatch:
    """Looks after the first frame, at each run, when the terminal gets the focus and in another folder."""

    def __init__(self, ctx: CommandContext) -> None:
        self._ctx = ctx
        self._watch = SourceWatch(ScreenFrontEnd(ctx), self._show)
        self._folder: Path | None = None

    def start(self) -> None:
        screen, active = self._ctx.screen, self._ctx.active
        if active.services.trust is None:
            return
        active.services.engine.watch(self._watch.note_activity)
        self._folder = active.folder
        self._watch.look(active.folder, AFTER_A_PROMPT)
        screen.watch(screen.app, "app_focus", self._follow_focus, init=False)
        screen.watch(active.parts.title, "heading", self._in_view, init=False)
        changes = cast("Signal[object]", screen.app.screen_change_signal)
        changes.subscribe(screen, self._look_again)

    def _show(self, words: str) -> None:
        """Show the notice in the panel of an empty conversation, which a toast would cover; else in a toast."""
        app, welcome = self._ctx.screen.app, self._ctx.active.parts.welcome
        welcome.tell(words)
        if words and not welcome.display:
            app.notify(clean(words), severity="warning", timeout=NOTICE_SECONDS, markup=False)

    def _look_again(self, _: object) -> None:
        """Look again behind a sheet, which may have been `/trust`."""
        if self._ctx.active.parts.welcome.notice:
            self._watch.look(self._ctx.active.folder)

    def _follow_focus(self, focused: bool) -> None:
        if focused:
            self._watch.look(self._ctx.active.folder)

    def _in_view(self, _: object) -> None:
        """Look at the folder of another conversation."""
        if self._ctx.active.folder != self._folder:
            self._folder = self._ctx.active.folder
            self._ctx.active.parts.welcome.tell(self._watch.notice_of(self._folder))
            self._watch.look(self._folder)
