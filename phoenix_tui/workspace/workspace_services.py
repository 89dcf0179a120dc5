"""Parts of the workspace that need the services; none is loaded before the first frame."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from engine.executor.requests import ENGINE_ERRORS
from engine.ports.mcp import ServerState
from phoenix_tui.commands.completions import join as join_sources
from phoenix_tui.commands.completions import server_record
from phoenix_tui.commands.run import CommandContext, run_command
from phoenix_tui.features.agents import titles_of_others
from phoenix_tui.features.use_log import UseLog
from phoenix_tui.images.source import ImageSource, ImageTerminal
from phoenix_tui.lifecycle.crash import CLOSED_FROM, OpeningNotes, OpenMark
from phoenix_tui.modals.opening import Sheets
from phoenix_tui.panes.saved_panes import recall
from phoenix_tui.terminal.clipboard import Clipboard
from phoenix_tui.text.server_text import missing_words, on_this_loop
from phoenix_tui.widgets.notices import Notifier
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.workspace.active_conversation import ActiveConversation
from phoenix_tui.workspace.conversation_index import ConversationIndex, follow
from phoenix_tui.workspace.environment import Environment
from phoenix_tui.workspace.onboarding import Welcoming
from phoenix_tui.workspace.sending import Sending
from tools.clean import clean_line
from tools.contract import SandboxMode
from tools.images.decoder import Previewer

if TYPE_CHECKING:
    from textual.signal import Signal

    from phoenix_tui.lifecycle.launch import Services
    from phoenix_tui.terminal.driver import QuietDriver
    from phoenix_tui.workspace.screen import WorkspaceScreen


NOT_OPENED: Final = (
    "Opening this conversation hung Phoenix each time, also as plain text, so it is not opened at a start. "
    "`phoenix conversations export ID` writes it to a file; choose it in the list to try again."
)


class WorkspaceServices:
    """Joins the screen to the services, opens the requested conversation, and gives commands their context."""

    def __init__(
        self, screen: WorkspaceScreen, services: Services, driver: QuietDriver | None, keymap: dict[str, str]
    ) -> None:
        self._screen, self._services = screen, services
        launch, parts, toasts = screen.launch, screen.parts, screen.toasts
        clipboard = Clipboard(services.runner, os.environ, sys.platform, driver.write_own if driver else lambda _: None)
        terminal = ImageTerminal(driver) if driver else None
        previewer, display = Previewer(services.runner), screen.launch.image_display
        pictures = ImageSource(terminal, previewer, services.engine, display, os.environ)
        resumed = cast("Signal[object]", screen.app.app_resume_signal)
        resumed.subscribe(screen, lambda _: _picture_anew(screen, pictures))
        parts.pictures, parts.engine = pictures, services.engine
        parts.openings = OpeningNotes(launch.state_folder / "opening")
        parts.welcoming = Welcoming(parts.welcome, parts.dock, parts.status, services.onboarding, toasts)
        marker = OpenMark(launch.state_folder / "open", launch.cwd)
        index = ConversationIndex(services.engine, screen.rows, parts)
        active = ActiveConversation(services, launch, parts, index, toasts, marker)
        environment = Environment(screen, launch, active, services, driver, keymap, marker)
        sending, sheets = Sending(active, toasts), Sheets(screen)
        used = UseLog(launch.state_folder)
        self.ctx = CommandContext(
            screen, active, sending, parts.dock, sheets, toasts, clipboard, keymap, environment, used
        )
        join_sources(self.ctx)

    async def start(self) -> None:
        """Open the conversation of the command line, carry out early requests, send the message of the command line."""
        startup = self._screen.startup
        startup.ctx = self.ctx
        await self._open()
        startup.begin()
        await self._begin()
        startup.settle()

    async def _open(self) -> None:
        active, launch = self.ctx.active, self._screen.launch
        await active.index.start()
        self._services.engine.waits.listen(on_this_loop(partial(setattr, active.parts.status, "database_busy")))
        self._services.engine.watch(lambda _: self._name_other_questions())
        if launch.reopened:
            # After a crash, panes are not opened again either: the text that stopped Phoenix may be in one.
            if not (launch.interrupted and await self._panes_again()):
                await active.begin()
            self._offer(launch.conversation_id)
            return
        if active.parts.openings.count(launch.conversation_id) >= CLOSED_FROM:
            self.ctx.tell(NOT_OPENED, bad=True)
        elif launch.conversation_id:
            try:
                await active.open(launch.conversation_id)
            except ENGINE_ERRORS as error:
                self.ctx.tell(str(error), bad=True)
        if not await self._panes_again() and active.conversation is None:
            await active.begin()

    def _name_other_questions(self) -> None:
        """The open question says which other conversations ask too."""
        question = self.ctx.dock.question
        if question.display:
            question.others = titles_of_others(self._services.engine, self.ctx.active.conversation)
            question.say_more()

    def _offer(self, conversation_id: str) -> None:
        """Offer the conversation that was open when Phoenix crashed or was ended; Enter on the empty line opens it."""
        found = self.ctx.active.index.summary(conversation_id)
        here = self.ctx.active.conversation
        if found is None or (here is not None and here.id == conversation_id):
            return  # archived or trashed since, or shown in a pane
        self.ctx.offered.append(conversation_id)
        title = clean_line(found.title) or "A new conversation"
        ended = self._screen.launch.interrupted
        why = (
            "was interrupted when Phoenix ended" if ended else "was open when Phoenix stopped responding or was killed"
        )
        self.ctx.tell(f"{title} {why}; Enter opens it.")

    async def _panes_again(self) -> bool:
        launch = self._screen.launch
        if not recall(launch.state_folder, launch.cwd).ids:
            return False
        from phoenix_tui.commands.conversations import restore  # noqa: PLC0415 - only where panes are remembered

        return await restore(self.ctx)

    async def _begin(self) -> None:
        screen, launch, active = self._screen, self._screen.launch, self.ctx.active
        self.ctx.environment.start()
        library, index = self._services.library, active.index
        screen.run_worker(follow(library.has_changed_externally, index.reload), group="elsewhere")
        if written := screen.parts.dock.composer.content:
            active.drafts.note_typing(written)
        screen.parts.status.kept = self._services.kept
        screen.run_worker(self._look_at_sandbox(), group="sandbox")
        screen.run_worker(asyncio.to_thread(self.ctx.used.read), group="used")
        from phoenix_tui.workspace.source_watch import ScreenSourceWatch  # noqa: PLC0415 - behind an early prompt

        ScreenSourceWatch(self.ctx).start()
        screen.run_worker(start_servers(active, self.ctx.toasts), group="servers")
        settings, programs = self._screen.launch.status_line, self._services.programs
        if settings is not None and programs is not None:
            from phoenix_tui.workspace.status_script import StatusScriptRow  # noqa: PLC0415 - for few users

            await StatusScriptRow(self._screen, self.ctx.active, settings, programs).start()
        if self._services.warning:
            self.ctx.tell(self._services.warning, bad=True)
        if launch.images:
            await self.ctx.sending.attaching.attach(launch.images)
        if launch.prompt:
            await self.ctx.sending.send(launch.prompt)
        if launch.pick:
            await run_command(self.ctx, "resume", "")

    async def _look_at_sandbox(self) -> None:
        """Say in the status line whether the sandbox holds; the first look starts a program, so no frame waits."""
        if self._screen.launch.sandbox is not SandboxMode.OFF:
            self._screen.parts.status.enforcement = await self._services.system.enforcement()


def _picture_anew(screen: WorkspaceScreen, pictures: ImageSource) -> None:
    """Send the images again after another program had the screen."""
    pictures.forget()
    for transcript in screen.query(TranscriptView):
        transcript.scroller.place_again()


IDLE: Final = 0.3
"""Seconds without a key after which servers are started; a message starts them at once."""
PATIENCE: Final = 30.0
"""Seconds for the connection of a required server; no message waits for it."""
TRY: Final = "In /mcp Enter shows its log and r connects again."
MOST_LOOKS: Final = 10_000
"""Pauses that are waited for; whoever types on for an hour gets them with the message."""


async def start_servers(active: ActiveConversation, toasts: Notifier) -> None:
    """Wait for a pause in typing, then start the servers of the conversation in view; nothing else waits for them."""
    servers = active.services.mcp
    if servers is None:
        return
    answering = active.parts.dock.composer.answering
    left = IDLE
    for _ in range(MOST_LOOKS):
        await asyncio.sleep(left)
        left = IDLE - (answering.clock.monotonic() - answering.typed_at)
        if left <= 0:
            break
    record = server_record(active)
    try:
        await servers.settle(record, PATIENCE)
        views = await servers.views(record)
    except ENGINE_ERRORS:
        return  # said when a message is sent
    for view in views:
        if view.is_required and view.state in {ServerState.CONNECTING, ServerState.FAILED, ServerState.NEEDS_AUTH}:
            toasts.tell(f"{missing_words(view, PATIENCE)}. {TRY}", bad=True)
