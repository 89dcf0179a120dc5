"""The desk: which conversation lies on it, and what the user does with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec.structs import replace
from textual.timer import Timer

from engine.executor.requests import EngineError, Receipt, Refused
from engine.machine.states import Errored, Idle, is_busy
from engine.ports import ConversationChanges, ProviderError, StorageError
from engine.records import Attachment, PermissionMode
from phoenix_tui.drafts import PromptHistory
from phoenix_tui.image_files import read_image
from phoenix_tui.screens.on_the_way import OnTheWay
from phoenix_tui.screens.one_at_a_time import OneAtATime
from phoenix_tui.screens.overview import Overview
from phoenix_tui.screens.parts import Parts, Teller
from phoenix_tui.screens.places import keep_place
from phoenix_tui.screens.shell_lines import run_line
from phoenix_tui.screens.visible import Visible
from phoenix_tui.screens.waiting_words import waiting_words
from phoenix_tui.sub_agents import Hinting, family_of, stop_in_view
from phoenix_tui.surface import ConversationSurface, Launch, Services
from phoenix_tui.unsent import Unsent, joined, parsed
from phoenix_tui.widgets.context_meter import ContextUse
from phoenix_tui.widgets.question_text import short_path
from phoenix_tui.widgets.status_line import Status
from tools.clean import clean_line
from tools.contract import ImageRejected

DRAFT_PAUSE: Final = 0.3
"""Seconds without typing after which a draft is stored."""
DRAFT_LATEST: Final = 1.0
"""Seconds after which it is stored though the typing goes on."""
REQUEST_FIRST: Final = 0.05
"""Seconds that the emptied draft of a sent message waits: writing it would delay request and first word."""
ENGINE_ERRORS: Final = (EngineError, StorageError, ProviderError)
"""What a request may raise; each is one sentence for the user."""


class Beside(Protocol):
    """The panes, once there are several; the desk is in the one that has the focus."""

    async def bring(self, conversation_id: str) -> bool:
        """Go to the pane that shows this conversation; False where none does."""
        ...

    def keeps(self, visible: Visible) -> bool:
        """Take over what is followed, because another pane gets the focus; False where it is replaced in its pane."""
        ...

    def waiting(self, conversation: ConversationSurface) -> Visible | None:
        """What follows this conversation already in the pane that has the focus now."""
        ...


class Desk:
    """One conversation at a time; the others run on. A new one exists once something was written."""

    def __init__(
        self,
        services: Services,
        launch: Launch,
        parts: Parts,
        overview: Overview,
        tell: Teller,
        later: Callable[[float, Callable[[], Awaitable[None]]], Timer],
    ) -> None:
        self.services = services
        self.launch = launch
        self.overview = overview
        self.model = launch.model
        self.mode: PermissionMode = launch.permission_mode
        """Model and mode of the next new conversation."""
        self.parts = parts
        self._tell = tell
        self._later = later
        self.visible: Visible | None = None
        """What follows the open conversation."""
        self._draft_timer: Timer | None = None
        self._changed_at = 0.0
        """Monotonic time of the first change that is not stored; 0 when everything is."""
        self._sending = OnTheWay()
        self._images_kept: dict[str, tuple[Attachment, ...]] = {}
        """Images of unsent messages, by conversation."""
        self._shown: set[str] = set()
        """Conversations that were on the desk: their mode is the user's choice."""
        self._warmed = ""
        """The conversation whose connection was opened for the message being written."""
        self.changing = OneAtATime()
        """Held while another conversation is put on the desk: keys may ask for several at once."""
        self.beside: Beside | None = None
        """Set while there are panes."""

    @property
    def conversation(self) -> ConversationSurface | None:
        """The open conversation; None while a new one has nothing in it."""
        return self.visible.conversation if self.visible is not None else None

    @property
    def folder(self) -> Path:
        """The working directory in view."""
        return self.conversation.record.cwd if self.conversation is not None else self.launch.cwd

    @property
    def unsaved(self) -> str:
        """What a stopped answer had written; it is stored nowhere."""
        return self.visible.unsaved if self.visible is not None else ""

    @property
    def _written(self) -> str:
        """What stands unsent in the dock, in the form that is stored."""
        dock = self.parts.dock
        return joined(dock.composer.content, [image.id for image in dock.chips.images], dock.composer.folds)

    def prefer(self, *, model: str = "", mode: PermissionMode | None = None) -> None:
        """Model and mode of the next new conversation, and of the empty one in view."""
        self.model, self.mode = model or self.model, mode or self.mode
        if self.conversation is None:
            status = self.parts.status
            status.status = replace(status.status, model=self.model, mode=self.mode, profile=self.launch.profile)
            self.parts.greet(True)

    async def open(self, conversation_id: str) -> None:
        """Put this conversation on the desk.

        Raises:
            EngineError: there is no such conversation.
        """
        if self.beside is not None and await self.beside.bring(conversation_id):
            return
        conversation = await self.services.engine.open(conversation_id)
        await self.show(conversation)

    async def show(self, conversation: ConversationSurface) -> None:
        """Put an opened conversation on the desk; its draft stands in the composer."""
        async with self.changing:
            if conversation.record.agent is not None:
                await self.services.engine.open(conversation.record.agent.parent_id)  # it knows the others
            await self.put_away()
            unsent = parsed(conversation.record.draft)
            images = await self.services.engine.attachments(unsent.image_ids)
            visible = self._follow(conversation)
            dock = self.parts.dock
            dock.load(unsent.text, unsent.folds)
            dock.chips.images = dock.chips.images or tuple(images)
            await visible.start(self.parts)
            self.overview.select(family_of(conversation))
            if not conversation.read_only and conversation.record.agent is None:
                mode = None if conversation.id in self._shown else _attended(conversation, self.launch.permission_mode)
                self._shown.add(conversation.id)
                if mode is not None:
                    self._tell(f"This conversation ran unattended, in mode deny; here it goes on in mode {mode.value}.")
                await conversation.change(ConversationChanges(unread=False, permission_mode=mode))

    async def begin(self) -> None:
        """An empty desk: nothing is created before something is written."""
        async with self.changing:
            await self.put_away()
            dock = self.parts.dock
            dock.load("")
            dock.chips.images = ()
            dock.completer.look_in(self.launch.cwd, self.services.runner)
            dock.composer.history_of_prompts = PromptHistory(self.launch.state_folder, self.launch.cwd)
            if dock.route is not None:
                dock.route.show(None)
            dock.ask(None, self.launch.cwd, "", 0.0)
            dock.notice.standing = None
            dock.show_queue((), held=False)
            if dock.agents is not None:
                dock.agents.show(tuple)
            self.parts.transcript.display = False
            launch = self.launch
            self.parts.status.status = Status(
                mode=self.mode, model=self.model, profile=launch.profile, supervisor=launch.supervisor
            )
            heading = self.parts.title.heading
            self.parts.title.heading = replace(
                heading, title="", place="", folder=short_path(self.launch.cwd), context=ContextUse()
            )
            self.parts.greet(True)
            self.overview.select("")

    async def put_away(self) -> None:
        """Keep the draft and follow the conversation no longer; an empty one vanishes."""
        async with self.changing:
            if self.conversation is not None:
                self._changed_at = self._changed_at or time.monotonic()  # what a command took out was not told yet
            await self.keep_draft()
            visible, self.visible = self.visible, None
            if visible is None:
                return
            await keep_place(visible.conversation, self.parts.transcript)
            record, images = visible.conversation.record, self.parts.dock.chips.images
            self._images_kept[record.id] = images
            if not images and not self._sending.waiting and not self.parts.dock.composer.content and _is_empty(visible):
                visible.stop()
                await self.services.engine.change(record.id, ConversationChanges(deleted=True))
                await self.services.engine.forget(record.id)
                await self.overview.reload()
            elif self.beside is None or not self.beside.keeps(visible):
                visible.stop()

    def _follow(self, conversation: ConversationSurface) -> Visible:
        kept = self.beside.waiting(conversation) if self.beside is not None else None
        self.visible = visible = kept or Visible(conversation, self.parts, self._tell)
        dock = self.parts.dock
        dock.completer.look_in(conversation.record.cwd, self.services.runner)
        dock.composer.history_of_prompts = PromptHistory(self.launch.state_folder, conversation.record.cwd)
        dock.chips.images = self._images_kept.pop(conversation.id, ())
        return visible

    async def current(self) -> ConversationSurface:
        """The open conversation, created now if there is none.

        Raises:
            EngineError: the folder cannot be worked in.
        """
        async with self.changing:
            if self.conversation is not None:
                return self.conversation
            conversation = await self.services.engine.create(self.launch.options(self.model, self.mode))
            self._shown.add(conversation.id)
            images = self.parts.dock.chips.images
            visible = self._follow(conversation)
            self.parts.dock.chips.images = images
            await visible.start()
            await self.overview.reload()
            self.overview.select(conversation.id)
            return conversation

    def typed(self, text: str) -> None:
        """The composer changed: store the draft when typing pauses; the first letter opens the connection."""
        if self._draft_timer is not None:
            self._draft_timer.stop()
        if text and self.conversation is not None and self._warmed != self.conversation.id:
            self._warmed = self.conversation.id
            self.conversation.warm()
        now = time.monotonic()
        self._changed_at = self._changed_at or now
        pause = min(DRAFT_PAUSE, max(self._changed_at + DRAFT_LATEST - now, 0.0))
        self._draft_timer = self._later(pause, self.keep_draft)

    async def keep_draft(self) -> None:
        """Store the draft now."""
        if self._draft_timer is not None:
            self._draft_timer.stop()
            self._draft_timer = None
        if not self._changed_at or not self.parts.dock.is_loaded:
            return
        draft, self._changed_at = self._written, 0.0
        if not draft and self.conversation is None:
            return
        try:
            conversation = await self.current()
            if not conversation.read_only and draft != conversation.record.draft:
                await conversation.change(ConversationChanges(draft=draft))
        except ENGINE_ERRORS as error:
            self._tell(str(error), bad=True)

    async def send(self, text: str, *, interrupt: bool = False, queue: bool = False) -> None:
        """Send or queue a message; where it is refused the text stands in the composer again."""
        chips = self.parts.dock.chips
        images = tuple(image.id for image in chips.images)
        conversation: ConversationSurface | None = None
        try:
            with self._sending.one() as stopped, waiting_words(self.parts.dock, text):
                conversation = await self.current()
                ask = conversation.interrupt_and_say if interrupt else conversation.say
                ask = conversation.queue.add if queue else ask
                if conversation.record.agent is not None:
                    ask = Hinting(self.services.engine, conversation.id).say
                receipt: Receipt = await ask(text, images, self.launch.caps)
                if stopped.is_set():
                    stop_in_view(self.services.engine, conversation)
        except ENGINE_ERRORS as error:
            receipt = Refused(str(error))
        if conversation is not None and conversation is not self.conversation:
            await _keep_elsewhere(conversation, Unsent(text, images), receipt, self._tell)
            return
        if not isinstance(receipt, Refused):
            chips.images = ()
        elif images and self.conversation is not None and not is_busy(self.conversation.state):
            chips.trouble = receipt.reason
        await self._sent(text, receipt)

    async def shell(self, line: str, *, now: bool = False) -> None:
        """Run the user's own command, behind what runs, or `now` in its place."""
        try:
            with self._sending.one() as stopped:
                conversation = await self.current()
                receipt: Receipt = await run_line(conversation, line, now=now)
                if stopped.is_set():
                    stop_in_view(self.services.engine, conversation)
        except ENGINE_ERRORS as error:
            receipt = Refused(str(error))
        await self._sent(line, receipt)

    async def _sent(self, text: str, receipt: Receipt) -> None:
        composer = self.parts.dock.composer
        if isinstance(receipt, Refused):
            written = composer.content
            composer.load(f"{text}\n{written}" if written else text)
            self._tell(receipt.reason, bad=True)
            return
        self._warmed = ""
        history = composer.history_of_prompts
        if history is not None:
            try:
                history.add(text)  # at once: who quits with the next key finds it again
            except OSError as error:
                self._tell(f"The prompt history cannot be written: {error.strerror}.", bad=True)
        await asyncio.sleep(REQUEST_FIRST)
        await self.keep_draft()

    async def attempt(self, request: Callable[[ConversationSurface], object]) -> None:
        """Ask something of the open conversation and say why it was refused, if it was."""
        if self.conversation is None:
            return
        try:
            outcome = request(self.conversation)
            if asyncio.iscoroutine(outcome):
                outcome = await outcome
        except ENGINE_ERRORS as error:
            outcome = Refused(str(error))
        if isinstance(outcome, Refused):
            self._tell(outcome.reason, bad=True)

    async def attach(self, images: Sequence[Path | bytes]) -> None:
        """Add images to the next message."""
        for image in images:
            try:
                content = image if isinstance(image, bytes) else await asyncio.to_thread(read_image, image)
                attachment = await (await self.current()).attach(content)
            except (*ENGINE_ERRORS, ImageRejected, OSError) as error:
                self._tell(str(error), bad=True)
            else:
                self.parts.dock.chips.images = (*self.parts.dock.chips.images, attachment)

    def stop(self) -> bool:
        """Cancel the run in view with its sub-agents, or put its error away; False when there was neither.

        What was sent and is not taken yet is stopped as soon as it is.
        """
        on_its_way = self._sending.stop()
        return stop_in_view(self.services.engine, self.conversation) or on_its_way


