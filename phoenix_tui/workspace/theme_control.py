"""The colours in force: a theme of Phoenix or of the user, or light and dark by the terminal's background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from phoenix_tui.styles.themes import DARK, LIGHT, THEMES, for_terminal
from phoenix_tui.styles.user_themes import KNOWN_THEMES, ThemeError, read_theme, theme_files
from phoenix_tui.terminal.background import QUESTION, is_light, remember
from phoenix_tui.workspace.widgets import notify_rejected

if TYPE_CHECKING:
    from textual.app import App

    from phoenix_tui.lifecycle.launch import Launch


class BackgroundAsked(Protocol):
    """Part of the driver that the background query needs."""

    replies: list[Callable[[str], None]]
    """Listeners to the terminal's replies."""

    def write_own(self, sequence: str) -> None:
        """Write a sequence of Phoenix's own."""
        ...


class ThemeControl:
    """Reads the user's themes and puts one in force; a broken one changes nothing."""

    def __init__(
        self,
        app: App[object],
        launch: Launch,
        terminal: BackgroundAsked | None,
    ) -> None:
        self._app = app
        self._folder = launch.themes_folder
        self._state_folder = launch.state_folder
        self._terminal = terminal
        self._wished = launch.theme
        """Empty: by the terminal's background."""

    def start(self, *, may_ask: bool) -> None:
        for theme in KNOWN_THEMES:
            if theme.name != self._app.theme:  # else the one of the first frame, which may be a file
                self._app.register_theme(for_terminal(theme, self._app))
        for path in theme_files(self._folder):
            self._register(path)
        self.choose(self._wished)
        if may_ask and self._terminal is not None and not self._wished:
            self._terminal.replies.append(self._follow_reply)
            self._terminal.write_own(QUESTION)

    def names(self) -> tuple[str, ...]:
        app = self._app
        own = [path.stem for path in theme_files(self._folder)]
        known = (theme.name for theme in (*THEMES, *KNOWN_THEMES))
        names = dict.fromkeys((*known, *(name for name in own if name in app.available_themes)))
        return tuple(sorted(names, key=lambda name: name != app.theme))

    def choose(self, name: str) -> None:
        """Put this one in force; an empty name leaves it to the terminal's background."""
        app, self._wished = self._app, name
        if name in app.available_themes:
            app.theme = name
        elif name:
            known = ", ".join(sorted(self.names()))
            notify_rejected(app, f"There is no theme {name}.", f"The themes are {known}.")

    def reload(self, path: Path) -> None:
        """A theme was saved: it counts at once where it is in force."""
        app = self._app
        if path.exists() and self._register(path) and app.theme == path.stem:
            app.theme = DARK.name  # the same name again would change nothing
            app.theme = path.stem

    def _register(self, path: Path) -> bool:
        try:
            self._app.register_theme(for_terminal(read_theme(path), self._app))
        except ThemeError as error:
            notify_rejected(self._app, error, "The colours are unchanged.")
            return False
        return True

    def _follow_reply(self, reply: str) -> None:
        light = is_light(reply)
        if light is None or self._terminal is None:
            return
        self._terminal.replies.remove(self._follow_reply)
        if not self._wished:
            self._app.theme = (LIGHT if light else DARK).name
            remember(self._state_folder, light=light)
