"""Everything of the workspace that needs the services; none of it is loaded before the first frame stands."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

from textual.timer import Timer

from engine.api.errors import ENGINE_ERRORS
from engine.ports import ConversationChanges
from phoenix_tui.commands.command_context import CommandContext
from phoenix_tui.commands.run import run_command
from phoenix_tui.commands.sources import join as join_sources
from phoenix_tui.features.approvals import titles_of_others
from phoenix_tui.images.source import ImageSource
from phoenix_tui.images.terminal import ImageTerminal
from phoenix_tui.modals.base import PhoenixScreen
from phoenix_tui.modals.opening import Sheets
from phoenix_tui.panes.memory import recall
from phoenix_tui.terminal.clipboard import Clipboard
from phoenix_tui.text.database_text import told_here
from phoenix_tui.text.job_text import leaving_question, running
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.workspace.active_conversation import ActiveConversation
from phoenix_tui.workspace.conversation_index import ConversationIndex
from phoenix_tui.workspace.environment import Environment
from phoenix_tui.workspace.external_changes import follow
from phoenix_tui.workspace.onboarding import Welcoming
from phoenix_tui.workspace.sending import Sending
from tools.clean import clean_line
from tools.contract import Enforcement, SandboxMode
from tools.images.previewing import Previewer

if TYPE_CHECKING:
    from textual.signal import Signal

    from phoenix_tui.lifecycle.launch import Launch, Services
    from phoenix_tui.terminal.driver import QuietDriver
    from phoenix_tui.workspace.actions import Actions
    from phoenix_tui.workspace.workspace_parts import WorkspaceParts


LOST_DRAFT = "The message in the box cannot be stored. Quit and lose it?"
SOONEST = 0.001
"""Seconds until the soonest timer: Textual divides by them when it is late."""


class WorkspaceServices:
    """Joins the stage to the services."""

    def __init__(
        self, stage: WorkspaceParts, services: Services, driver: QuietDriver | None, keymap: dict[str, str]
    ) -> None:
        self._stage = stage
        self._services = services
        parts = stage.parts
        clipboard = Clipboard(services.runner, os.environ, sys.platform, driver.write_own if driver else _drop)
        terminal = ImageTerminal(driver) if driver else None
        previewer, display = Previewer(services.runner), stage.launch.image_display
        pictures = ImageSource(terminal, previewer, services.engine.attachments, display, os.environ)
        parts.pictures, parts.engine = pictures, services.engine
        resumed = cast("Signal[object]", stage.screen.app.app_resume_signal)  # pyright: ignore[reportUnknownMemberType] - open
        resumed.subscribe(stage.screen, lambda _: _picture_anew(stage.screen, pictures))
        index = ConversationIndex(services.engine, stage.rows, parts, self._mark_unread)
        tell = stage.toasts.tell
        active = ActiveConversation(services, stage.launch, parts, index, tell, self._later)
        self.environment = Environment(stage.screen, stage.launch, active, services, driver, keymap)
        index.shown = self.environment.mark.show
        index.left = stage.toasts.leave
        sending = Sending(active, tell)
        self.ctx = CommandContext(
            active,
            sending,
            parts.dock,
            Sheets(stage.screen),
            tell,
            clipboard,
            keymap,
            self._actions,
            self.environment,
            stage.startup.leave,
        )
        join_sources(self.ctx)
        parts.dock.question.others = lambda: titles_of_others(services.engine, active.conversation)
        self.welcoming = Welcoming(parts, services.onboarding, self._installed, tell, self._behind)

    async def open(self, launch: Launch) -> None:
        """The list, and the conversation that was asked for or a new one."""
        active = self.ctx.active
        await active.index.start()
        self._services.engine.waits.listen(told_here(partial(setattr, active.parts.status, "database_busy")))
        self._services.engine.watch(lambda _: active.parts.dock.question.say_more())
        if launch.reopened:
            await active.begin()  # nor are panes opened again: the text that stopped Phoenix may stand in one
            self._offer(launch.conversation_id)
            return
        if launch.conversation_id:
            try:
                await active.open(launch.conversation_id)
            except ENGINE_ERRORS as error:
                self._stage.toasts.tell(str(error), bad=True)
        if not await self._panes_again(launch) and active.conversation is None:
            await active.begin()

    def _offer(self, conversation_id: str) -> None:
        """Say what stood on the screen when Phoenix last ended unexpectedly; Enter on the empty line opens it."""
        found = self.ctx.active.index.summary(conversation_id)
        if found is None:
            return  # archived or trashed since
        self.ctx.offered.append(conversation_id)
        title = clean_line(found.title) or "A new conversation"
        self._stage.toasts.tell(f"{title} was open when Phoenix stopped responding or was ended; Enter opens it.")

    async def _panes_again(self, launch: Launch) -> bool:
        if not recall(launch.state_folder, launch.cwd).ids:
            return False
        from phoenix_tui.commands.panes import restore  # noqa: PLC0415 - only where panes are remembered

        return await restore(self.ctx)

    async def begin(self, launch: Launch) -> None:
        """What was typed meanwhile, and what the command line brought."""
        active, composer = self.ctx.active, self._stage.parts.dock.composer
        self.environment.start()
        library, index = self._services.library, active.index
        self._stage.screen.run_worker(follow(library.changed_elsewhere, index.reload), group="elsewhere")
        if composer.content:
            active.drafts.typed(composer.content)
        self._stage.parts.status.kept = self._services.kept
        self._stage.screen.run_worker(self._look_at_sandbox(), group="sandbox")
        if self._services.warning:
            self._stage.toasts.tell(self._services.warning, bad=True)
        if launch.images:
            await self.ctx.sending.attach(launch.images)
        if launch.prompt:
            await self.ctx.sending.send(launch.prompt)
        if launch.pick:
            await run_command(self.ctx, "resume", "")

    async def _look_at_sandbox(self) -> None:
        """Say in the status line whether the sandbox holds; the first look starts a program, so no frame waits."""
        if self._stage.launch.sandbox is not SandboxMode.OFF:
            enforcement = await self._services.enforcement()
            self._stage.parts.status.enforced = enforcement is not Enforcement.NONE

    async def do(self, work: Callable[[CommandContext], Awaitable[None]]) -> None:
        """Do `work`; what the engine refuses is said."""
        try:
            await work(self.ctx)
        except ENGINE_ERRORS as error:
            self._stage.toasts.tell(str(error), bad=True)

    async def may_leave(self) -> bool:
        """Whether nothing runs and the draft is stored, or the user wants to leave all the same."""
        if not await self.ctx.active.drafts.keep() and not await self._wants(LOST_DRAFT):
            return False
        jobs = sum(running(one.jobs.all()) for one in self.ctx.active.services.engine.live())
        question = leaving_question(self.ctx.active.index.busy, jobs)
        return not question or await self._wants(question)

    async def _wants(self, what: str) -> bool:
        return await self.ctx.sheets.confirm(what, "quit", "stay")

    @cached_property
    def _made_actions(self) -> Actions:
        from phoenix_tui.workspace.actions import Actions  # noqa: PLC0415 - with all its sheets 20 ms, which no start needs

        return Actions(self._stage.screen)

    def _actions(self) -> Actions:
        return self._made_actions

    def _mark_unread(self, conversation_id: str) -> None:
        unread = ConversationChanges(unread=True)
        self._stage.startup.then(lambda ctx: ctx.active.services.engine.change(conversation_id, unread))

    def _later(self, seconds: float, work: Callable[[], Awaitable[None]]) -> Timer:
        return self._stage.screen.set_timer(max(seconds, SOONEST), work)

    def _behind(self, work: Coroutine[object, object, None]) -> None:
        self._stage.screen.run_worker(work, group="welcome")

    def _installed(self, reference: str) -> None:
        self._stage.startup.then(lambda ctx: ctx.actions.use_installed(ctx, reference))


def _drop(_: str) -> None:
    """Where there is no terminal of our own, as in a browser, nothing is written beside the screen."""


def _picture_anew(screen: PhoenixScreen[None], pictures: ImageSource) -> None:
    """Another program had the screen: what the terminal held of images is gone."""
    pictures.forget()
    for transcript in screen.query(TranscriptView):
        transcript.scroller.place_again()
