"""The way from the first frame to the services, and what is asked for on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from phoenix_tui.lifecycle.loading import load
from phoenix_tui.workspace.paint_pause import PaintPause

if TYPE_CHECKING:
    from phoenix_tui.commands.command_context import CommandContext
    from phoenix_tui.lifecycle.launch import Launch
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.workspace.onboarding import Welcoming
    from phoenix_tui.workspace.slow_start import SlowStart
    from phoenix_tui.workspace.widgets import WorkspaceWidgets
    from phoenix_tui.workspace.workspace_services import WorkspaceServices


class Startup:
    """Knows whether the services are there; what is asked for before waits for them, in the order of asking."""

    def __init__(
        self, screen: PhoenixScreen[None], launch: Launch, parts: WorkspaceWidgets, left: Callable[[], object]
    ) -> None:
        self._screen = screen
        self._launch = launch
        self._parts = parts
        self._left = left
        """Called once nothing is in the way of quitting."""
        parts.greet = self.greet
        self.paint_pause = PaintPause(screen)
        self.services: WorkspaceServices | None = None
        """Everything that needs the services; its modules are loaded behind the first frame."""
        self.slow_start: SlowStart | None = None
        """Until the services are there."""
        self._ready = asyncio.Event()
        self._frame_stands = False
        self._asked_early = False
        """Something was asked for before the services were there: what greets would only be laid out to vanish."""
        self._stopped_early = False
        """Esc was pressed since then."""

    async def furnish(self) -> None:
        """Mount what the first frame does not show."""
        self._frame_stands = True
        if self._asks_early:
            self.paint_pause.begin()
        await self._parts.dock.furnish()
        module = await load("phoenix_tui.widgets.transcript.view")
        if not self._screen.is_running:  # Phoenix was ended meanwhile
            return
        self._parts.view = view = module.TranscriptView()
        self._parts.status.beside = lambda: self._parts.transcript.frames.catch_up()
        blank = self._screen.query_one("#blank")
        with self._screen.app.batch_update():
            await self._screen.query_one("#conversation").mount(view, self._parts.welcome, after=blank)
            await blank.remove()

    async def attend(self, services: WorkspaceServices) -> None:
        """Open what the command line named and answer what was typed meanwhile."""
        self.services = services
        await services.open(self._launch)
        asked_early = self._asked_early  # what was asked for takes it back as soon as it is begun
        self._ready.set()
        await services.begin(self._launch)
        if self._stopped_early and self._launch.prompt:
            services.ctx.sending.stop()
        if not asked_early:
            self.paint_pause.end_soon()

    @property
    def ctx(self) -> CommandContext | None:
        """What commands work with; None until the services are there."""
        return self.services.ctx if self.services is not None else None

    @property
    def ctx_in_use(self) -> CommandContext | None:
        """Likewise, and None until what was asked for at the start is open."""
        return self.ctx if self._ready.is_set() else None

    @property
    def welcoming(self) -> Welcoming | None:
        """What greets; None until the services are there."""
        return self.services.welcoming if self.services is not None else None

    @property
    def _asks_early(self) -> bool:
        return self._asked_early or bool(self._launch.prompt)

    @property
    def may_stop(self) -> bool:
        """Whether something runs in view, or was asked for early."""
        return self.ctx_in_use.sending.may_stop if self.ctx_in_use is not None else self._asks_early

    def then(self, work: Callable[[CommandContext], Awaitable[None]]) -> None:
        """Do `work` as soon as the services are there, in the order of asking."""
        early = not self._ready.is_set()
        if early:
            self._asked_early = True
            if self._frame_stands:
                self.paint_pause.begin()
        self._screen.run_worker(self._then(work, early=early), group="work")

    async def _then(self, work: Callable[[CommandContext], Awaitable[None]], *, early: bool) -> None:
        await self._ready.wait()
        if self.services is None:
            return
        was_early, self._asked_early = self._asked_early, False
        try:
            await self.services.do(work)
        finally:
            if self._screen.key_order is not None:
                self._screen.key_order.release()
        if early and self._stopped_early:
            self.services.ctx.sending.stop()
        if was_early:
            self.paint_pause.end_soon()
            self.greet(not self._parts.transcript.display)

    def command(self, line: str) -> None:
        """Run a slash command; `background` at once, so that an Esc right behind finds it done."""
        if line == "background" and self.ctx_in_use is not None:
            self.ctx_in_use.sending.let_go()
        else:
            self.then(lambda ctx: ctx.actions.command(ctx, line))

    def stop(self) -> None:
        """Stop what runs in view, and as soon as it runs what was asked for early."""
        if self.ctx_in_use is not None:
            self.ctx_in_use.sending.stop()
        else:
            self._screen.call_later(self._stop_early)  # behind an Enter that was pressed before

    def _stop_early(self) -> None:
        if self.ctx_in_use is not None:
            self.ctx_in_use.sending.stop()
        else:
            self._stopped_early = self._asks_early

    def greet(self, wanted: bool) -> None:
        """Show the welcome panel, or put it away."""
        if self.welcoming is not None and not (wanted and self._asked_early):
            self.welcoming.show(wanted)

    async def leave(self) -> None:
        """Quit; asks first while something runs."""
        if self.services is None or await self.services.may_leave():
            self._left()
