"""Parts of old messages that models no longer see whole: results, images; the texts of loaded skills stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.messages import Block, ImageBlock, Role, TextBlock, ToolResultBlock, ToolUseBlock, text_in
from engine.machine.views import CHARACTERS_PER_TOKEN, Omission, OmissionKind
from engine.records import StoredMessage

TOOLS: Final = frozenset({"skill"})
"""Tools whose results are such texts."""
HEADING: Final = "Skills that were loaded; follow them as before:"
MOST_CHARACTERS: Final = 60_000
"""Characters of all texts that a summary repeats, the newest first; a model can load the others again."""
_OPENING: Final = re.compile(r'<skill name="([^"\n]{1,100})" id="[0-9a-f]{6,64}">\n')
_TEXT: Final = re.compile(rf"{_OPENING.pattern}.*?\n</skill>(?=\n|\Z)", re.DOTALL)


def skill_calls(rows: Iterable[StoredMessage]) -> frozenset[str]:
    """Ids of the calls that loaded something."""
    return frozenset(
        block.id for row in rows for block in row.blocks if isinstance(block, ToolUseBlock) and block.name in TOOLS
    )


def with_loaded_skills(summary: str, rows: Iterable[StoredMessage], earlier: str) -> str:
    """The summary with the texts that `rows`, or the summary before, have loaded; the newest of each skill."""
    texts: dict[str, str] = {}
    for text in (*_in_summary(earlier), *_in_rows(tuple(rows))):
        if found := _OPENING.match(text):
            texts.pop(found[1], None)
            texts[found[1]] = text
    kept, room = list[str](), MOST_CHARACTERS
    for text in reversed(texts.values()):
        if len(text) <= room and text not in summary:
            kept.append(text)
            room -= len(text)
    return "\n\n".join((summary, HEADING, *reversed(kept))) if kept else summary


def _in_summary(summary: str) -> Iterator[str]:
    _, _, behind = summary.partition(f"\n{HEADING}\n")
    for found in _TEXT.finditer(behind):
        yield found.group()


def _in_rows(rows: tuple[StoredMessage, ...]) -> Iterator[str]:
    """Results of loads, and skills that the user called."""
    calls = skill_calls(rows)
    for row in rows:
        for block in row.blocks:
            if isinstance(block, ToolResultBlock) and block.tool_use_id in calls:
                yield text_in(block.content)
            elif isinstance(block, TextBlock) and block.attached.startswith("skill "):
                yield block.text


LONG_RESULT = 4_000
"""Characters above which an old result is shortened (SPEC CLAW-21)."""
KEPT_END = 1_500
"""Characters kept of each end of it."""
KEPT_ANSWERS = 3
"""Assistant messages that are protected at the end, with all that follows the first of them (SPEC CLAW-22)."""
CLEARED = "[Old tool result content cleared]"
REMOVED_IMAGE = "[Image removed from the context]"


def apply(rows: Iterable[StoredMessage], omitted: Sequence[Omission]) -> list[StoredMessage]:
    """The messages as a model sees them; omissions of unknown parts are ignored."""
    if not omitted:
        return list(rows)
    by_seq: dict[int, list[Omission]] = {}
    for each in omitted:
        by_seq.setdefault(each.seq, []).append(each)
    return [replace(row, blocks=_without(row.blocks, by_seq[row.seq])) if row.seq in by_seq else row for row in rows]


def select_user_omissions(omitted: Iterable[Omission]) -> list[Omission]:
    """The omissions that hold for a summary too."""
    return [each for each in omitted if not each.by_rule]


class PruningRule(Struct, frozen=True):
    """Thresholds from which old tool results are sent shorter by themselves (SPEC CLAW-21, DEC-19)."""

    enabled: bool = True
    shorten_from: float = 0.3
    """Share of the window from which long results are shortened."""
    clear_from: float = 0.5
    """Share of the window from which the oldest results are cleared."""
    worth_clearing: int = 50_000
    """Characters of old results below which none is cleared."""


DEFAULT_RULE: Final = PruningRule()


def prune(
    rows: Sequence[StoredMessage],
    tokens: int,
    window: int,
    rule: PruningRule = DEFAULT_RULE,
    clear_to: float = 0.0,
) -> tuple[Omission, ...]:
    """The automatic rule of SPEC CLAW-21: parts to shorten, then to clear, for a window that holds `tokens`.

    Clearing begins from `rule.clear_from` on and ends below the share `clear_to`, by default the same.
    """
    if window <= 0 or tokens / window < rule.shorten_from:
        return ()
    sizes = old_results(rows)
    chosen = {place: OmissionKind.SHORTENED for place, size in sizes.items() if size > LONG_RESULT}
    saved = sum(sizes[place] - _find_shortened_length(sizes[place]) for place in chosen) // CHARACTERS_PER_TOKEN
    left = {place: _find_shortened_length(size) if place in chosen else size for place, size in sizes.items()}
    if sum(left.values()) >= rule.worth_clearing and (tokens - saved) / window >= rule.clear_from:
        for place, size in left.items():
            if (tokens - saved) / window < (clear_to or rule.clear_from):
                break
            if size <= len(CLEARED):
                continue
            chosen[place] = OmissionKind.CLEARED
            saved += max(size - len(CLEARED), 0) // CHARACTERS_PER_TOKEN
    return _as_omissions(chosen, by_rule=True)


def estimate_savings(rows: Sequence[StoredMessage], chosen: Iterable[Omission]) -> int:
    """Estimated tokens that shortening and clearing these results saves."""
    sizes = old_results(rows)
    saved = 0
    for each in chosen:
        size = sizes.get((each.seq, each.block), 0)
        left = _find_shortened_length(size) if each.kind is OmissionKind.SHORTENED else min(size, len(CLEARED))
        saved += size - left
    return saved // CHARACTERS_PER_TOKEN


def shorten_old(rows: Sequence[StoredMessage]) -> tuple[Omission, ...]:
    """Every long result that is not protected: for a request of the user, however full the window is."""
    return _as_omissions({
        place: OmissionKind.SHORTENED for place, size in old_results(rows).items() if size > LONG_RESULT
    })


def shorten_all(rows: Sequence[StoredMessage]) -> tuple[Omission, ...]:
    """Every long result, the newest too: the last resort of a window that has overflowed."""
    long = {
        (row.seq, place): OmissionKind.SHORTENED
        for row in rows
        for place, block in enumerate(row.blocks)
        if isinstance(block, ToolResultBlock) and _length(block) > LONG_RESULT
    }
    return _as_omissions(long, by_rule=True)


def clear_old(rows: Sequence[StoredMessage]) -> tuple[Omission, ...]:
    """Every result that is not protected, taken out whole."""
    return _as_omissions({
        place: OmissionKind.CLEARED for place, size in old_results(rows).items() if size > len(CLEARED)
    })


def old_results(rows: Sequence[StoredMessage]) -> dict[tuple[int, int], int]:
    """(seq, place) of tool results that may be touched, oldest first, with their characters (SPEC CLAW-22).

    Texts of skills stay: they are instructions.
    """
    answers = [row.seq for row in rows if row.role is Role.ASSISTANT]
    if len(answers) < KEPT_ANSWERS:
        return {}
    protected, loads = answers[-KEPT_ANSWERS], skill_calls(rows)
    return {
        (row.seq, place): _length(block)
        for row in rows
        if row.seq < protected
        for place, block in enumerate(row.blocks)
        if isinstance(block, ToolResultBlock) and block.tool_use_id not in loads
    }


def images(rows: Iterable[StoredMessage]) -> tuple[Omission, ...]:
    """Every image of the messages, as something that can be left out."""
    found: list[Omission] = []
    for row in rows:
        for place, block in enumerate(row.blocks):
            if isinstance(block, ImageBlock):
                found.append(Omission(row.seq, place, OmissionKind.IMAGE))
            elif isinstance(block, ToolResultBlock):
                found += [
                    Omission(row.seq, place, OmissionKind.IMAGE, part)
                    for part, inner in enumerate(block.content)
                    if isinstance(inner, ImageBlock)
                ]
    return tuple(found)


def join_omissions(before: Sequence[Omission], more: Iterable[Omission]) -> tuple[Omission, ...]:
    """Join two sets of omissions; where the same part is named again the later kind counts."""
    by_part = {(each.seq, each.block, each.part): each for each in (*before, *more)}
    return tuple(sorted(by_part.values(), key=lambda each: (each.seq, each.block, each.part)))


def shorten_result(text: str) -> str:
    """Keep both ends of a long text (SPEC T-PRN 3)."""
    return text if len(text) <= LONG_RESULT else f"{text[:KEPT_END]}\n...\n{text[-KEPT_END:]}"


def _as_omissions(chosen: Mapping[tuple[int, int], OmissionKind], *, by_rule: bool = False) -> tuple[Omission, ...]:
    return tuple(Omission(seq, place, kind, by_rule=by_rule) for (seq, place), kind in chosen.items())


def _length(result: ToolResultBlock) -> int:
    return sum(len(part.text) for part in result.content if isinstance(part, TextBlock))


def _find_shortened_length(size: int) -> int:
    return len("\n...\n") + 2 * KEPT_END if size > LONG_RESULT else size


def _without(blocks: tuple[Block, ...], omitted: Sequence[Omission]) -> tuple[Block, ...]:
    changed = list(blocks)
    for each in sorted(omitted, key=lambda each: each.kind is not OmissionKind.IMAGE):  # indexes shift with the rest
        if 0 <= each.block < len(changed):
            changed[each.block] = _apply_omission(changed[each.block], each)
    return tuple(changed)


def _apply_omission(block: Block, omission: Omission) -> Block:
    match omission.kind, block:
        case OmissionKind.IMAGE, ImageBlock():
            return TextBlock(REMOVED_IMAGE)
        case OmissionKind.IMAGE, ToolResultBlock(content=content):
            kept = [
                TextBlock(REMOVED_IMAGE) if place == omission.part and isinstance(part, ImageBlock) else part
                for place, part in enumerate(content)
            ]
            return replace(block, content=tuple(kept))
        case OmissionKind.CLEARED, ToolResultBlock(content=content):
            return replace(block, content=(TextBlock(CLEARED), *_images_of(content)))
        case OmissionKind.SHORTENED, ToolResultBlock(content=content):
            whole = text_in(content, "\n")
            return replace(block, content=(TextBlock(shorten_result(whole)), *_images_of(content)))
        case _:
            return block


def _images_of(content: tuple[TextBlock | ImageBlock, ...]) -> tuple[ImageBlock, ...]:
    return tuple(part for part in content if isinstance(part, ImageBlock))
