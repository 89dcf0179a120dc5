"""Model requests from the store: the messages that a model sees, valid whatever is stored, within the limits."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections import deque
from collections.abc import Container, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from engine.context.estimate import message_tokens
from engine.context.omissions import apply
from engine.context.prompt import PromptFacts, dynamic_section, iterations_left, plans, static_prompt
from engine.machine.agent_rules import FIELDS
from engine.machine.agent_texts import GRACE
from engine.machine.effects import RequestLlm
from engine.machine.messages import (
    Block,
    ImageBlock,
    Origin,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from engine.machine.views import ContextView, Omission
from engine.ports import ImageBytes, ModelMessage, ModelRequest
from engine.ports.models import GrowingValues
from engine.records import StoredMessage
from engine.run_options import Effort
from tools.files.own_files import read_own

if TYPE_CHECKING:
    from engine.store.store import Store


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


def cap_message(message: StoredMessage) -> StoredMessage:
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


log = logging.getLogger(__name__)

MISSING_RESULT = "[Tool result missing -- session was compacted]"
"""Answers a tool use whose result is nowhere (SPEC DEC-24)."""
SUMMARY = "[Summary of earlier conversation]\n"
UNDERSTOOD = "I understand the context from our previous conversation."
"""Texts of the pair that puts a summary before the remaining messages (SPEC CLAW-05)."""
EMPTY = "(no text)"
CONTINUE = "Continue."
IMAGE = "(an image)"
CUT_OFF = "[Your reply broke off here: the call failed. Unless told otherwise, continue exactly where it ended.]"
"""Message behind an incomplete reply, so that replies are never adjacent and requests only grow."""


def build_messages(messages: Iterable[StoredMessage]) -> list[ModelMessage]:
    """Messages without notices; an incomplete reply is followed by a message that says so."""
    said: list[ModelMessage] = []
    for message in messages:
        if message.role is Role.SYSTEM or message.silent:
            continue
        said.append(ModelMessage(message.role, _in_their_role(cap_message(message))))
        if message.cut:
            said.append(ModelMessage(Role.USER, (TextBlock(CUT_OFF),)))
    return said


def _in_their_role(message: StoredMessage) -> tuple[Block, ...]:
    """The blocks as that role may send them: one that no version of Phoenix writes there is kept as text."""
    foreign = (ToolUseBlock, ThinkingBlock) if message.role is Role.USER else (ToolResultBlock, ImageBlock)
    if not any(isinstance(block, foreign) for block in message.blocks):
        return message.blocks
    log.warning("message %s of %s holds blocks of another role: kept as text", message.id, message.role.value)
    return tuple(TextBlock(_words(block)) if isinstance(block, foreign) else block for block in message.blocks)


def _words(block: Block) -> str:
    match block:
        case TextBlock(text=text) | ThinkingBlock(text=text):
            return text
        case ToolUseBlock(name=name, input_json=arguments):
            return f"{name} {arguments}"
        case ToolResultBlock(content=content):
            return "\n".join(map(_words, content))
        case ImageBlock():
            return IMAGE
        case _:
            assert_never(block)


def build_partial_reply(partial: Sequence[Block]) -> list[ModelMessage]:
    """The reply that is being continued, if there is one."""
    return [ModelMessage(Role.ASSISTANT, tuple(partial))] if partial else []


def settle(messages: list[ModelMessage], summary: str = "") -> list[ModelMessage]:
    """The valid chain of these messages, from the first one on."""
    begun = [*_summary_pair(summary, messages), *messages] if summary else messages
    return _answer_tools(_merge_roles(_match_answers(begun)))


def go_on(messages: list[ModelMessage], used: set[str]) -> list[ModelMessage]:
    """The valid chain of messages that begin with a reply and follow a chain that ends with the user.

    `used` are the ids of the tool uses ahead of them; those of `messages` join it.
    """
    return _answer_tools(_merge_roles(_without_orphans(messages, used)))


def finish(chain: list[ModelMessage], transient: str) -> tuple[ModelMessage, ...]:
    """The chain in order, with the user at its end and `transient` behind the last word."""
    if not chain or chain[-1].role is not Role.USER:
        chain = [*chain, ModelMessage(Role.USER, (TextBlock(transient or CONTINUE),))]
    elif transient:
        chain = [*chain[:-1], replace(chain[-1], blocks=(*chain[-1].blocks, TextBlock(transient)))]
    return tuple(in_order(message) for message in chain)


def _summary_pair(summary: str, following: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The summary and its answer; a reply that thinks or calls tools answers it itself, for it must begin so."""
    pair = [ModelMessage(Role.USER, (TextBlock(SUMMARY + summary),))]
    replies = following and following[0].role is Role.ASSISTANT
    if not (replies and any(isinstance(b, ThinkingBlock | ToolUseBlock) for b in following[0].blocks)):
        pair.append(ModelMessage(Role.ASSISTANT, (TextBlock(UNDERSTOOD),)))
    return pair


