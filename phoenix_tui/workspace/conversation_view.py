"""The conversation on the screen: its updates become status line, title, question, notice and transcript."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.messages import Role
from engine.machine.states import AwaitingApproval, AwaitingSubagents, State, StopCause, is_busy
from engine.machine.texts import STOPPED
from engine.ports import StorageError
from engine.records import ConversationRecord, QueuedMessage, StoredMessage, ToolCallRecord
from engine.updates import (
    AgentsChanged,
    AgentView,
    ApprovalAsked,
    BackgroundSummary,
    ContextChanged,
    ConversationChanged,
    HookEnded,
    HookStarted,
    JobsChanged,
    LiveTextDropped,
    MessageSaved,
    Noticed,
    Paced,
    PromptProgressed,
    QueueChanged,
    RouteCard,
    Routed,
    RunEnded,
    Snapshot,
    StateChanged,
    TextArrived,
    ToolDrafted,
    Unsubscribe,
    Update,
)
from phoenix_tui.features.agents import (
    as_asked,
    asking,
    at_work,
    family_of,
    parent_title,
    place_of,
    titles_of_others,
    views_of,
)
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.lifecycle.containment import goes_on_after
from phoenix_tui.lifecycle.crash import FRAMES, PLAIN_FROM
from phoenix_tui.panes.column import PaneEvents
from phoenix_tui.text.agent_text import end_line, find_ended, running
from phoenix_tui.text.labels import WRITABLE, AgentCounts, StatusDetails, Tone, hook_in_view, short_path
from phoenix_tui.widgets.blocks.speech import is_stop_notice
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import DockNotice, Notifier
from phoenix_tui.widgets.status_line import ContextUse, StatusLine, StatusValues, warn_crossing
from phoenix_tui.widgets.transcript.model import text_of
from phoenix_tui.workspace.widgets import WorkspaceWidgets
from tools.clean import clean_line
from tools.contract import JobInfo
from tools.displays import TodoList

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.engine import Engine


class AgentsInView:
    """Keeps those that are worth a row: at work, or ended during the work that still continues.

    In a sub-agent's own transcript that is itself.
    """

    def __init__(self, conversation: Conversation, engine: Engine | None) -> None:
        self._conversation = conversation
        self._engine = engine
        self._views: Sequence[AgentView] = ()
        self._batch: set[str] = set()
        """Ids of those that have a row."""

    @property
    def asking(self) -> list[Conversation]:
        """Conversations with an open question, the one that waits longest first."""
        return asking(self._engine, self._conversation.id) if at_work(self._views) else []

    @property
    def parent(self) -> str:
        record = self._conversation.record
        return parent_title(record, self._engine) if record.agent is not None else ""

    @property
    def place(self) -> str:
        return place_of(self._conversation.record, self._engine)

    def take(self, views: Sequence[AgentView]) -> AgentCounts:
        """Keep the newest views; counts for the status line."""
        self._views = views
        working = at_work(views)
        self._batch |= {view.id for view in working}
        asks = sum(isinstance(view.state, AwaitingApproval) for view in working)
        self.follow_state(self._conversation.state)
        return AgentCounts(len(working), asks, self._conversation.record.agent is not None)

    def follow_state(self, state: State) -> None:
        """The conversation itself moved: at rest, with all of them ended, no row is left."""
        if isinstance(state, AwaitingSubagents):
            self._batch |= {agent.id for agent in state.agents}
        elif not is_busy(state) and not at_work(self._views):
            self._batch.clear()

    def show(self, dock: Dock) -> None:
        """Give the dock its rows; the panel is made with the first of them."""
        if dock.agents is None:
            if not self._batch and self._conversation.record.agent is None:
                return
            # After the first frame, with the first sub-agent.
            from phoenix_tui.widgets.agent_panel import AgentPanel  # noqa: PLC0415 - as said

            dock.agents = AgentPanel(plain=dock.plain)
            dock.mount(dock.agents, before=0)
        dock.agents.show(self._current, self._conversation.id if self._conversation.record.agent is not None else "")

    def _current(self) -> Sequence[AgentView]:
        """Views read anew with each tick of the panel: not every change is reported."""
        views = views_of(self._engine, family_of(self._conversation))
        if self._conversation.record.agent is not None:
            return views
        return [view for view in views if view.id in self._batch]


class RouteInView:
    """Keeps the open decision of one conversation."""

    def __init__(self, conversation: Conversation, toasts: Notifier) -> None:
        self._conversation = conversation
        self._toasts = toasts
        self._card: RouteCard | None = None
        self.planned = 0
        """Agents of the open decision that the user has not removed."""

    @property
    def starts_at(self) -> float:
        """Monotonic time at which the decision starts by itself; 0 for never."""
        return self._card.starts_at if self._card is not None else 0.0

    def take(self, card: RouteCard | None) -> None:
        """Keep the decision that is open now, or none."""
        self._card = card
        self.planned = len(card.route.agents) if card is not None else 0

    def show(self, dock: Dock) -> None:
        """Give the dock its card; the panel is made with the first of them."""
        if dock.route is None:
            if self._card is None:
                return
            # After the first frame, with the first decision.
            from phoenix_tui.widgets.route_panel import RoutePanel  # noqa: PLC0415 - as said

            dock.route = RoutePanel(plain=dock.plain)
            dock.mount(dock.route, before=0)
        dock.route.show(self._card, self._conversation, self._toasts)
        if self._card is not None:
            self.planned = dock.route.left
        dock.listen_to_route()


def show_todos(dock: Dock, todos: TodoList, state: State) -> None:
    """Show the list; the panel is made with the first one."""
    if dock.todos is None:
        if not todos.items:
            return
        # After the first frame, with the first list.
        from phoenix_tui.widgets.todo_panel import TodoPanel  # noqa: PLC0415 - as said

        dock.todos = TodoPanel(plain=dock.plain)
        dock.mount(dock.todos, before=dock.question if dock.question.is_attached else "#rule")
    dock.todos.show(todos, works=is_busy(state))


CHARACTERS_PER_TOKEN: Final = 4
_Around = ContextChanged | ConversationChanged | JobsChanged | AgentsChanged | BackgroundSummary | Routed
"""Updates about what stands around the transcript."""
PLAIN: Final = "{why}, so it is shown as plain text, without Markdown, diffs and images."
HUNG: Final = "Opening this conversation hung Phoenix twice"
FAULTY: Final = "This conversation could not be drawn"
RATE_EVERY: Final = 0.5
"""Seconds between two looks at the speed of an answer."""


class Stream(Struct, eq=False):
    """The answer that arrives now."""

    began: float = 0.0
    characters: int = 0
    looked: float = 0.0


class ConversationView:
    """Follows one conversation until another takes its place; holds nothing that is not in the engine."""

    def __init__(
        self,
        conversation: Conversation,
        parts: WorkspaceWidgets,
        toasts: Notifier,
    ) -> None:
        self.conversation = conversation
        self._parts = replace(parts)  # its own: the focused ones change
        self._front = True
        self._toasts = toasts
        self._route = RouteInView(conversation, toasts)
        self._agents = AgentsInView(conversation, parts.engine)
        self._jobs: Sequence[JobInfo] = ()
        self._unsubscribe: Unsubscribe | None = None
        self._run_began = 0.0
        self._stream = Stream()
        self._live: list[str] = []
        self.unsaved = ""
        """Text of a stopped answer; /copy copies it."""
        self._why_plain = HUNG
        self._waiting: tuple[Sequence[QueuedMessage], bool] = (), False
        """The queue, and whether it is held."""
        self.panes = PaneEvents()
        """Listener to updates other than text."""

    def step_back(self, foot: StatusLine) -> None:
        """Give the dock to another pane: status goes to `foot`, the transcript continues."""
        foot.status = replace(self._parts.status.status, has_text=False, esc_hint="", vim_esc_hint="")
        self._parts.status = foot
        self._front = False

    def step_forward(self, parts: WorkspaceWidgets) -> None:
        before, line = self._parts.status.status, parts.status.status
        self._parts = replace(parts)
        self._front = True
        parts.status.status = replace(
            before,
            has_text=line.has_text,
            is_prose=line.is_prose,
            esc_hint=line.esc_hint,
            vim_esc_hint=line.vim_esc_hint,
        )
        self._head(self.conversation.record)
        parts.greet(not parts.transcript.display)
        self._ask(self.conversation.question is not None)
        self._queue(self._waiting[0], held=self._waiting[1])
        self._show_todos()
        self._agents.show(parts.dock)
        self._route.show(parts.dock)
        self.update_details(planned=self._route.planned)
        self._warn(self.conversation.read_only)

    async def start(self, parts: WorkspaceWidgets | None = None) -> None:
        """Show a snapshot, then follow; an existing subscription only moves to these widgets."""
        if self._unsubscribe is not None:
            if parts is not None:
                self.step_forward(parts)
            return
        self._parts.transcript.history.use(self._older)
        self._parts.transcript.gallery.use(self._parts.pictures)
        await self._draw(fully=self._parts.openings.count(self.conversation.id) < PLAIN_FROM)

    async def _draw(self, *, fully: bool) -> None:
        """Show a snapshot; a note about it stays until its first frames stand."""
        transcript, openings, here = self._parts.transcript, self._parts.openings, self.conversation.id
        if self.conversation.record.message_count:
            openings.begin(here)
        self._why_plain, transcript.canvas.model.plain = HUNG, not fully
        transcript.draw_fully = self._draw_fully
        self._unsubscribe = await self.conversation.subscribe(self._follow)
        app = transcript.app
        transcript.call_after_refresh(app.set_timer, FRAMES, partial(openings.end, here, drawn=fully))

    def _draw_fully(self) -> None:
        self.stop()
        self._parts.transcript.run_worker(self._draw(fully=True), group="opening")

    def _prefix_title(self, text: str) -> str:
        title = clean_line(self.conversation.record.title) or "New conversation"
        return text if self._front else f"{title}: {text}"

    async def _older(
        self, before_seq: int, limit: int
    ) -> tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]] | None:
        try:
            found = await self.conversation.history(before_seq, limit)
        except StorageError as error:
            self._toasts.tell(self._prefix_title(str(error)), bad=True)
            return None
        return found.messages, found.tool_calls

    def stop(self) -> None:
        self._parts.openings.end(self.conversation.id)
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _follow(self, update: Update) -> None:
        """Show an update; after a fault, which would end the subscription unsaid, all is shown again, last as text."""
        transcript = self._parts.transcript
        model = transcript.canvas.model
        try:
            self._show(update)
        except Exception as error:
            is_last = isinstance(update, Snapshot) and model.plain
            if is_last or not goes_on_after(transcript, error, is_left_out=True):
                raise
            if isinstance(update, Snapshot):  # as text alone it needs no more than its messages
                self._why_plain, model.plain = FAULTY, True
                self._show(update)
            else:
                transcript.call_later(self._follow_again)

    async def _follow_again(self) -> None:
        if self._unsubscribe is not None:
            self.stop()
            self._unsubscribe = await self.conversation.subscribe(self._follow)

    def _show(self, update: Update) -> None:
        if isinstance(update, Snapshot):
            self._begin(update)
            return
        self._parts.transcript.apply(update)
        match update:
            case TextArrived(text=text):
                self._live.append(text)
                self._count(len(text))
            case StateChanged():
                self._follow_state(update)
            case ApprovalAsked(question=question):
                self._ask(question is not None)
            case (
                MessageSaved()
                | LiveTextDropped()
                | ToolDrafted()
                | RunEnded()
                | Noticed()
                | Paced()
                | PromptProgressed()
            ):
                self._follow_event(update)
            case HookStarted() | HookEnded():
                self._update(hook=hook_in_view(update))
            case QueueChanged(waiting=waiting, held=held):
                self._queue(waiting, held=held)
            case (
                ContextChanged()
                | ConversationChanged()
                | JobsChanged()
                | AgentsChanged()
                | BackgroundSummary()
                | Routed()
            ):
                self._follow_change(update)
            case _:
                return  # only the transcript shows the rest
        if not isinstance(update, TextArrived):
            self.panes.show_state()

    def _begin(self, snapshot: Snapshot) -> None:
        record = snapshot.conversation
        self._parts.transcript.show(snapshot)
        self._live = [snapshot.live_text]
        self._jobs = self.conversation.jobs.all()
        self._run_began = snapshot.run_started or snapshot.state_since
        self._parts.status.status = StatusValues(
            state=snapshot.state,
            since=snapshot.state_since,
            mode=record.permission_mode,
            sandbox=record.sandbox,
            model=record.model,
            effort=record.effort,
            profile=record.profile,
            supervisor=record.supervisor,
            context=ContextUse(record.context_tokens, record.context_window, record.context_estimated),
            cost_usd=record.spent.cost_usd,
            has_text=self._parts.status.status.has_text,
            is_prose=self._parts.status.status.is_prose,
            esc_hint=self._parts.status.status.esc_hint,
            vim_esc_hint=self._parts.status.status.vim_esc_hint,
            details=StatusDetails(
                resumable=snapshot.resumable and not _was_stopped(snapshot), writing=bool(snapshot.live_text)
            ),
            jobs=running(self._jobs),
            summarizing=self.conversation.context.summarizing,
            read_only=bool(snapshot.read_only),
        )
        self._show_agents(snapshot.agents, snapshot.results)
        self._show_route(snapshot.route)
        self._head(record)
        self._show_transcript(bool(snapshot.messages) or is_busy(snapshot.state))
        self._ask(snapshot.question is not None)
        self._queue(snapshot.queue, held=snapshot.queue_held)
        self._show_todos()
        self._warn(snapshot.read_only)
        self.panes.show_state()

    def _queue(self, waiting: Sequence[QueuedMessage], *, held: bool) -> None:
        self._waiting = waiting, held
        if self._front:
            self._parts.dock.show_queue(waiting, held=held)

    def _show_todos(self) -> None:
        if self._front:
            show_todos(self._parts.dock, self.conversation.todos.now, self.conversation.state)

    def _follow_owner(self, read_only: str) -> None:
        held = self._parts.status.status.read_only
        if held or read_only:
            self._update(read_only=bool(read_only))
            self._warn(read_only)
        if held and not read_only:
            self._toasts.tell(self._prefix_title(WRITABLE))

    def _warn(self, read_only: str) -> None:
        if not self._front:
            return
        fully = hint(("details", "draws all of it"))
        plain = f"{PLAIN.format(why=self._why_plain)} {fully}." if self._parts.transcript.canvas.model.plain else ""
        words = "\n".join(filter(None, (read_only, plain)))
        self._parts.dock.notice.shown = DockNotice(words, Tone.NEEDS_YOU) if words else None

    def _show_transcript(self, has_messages: bool) -> None:
        shown = has_messages or self.conversation.record.agent is not None
        self._parts.transcript.display = shown
        if self._front:
            self._parts.greet(not shown)

    def _head(self, record: ConversationRecord) -> None:
        title = self._parts.title
        status = self._parts.status.status
        title.heading = replace(
            title.heading.at(short_path(record.cwd)),
            title=record.title,
            parent=self._agents.parent,
            place=self._agents.place,
            context=status.context,
            cost_usd=status.cost_usd,
        )

    def _update(self, **changes: Any) -> None:
        self._parts.status.status = replace(self._parts.status.status, **changes)

    def update_details(self, **changes: Any) -> None:
        """Update the details of the status line until the next change."""
        self._update(details=replace(self._parts.status.status.details, **changes))

    def _count(self, characters: int) -> None:
        now, stream = time.monotonic(), self._stream
        if not stream.characters:
            self._stream = stream = Stream(now, 0, now)
            self.update_details(writing=True, drafting="")
        stream.characters += characters
        if now - stream.looked >= RATE_EVERY:
            stream.looked = now
            self.update_details(rate=stream.characters / CHARACTERS_PER_TOKEN / (now - stream.began))

    def _follow_state(self, update: StateChanged) -> None:
        was_busy, busy = is_busy(self._parts.status.status.state), is_busy(update.state)
        if busy and not was_busy:
            self._run_began = update.since
        stopped = None if busy else self._parts.status.status.details.stopped_after
        self._stream = Stream()
        self._update(state=update.state, since=update.since, details=StatusDetails(stopped_after=stopped))
        self._agents.follow_state(update.state)
        self._show_todos()
        if self._front:
            self._agents.show(self._parts.dock)

    def _ask(self, is_open: bool) -> None:
        if not self._front:
            return
        conversation = self.conversation
        if self._parts.engine is not None:
            self._parts.dock.question.others = titles_of_others(self._parts.engine, conversation)
        if conversation.question is None and (asking := self._agents.asking):
            folder, place = asking[0].record.cwd, _place(1, len(asking))
            is_elsewhere = folder != conversation.record.cwd
            question, since = asking[0].question, time.monotonic()
            self._parts.dock.ask(question, folder, place, since, own=False, is_elsewhere=is_elsewhere)
            return
        state = conversation.state
        place = ""
        if isinstance(state, AwaitingApproval):
            done = len(state.round.results)
            place = _place(done + 1, done + 1 + len(state.round.queue))
        question = conversation.question if is_open else None
        record = conversation.record
        if question is not None:
            question = as_asked(question, record)
        self._parts.dock.ask(question, Path(record.cwd), place, time.monotonic())

    def _follow_event(
        self, update: MessageSaved | LiveTextDropped | ToolDrafted | RunEnded | Noticed | Paced | PromptProgressed
    ) -> None:
        match update:
            case MessageSaved(message=message):
                self._follow_message(message)
            case LiveTextDropped(cancelled=cancelled):
                self.unsaved = "".join(self._live) if cancelled else ""
                self._live.clear()
            case ToolDrafted(name=name):
                if self._parts.status.status.details.drafting != name:
                    self.update_details(drafting=name)
            case RunEnded(status="cancelled"):
                self.update_details(stopped_after=time.monotonic() - self._run_began)
            case RunEnded():
                self.update_details(stopped_after=None)
            case Noticed(text=text):
                self._toasts.tell(self._prefix_title(text))
            case Paced(seconds=seconds):
                self.update_details(paced_until=time.monotonic() + seconds)
            case PromptProgressed(percent=percent):
                self.update_details(prompt_percent=percent)

    def _follow_message(self, message: StoredMessage) -> None:
        self._show_transcript(True)
        if message.role is not Role.SYSTEM:  # a notice follows the stopped text
            self._stream = Stream()
            self._live.clear()
        if message.role is Role.ASSISTANT:
            self.unsaved = ""

    def _follow_change(self, update: _Around) -> None:
        match update:
            case Routed(card=card):
                self._show_route(card)
            case ContextChanged(tokens=tokens, window=window, estimated=estimated, cost_usd=cost):
                before, after = self._parts.status.status.context, ContextUse(tokens, window, estimated)
                self._update(context=after, cost_usd=cost)
                self._head(self.conversation.record)
                if is_busy(self._parts.status.status.state) and (warning := warn_crossing(before, after)):
                    self._toasts.tell(warning)
            case ConversationChanged(conversation=record):
                if self._front and record.model != self._parts.status.status.model:
                    self._parts.dock.chips.trouble = ""
                self._update(
                    mode=record.permission_mode,
                    sandbox=record.sandbox,
                    model=record.model,
                    effort=record.effort,
                    supervisor=record.supervisor,
                )
                self._follow_owner(self.conversation.read_only)
                self._show_todos()
                self._head(record)
            case AgentsChanged(agents=views, results=results):
                self._show_agents(views, results)
                self._ask(self.conversation.question is not None)
            case BackgroundSummary(active=active):
                self._update(summarizing=active)
            case JobsChanged(jobs=jobs):
                for job in find_ended(self._jobs, jobs):
                    self._toasts.tell(self._prefix_title(end_line(job)))
                self._jobs = jobs
                self._update(jobs=running(jobs))

    def _show_agents(self, views: Sequence[AgentView], results: int) -> None:
        self._update(agent_counts=self._agents.take(views), results=results)
        if self._front:
            self._agents.show(self._parts.dock)

    def _show_route(self, card: RouteCard | None) -> None:
        self._route.take(card)
        if self._front:
            self._route.show(self._parts.dock)
        self.update_details(planned=self._route.planned, starts_at=self._route.starts_at)


def _place(number: int, total: int) -> str:
    return f"{number} of {total}" if total > 1 else ""


def _was_stopped(snapshot: Snapshot) -> bool:
    """True when the last turn was stopped; one that the end of Phoenix interrupted was not."""
    newest = snapshot.messages[-1] if snapshot.messages else None
    text = text_of(newest) if newest is not None and newest.role is Role.SYSTEM else ""
    return is_stop_notice(text) and not text.startswith(STOPPED[StopCause.ENDING])
