"""One attempt to make the context shorter, in one line: when, what, why, and how much it saved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from engine.machine.views import CompactionCause, CompactionFacts, CompactionKind
from engine.records import StoredCompaction
from phoenix_tui.text.labels import tokens
from tools.clean import clean_line
from tools.wording import counted

SHOWN: Final = 3
"""Newest attempts that are shown."""
CAUSES: Final = {
    CompactionCause.ASKED: "you asked",
    CompactionCause.FULL: "the window was full",
    CompactionCause.OVERFLOW: "a request did not fit",
    CompactionCause.RESTED: "after a long run",
    CompactionCause.LONG_RESULTS: "old results filled the window",
}


def compaction_lines(made: Sequence[StoredCompaction]) -> list[str]:
    """The newest attempts, newest first."""
    return [compaction_line(one) for one in made[:SHOWN]]


def compaction_line(one: StoredCompaction) -> str:
    """`2026-11-24 14:02 · summarized 12 messages (the window was full) · 150k → 30k tokens`, in local time."""
    facts = one.facts
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at))
    said = f"{when} · {_done(facts)} ({CAUSES[facts.cause]})"
    if facts.kind is CompactionKind.NONE:
        return said
    return f"{said} · {tokens(facts.tokens_before)} → ~{tokens(facts.tokens_after)} tokens"


def _done(facts: CompactionFacts) -> str:
    match facts.kind:
        case CompactionKind.SUMMARY:
            return f"summarized {counted(facts.messages, 'message')}"
        case CompactionKind.SHORTENED:
            return f"shortened {counted(facts.messages, 'tool result')}"
        case CompactionKind.RESTORED:
            return f"restored {counted(facts.messages, 'message')}"
        case CompactionKind.NONE:
            return f"not summarized: {clean_line(facts.problem).rstrip('.')}"
