"""Contents of the context window: shares by kind and the biggest single parts, estimated and then scaled to the
provider's own count if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import assert_never, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine.context import omissions
from engine.context.assemble import SUMMARY, UNDERSTOOD, cap_message, select_newest_turns
from engine.context.estimate import block_tokens, text_tokens, tools_tokens
from engine.context.prompt import PromptFacts, PromptSection, dynamic_section, plans, sections
from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from engine.machine.views import ContextView, Omission, OmissionKind
from engine.records import StoredMessage

MOST_PARTS = 60
"""Single parts that are listed."""
LABEL = 200
"""Characters of a part's label."""


class Filling(StrEnum):
    """Kinds of parts of the window; the value is the name shown to users."""

    SYSTEM = "system prompt"
    TOOLS = "tools"
    INSTRUCTIONS = "instructions"
    SUMMARY = "summary"
    HISTORY = "messages"
    RESULTS = "tool results"
    IMAGES = "images"
    THINKING = "thinking"


class WindowPart(Struct, frozen=True):
    """One block of a stored message, as the model sees it now."""

    seq: int
    block: int
    part: int
    """Index of an image inside a tool result, else -1."""
    filling: Filling
    label: str
    """A tool with its arguments, or the beginning of a text; from outside."""
    tokens: int
    omission: OmissionKind | None = None
    """Form in which it is left out now."""
    whole: int = 0
    """Tokens of it where nothing were left out."""
    role: Role = Role.USER


class MeasuredSection(Struct, frozen=True):
    """A section of the system prompt with its tokens."""

    section: PromptSection
    tokens: int

    @property
    def filling(self) -> Filling:
        """Share that it counts for."""
        return Filling.INSTRUCTIONS if self.section.is_instructions else Filling.SYSTEM


class Measured(Struct, frozen=True):
    """Tokens by kind, in the order of `Filling`, and the single parts, biggest first."""

    shares: tuple[tuple[Filling, int], ...]
    parts: tuple[WindowPart, ...]
    messages: int
    """Number of messages visible to a model, without the summary."""
    prompt: tuple[MeasuredSection, ...] = ()
    """Sections of the system prompt, the part that changes between calls last; their tokens add up to two shares."""

    @property
    def total(self) -> int:
        """Sum of all shares."""
        return sum(tokens for _, tokens in self.shares)


def measure(facts: PromptFacts, rows: Sequence[StoredMessage], view: ContextView, now: float = 0.0) -> Measured:
    """Guess every share of a request at `now`, Unix time, over the stored messages `rows`."""
    built = (*sections(facts), dynamic_section(now, facts.permission_mode, facts.sandbox, plans=plans(facts)))
    prompt = tuple(MeasuredSection(one, text_tokens(one.text)) for one in built)
    shares = dict.fromkeys(Filling, 0)
    for part in prompt:
        shares[part.filling] += part.tokens
    shares[Filling.TOOLS] = tools_tokens(facts.tools)
    if view.summary:
        shares[Filling.SUMMARY] = text_tokens(SUMMARY + view.summary) + text_tokens(UNDERSTOOD)
    seen = [
        row for row in select_newest_turns(rows, facts.history_turns) if row.role is not Role.SYSTEM and not row.silent
    ]
    kinds = {(each.seq, each.block, each.part): each.kind for each in view.omitted}
    shown = omissions.apply(list(map(cap_message, seen)), view.omitted)
    parts = [each for pair in zip(seen, shown, strict=True) for each in _parts(*pair, kinds)]
    labels = _labels(seen)
    for each in parts:
        shares[each.filling] += each.tokens
    parts.sort(key=lambda each: -max(each.tokens, each.whole))
    named = tuple(replace(each, label=labels.get((each.seq, each.block), each.label)) for each in parts[:MOST_PARTS])
    return Measured(tuple(shares.items()), named, len(seen), prompt)


def scale(measured: Measured, total: int) -> Measured:
    """The same with every guess scaled so that they add up to `total`, the provider's own count."""
    guessed = measured.total
    if not guessed or not total:
        return measured
    factor = total / guessed
    shares = {filling: round(tokens * factor) for filling, tokens in measured.shares}
    largest = max(shares, key=shares.__getitem__)
    shares[largest] += total - sum(shares.values())
    parts = tuple(
        replace(part, tokens=round(part.tokens * factor), whole=round(part.whole * factor)) for part in measured.parts
    )
    prompt = tuple(_fit_sections(measured.prompt, shares))
    return Measured(tuple(shares.items()), parts, measured.messages, prompt)


