"""`--resume-session-at`: the place of a message in a stored conversation, by the id that hosts know it under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.machine.messages import Origin, Role, ToolUseBlock
from engine.records import StoredMessage
from phoenix_tui.cli.exits import CommandError
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.store.store import Store


PAGE: Final = 500
"""Messages that are read at a time."""
UNKNOWN: Final = (
    "There is no message {id} in this conversation; --resume-session-at takes the uuid of one of its frames."
)
TOO_MANY: Final = (
    "More than the turn of --resume-drops-turn comes after that message; leave it out to drop all that follows."
)


async def place_of(store: Store, conversation_id: str, message_id: str, *, one_turn: bool) -> int:
    """The seq up to which a conversation goes on; the results of a reply's calls belong to it.

    `one_turn`: at most one prompt of the user may come after it.

    Raises:
        CommandError: there is no such message, or more comes after it.
    """
    seq = await _seq_of(store, conversation_id, message_id)
    after = await store.messages(conversation_id, first_seq=seq, last_seq=seq + 1)
    if len(after) > 1 and _calls(after[0]) and after[1].origin is Origin.TOOL:
        seq += 1
    if one_turn and await _prompts_after(store, conversation_id, seq) > 1:
        raise CommandError(TOO_MANY)
    return seq


async def _seq_of(store: Store, conversation_id: str, message_id: str) -> int:
    first = 1
    while page := await store.messages(conversation_id, first_seq=first, last_seq=first + PAGE - 1):
        for message in page:
            if message.id == message_id:
                return message.seq
        first = page[-1].seq + 1
    raise CommandError(UNKNOWN.format(id=clean_line(message_id)[:60]))


async def _prompts_after(store: Store, conversation_id: str, seq: int) -> int:
    rest = await store.messages(conversation_id, first_seq=seq + 1)
    return sum(message.role is Role.USER and message.origin is Origin.HUMAN for message in rest)


def _calls(message: StoredMessage) -> bool:
    return any(isinstance(block, ToolUseBlock) for block in message.blocks)
