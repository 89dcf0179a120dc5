"""Surroundings of the workspace: the terminal's title and bell, the user's files of colours, keys and settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.machine.states import Idle, is_busy
from engine.ports import ProviderError, StorageError
from phoenix_tui.config.paths import LOOK_EVERY, LiveFiles
from phoenix_tui.keys.keymap import to_textual
from phoenix_tui.keys.keymap_file import KeymapError, read_keymap
from phoenix_tui.lifecycle.crash import OpenMark
from phoenix_tui.styles.themes import DARK, LIGHT, THEMES, for_terminal
from phoenix_tui.styles.user_themes import KNOWN_THEMES, ThemeError, read_theme, theme_files
from phoenix_tui.terminal.attention import Attention, AttentionSettings, skills_of
from phoenix_tui.terminal.background import QUESTION, is_light, remember
from phoenix_tui.text.labels import short_path
from phoenix_tui.text.worktree_text import branch_with, is_in_worktree, sign_of
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.transcript.view import FOCUS_VIEW, TranscriptView
from phoenix_tui.workspace.active_conversation import keep_place
from phoenix_tui.workspace.widgets import notify_rejected
from tools.clean import clean_line

if TYPE_CHECKING:
    from textual.app import App

    from engine.executor.requests import Activity
    from phoenix_tui.lifecycle.launch import Launch, Services
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.terminal.driver import QuietDriver
    from phoenix_tui.workspace.active_conversation import ActiveConversation
    from phoenix_tui.workspace.conversation_view import ConversationView


class ThemeControl:
    """Reads the user's themes and puts one in force; a broken one changes nothing."""

    def __init__(
        self,
        app: App[object],
        launch: Launch,
        terminal: QuietDriver | None,
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


class Suggesting:
    """Asks for a suggestion when a run in view has ended well and nothing is being written."""

    def __init__(self, screen: PhoenixScreen[None], active: ActiveConversation, *, wanted: bool) -> None:
        self._screen = screen
        self._active = active
        self.wanted = wanted
        self._busy: set[str] = set()
        """Conversations at work."""

    def follow(self, activity: Activity) -> None:
        conversation_id = activity.summary.id
        if is_busy(activity.state):
            self._busy.add(conversation_id)
        elif conversation_id in self._busy:
            self._busy.discard(conversation_id)
            if self.wanted and isinstance(activity.state, Idle) and activity.summary.last_status == "success":
                visible = self._active.visible
                if visible is not None and visible.conversation.id == conversation_id and self._may_show(visible):
                    self._screen.run_worker(self._ask(visible), group="suggestion")

    async def _ask(self, visible: ConversationView) -> None:
        """Ask in the background; a model that cannot be asked proposes nothing."""
        text = ""
        with suppress(ProviderError, StorageError):
            text = await visible.conversation.side.suggestion()
        if text and visible is self._active.visible and self._may_show(visible):
            visible.update_details(suggestion=clean_line(text))

    def _may_show(self, visible: ConversationView) -> bool:
        conversation, composer = visible.conversation, self._active.parts.dock.composer
        rests = isinstance(conversation.state, Idle) and not conversation.queue.waiting
        return rests and conversation.record.agent is None and not conversation.read_only and not composer.text


PROFILE: Final = ".md"
"""Suffix of a profile among the watched files."""
KEEP_PLACE_AFTER: Final = 5
"""Number of polls after which a changed scroll position is stored."""


class Environment:
    """Keeps title, colours, keys and settings true while Phoenix runs."""

    def __init__(
        self,
        screen: PhoenixScreen[None],
        launch: Launch,
        active: ActiveConversation,
        services: Services,
        driver: QuietDriver | None,
        keymap: dict[str, str],
        crash_marker: OpenMark,
    ) -> None:
        self._screen = screen
        self._launch = launch
        self._active = active
        self._services = services
        self._driver = driver
        self._keymap = keymap
        self.mouse = launch.mouse
        self.copies_selection = launch.copy_on_select
        """True when a selection with the mouse is copied at once."""
        self._settings = AttentionSettings(launch.notifications, launch.terminal_title, launch.plain)
        self._skills = skills_of(os.environ)
        self.colours = ThemeControl(screen.app, launch, driver)
        self._attention = Attention(self._skills, self._settings, driver, lambda: screen.app.app_focus)
        self._suggesting = Suggesting(screen, active, wanted=launch.suggestions)
        self._files = LiveFiles(self._list_watched)
        self._crash_marker = crash_marker
        self._looks = 0
        self._branch_of: tuple[Path, bool] | None = None
        """Folder and state for which the branch was looked up last."""

    def start(self) -> None:
        screen, parts = self._screen, self._active.parts
        self._services.engine.watch(self._attention.follow)
        self._services.engine.watch(self._suggesting.follow)
        screen.watch(parts.status, "status", self._show_state)
        screen.watch(parts.title, "heading", self._show_state)
        self.colours.start(may_ask=self._skills.titles)
        self.focus_view(self._launch.focus_view)
        screen.watch(screen.app, "app_focus", self._follow_focus, init=False)
        screen.set_interval(LOOK_EVERY, self.look)

    def close(self, *, interrupted: bool = False) -> None:
        """Phoenix is left properly; the next start offers the conversation in view if its run is `interrupted`."""
        self._active.parts.openings.leave()
        if interrupted:
            self._crash_marker.keep()
        else:
            self._crash_marker.clear()

    def look(self) -> None:
        """Take over external changes since the last poll; store state against a crash."""
        self._show_state()
        self._looks += 1
        conversation = self._active.conversation
        if conversation is not None and self._looks % KEEP_PLACE_AFTER == 0:
            self._screen.run_worker(keep_place(conversation, self._active.parts.transcript), group="place")
        for path in self._files.find_changed():
            if path == self._launch.keymap_file:
                self._read_keys()
            elif path == self._launch.config_file:
                self._read_settings()
            elif path.suffix == PROFILE:
                for trouble in self._services.profiles.untold():
                    self._trouble(trouble.text, "The last valid version stays in use, if there was one.")
            else:
                self.colours.reload(path)

    async def act(self, action: str) -> None:
        await self._screen.run_action(action)

    def apply(self, name: str, value: str) -> None:
        """Let a setting count now, where it can."""
        match name:
            case "theme":
                self.colours.choose(value)
            case "mouse":
                self.watch_mouse(value == "true")
            case "vim":
                self._active.parts.dock.use_vim(value == "true")
            case "focus_view":
                self.focus_view(value == "true")
            case "copy_on_select":
                self.copies_selection = value == "true"
            case "busy_enter":
                self._active.busy_enter = value
            case "suggestions":
                self._suggesting.wanted = value == "true"
            case "notifications":
                self._apply(AttentionSettings(value, self._settings.titles, self._settings.plain))
            case "terminal_title":
                self._apply(AttentionSettings(self._settings.notifications, value == "true", self._settings.plain))
            case _:
                pass  # applies from the next start

    def focus_view(self, wanted: bool) -> None:
        """Fold calls in each pane to one row, or show all again; new panes follow the class of the app."""
        self._screen.app.set_class(wanted, FOCUS_VIEW)
        for view in self._screen.query(TranscriptView):
            view.focus_view(wanted=wanted)

    def watch_mouse(self, wanted: bool) -> None:
        if wanted is not self.mouse:
            self.mouse = wanted
            if self._driver is not None:
                self._driver.watch_mouse(wanted)

    def _apply(self, settings: AttentionSettings) -> None:
        self._settings = settings
        self._attention.apply(settings)
        self._show_state()

    def _show_state(self, _: object = None) -> None:
        parts = self._active.parts
        self._attention.show(parts.title.heading, parts.status.status)
        conversation = self._active.conversation
        folder = conversation.record.cwd if conversation is not None else self._launch.cwd
        where = folder, is_busy(parts.status.status.state)
        if where != self._branch_of:
            self._branch_of = where
            self._name_branch_of(folder)

    def _follow_focus(self, focused: bool) -> None:
        if focused:
            self.count_commits()  # the user may come from another terminal

    def count_commits(self) -> None:
        """Look at the worktree in view again; elsewhere there is nothing to count."""
        if is_in_worktree(self._active.folder):
            self._name_branch_of(self._active.folder)

    def _name_branch_of(self, folder: Path) -> None:
        # The function, not its coroutine: a worker that the next one ends before it began would leave that unawaited.
        run_latest(self._screen, partial(self._name_branch, folder), "branch")

    async def _name_branch(self, folder: Path) -> None:
        """Read the branch again when another conversation is shown, and when a run began or ended; of a worktree the
        commits and changes too.
        """
        branch = await asyncio.to_thread(_branch_of, folder)
        if is_in_worktree(folder):
            sign = await self._sign_of(folder)
            self._active.index.sign(folder, sign)
            branch = branch_with(branch, sign)
        title = self._active.parts.title
        if self._branch_of is not None and self._branch_of[0] == folder and title.heading.branch != branch:
            title.heading = replace(title.heading, branch=branch)

    async def _sign_of(self, folder: Path) -> str:
        from tools.git.ending import standing_of  # noqa: PLC0415 - as above
        from tools.git.repository import GitFailure  # noqa: PLC0415 - not before the first frame

        try:
            found = await standing_of(self._services.runner, folder)
        except (GitFailure, OSError):
            return ""
        return sign_of(found) if found is not None else ""

    def _list_watched(self) -> Iterator[Path]:
        launch = self._launch
        yield launch.keymap_file
        yield launch.config_file
        yield from theme_files(launch.themes_folder)
        yield from self._services.profiles.files()

    def _trouble(self, error: Exception | str, kept: str) -> None:
        notify_rejected(self._screen.app, error, kept)

    def _read_keys(self) -> None:
        try:
            keymap = read_keymap(self._launch.keymap_file)
        except KeymapError as error:
            self._trouble(error, "The keys are unchanged.")
            return
        self._keymap.clear()
        self._keymap.update(keymap)
        self._screen.app.set_keymap(to_textual(keymap))

    def _read_settings(self) -> None:
        try:
            settings = self._services.settings.all()
        except EngineError as error:
            file = self._launch.config_file
            self._trouble(str(error).replace(str(file), short_path(file)), "The settings are unchanged.")
            return
        for setting in settings:
            if setting.live:
                self.apply(setting.name, setting.value)


def _branch_of(folder: Path) -> str:
    from tools.git.repository import branch_of  # noqa: PLC0415 - not before the first frame

    try:
        return branch_of(folder)
    except (OSError, ValueError):
        return ""
