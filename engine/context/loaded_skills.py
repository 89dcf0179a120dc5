"""Texts of loaded skills: pruning leaves them whole, and a summary repeats them word for word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from engine.machine.messages import TextBlock, ToolResultBlock, ToolUseBlock, text_in
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
