"""PhoenixApp: themes and keys; everything else is on the workspace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.console import RenderableType
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.binding import BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.geometry import Size
from textual.screen import Screen

from phoenix_tui.keys.active_keys import hint, own, take
from phoenix_tui.keys.key_order import KeyGate, KeyOrder, TypedEvent
from phoenix_tui.keys.keymap import Scope, bindings, keys_of, to_textual
from phoenix_tui.lifecycle.containment import (
    Containment,
    MessageBound,
    contain_faults,
    is_fault_of_removal,
    limit_messages,
)
from phoenix_tui.lifecycle.crash import CrashReports
from phoenix_tui.lifecycle.launch import CannotOpen, Launch, Services
from phoenix_tui.lifecycle.shutdown import ScreenShutdown
from phoenix_tui.lifecycle.threads import load, seldom_switched
from phoenix_tui.modals.base import Sheet
from phoenix_tui.styles.caches import let_painted_rows_go
from phoenix_tui.styles.themes import DARK, LIGHT, THEMES, for_terminal
from phoenix_tui.terminal.driver import QuietDriver
from phoenix_tui.terminal.shadow import ShadowScreen, Shortened
from phoenix_tui.terminal.size import LEAST, drawable, is_too_small
from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.bases import run_latest
from phoenix_tui.widgets.notices import DockNotice
from phoenix_tui.workspace.screen import WorkspaceScreen
from phoenix_tui.workspace.startup import Startup

log = logging.getLogger(__name__)

TOO_SMALL: Final = f"Too small: at least {LEAST[0]}x{LEAST[1]}."
"""Text of a screen too small for anything else."""


class PhoenixApp(App[None]):
    """One workspace over services that open after the first frame."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.APP)
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "styles/workspace.tcss"
    TITLE = "Phoenix"
    _has_theme = False
    """True once the theme of the first frame was chosen."""

    def __init__(
        self,
        launch: Launch,
        open_services: Callable[[], Awaitable[Services]],
        *,
        driver_class: type[Driver] | None = None,
        reports: CrashReports | None = None,
    ) -> None:
        limit_messages(MessageBound())
        contain_faults()
        let_painted_rows_go()
        super().__init__(driver_class=driver_class)
        for theme in THEMES:
            self.register_theme(for_terminal(theme, self))
        self._take_theme(self._first_theme(launch))
        self.animation_level = "none"
        self._terminal_size: Size | None = None
        """Size as the terminal reported it last; None before its first report."""
        self._said_too_small: Size | None = None
        self._signs: list[LineFilter] = []
        if launch.plain:
            from phoenix_tui.terminal.ascii_filter import PlainSigns  # noqa: PLC0415 - for few terminals

            self._signs.append(PlainSigns())
        self._open_services = open_services
        self._launch = launch
        take({})
        self._workspace = WorkspaceScreen(launch)
        self.shutdown = ScreenShutdown(self, self._workspace.startup, reports)
        self._containment = Containment(self, self.warn, reports)
        self.key_order = KeyOrder(self, self._hand_on, KeyGate(self, self._workspace.parts.dock.composer))
        self._typed_early: list[TypedEvent] | None = []
        """Input from before a widget had the focus: Textual would drop it. None once the workspace listens."""

    def _first_theme(self, launch: Launch) -> str:
        """The colours of the first frame: those wished for, else by the terminal's background of last time."""
        if launch.theme and launch.theme not in {theme.name for theme in THEMES}:
            from phoenix_tui.styles.user_themes import find_known_theme, find_theme  # noqa: PLC0415 - for few users

            own = find_theme(launch.themes_folder, launch.theme) or find_known_theme(launch.theme)
            if own is not None:
                self.register_theme(for_terminal(own, self))
            return own.name if own is not None else DARK.name
        return launch.theme or (LIGHT if launch.light_terminal else DARK).name

    def _take_theme(self, name: str) -> None:
        """The theme of the first frame; watchers would parse every style a second time for it, 8 ms."""
        theme, self._has_theme = self.get_theme(name), True
        if theme is not None and theme.dark == self.current_theme.dark:
            self.set_reactive(App.theme, name)
        else:
            self.theme = name
        self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        """The colours of the theme; none while Textual makes the app, for a theme that is not shown."""
        return super().get_css_variables() if self._has_theme else {}

    def set_keymap(self, keymap: Mapping[str, str]) -> None:
        """Bind the user's keys, and name them in every hint."""
        super().set_keymap(keymap)
        if take({name.partition(".")[2]: keys for name, keys in keymap.items()}):
            self._workspace.query("*").refresh()

    @property
    def size(self) -> Size:
        """Cells that are laid out: never fewer than `LEAST`, since widgets wrap nothing at the widths below."""
        size = super().size
        return Size(max(size.width, LEAST[0]), max(size.height, LEAST[1]))

    @property
    def is_too_small(self) -> bool:
        """True while one sentence is in the place of the screen: then nothing of it is in sight."""
        return is_too_small(*(self._terminal_size or super().size))

    # Textual's own signature says Screen without its parameter.
    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Draw the changes for the terminal; an unreadably small one gets one sentence instead."""
        shadow = self._shadow
        if self.is_too_small and self._driver is not None:
            size = self._terminal_size or super().size
            if self._said_too_small != size:
                self._said_too_small = size
                self._driver.write(f"\x1b[2J\x1b[H{TOO_SMALL[: size.width * size.height]}")
                if shadow is not None:
                    shadow.forget()
            return
        self._said_too_small = None
        if shadow is not None and isinstance(renderable, LayoutUpdate | ChopsUpdate):
            shadow.fit(self.size)
            renderable = Shortened(renderable, shadow)
        super()._display(screen, renderable)

    @property
    def _shadow(self) -> ShadowScreen | None:
        """Content of the terminal, where a driver of our own knows it."""
        return getattr(self._driver, "shadow", None)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Last filters of every row: ASCII signs where the terminal knows no others."""
        return [*super().get_line_filters(), *self._signs]

    def get_default_screen(self) -> WorkspaceScreen:
        """The workspace is the first screen."""
        return self._workspace

    async def on_event(self, event: events.Event) -> None:
        """Hold early input until the composer can take it, and each key until the one before is done."""
        if isinstance(event, events.Resize):
            self._take_size(event)
        elif isinstance(event, events.MouseEvent) and self.is_too_small:
            return  # at nothing that is in sight
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._typed_early is not None:
            self._typed_early.append(event)
        elif isinstance(event, events.Key) and self._containment.way_out.leads_out(event.key):
            self.shutdown.begin(0)
        else:
            await self.key_order.take(event)

    def _take_size(self, event: events.Resize) -> None:
        """Lay out for the terminal's size; the same layout is drawn again where the terminal shows something else."""
        told = event.size.width, event.size.height
        before, laid_out = self._terminal_size, self.size
        # As it is now: at the start an older size may be reported behind a newer one.
        now = Size(*(drawable(*told) if self._terminal is None else self._terminal.newest_size()))
        self._terminal_size = now
        event.size = Size(max(now.width, LEAST[0]), max(now.height, LEAST[1]))
        if self._shadow is not None:
            self._shadow.forget()
        if before is not None and now != before and event.size == laid_out:
            self.screen.refresh()

    async def _hand_on(self, event: events.Event) -> None:
        if not (isinstance(event, events.Key) and event.key == "escape"):
            self._workspace.escape_handler.escapes.end()
        await super().on_event(event)

    async def on_workspace_screen_listening(self, event: WorkspaceScreen.Listening) -> None:
        """Give the composer, which has the focus now, the early input, ahead of later keys."""
        event.stop()
        early, self._typed_early = self._typed_early or [], None
        drawn = self._workspace.startup.paint_pause.in_one() if early else None
        for each in early:
            await self.key_order.take(each)
        self.key_order.then(self._workspace.parts.dock.composer.keys.end_start)
        if drawn is not None:
            self.key_order.then(drawn)

    def on_mount(self) -> None:
        """Open the services once the first frame is drawn."""
        self.call_after_refresh(self._begin)

    def _handle_exception(self, error: Exception) -> None:
        """Leave after a fault of Phoenix's own: Textual would print the values of variables, keys among them."""
        if is_fault_of_removal(error):
            log.info("a widget that is being removed missed another", exc_info=error)
            return
        if self.goes_on_after(error):
            return
        crashed = self._running and self.shutdown.report_crash(error)
        if self.shutdown.under_way or not self._running:  # a widget being removed misses its former neighbours
            return
        if crashed:
            self._exception = error
            self._exception_event.set()
        self._return_code = 1
        self._close_messages_no_wait()

    def goes_on_after(self, error: Exception, *, is_left_out: bool = False) -> bool:
        """Contain a fault; False where it ends Phoenix: too many, one of the start, or without a terminal."""
        if not self._running or self.is_headless or self.shutdown.under_way:
            return False
        is_open = self._workspace.startup.ctx_in_use is not None
        return self._containment.contain(error, is_left_out=is_left_out, is_open=is_open)

    @property
    def keys_waiting(self) -> int:
        """Number of keys and messages that wait here; may be read in any thread."""
        return self.key_order.waiting + self._message_queue.qsize()

    def warn(self, words: str) -> None:
        """Say that a part of the screen is slowed down (`message_limit.py`), memory is short (`memory.py`), or input
        came too fast (`terminal/input.py`).
        """
        self._workspace.toasts.tell(words, bad=True)

    def _begin(self) -> None:
        self.run_worker(self._open(), group="open")

    async def _open(self) -> None:
        from phoenix_tui.workspace.slow_start import SlowStart  # noqa: PLC0415 - behind the first frame

        keymap = self._keymap_of_user()
        workspace = self._workspace
        late = workspace.startup.slow_start = SlowStart(workspace, self._launch, workspace.parts.dock)
        try:
            async with seldom_switched():
                services, module, _ = await asyncio.gather(
                    self._open_services(),
                    load("phoenix_tui.workspace.workspace_services"),
                    workspace.startup.furnish(),
                )
        except CannotOpen as error:
            late.over()
            workspace.parts.dock.notice.shown = DockNotice(str(error), Tone.BAD, hint(("quit", "quits")))
            return
        self.shutdown.services = services
        late.over()
        await module.WorkspaceServices(workspace, services, self._terminal, keymap).start()

    def _keymap_of_user(self) -> dict[str, str]:
        # Not before the first frame, which does not need it.
        from phoenix_tui.keys.keymap_file import KeymapError, read_keymap  # noqa: PLC0415 - as above

        try:
            keymap = read_keymap(self._launch.keymap_file)
        except KeymapError as error:
            self._workspace.toasts.tell(str(error), bad=True)
            return {}
        self.set_keymap(to_textual(keymap))
        return keymap

    @property
    def _terminal(self) -> QuietDriver | None:
        """The terminal, where it is one of our own."""
        return self._driver if isinstance(self._driver, QuietDriver) else None

    def action_help_here(self) -> None:
        """Show the keys of the open sheet; in the help itself, close it."""
        from phoenix_tui.modals.help_sheet import HelpSheet  # noqa: PLC0415 - loaded when it is shown

        if isinstance(self.screen, HelpSheet):
            self.screen.action_close()
            return
        bound = [one.binding.id for one in self.screen.active_bindings.values() if one.node is self.screen]
        self.push_screen(HelpSheet(own(), keys_of(bound)))

    def action_interrupt(self) -> None:
        """Ctrl+C: close a sheet, else act in the workspace."""
        if isinstance(self.screen, Sheet):
            self.screen.action_close()
        elif self._workspace.escape_handler.interrupt():
            self.action_leave()

    def action_leave(self) -> None:
        """Ctrl+Q: quit, after a question while something runs."""
        if not isinstance(self.screen, Sheet):
            run_latest(self, self._workspace.startup.leave, "leave")

    async def on_startup_leaving(self, event: Startup.Leaving) -> None:
        """Quit: nothing is in the way."""
        event.stop()
        self.shutdown.begin(0)
