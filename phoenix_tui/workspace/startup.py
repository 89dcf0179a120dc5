"""Start from the first frame to the open services; earlier requests wait for them, in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from textual.message import Message

from phoenix_tui.keys.key_order import OPENER, Opener
from phoenix_tui.lifecycle.threads import load

if TYPE_CHECKING:
    from phoenix_tui.commands.run import CommandContext
    from phoenix_tui.lifecycle.launch import Launch
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.workspace.actions import Actions
    from phoenix_tui.workspace.slow_start import SlowStart
    from phoenix_tui.workspace.widgets import Toasts, WorkspaceWidgets


MOST: Final = 0.5
"""Seconds without a new frame, at the most."""
UNTIL_SENT: Final = 0.03
"""Seconds in which a message that was taken becomes a request."""


class PaintPause:
    """Pauses drawing once, behind the first frame: the frames between would delay the request by 60 ms."""

    def __init__(self, screen: PhoenixScreen[None]) -> None:
        self._screen = screen
        self._batch: ExitStack | None = None

    def begin(self) -> None:
        if self._batch is None:
            self._batch = ExitStack()
            self._batch.enter_context(self._screen.app.batch_update())
            self._screen.set_timer(MOST, self.end)

    def in_one(self) -> Callable[[], None]:
        """Draw the following changes as one frame, until the returned function is called: a frame for each of many keys
        would delay loading by 100 ms.
        """
        batch = ExitStack()
        batch.enter_context(self._screen.app.batch_update())

        def over() -> None:
            batch.close()
            self._screen.app.screen.check_idle()

        self._screen.set_timer(MOST, over)
        return over

    def end_soon(self) -> None:
        """Draw again as soon as the request is out."""
        if self._batch is not None:
            self._screen.set_timer(UNTIL_SENT, self.end)

    def end(self) -> None:
        if self._batch is not None:
            self._batch.close()
            self._screen.app.screen.check_idle()


class Startup:
    """Queues requests until the services are open; from then on carries them out at once."""

    class Leaving(Message, namespace="startup"):
        """Phoenix may quit: nothing runs, or the user confirmed it."""

    def __init__(self, screen: PhoenixScreen[None], launch: Launch, parts: WorkspaceWidgets, toasts: Toasts) -> None:
        self._screen = screen
        self._launch = launch
        self._parts = parts
        self._toasts = toasts
        self.paint_pause = PaintPause(screen)
        self.ctx: CommandContext | None = None
        """Context of the commands; None until the services are open."""
        self.slow_start: SlowStart | None = None
        """Notice of a slow start, until the services are open."""
        self._actions: Actions | None = None
        self._ready = asyncio.Event()
        self._frame_stands = False
        self._held_at_start = False
        self._stopped_early = False
        """True when Esc was pressed after an early request, before the services were open."""

    async def furnish(self) -> None:
        self._frame_stands = True
        if self._asks_early:
            self.paint_pause.begin()
        await self._parts.dock.furnish()
        module = await load("phoenix_tui.widgets.transcript.view")
        await load("phoenix_tui.widgets.queue_panel")
        await load("phoenix_tui.widgets.asking_panel")
        if not self._screen.is_running:  # Phoenix was ended meanwhile
            return
        self._parts.view = view = module.TranscriptView()
        self._parts.status.beside = lambda: self._parts.transcript.frames.catch_up()
        blank = self._screen.query_one("#blank")
        with self._screen.app.batch_update():
            await self._screen.query_one("#conversation").mount(view, self._parts.welcome, after=blank)
            await blank.remove()
            await self._parts.dock.furnish_panels()

    def begin(self) -> None:
        self._held_at_start = self._parts.welcome.held  # the pending request resets it as soon as it begins
        self._ready.set()

    def settle(self) -> None:
        """Note that the message of the command line was sent."""
        if self.ctx is not None and self._stopped_early and self._launch.prompt:
            self.ctx.sending.stop()
        if not self._held_at_start:
            self.paint_pause.end_soon()

    @property
    def ctx_in_use(self) -> CommandContext | None:
        """The context; None until the conversation requested at the start is open."""
        return self.ctx if self._ready.is_set() else None

    @property
    def _asks_early(self) -> bool:
        return self._parts.welcome.held or bool(self._launch.prompt)

    @property
    def may_stop(self) -> bool:
        """True when something runs in view, or was requested early."""
        return self.ctx_in_use.sending.may_stop if self.ctx_in_use is not None else self._asks_early

    def then(self, work: Callable[[CommandContext], Awaitable[object]]) -> None:
        """Do `work` as soon as the services are open, in the order of asking."""
        early = not self._ready.is_set()
        if early:
            self._parts.welcome.held = True
            if self._frame_stands:
                self.paint_pause.begin()
        order = self._screen.key_order
        opener = order.begin_work() if order is not None else None
        self._screen.run_worker(self._then(work, opener, early=early), group="work")

    def act(self, work: Callable[[Actions], Awaitable[object]]) -> None:
        self.then(lambda ctx: work(self._actions_of(ctx)))

    def _actions_of(self, ctx: CommandContext) -> Actions:
        if self._actions is None:
            from phoenix_tui.workspace.actions import Actions  # noqa: PLC0415 - with all sheets 20 ms, which no start needs

            self._actions = Actions(ctx)
        return self._actions

    async def _then(
        self, work: Callable[[CommandContext], Awaitable[object]], opener: Opener | None, *, early: bool
    ) -> None:
        OPENER.set(opener)
        await self._ready.wait()
        if self.ctx is None:
            return
        from engine.executor.requests import ENGINE_ERRORS  # noqa: PLC0415 - loaded with the services

        was_early, self._parts.welcome.held = self._parts.welcome.held, False
        try:
            await work(self.ctx)
        except ENGINE_ERRORS as error:
            self._toasts.tell(str(error), bad=True)
        finally:
            if opener is not None:
                opener.release()
        if early and self._stopped_early:
            self.ctx.sending.stop()
        if was_early:
            self.paint_pause.end_soon()
            self._parts.greet(not self._parts.transcript.display)

    def command(self, line: str) -> None:
        """Run a slash command; `background` at once, so that an Esc right behind finds it done."""
        if line == "background" and self.ctx_in_use is not None:
            self.ctx_in_use.sending.let_go()
        else:
            self.act(lambda actions: actions.command(line))

    def stop(self) -> None:
        """Stop the run in view, and an early request as soon as it runs."""
        if self.ctx_in_use is not None:
            self.ctx_in_use.sending.stop()
        else:
            self._screen.call_later(self._stop_early)  # after an Enter pressed before

    def _stop_early(self) -> None:
        if self.ctx_in_use is not None:
            self.ctx_in_use.sending.stop()
        else:
            self._stopped_early = self._asks_early

    async def leave(self) -> None:
        if self.ctx is None or await self._actions_of(self.ctx).may_leave():
            self._screen.post_message(self.Leaving())
