"""Search in notes and in messages that a model no longer sees whole: passages, words of a query, matches."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine.context.assemble import begins_turn, cap_message
from engine.context.measure import describe_arguments
from engine.machine.messages import ImageBlock, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports.note_index import Passage
from engine.ports.profiles import MEMORY_TOOLS
from engine.records import ConversationRecord, StoredMessage
from engine.search import fold_case

if TYPE_CHECKING:
    from engine.store.store import Store


FULL: Final = 600
"""Characters from which a passage ends at the next blank line."""
LONGEST: Final = 2_000
"""Characters of one passage."""
MOST_WORDS: Final = 24
LONGEST_WORD: Final = 64
"""Words of a query that are searched, and characters of one."""
LONGEST_QUERY: Final = 4_000
EXCERPT: Final = 480
"""Characters of a match that are shown."""
LEAD: Final = 120
"""Characters of them before the first matching word."""
MOST_PLACES: Final = 200
SHORT: Final = 3
"""Characters up to which a word counts only as a whole: `10` is no part of 410."""
_WORD: Final = re.compile(r"\w+")
_NAME: Final = re.compile(r"(?<!\w)\w++(?:[^\w\s]++\w++)+")
_BLANKS: Final = re.compile(r"\s+")


def split_passages(text: str) -> list[Passage]:
    """The parts of a file: a heading begins one, a blank line ends a full one, a long line is cut."""
    found: list[Passage] = []
    lines: list[str] = []
    first, size = 1, 0
    for number, line in enumerate(text.split("\n"), 1):
        ends = line.startswith("#") or (size >= FULL and not line.strip()) or size + len(line) > LONGEST
        if ends and size:
            found.append(Passage(first, "\n".join(lines)))
            lines, size = [], 0
        if not size:
            first = number
            if not line.strip():
                continue
        full = len(line) // LONGEST * LONGEST  # a line that is too long is cut into full pieces and a rest
        found += [Passage(number, line[start : start + LONGEST]) for start in range(0, full, LONGEST)]
        rest = line[full:]
        lines = [*lines, rest] if size else [rest]
        size += len(rest) + 1
    if any(line.strip() for line in lines):
        found.append(Passage(first, "\n".join(lines)))
    return found


def words_of(query: str) -> tuple[str, ...]:
    """The words of a query, each once, without capitals; signs are no words.

    Names of several words, such as `retry-count` or `src/a.py`, come first, as they were written.
    """
    low = fold_case(query[:LONGEST_QUERY])
    words = _WORD.findall(low)
    found = dict.fromkeys(word[:LONGEST_WORD] for word in (*_NAME.findall(low), *words))
    return tuple(found)[:MOST_WORDS]


def count_word(low: str, word: str) -> int:
    """Count a word in a text without capitals; a short one only where it is no part of another."""
    count = low.count(word)
    if not count or len(word) > SHORT or not word.isascii():
        return count
    spans = ((place, place + len(word)) for place in _find_places(low, word))
    return sum(not (low[max(start - 1, 0) : start].isalnum() or low[end : end + 1].isalnum()) for start, end in spans)


def cut_excerpt(text: str, words: Sequence[str]) -> tuple[int, str]:
    """The number of the line and the text around the place with the most words, in one line."""
    place = _find_densest(fold_case(text), words)
    start = max(place - LEAD, 0)
    if start and not text[start - 1].isspace():
        blank = _BLANKS.search(text, start, place)
        start = blank.end() if blank else start
    part = " ".join(text[start : start + EXCERPT].split())
    shown = f"{'…' if start else ''}{part}{'…' if start + EXCERPT < len(text) else ''}"
    return text.count("\n", 0, place) + 1, shown


def _find_densest(low: str, words: Sequence[str]) -> int:
    """The place of the word in whose window the most different words begin; long words count more."""
    places = sorted((place, word) for word in words for place in _find_places(low, word))
    best, best_weight, begin = 0, -1.0, 0
    inside: dict[str, int] = {}
    for place, word in places:
        inside[word] = inside.get(word, 0) + 1
        while places[begin][0] < place - (EXCERPT - LEAD):
            gone = places[begin][1]
            inside[gone] -= 1
            begin += 1
        weight = float(sum(len(one) for one, count in inside.items() if count))
        if weight > best_weight:
            best, best_weight = places[begin][0], weight
    return best


def _find_places(low: str, word: str) -> Iterator[int]:
    place = low.find(word)
    for _ in range(MOST_PLACES):
        if place < 0:
            return
        yield place
        place = low.find(word, place + len(word))


SLICE: Final = 100
"""Messages that are read at once."""
MOST_CHARACTERS: Final = 40_000_000
"""Text that is looked through for one answer, newest messages first."""
USUAL_LENGTH: Final = 1_500
"""Characters of a usual message: in longer ones a word must be more frequent to count more."""
REPORTED: Final = frozenset({Role.USER, Role.ASSISTANT})


class UnseenHit(Struct, frozen=True):
    """A message that matches, the line of the match, and the text around it."""

    seq: int
    line: int
    kind: str
    text: str


class _Match(Struct, frozen=True):
    seq: int
    kind: str
    length: int
    counts: tuple[int, ...]
    """Occurrences of each word."""


class _Seen(Struct):
    """The part of a conversation that its model is sent, met from its newest message on."""

    record: ConversationRecord
    turns: int
    """Newest turns that are sent; 0: all."""
    omitted: frozenset[int]
    begun: set[int] = field(default_factory=set[int])

    def has_whole(self, message: StoredMessage) -> bool:
        """True when the model is sent all of a message; older ones must be asked about later."""
        if self.turns and len(self.begun) >= self.turns and message.turn_number not in self.begun:
            return False
        if begins_turn(message):
            self.begun.add(message.turn_number)
        whole = message.seq >= self.record.context_start_seq and message.seq not in self.omitted
        return whole and cap_message(message) is message


async def search_unseen(
    store: Store, record: ConversationRecord, words: Sequence[str], limit: int, turns: int = 0
) -> tuple[UnseenHit, ...]:
    """The best matches among the messages that the model is not sent whole; the best first.

    `turns` are the newest turns that it is sent; 0: all.
    """
    if not words:
        return ()
    seen = _Seen(record, turns, frozenset(each.seq for each in record.omitted))
    matches: list[_Match] = []
    read, left = 0, MOST_CHARACTERS
    async for found in _read_slices(store, record.id):
        calls = _name_calls(found)
        for message in reversed(found[1:] if len(found) == SLICE else found):
            if seen.has_whole(message) or not _is_for_models(message):
                continue
            text = message_text(message, calls)
            read, left = read + 1, left - len(text)
            low = fold_case(text)
            counts = tuple(count_word(low, word) for word in words)
            if any(counts):
                matches.append(_Match(message.seq, kind_of_message(message), len(text), counts))
        if left < 0:
            break
    best = _choose_best(matches, read, len(words), limit)
    hits: list[UnseenHit] = []
    for match in best:
        line, shown = cut_excerpt(await read_message(store, record.id, match.seq) or "", words)
        hits.append(UnseenHit(match.seq, line, match.kind, shown))
    return tuple(hits)


def kind_of_message(message: StoredMessage) -> str:
    """The author of a message, in a word."""
    if any(isinstance(block, ToolResultBlock) for block in message.blocks):
        return "tool result"
    return "you" if message.role is Role.ASSISTANT else "user"


def message_text(message: StoredMessage, calls: dict[str, str]) -> str:
    """The text of a message with its calls and results, without thinking and without earlier answers of memory.

    `calls` has the names of tools by the ids of their calls.
    """
    parts: list[str] = []
    for block in message.blocks:
        match block:
            case TextBlock(text=text):
                parts.append(text)
            case ToolUseBlock(name=name, input_json=arguments) if name not in MEMORY_TOOLS:
                parts.append(f"[called {name}: {describe_arguments(arguments)}]")
            case ToolResultBlock(tool_use_id=call, content=content) if calls.get(call) not in MEMORY_TOOLS:
                parts += [part.text for part in content if isinstance(part, TextBlock)]
            case ImageBlock():
                parts.append("[image]")
            case _:
                pass
    return "\n".join(parts)


async def read_message(store: Store, conversation_id: str, seq: int) -> str | None:
    """The whole text of one message of a conversation; None where there is none."""
    found = await store.messages(conversation_id, first_seq=max(seq - 1, 1), last_seq=seq)
    message = next((one for one in found if one.seq == seq), None)
    return message_text(message, _name_calls(found)) if message is not None and _is_for_models(message) else None


async def _read_slices(store: Store, conversation_id: str) -> AsyncIterator[list[StoredMessage]]:
    """Every message, the newest slice first; the first one of a full slice comes again, behind the call it answers."""
    last: int | None = None
    while found := await store.messages(conversation_id, last_seq=last, limit=SLICE):
        yield found
        if len(found) < SLICE:
            return
        last = found[0].seq


def _name_calls(messages: Sequence[StoredMessage]) -> dict[str, str]:
    return {block.id: block.name for message in messages for block in message.blocks if isinstance(block, ToolUseBlock)}


def _is_for_models(message: StoredMessage) -> bool:
    return message.role in REPORTED and not message.silent


def _choose_best(matches: Sequence[_Match], read: int, words: int, limit: int) -> list[_Match]:
    """The matches by the rarity of their words, then by how densely these occur; older ones first among equals.

    Unlike in BM25, length takes nothing from a word that occurs: a long result may hold the one line that is wanted.
    """
    having = [sum(1 for match in matches if match.counts[place]) for place in range(words)]
    rarity = [math.log(1 + (read - count + 0.5) / (count + 0.5)) for count in having]
    return sorted(matches, key=lambda match: (-_score(match, rarity), match.seq))[:limit]


def _score(match: _Match, rarity: Sequence[float]) -> float:
    usual = 1 + match.length / USUAL_LENGTH
    pairs = zip(match.counts, rarity, strict=True)
    return sum(rare * (1 + count / (count + usual)) for count, rare in pairs if count)