def _match_answers(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Begin with the user and keep only matching answers; cutting at one end may free a part at the other."""
    while True:
        first = next((index for index, message in enumerate(messages) if message.role is Role.USER), len(messages))
        kept = _without_orphans(messages[first:], set())
        if len(kept) == len(messages):
            return kept
        messages = kept


def _without_orphans(messages: list[ModelMessage], seen: set[str]) -> list[ModelMessage]:
    """Drop results that answer no earlier tool use, and second answers; a tool use whose id was `seen` before gets
    another one, and so does its result.
    """
    kept: list[ModelMessage] = []
    unanswered: dict[str, deque[str]] = {}
    """Ids in the view that wait for their result, in order, by the stored id."""
    for message in messages:
        blocks: list[Block] = []
        if message.role is Role.ASSISTANT:
            unanswered = {}  # only the next message may answer
        for block in message.blocks:
            match block:
                case ToolUseBlock(id=call):
                    fresh = distinct_call_id(call, seen)
                    seen.add(fresh)
                    unanswered.setdefault(call, deque()).append(fresh)
                    blocks.append(block if fresh == call else replace(block, id=fresh))
                case ToolResultBlock(tool_use_id=call):
                    if waiting := unanswered.get(call):
                        fresh = waiting.popleft()
                        blocks.append(block if fresh == call else replace(block, tool_use_id=fresh))
                case TextBlock() | ThinkingBlock() | ImageBlock():
                    blocks.append(block)
                case _:
                    assert_never(block)
        if blocks or message.role is Role.ASSISTANT:
            kept.append(ModelMessage(message.role, tuple(blocks)))
    return kept


def distinct_call_id(wanted: str, used: Container[str]) -> str:
    """The id, or where it is `used` the id with a number behind it (SPEC DOM-02)."""
    name, number = wanted, 0
    while name in used:
        number += 1
        name = f"{wanted}_dedup_{number}"
    return name


def _merge_roles(messages: list[ModelMessage]) -> list[ModelMessage]:
    merged: list[ModelMessage] = []
    for message in messages:
        if merged and merged[-1].role is message.role and not _expects_results(merged[-1]):
            merged[-1] = replace(merged[-1], blocks=merged[-1].blocks + message.blocks)
        else:
            merged.append(message)
    return merged


def _expects_results(message: ModelMessage) -> bool:
    return message.role is Role.ASSISTANT and any(isinstance(b, ToolUseBlock) for b in message.blocks)


def _answer_tools(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Give every tool use its result in the very next message, in request order (SPEC UNI-16)."""
    answered: list[ModelMessage] = []
    for index, message in enumerate(messages):
        answered.append(message)
        if not _expects_results(message):
            continue
        following = messages[index + 1] if index + 1 < len(messages) else None
        if following is None or following.role is Role.ASSISTANT:
            answered.append(_with_results(message, ModelMessage(Role.USER, ())))
        else:
            messages[index + 1] = _with_results(message, following)
    return answered


def _with_results(asking: ModelMessage, answer: ModelMessage) -> ModelMessage:
    given = {b.tool_use_id: b for b in answer.blocks if isinstance(b, ToolResultBlock)}
    wanted = [b.id for b in asking.blocks if isinstance(b, ToolUseBlock)]
    missing = (TextBlock(MISSING_RESULT),)
    results = tuple(given.get(call) or ToolResultBlock(call, missing, is_error=True) for call in wanted)
    rest = tuple(b for b in answer.blocks if not isinstance(b, ToolResultBlock))
    return ModelMessage(Role.USER, results + rest)


def in_order(message: ModelMessage) -> ModelMessage:
    """Results first, no empty text, never an empty message (SPEC STM-12)."""
    blocks = tuple(b for b in message.blocks if not (isinstance(b, TextBlock) and not b.text.strip()))
    if message.role is Role.ASSISTANT:
        spoken = any(not isinstance(b, ThinkingBlock) for b in blocks)
        return replace(message, blocks=blocks if spoken else (*blocks, TextBlock(EMPTY)))
    results = tuple(b for b in blocks if isinstance(b, ToolResultBlock))
    rest = tuple(b for b in blocks if not isinstance(b, ToolResultBlock))
    return replace(message, blocks=(results + rest) or (TextBlock(EMPTY),))


class TurnStarts:
    """Index of the first message of each turn; every row is read once while rows are only added."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._starts: list[int] = []
        self._read = 0
        self._last: StoredMessage | None = None
        self._turn: int | None = None
        """Number of the newest turn."""

    def first_kept(self, rows: Sequence[StoredMessage], turns: int) -> int:
        """Index of the first of the rows that belong to the newest `turns` turns; 0 for no limit."""
        if turns <= 0:
            return 0
        if self._read > len(rows) or (self._read and rows[self._read - 1] is not self._last):
            self._forget()
        for place in range(self._read, len(rows)):
            if rows[place].turn_number != self._turn and begins_turn(rows[place]):
                self._starts.append(place)
                self._turn = rows[place].turn_number
        self._read, self._last = len(rows), rows[-1] if rows else None
        return self._starts[-turns] if len(self._starts) > turns else 0


def select_newest_turns(rows: Sequence[StoredMessage], turns: int) -> Sequence[StoredMessage]:
    """The rows of the newest `turns` turns; all of them for no limit."""
    first = TurnStarts().first_kept(rows, turns)
    return rows[first:] if first else rows


def begins_turn(row: StoredMessage) -> bool:
    """True for a message to the model; one of tool results alone begins no turn."""
    if row.role is not Role.USER or row.silent:
        return False
    return any(not isinstance(block, ToolResultBlock) for block in row.blocks)


class GrowingView:
    """Build the view of all rows at the price of the new ones: step 400 costs what step 40 does
    (docs/decisions/budgets.md).

    A chain can be cut at a reply behind the user: nothing from there on changes the part before it.
    """

    def __init__(self) -> None:
        self._limits: tuple[str, tuple[Omission, ...]] = ("", ())
        """Limits with which the view was built."""
        self._turns = TurnStarts()
        self._start = 0
        """Index of the first row that is sent."""
        self._taken = 0
        """Index behind the last settled row."""
        self._last: StoredMessage | None = None
        """Last settled row: the same object stays at its index as long as rows were only added."""
        self._settled: list[ModelMessage] = []
        self._used: set[str] = set()
        """The ids of the tool uses among the settled."""
        self.tokens = GrowingValues(message_tokens)
        """Tokens of the messages of the last request, roughly."""
        self.images = GrowingValues(attachment_ids)
        """Attachments that each of them names."""

    def build(
        self,
        rows: Sequence[StoredMessage],
        view: ContextView,
        partial: Sequence[Block],
        transient: str,
        turns: int = 0,
    ) -> tuple[ModelMessage, ...]:
        """The messages of a request over the rows of the newest `turns` turns, or over all; a limit is read anew once
        a turn.
        """
        start = self._turns.first_kept(rows, turns)
        if start != self._start or not self._goes_on(rows, view):
            self._limits = (view.summary, view.omitted)
            self._start = self._taken = start
            self._last = None
            self._settled, self._used = [], set()
        self._settle(rows, view)
        rest = self._chain(
            [*self._build(rows, self._taken, len(rows), view), *build_partial_reply(partial)], view, self._used
        )
        return (*self._settled, *finish(rest, transient))

    def _goes_on(self, rows: Sequence[StoredMessage], view: ContextView) -> bool:
        unchanged = self._taken <= len(rows) and (self._last is None or rows[self._taken - 1] is self._last)
        return unchanged and self._limits == (view.summary, view.omitted)

    def _settle(self, rows: Sequence[StoredMessage], view: ContextView) -> None:
        """Take the rows up to the last reply that follows the user."""
        cut = _last_reply(rows, self._taken)
        said = self._build(rows, self._taken, cut, view)
        chain = self._chain(said, view, self._used) if said else []
        if chain and chain[-1].role is Role.USER:
            self._settled += map(in_order, chain)
            self._used |= {b.id for message in chain for b in message.blocks if isinstance(b, ToolUseBlock)}
            self._taken, self._last = cut, rows[cut - 1]

    def _build(self, rows: Sequence[StoredMessage], start: int, end: int, view: ContextView) -> list[ModelMessage]:
        return build_messages(apply(rows[start:end], view.omitted))

    def _chain(self, said: list[ModelMessage], view: ContextView, used: set[str]) -> list[ModelMessage]:
        return go_on(said, set(used)) if self._taken > self._start else settle(said, view.summary)


def attachment_ids(message: ModelMessage) -> tuple[str, ...]:
    """Every attachment a message names, in order, tool results included."""
    found: list[str] = []
    for block in message.blocks:
        inner = block.content if isinstance(block, ToolResultBlock) else (block,)
        found += [part.attachment_id for part in inner if isinstance(part, ImageBlock)]
    return tuple(found)


def _last_reply(rows: Sequence[StoredMessage], start: int) -> int:
    """Index of the last reply that follows the user; `start` if none is behind it."""
    for place in range(len(rows) - 1, start, -1):
        answers = rows[place].role is Role.ASSISTANT and not rows[place].silent
        if answers and rows[place - 1].role is Role.USER and not rows[place - 1].silent:
            return place
    return start


CONTINUE_TEXT = "[Your reply was cut off by the output limit. Continue exactly where it ended.]"
TRUNCATED_TEXT = (
    "[Tool call was truncated by the output limit and was not executed. Make it again, smaller, or in several steps.]"
)


class Assembly(Struct, frozen=True):
    """Inputs of a request that are not in the store."""

    prompt: PromptFacts
    model: str
    """The part of the reference after the provider's name."""
    now: float
    view: ContextView = ContextView()
    note: str = ""
    """Last text of every request of this turn, contained in no message."""
    effort: Effort = Effort.DEFAULT


async def assemble(
    store: Store, rows: Sequence[StoredMessage], growing: GrowingView, ask: RequestLlm, assembly: Assembly
) -> ModelRequest:
    """The request for one model call over the stored messages `rows`; `growing` knows those of the last request."""
    facts = assembly.prompt
    messages = growing.build(rows, assembly.view, ask.partial, _transient(ask, assembly.note), facts.history_turns)
    return ModelRequest(
        model=assembly.model,
        system=(
            static_prompt(facts),
            dynamic_section(assembly.now, facts.permission_mode, facts.sandbox, plans=plans(facts)).text,
        ),
        messages=messages,
        tools=tuple(tool for tool in facts.tools if not ask.only_submit or tool.name in FIELDS),
        images=await _load_images(store, list(dict.fromkeys(chain.from_iterable(growing.images.of(messages))))),
        effort=assembly.effort,
    )


def _transient(ask: RequestLlm, note: str) -> str:
    if ask.only_submit:
        return GRACE
    if ask.truncated_call:
        return TRUNCATED_TEXT
    if ask.partial:
        return CONTINUE_TEXT
    return "\n".join(filter(None, (note, iterations_left(ask.iteration, ask.max_iterations))))


async def _load_images(store: Store, ids: list[str]) -> dict[str, ImageBytes]:
    if not ids:
        return {}
    attachments = await store.attachments(ids)
    loaded: dict[str, ImageBytes] = {}
    for key, attachment in attachments.items():
        try:
            data = await asyncio.to_thread(read_own, attachment.path)
        except OSError:
            continue  # a lost file becomes "[image omitted]" on the wire, never a failed request
        loaded[key] = ImageBytes(attachment.media_type, data)
    return loaded
