"""`@conversation:ID` in a message: the model is given a readable digest of that conversation, in the same message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from engine.executor.session import Session
from engine.machine.messages import Origin, Role, TextBlock
from engine.records import ConversationSummary, StoredMessage
from tools.clean import clean_line

# A fixed beginning is found fast in a paste of megabytes; the text before it is checked only then.
REFERENCE: Final = re.compile(r"@conversation:(?<![\w@]@conversation:)([0-9A-Za-z][0-9A-Za-z-]{3,63})")
MOST_MENTIONS: Final = 4
NEWEST: Final = 40
"""Messages in which the last request and answer are looked for."""
REQUEST_LENGTH: Final = 1_000
ANSWER_LENGTH: Final = 4_000
"""Characters of a request and of an answer that a digest holds."""


class UnknownMention(Exception):
    """A message names a conversation that is not there; the message is one sentence for the user."""


async def digests(session: Session, text: str) -> tuple[TextBlock, ...]:
    """One block for each conversation that the text names, in its order.

    Raises:
        UnknownMention: no conversation, or several, have such an id.
        StorageError: they cannot be read.
    """
    references = list(dict.fromkeys(REFERENCE.findall(text)))
    if len(references) > MOST_MENTIONS:
        raise UnknownMention(
            f"A message can name at most {MOST_MENTIONS} conversations; this one names {len(references)}."
        )
    return tuple([await _digest(session, reference) for reference in references])


async def _digest(session: Session, reference: str) -> TextBlock:
    store = session.ports.store
    found = [one for one in await store.find(reference) if one.id.startswith(reference) or one.slug == reference]
    if len(found) != 1:
        many = f"{len(found)} conversations start with that id" if found else "there is no such conversation"
        raise UnknownMention(f"@conversation:{reference} cannot be read: {many}.")
    [one] = found
    first = await store.messages(one.id, first_seq=1, last_seq=NEWEST // 4)
    newest = await store.messages(one.id, limit=NEWEST)
    asked = [said for message in (*first, *newest) if message.origin is Origin.HUMAN and (said := _text(message))]
    answers = [said for message in newest if message.role is Role.ASSISTANT and (said := _text(message))]
    parts = [_heading(one)]
    if asked:
        parts.append(f"First request: {_cut(asked[0], REQUEST_LENGTH)}")
    if asked and asked[-1] != asked[0]:
        parts.append(f"Last request: {_cut(asked[-1], REQUEST_LENGTH)}")
    parts.append(f"Last answer: {_cut(answers[-1], ANSWER_LENGTH)}" if answers else "It has no answer yet.")
    return TextBlock("\n\n".join(parts), f"conversation “{clean_line(one.title) or one.id[:8]}”")


def _heading(one: ConversationSummary) -> str:
    changed = datetime.fromtimestamp(one.updated_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f'[Conversation {one.id} "{one.title}", in {one.cwd}, {one.message_count} messages, last changed {changed}]'


def _text(message: StoredMessage) -> str:
    blocks: Sequence[str] = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    own = blocks[:1] if message.origin is Origin.HUMAN else blocks  # a request's digests of others stay out
    return "\n\n".join(own).strip()


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    kept = length // 2
    return f"{text[:kept]}\n[… {len(text) - 2 * kept:,} characters left out …]\n{text[-kept:]}"
