"""Messages of the user, and events of sub-agents, before they reach the inbox of a conversation."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from engine.context.assemble import MOST, words_length
from engine.executor.asking import explain_cap
from engine.executor.attaching import UnknownMention, read_attachments, read_digests, read_resources
from engine.executor.event_hooks import ask_prompt_hooks
from engine.executor.expanding import expand_call, fetch_server_prompt
from engine.executor.guarding import check_message, inspect_message
from engine.executor.requests import InboxEntry, Priority, Receipt, Refused, RunCaps
from engine.executor.session import Session
from engine.machine import texts
from engine.machine.events import (
    AgentBegun,
    AgentDropped,
    AgentFinished,
    AgentRecalled,
    Event,
    InboxArrived,
    UserMessage,
    UserShell,
)
from engine.machine.messages import (
    OWN_CALL,
    UNSENT_CALL,
    Block,
    ImageBlock,
    NewMessage,
    Origin,
    Role,
    TextBlock,
    ToolCall,
)
from engine.machine.states import AgentOutcome, AwaitingSubagents, Cancelling, Errored, Idle, State, is_busy
from engine.ports import Deposit, MakeBackground, ProviderError, RemoveQueued, Write
from engine.records import AgentFacts, Attachment, ConversationRecord
from engine.updates import AgentsChanged, AgentView

log = logging.getLogger(__name__)

EMPTY_MESSAGE = "There is nothing to send; write a message or attach an image."
LOST_IMAGE = "An image of this message is no longer stored; remove it and attach it again."


async def load_message_blocks(session: Session, text: str, image_ids: Sequence[str]) -> tuple[Block, ...]:
    """Images first, then the text (SPEC T-IMG); unknown images are left out."""
    stored: Mapping[str, Attachment] = await session.ports.store.attachments(image_ids) if image_ids else {}
    images = [stored[key] for key in image_ids if key in stored]
    blocks: list[Block] = [ImageBlock(image.id, image.width, image.height) for image in images]
    if text.strip():
        blocks.append(TextBlock(text))
    return tuple(blocks)


def with_attachments(blocks: tuple[Block, ...], attached: Sequence[Block]) -> tuple[Block, ...]:
    """A message with its attachments: images come first, each once, texts behind the words."""
    images = tuple(block for block in attached if isinstance(block, ImageBlock) and block not in blocks)
    return (*images, *blocks, *(block for block in attached if not isinstance(block, ImageBlock)))


def explain_not_sent(session: Session, blocks: tuple[Block, ...], images: int = 0) -> str:
    """Reason why a message cannot be sent: it is empty, one of its `images` is gone, or the model cannot see them."""
    found = sum(isinstance(block, ImageBlock) for block in blocks)
    if found < images:
        return LOST_IMAGE
    if not blocks:
        return EMPTY_MESSAGE
    if not found:
        return ""
    try:
        provider, name = session.ports.providers.resolve(session.record.model)
    except ProviderError as error:
        return error.message
    if provider.describe(name).vision is False:
        return f"{session.record.model} cannot see images; choose another model with /model, or remove the image."
    return ""


async def ask(
    session: Session,
    build: Callable[[], Event],
    message_id: str = "",
    caps: RunCaps | None = None,
    writes: tuple[Write, ...] = (),
    *,
    answers: bool = False,
) -> Receipt:
    """Put a request of the user into the inbox and wait until the machine took or refused it.

    `answers` marks an answer to a question: nothing else is possible in a sub-agent's conversation.
    """
    if session.read_only:
        return Refused(session.read_only)
    if session.record.agent is not None and not answers:
        return Refused(texts.READ_ONLY)
    receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
    session.moves.inbox.put(Priority.USER, InboxEntry(build, message_id, caps or RunCaps(), receipt, writes))
    return await asyncio.shield(receipt)


async def send(
    session: Session,
    text: str,
    image_ids: Sequence[str],
    caps: RunCaps | None = None,
    queued_id: str = "",
    attached: Sequence[TextBlock] = (),
) -> Receipt:
    """Send a message; first it is stored, and removed from the queue in the same transaction."""
    if why := session.settings.memory_gauge.refusal() or check_message(session, text):
        return Refused(why)
    if why := await explain_cap(session):
        return Refused(why, is_cap=True)
    heard = await ask_prompt_hooks(session, text)
    if heard.refusal:
        return Refused(heard.refusal)
    expansion = await fetch_server_prompt(session, text, caps or RunCaps()) or await expand_call(
        session, text, caps or RunCaps()
    )
    if isinstance(expansion, Refused):
        return expansion
    blocks = await load_message_blocks(session, text, image_ids)
    if why := explain_not_sent(session, blocks, len(image_ids)):
        return Refused(why)
    try:
        blocks += await read_digests(session, text)
    except UnknownMention as error:
        return Refused(str(error))
    caps, whole = caps or RunCaps(), text
    if expansion is not None:
        blocks = with_attachments(blocks, expansion.blocks)
        caps, whole = expansion.caps, f"{text}\n{expansion.text}"
    named = (*await read_attachments(session, whole), *await read_resources(session, text))
    blocks = with_attachments(blocks, (*attached, *named, *heard.attached))
    message_id, length = session.ports.ids.new(), words_length(blocks)
    run_id = caps.run_id or session.ports.ids.new()
    blocks, suspected, found = inspect_message(session, blocks, message_id, run_id)
    original = length if length > MOST else None
    message = NewMessage(message_id, Role.USER, Origin.HUMAN, blocks, original_length=original, suspected=suspected)
    limit = caps.max_turns or session.settings.max_iterations
    writes: tuple[Write, ...] = (RemoveQueued(queued_id), *found) if queued_id else found

    def build_message() -> UserMessage:
        log_launch(session.record, session.state)
        routed = session.record.supervisor and expansion is None  # a supervisor reads the typed words alone
        return UserMessage(
            message, session.window.last, run_id, limit, supervisor=routed, compact_due=session.compact_due
        )

    return await ask(session, build_message, message.id, caps, writes)


async def run_shell(session: Session, command: str, send_to_model: bool, queued_id: str = "") -> Receipt:
    """Run a command of the user; it leaves the queue if it was there."""
    new_id = session.ports.ids.new
    call = ToolCall(f"{OWN_CALL if send_to_model else UNSENT_CALL}{new_id()}", "bash", json.dumps({"command": command}))
    message_id, run_id = new_id(), new_id()
    writes = (RemoveQueued(queued_id),) if queued_id else ()

    def build_line() -> UserShell:
        return UserShell(message_id, call, run_id, send_to_model, session.window.last, command)

    return await ask(session, build_line, message_id, writes=writes)


def log_launch(record: ConversationRecord, state: State) -> None:
    """Log that a message begins a run, of a new task or of one at rest (SPEC UNI-14). One at work refuses it."""
    if not is_busy(state):
        log.info("%s %s", "Reactivating existing task" if record.message_count else "Created new task", record.id)


def log_read_on(record: ConversationRecord) -> None:
    """Log that a message waits for the next model call of a working task (SPEC UNI-14)."""
    log.info("Resuming existing task %s", record.id)


class AgentMailbox:
    """Puts the events of sub-agents into the inbox of one conversation."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.wake_caps: Callable[[], RunCaps | None] = lambda: session.run.caps
        """Limits of a run that the end of a sub-agent begins; None: none may begin."""

    @property
    def watched(self) -> bool:
        """True while it has viewers."""
        return self._session.publisher.has_watchers

    def begin(self, facts: AgentFacts, results: str, why_dropped: Callable[[], str]) -> asyncio.Future[Receipt]:
        """Start the first run of this sub-agent, unless it was stopped before; its inbox has the task.

        `results` are those of the agents before it. The receipt follows once it works, or cannot.
        """
        session, new_id = self._session, self._session.ports.ids.new
        found = NewMessage(new_id(), Role.USER, Origin.SUBAGENT, (TextBlock(results),)) if results else None
        run_id = new_id()

        def build_begin() -> AgentBegun | AgentDropped:
            if why := why_dropped():
                return AgentDropped(why, why)
            log_launch(session.record, session.state)
            return AgentBegun(run_id, facts.max_turns, found)

        return self._put(Priority.USER, InboxEntry(build_begin, caps=RunCaps(timeout=facts.timeout)))

    def recall(self, text: str, sender: str) -> asyncio.Future[Receipt]:
        """Resume this finished sub-agent; without a text it reads its waiting messages."""
        told = (Deposit(text, sender),) if text else ()
        return self._put(Priority.USER, InboxEntry(AgentRecalled, writes=(*told, MakeBackground())))

    def drop(self, kind: str, error: str) -> asyncio.Future[Receipt]:
        """End this sub-agent before its start; one that its store failed is brought to rest."""
        return self._put(Priority.OUTCOME, InboxEntry(lambda: AgentDropped(kind, error)))

    def deliver_end(self, outcome: AgentOutcome) -> asyncio.Future[Receipt]:
        """Deliver the end of a sub-agent that this one waits for; the receipt follows once that is stored, or cannot
        be.

        UNWANTED: it waits no longer, and has reported that to its model.
        """
        session, message_id = self._session, self._session.ports.ids.new()

        async def is_awaited() -> bool:
            state = session.state
            return isinstance(state, AwaitingSubagents | Cancelling) and outcome.agent_id in state.pending

        finished = InboxEntry(lambda: AgentFinished(session.state.gen, outcome, message_id), wanted=is_awaited)
        if session.moves.broken:  # it has ended without them; only its user may resume it
            receipt = Refused(session.state.message if isinstance(session.state, Errored) else "")
            done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
            done.set_result(receipt)
            return done
        return self._put(Priority.OUTCOME, finished)

    def wait_for_user(self, *, asked: bool) -> None:
        """Pause the time limit while its sub-agents only ask: the user's time is not the run's."""
        if asked:
            self._session.moves.limit.pause()
        else:
            self._session.moves.limit.go_on()

    def begin_turn(self) -> None:
        """Begin a turn for a new entry of its inbox, if it is idle then and was not stopped since."""
        session, run_id, caps = self._session, self._session.ports.ids.new(), self.wake_caps()
        if caps is None:
            return
        limit = caps.max_turns or session.settings.max_iterations

        def build_arrival() -> InboxArrived:
            put_away = session.record.archived or session.record.deleted
            return InboxArrived(not put_away, session.window.last, run_id, limit)

        session.moves.inbox.put(Priority.OUTCOME, InboxEntry(build_arrival, caps=caps, wanted=self._wakes))

    async def _wakes(self) -> bool:
        store, session = self._session.ports.agents, self._session
        if store is None or not isinstance(session.state, Idle) or not await store.wakes(session.record.id):
            return False
        return not session.moves.inbox.stops  # Esc came during the read: all waiting entries are about to become quiet

    def tell(self, views: tuple[AgentView, ...], results: int) -> None:
        """Send subscribers the views of its sub-agents, and the number of unread results."""
        self._session.publisher.publish(AgentsChanged(views, results))

    def belong_to(self, parent: AgentMailbox) -> None:
        """Make this one a sub-agent of `parent`: it asks in its name and begins with a copy of its rules.

        A copy: what the user allows one of them later holds for that one alone.
        """
        above = parent._session
        self._session.equipment.above = above
        folder = str(above.record.cwd)
        self._session.grants.rules.update({
            replace(one, folder=one.folder or folder): at for one, at in above.grants.rules.items()
        })

    def _put(self, priority: Priority, entry: InboxEntry) -> asyncio.Future[Receipt]:
        entry.receipt = asyncio.get_running_loop().create_future()
        self._session.moves.inbox.put(priority, entry)
        return entry.receipt
