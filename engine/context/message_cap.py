"""The longest message of a person that a model is sent; the stored message stays whole (SPEC CLAW-04)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from engine.machine.messages import Block, Origin, TextBlock
from engine.records import StoredMessage

MOST: Final = 32_768
"""Characters of the words; attached files have a limit of their own."""
FARTHEST: Final = 64
"""Characters that a cut moves back so as not to split what is drawn as one; longer sequences are no writing."""
_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_TAGS: Final = range(0xE0020, 0xE0080)
_FLAGS: Final = range(0x1F1E6, 0x1F200)
_JAMO_ENDS: Final = range(0x1160, 0x1200)


def words_length(blocks: Iterable[Block]) -> int:
    """Characters of the words of a message, without attachments."""
    return sum(len(block.text) for block in blocks if isinstance(block, TextBlock) and not block.attached)


def capped(message: StoredMessage) -> StoredMessage:
    """The message as a model is sent it: of a person's words the first `MOST` characters, and a notice behind them."""
    if message.origin is not Origin.HUMAN or (total := words_length(message.blocks)) <= MOST:
        return message
    blocks: list[Block] = []
    room = MOST
    for block in message.blocks:
        if not isinstance(block, TextBlock) or block.attached:
            blocks.append(block)
            continue
        if 0 <= room < len(block.text):
            kept = block.text[: boundary(block.text, room)]
            blocks.append(TextBlock(kept + _notice(total, MOST - room + len(kept))))
            room = -1
        else:
            blocks.append(block if room >= 0 else TextBlock(""))
            room -= len(block.text) if room >= 0 else 0
    return replace(message, blocks=tuple(blocks))


def _notice(total: int, kept: int) -> str:
    return (
        f"\n\n[System: Message was truncated from {total} to {kept} characters due to size limit. The user sees all of "
        "it; ask for the rest in parts or as a file.]"
    )


def boundary(text: str, most: int) -> int:
    """The last place up to `most` at which a cut splits no character as a reader sees it, such as an emoji."""
    place = most
    while place > max(most - FARTHEST, 0) and _joins(text, place):
        place -= 1
    return place if not _joins(text, place) else most


def _joins(text: str, place: int) -> bool:
    """True when the characters on both sides of `place` are drawn as one."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    code = ord(after)
    if _JOINER in {before, after} or (before, after) == ("\r", "\n"):
        return True
    if unicodedata.category(after) in {"Mn", "Me", "Mc"} or code in _SKIN_TONES or code in _TAGS or code in _JAMO_ENDS:
        return True
    return code in _FLAGS and _flags_before(text, place) % 2 == 1


def _flags_before(text: str, place: int) -> int:
    """Number of letters of flags that end at `place`, at most as far as a cut looks."""
    start = place
    while start > max(place - 2 * FARTHEST, 0) and ord(text[start - 1]) in _FLAGS:
        start -= 1
    return place - start
