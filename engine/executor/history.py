"""Stored messages of a conversation: ranges of them, and the state they give after its store failed in a run."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.session import Session
from engine.machine.messages import LastMessage
from engine.machine.states import Completed, Failed, Idle, State
from engine.records import StoredMessage, ToolCallRecord

LAST_MESSAGES = 8
"""Enough rows to find one that a model can see behind trailing notices."""


class MessageRange(Struct, frozen=True):
    """A range of stored messages with their tool calls."""

    messages: tuple[StoredMessage, ...]
    tool_calls: tuple[ToolCallRecord, ...]


async def read_history(session: Session, limit: int, last_seq: int | None = None) -> MessageRange:
    """The newest `limit` messages up to a seq, ascending."""
    store, conversation = session.ports.store, session.record.id
    messages = await store.messages(conversation, last_seq=last_seq, limit=limit)
    calls = await store.tool_calls(conversation, [message.id for message in messages])
    return MessageRange(tuple(messages), tuple(calls))


async def mend(session: Session) -> State:
    """Close the parts that the failed run left open, as after a restart (SPEC STM-10): idle, or failed where it is a
    sub-agent.

    Raises:
        StorageError: the store still fails; nothing has changed.
    """
    store, conversation_id = session.ports.store, session.record.id
    await store.mend(conversation_id)
    stored = await store.conversation(conversation_id)
    state: State = session.state
    gen = state.gen + 1
    if stored is not None:
        ended = isinstance(stored.state, Completed | Failed)
        state = replace(stored.state, gen=gen) if ended else Idle(gen)
        session.set_record(replace(stored.record, context_window=session.record.context_window))
    session.forget_rows()
    await read_last(session)
    session.broken = False
    return state


async def read_last(session: Session) -> None:
    """Read the kind of the newest message: the turn rule needs it (SPEC DEC-25)."""
    history = await read_history(session, LAST_MESSAGES)
    session.last, session.shell_run = LastMessage.NONE, None
    session.remember(history.messages)