def _fit_sections(prompt: Sequence[MeasuredSection], shares: Mapping[Filling, int]) -> Iterator[MeasuredSection]:
    """The same sections with tokens that add up to the shares: what rounding leaves goes to the next section."""
    guessed = {filling: sum(part.tokens for part in prompt if part.filling is filling) for filling in shares}
    seen, given = dict.fromkeys(shares, 0), dict.fromkeys(shares, 0)
    for part in prompt:
        filling = part.filling
        seen[filling] += part.tokens
        upto = round(shares[filling] * seen[filling] / guessed[filling]) if guessed[filling] else 0
        yield replace(part, tokens=upto - given[filling])
        given[filling] = upto


def _parts(
    whole: StoredMessage, shown: StoredMessage, kinds: Mapping[tuple[int, int, int], OmissionKind]
) -> Iterator[WindowPart]:
    for place, (before, block) in enumerate(zip(whole.blocks, shown.blocks, strict=True)):
        kind = kinds.get((whole.seq, place, -1))
        size, now = _text_size(before), 0 if kind is OmissionKind.IMAGE else _text_size(block)
        yield WindowPart(whole.seq, place, -1, _filling(before), _beginning(before), now, kind, size, whole.role)
        if isinstance(before, ToolResultBlock):
            for part, inner in enumerate(before.content):
                if isinstance(inner, ImageBlock):
                    kind = kinds.get((whole.seq, place, part))
                    now = 0 if kind else block_tokens(inner)
                    yield WindowPart(
                        whole.seq, place, part, Filling.IMAGES, _beginning(inner), now, kind, block_tokens(inner)
                    )


def _text_size(block: Block) -> int:
    """Tokens of a block; of a result only those of its texts, for its images are parts of their own."""
    if not isinstance(block, ToolResultBlock):
        return block_tokens(block)
    return sum(block_tokens(part) for part in block.content if isinstance(part, TextBlock))


def _filling(block: Block) -> Filling:
    match block:
        case TextBlock() | ToolUseBlock():
            return Filling.HISTORY
        case ThinkingBlock():
            return Filling.THINKING
        case ToolResultBlock():
            return Filling.RESULTS
        case ImageBlock():
            return Filling.IMAGES
        case _:
            assert_never(block)


def _beginning(block: Block) -> str:
    match block:
        case TextBlock(text=text) | ThinkingBlock(text=text):
            return text[:LABEL]
        case ImageBlock(width=width, height=height):
            return f"{width}×{height}"
        case ToolUseBlock(name=name, input_json=arguments):
            return f"{name} {describe_arguments(arguments)}"
        case ToolResultBlock(content=content):
            return next((part.text[:LABEL] for part in content if isinstance(part, TextBlock)), "")
        case _:
            assert_never(block)


def describe_arguments(input_json: str) -> str:
    """The arguments of a call as people would say them: their values, without names and brackets."""
    try:
        values = msgspec.json.decode(input_json, type=dict[str, object])
    except msgspec.MsgspecError:
        return input_json[:LABEL]
    return " ".join(_words(value) for value in values.values())[:LABEL].rstrip()


def _words(value: object) -> str:
    """A value without names and brackets, those within it too."""
    match value:
        case dict():
            return " ".join(_words(one) for one in cast("dict[str, object]", value).values())
        case list():
            return " ".join(_words(one) for one in cast("list[object]", value))
        case str():
            return value
        case _:
            return msgspec.json.encode(value).decode()


def _labels(rows: Sequence[StoredMessage]) -> dict[tuple[int, int], str]:
    """Label of each tool result: the tool and arguments of its call."""
    asked = {
        block.id: f"{block.name} {describe_arguments(block.input_json)}"
        for row in rows
        for block in row.blocks
        if isinstance(block, ToolUseBlock)
    }
    return {
        (row.seq, place): asked[block.tool_use_id]
        for row in rows
        for place, block in enumerate(row.blocks)
        if isinstance(block, ToolResultBlock) and block.tool_use_id in asked
    }


def omission_of(part: WindowPart) -> Omission:
    """The omission that removes this part: an image whole, a result shortened, and a short one cleared."""
    if part.filling is Filling.IMAGES:
        return Omission(part.seq, part.block, OmissionKind.IMAGE, part.part)
    long = part.tokens * 4 > omissions.LONG_RESULT and part.omission is None
    return Omission(part.seq, part.block, OmissionKind.SHORTENED if long else OmissionKind.CLEARED)
