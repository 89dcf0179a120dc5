"""The conversation in view: which one it is, and how another takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from textual.widget import Widget

from engine.executor.requests import ENGINE_ERRORS, Refused
from engine.machine.states import Idle
from engine.ports import ConversationChanges, StorageError
from engine.ports.profiles import narrower_mode
from engine.records import Attachment, PermissionMode
from phoenix_tui.features.agents import family_of
from phoenix_tui.features.composing import PromptHistory
from phoenix_tui.lifecycle.crash import OpenMark
from phoenix_tui.lifecycle.launch import Launch, Services
from phoenix_tui.text.labels import short_path
from phoenix_tui.widgets.composer import is_prose
from phoenix_tui.widgets.status_line import ContextUse, StatusValues
from phoenix_tui.widgets.transcript.scroller import seq_at_top
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.workspace.conversation_index import ConversationIndex
from phoenix_tui.workspace.conversation_view import ConversationView
from phoenix_tui.workspace.draft_store import Departure, Drafting
from phoenix_tui.workspace.widgets import Toasts, WorkspaceWidgets
from tools.contract import SandboxMode
from tools.displays import TodoList

if TYPE_CHECKING:
    from engine.conversation import Conversation


class OneAtATime:
    """`async with`: the next task waits; a call within a call of the same task does not."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._owner: asyncio.Task[object] | None = None
        self._depth = 0

    @property
    def is_taken(self) -> bool:
        return self._owner is not None

    @property
    def is_mine(self) -> bool:
        return self._owner is not None and self._owner is asyncio.current_task()

    async def __aenter__(self) -> None:
        """Wait until no other task is inside."""
        if not self.is_mine:
            await self._lock.acquire()
            self._owner = asyncio.current_task()
        self._depth += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next one in once the outermost call is over."""
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()


async def keep_place(conversation: Conversation, transcript: TranscriptView) -> None:
    """Store the scroll position. The draft, which matters more, reports a database that cannot be written."""
    shown = transcript.canvas.model.conversation
    if conversation.read_only or shown is None or shown.id != conversation.id or not transcript.display:
        return
    seq = seq_at_top(transcript.canvas)
    if seq != conversation.record.scroll_seq:
        with suppress(StorageError):
            await conversation.change(ConversationChanges(scroll_seq=seq))


class InFlight:
    """Counts messages being sent: a conversation that looks empty may be about to get one, and Esc stops it."""

    def __init__(self) -> None:
        self._all: list[asyncio.Event] = []

    @property
    def waiting(self) -> bool:
        return bool(self._all)

    @contextmanager
    def one(self) -> Generator[asyncio.Event]:
        """Around one of them; the event is set once the user has stopped it."""
        stopped = asyncio.Event()
        self._all.append(stopped)
        try:
            yield stopped
        finally:
            self._all.remove(stopped)

    def stop(self) -> bool:
        for stopped in self._all:
            stopped.set()
        return self.waiting


class PaneHost:
    """The panes of a screen, of which one has the dock; here there is one alone."""

    async def bring(self, conversation_id: str) -> bool:
        """Go to the pane that shows this conversation; False where none does."""
        return False

    def keeps(self, visible: ConversationView) -> bool:
        """Keep the subscription, because another pane gets the focus; False where it is replaced in its pane."""
        return False

    def waiting(self, conversation: Conversation) -> ConversationView | None:
        """The existing subscription to this conversation in the pane that has the focus now."""
        return None

    def conversation_of(self, view: Widget, current: Conversation | None) -> Conversation | None:
        """The conversation that this transcript shows; `current` is that of the dock."""
        return current


RAN_UNATTENDED: Final = "This conversation ran unattended in mode deny;"


class ActiveConversation:
    """One conversation at a time; the others run on. A new one exists once something was written."""

    def __init__(
        self,
        services: Services,
        launch: Launch,
        parts: WorkspaceWidgets,
        index: ConversationIndex,
        toasts: Toasts,
        crash_marker: OpenMark,
    ) -> None:
        self.services = services
        self.launch = launch
        self.busy_enter = launch.busy_enter
        """Action of Enter while the agent works (the setting of that name)."""
        self.knows_auto = launch.permission_mode is PermissionMode.AUTO
        """True once the user chose the mode `auto`: Shift+Tab leads to it too."""
        self.index = index
        self.model = launch.model
        """Model of the next new conversation."""
        self.mode: PermissionMode = launch.permission_mode
        self.sandbox: SandboxMode | None = None
        """Mode and chosen sandbox of the empty conversation in view; the one after it begins as `launch` says."""
        self.parts = parts
        self._toasts = toasts
        self._crash_marker = crash_marker
        self.visible: ConversationView | None = None
        """Subscription to the open conversation."""
        self.in_flight = InFlight()
        self._images_kept: dict[str, tuple[Attachment, ...]] = {}
        """Images of unsent messages, by conversation."""
        self._shown: set[str] = set()
        """Conversations that were in view: their mode is the user's choice."""
        self.changing = OneAtATime()
        """Held while another conversation is brought into view: keys may ask for several at once."""
        self.drafts = Drafting(parts.dock, toasts, self.changing, lambda: self.conversation, self.current)
        self.beside = PaneHost()

    @property
    def conversation(self) -> Conversation | None:
        """The open conversation; None while a new one has nothing in it."""
        return self.visible.conversation if self.visible is not None else None

    @property
    def folder(self) -> Path:
        return self.conversation.record.cwd if self.conversation is not None else self.launch.cwd

    @property
    def unsaved(self) -> str:
        return self.visible.unsaved if self.visible is not None else ""

    def prefer(self, *, model: str = "", mode: PermissionMode | None = None) -> None:
        """Model of the next new conversation; mode of the empty one in view, where there is one."""
        self.knows_auto = self.knows_auto or mode is PermissionMode.AUTO
        self.model = model or self.model
        self.mode = mode if mode is not None and self.conversation is None else self.mode
        if self.conversation is None:
            status = self.parts.status
            status.status = replace(
                status.status,
                model=self.model,
                effort=self.launch.effort,
                mode=self.mode,
                sandbox=self.sandbox or self.launch.sandbox,
                profile=self.launch.profile,
            )
            self.parts.greet(True)

    async def open(self, conversation_id: str) -> None:
        """Bring this conversation into view.

        Raises:
            EngineError: there is no such conversation.
        """
        async with self.leaving():
            if await self.beside.bring(conversation_id):
                return
            self.parts.openings.begin(conversation_id)
            try:
                await self.show(await self.services.engine.open(conversation_id))
            except ENGINE_ERRORS:
                self.parts.openings.end(conversation_id)
                raise

    @asynccontextmanager
    async def leaving(self) -> AsyncGenerator[None]:
        """Change the conversation in view within: takes the draft out of the composer at once, then waits for its turn.

        What is typed from then on is for the conversation that comes. The draft returns where none came.
        """
        if self.changing.is_mine:
            yield
            return
        departure = self.drafts.depart()
        try:
            async with self.changing:
                self._leave(departure)
                try:
                    yield
                finally:
                    back = self.conversation if self.drafts.is_aside else None
                    self.drafts.take_back(self._images_kept.pop(back.id, ()) if back is not None else ())
        finally:
            self.drafts.departures.cancel(departure)

    async def show(self, conversation: Conversation) -> None:
        async with self.leaving():
            if conversation.record.agent is not None:
                await self.services.engine.open(conversation.record.agent.parent_id)  # it has the others
            await self.put_away()
            unsent = self.drafts.of(conversation)
            images = await self.services.engine.attachments(unsent.image_ids)
            visible = self._follow(conversation)
            self.drafts.departures.give(unsent, self._images_kept.pop(conversation.id, ()) or images)
            await visible.start(self.parts)
            self._select(family_of(conversation))
            if not conversation.read_only and conversation.record.agent is None:
                mode = (
                    None
                    if conversation.id in self._shown
                    else _widen_unattended(conversation, self.launch.permission_mode)
                )
                self._shown.add(conversation.id)
                if mode is not None:
                    self._toasts.tell(f"{RAN_UNATTENDED} it continues in mode {mode.value}.")
                await conversation.change(ConversationChanges(unread=False, permission_mode=mode))

    async def begin(self) -> None:
        """Clear the view: nothing is created before something is written."""
        async with self.leaving():
            await self.put_away()
            self._reset()
            dock = self.parts.dock
            self.drafts.departures.give(self.drafts.of(None))
            dock.completer.look_in(self.launch.cwd)
            dock.composer.draft.prompts = PromptHistory(self.launch.state_folder, self.launch.cwd)
            if dock.route is not None:
                dock.route.show(None)
            dock.ask(None, self.launch.cwd, "", 0.0)
            dock.notice.shown = None
            dock.show_queue((), held=False)
            if dock.todos is not None:
                dock.todos.show(TodoList(), works=False)
            if dock.agents is not None:
                dock.agents.show(tuple)
            self.parts.transcript.display = False
            launch, before = self.launch, self.parts.status.status
            self.parts.status.status = StatusValues(
                mode=self.mode,
                model=self.model,
                effort=launch.effort,
                sandbox=launch.sandbox,
                profile=launch.profile,
                supervisor=launch.supervisor,
                has_text=bool(dock.composer.text),
                is_prose=is_prose(dock.composer.text),
                esc_hint=before.esc_hint,
                vim_esc_hint=before.vim_esc_hint,
            )
            heading = self.parts.title.heading.at(short_path(self.launch.cwd))
            self.parts.title.heading = replace(
                heading, title="", parent="", place="", context=ContextUse(), cost_usd=0.0
            )
            self.parts.greet(True)
            self._select("")

    def _reset(self) -> None:
        """The next conversation begins as the settings and the profile say, whatever was chosen for another."""
        self.mode, self.sandbox = self.launch.permission_mode, None

    async def put_away(self) -> None:
        """Keep the draft and follow the conversation no longer; an empty one vanishes."""
        async with self.changing:
            if self.parts.dock.is_loaded:
                self._leave(self.drafts.depart())
            await self.drafts.put_away()
            visible, self.visible = self.visible, None
            if visible is None:
                return
            await keep_place(visible.conversation, self.parts.transcript)
            record = visible.conversation.record
            images = self._images_kept.get(record.id, ())
            written = images or self.drafts.is_unstored(record.id)
            if not written and not self.in_flight.waiting and _is_empty(visible):
                visible.stop()
                await self.services.engine.change(record.id, ConversationChanges(deleted=True))
                await self.services.engine.forget(record.id)
                await self.index.reload()
            elif not self.beside.keeps(visible):
                visible.stop()

    def forget_images(self, conversation_id: str) -> None:
        """Take the images of its next message from its stored draft when it comes into view again."""
        self._images_kept.pop(conversation_id, None)

    async def settle(self) -> None:
        """Wait until the conversation that the composer belongs to is in view."""
        while self.is_changing:
            async with self.changing:
                pass

    @property
    def is_changing(self) -> bool:
        """True while another conversation comes into view, or the one in view is created."""
        return (self.changing.is_taken and not self.changing.is_mine) or self.drafts.departures.are_waiting

    def _leave(self, departure: Departure) -> None:
        """Keep draft and images of a departure for the conversation in view."""
        conversation = self.conversation
        self.drafts.set_aside(departure)
        if conversation is not None:
            self._images_kept[conversation.id] = (*self._images_kept.get(conversation.id, ()), *departure.images)

    def _select(self, conversation_id: str) -> None:
        """Note which conversation is on the screen: in the list, for a start after a crash, and for the toasts."""
        if conversation_id != self.index.current:
            self._toasts.leave()
        self._crash_marker.show(conversation_id)
        self.index.select(conversation_id)

    def _follow(self, conversation: Conversation) -> ConversationView:
        kept = self.beside.waiting(conversation)
        self.visible = visible = kept or ConversationView(conversation, self.parts, self._toasts)
        dock = self.parts.dock
        dock.completer.look_in(conversation.record.cwd, conversation.terminal)
        dock.composer.draft.prompts = PromptHistory(self.launch.state_folder, conversation.record.cwd)
        return visible

    async def current(self) -> Conversation:
        """The open conversation, created now if there is none.

        Raises:
            EngineError: the folder cannot be worked in.
        """
        async with self.changing:
            if self.conversation is not None:
                return self.conversation
            conversation = await self.services.engine.create(self.launch.options(self.model, self.mode, self.sandbox))
            self._reset()
            self._shown.add(conversation.id)
            visible = self._follow(conversation)
            await visible.start()
            await self.index.reload()
            self._select(conversation.id)
            return conversation

    async def attempt(self, request: Callable[[Conversation], object]) -> None:
        """Ask something of the open conversation and say why it was refused, if it was."""
        await self.accepts(request)

    async def accepts(self, request: Callable[[Conversation], object]) -> bool:
        """Ask something of the open conversation and say why it was refused, if it was; True where it was not."""
        if self.conversation is None:
            return False
        try:
            outcome = request(self.conversation)
            if asyncio.iscoroutine(outcome):
                outcome = await outcome
        except ENGINE_ERRORS as error:
            outcome = Refused(str(error))
        if isinstance(outcome, Refused):
            self._toasts.tell(outcome.reason, bad=True)
        return not isinstance(outcome, Refused)


def _widen_unattended(conversation: Conversation, mode: PermissionMode) -> PermissionMode | None:
    """A mode, none wider than ask, for a conversation made for unattended use; None where it keeps its own."""
    deny = PermissionMode.DENY
    if conversation.record.permission_mode is not deny or mode is deny:
        return None
    return narrower_mode(mode, PermissionMode.ASK)


def _is_empty(visible: ConversationView) -> bool:
    """True for a conversation without content that a user would miss."""
    conversation = visible.conversation
    record = conversation.record
    has_content = record.message_count or record.draft or conversation.read_only or record.agent is not None
    return not has_content and isinstance(conversation.state, Idle)
