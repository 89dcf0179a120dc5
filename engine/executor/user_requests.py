"""Messages and commands of the user, and their way into the inbox of a conversation."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence

from engine.context.message_cap import MOST, words_length
from engine.executor.attaching import attachments
from engine.executor.expanding import expanded
from engine.executor.guarding import inspected, refusal
from engine.executor.inbox import InboxEntry, Priority
from engine.executor.mentions import UnknownMention, digests
from engine.executor.prompt_hooks import heard_prompt
from engine.executor.requests import Receipt, Refused, RunCaps
from engine.executor.resource_mentions import resources
from engine.executor.server_prompts import prompted
from engine.executor.session import Session
from engine.executor.spending import refused_spending
from engine.machine import texts
from engine.machine.events import Event, UserMessage, UserShell
from engine.machine.messages import OWN_CALL, Block, ImageBlock, NewMessage, Origin, Role, TextBlock, ToolCall
from engine.machine.states import State, is_busy
from engine.ports import ProviderError, RemoveQueued, Write
from engine.records import Attachment, ConversationRecord

log = logging.getLogger(__name__)

EMPTY_MESSAGE = "There is nothing to send; write a message or attach an image."
LOST_IMAGE = "An image of this message is no longer stored; remove it and attach it again."


async def message_blocks(session: Session, text: str, image_ids: Sequence[str]) -> tuple[Block, ...]:
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


def why_not_sent(session: Session, blocks: tuple[Block, ...], images: int = 0) -> str:
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
    session.inbox.put(Priority.USER, InboxEntry(build, message_id, caps or RunCaps(), receipt, writes))
    return await asyncio.shield(receipt)


async def send(
    session: Session,
    text: str,
    image_ids: Sequence[str],
    caps: RunCaps | None = None,
    queued_id: str = "",
) -> Receipt:
    """Send a message; first it is stored, and removed from the queue in the same transaction."""
    if why := session.settings.memory_gauge.refusal() or refusal(session, text):
        return Refused(why)
    if why := await refused_spending(session):
        return Refused(why, is_cap=True)
    heard = await heard_prompt(session, text)
    if heard.refusal:
        return Refused(heard.refusal)
    expansion = await prompted(session, text, caps or RunCaps()) or await expanded(session, text, caps or RunCaps())
    if isinstance(expansion, Refused):
        return expansion
    blocks = await message_blocks(session, text, image_ids)
    if why := why_not_sent(session, blocks, len(image_ids)):
        return Refused(why)
    try:
        blocks += await digests(session, text)
    except UnknownMention as error:
        return Refused(str(error))
    caps, whole = caps or RunCaps(), text
    if expansion is not None:
        blocks = with_attachments(blocks, expansion.blocks)
        caps, whole = expansion.caps, f"{text}\n{expansion.text}"
    named = (*await attachments(session, whole), *await resources(session, text))
    blocks = with_attachments(blocks, (*named, *heard.attached))
    message_id, length = session.ports.ids.new(), words_length(blocks)
    run_id = caps.run_id or session.ports.ids.new()
    blocks, suspected, found = inspected(session, blocks, message_id, run_id)
    original = length if length > MOST else None
    message = NewMessage(message_id, Role.USER, Origin.HUMAN, blocks, original_length=original, suspected=suspected)
    limit = caps.max_turns or session.settings.max_iterations
    writes: tuple[Write, ...] = (RemoveQueued(queued_id), *found) if queued_id else found

    def sent() -> UserMessage:
        log_launch(session.record, session.state)
        routed = session.record.supervisor and expansion is None  # a supervisor reads the typed words alone
        return UserMessage(message, session.last, run_id, limit, supervisor=routed, compact_due=session.compact_due)

    return await ask(session, sent, message.id, caps, writes)


async def run_shell(session: Session, command: str, send_to_model: bool, queued_id: str = "") -> Receipt:
    """Run a command of the user; it leaves the queue if it was there."""
    new_id = session.ports.ids.new
    call = ToolCall(f"{OWN_CALL}{new_id()}", "bash", json.dumps({"command": command}))
    message_id, run_id = new_id(), new_id()
    writes = (RemoveQueued(queued_id),) if queued_id else ()

    def typed() -> UserShell:
        return UserShell(message_id, call, run_id, send_to_model, session.last, command)

    return await ask(session, typed, message_id, writes=writes)


def log_launch(record: ConversationRecord, state: State) -> None:
    """Log that a message begins a run, of a new task or of one at rest (SPEC UNI-14). One at work refuses it."""
    if not is_busy(state):
        log.info("%s %s", "Reactivating existing task" if record.message_count else "Created new task", record.id)


def log_read_on(record: ConversationRecord) -> None:
    """Log that a message waits for the next model call of a working task (SPEC UNI-14)."""
    log.info("Resuming existing task %s", record.id)