def _attended(conversation: ConversationSurface, mode: PermissionMode) -> PermissionMode | None:
    """`mode` for a conversation that was made for unattended use; None where it keeps its own."""
    deny = PermissionMode.DENY
    return mode if conversation.record.permission_mode is deny and mode is not deny else None


def _is_empty(visible: Visible) -> bool:
    """Whether nothing would be missed if it were gone."""
    conversation = visible.conversation
    record = conversation.record
    has_content = record.message_count or record.draft or conversation.read_only or record.agent is not None
    return not has_content and isinstance(conversation.state, Idle)


async def resume(desk: Desk, *, interrupted: bool) -> None:
    """Enter on an empty line: try again after an error, or go on where a restart cut the turn off."""
    conversation = desk.conversation
    if conversation is None:
        return
    if isinstance(conversation.state, Errored) or (isinstance(conversation.state, Idle) and interrupted):
        await desk.attempt(lambda one: one.retry(desk.launch.caps))
    if conversation.queue.waiting:
        await desk.attempt(lambda one: one.queue.go_on(desk.launch.caps))


async def _keep_elsewhere(conversation: ConversationSurface, unsent: Unsent, receipt: Receipt, tell: Teller) -> None:
    """What was refused after the user had gone to another conversation becomes the draft of its own."""
    if not isinstance(receipt, Refused):
        return
    title = clean_line(conversation.record.title) or "the new conversation"
    try:
        await conversation.change(ConversationChanges(draft=joined(unsent.text, unsent.image_ids)))
    except ENGINE_ERRORS as error:
        tell(f"{title}: {receipt.reason} {error}", bad=True)
        return
    tell(f"{title}: {receipt.reason} The message is its draft again.", bad=True)
