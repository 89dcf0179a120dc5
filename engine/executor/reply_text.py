"""The reply as it is stored: with its continued parts, without remains of the model's format."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.context.no_reply import is_no_reply
from engine.context.reply_sanitizer import sanitize
from engine.executor.session import Session
from engine.machine.broken import merge
from engine.machine.messages import Block, TextBlock, ToolUseBlock, text_in

log = logging.getLogger(__name__)

LONG: Final = 50_000
"""Characters from which a reply is read in a thread: a megabyte takes up to a second."""


class StoredReply(Struct, frozen=True):
    """All blocks of a reply as they are stored."""

    blocks: tuple[Block, ...]
    silent: bool = False
    """The model has nothing to say: the row is kept, and neither shown nor sent."""


async def stored_reply(
    session: Session, partial: tuple[Block, ...], blocks: tuple[Block, ...], message_id: str
) -> StoredReply:
    """The whole of a reply that continues `partial`. Thinking stays as it is; a text that becomes empty is dropped."""
    whole = merge(partial, blocks)
    if session.settings.sanitize_replies:
        long = sum(len(block.text) for block in whole if isinstance(block, TextBlock)) > LONG
        whole, removed = await asyncio.to_thread(_sanitized, whole) if long else _sanitized(whole)
        if removed:
            log.info("reply %s: removed characters of %s", message_id, dict(removed))
    calls = any(isinstance(block, ToolUseBlock) for block in whole)
    silent = session.record.agent is None and not calls and is_no_reply(text_in(whole))
    return StoredReply(whole, silent)


def _sanitized(blocks: tuple[Block, ...]) -> tuple[tuple[Block, ...], Counter[str]]:
    kept: list[Block] = []
    removed = Counter[str]()
    for block in blocks:
        if not isinstance(block, TextBlock) or not block.text.strip():
            kept.append(block)
            continue
        found = sanitize(block.text)
        removed.update(found.removed)
        if found.text:
            kept.append(replace(block, text=found.text))
    return tuple(kept), removed
