"""Attempts to make a context shorter, in one line each."""

from __future__ import annotations

import time

import pytest

from engine.machine.views import CompactionCause, CompactionFacts, CompactionKind
from engine.records import StoredCompaction
from phoenix_tui.text.context_text import SHOWN, compaction_line, compaction_lines

AT = time.mktime((2026, 11, 24, 14, 2, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("cause", "kind", "line"),
    [
        (
            CompactionCause.FULL,
            CompactionKind.SUMMARY,
            "summarized 12 messages (the window was full) · 150k → ~30k tokens",
        ),
        (CompactionCause.ASKED, CompactionKind.SHORTENED, "shortened 12 tool results (you asked) · 150k → ~30k tokens"),
        (CompactionCause.ASKED, CompactionKind.RESTORED, "restored 12 messages (you asked) · 150k → ~30k tokens"),
        (CompactionCause.RESTED, CompactionKind.NONE, "not summarized: the key is bad (after a long run)"),
    ],
)
def test_an_attempt_says_when_what_and_why(cause: CompactionCause, kind: CompactionKind, line: str) -> None:
    facts = CompactionFacts(cause, kind, 40, 1, 13, 12, 150_000, 30_000, "the key \x1b[31mis bad.")
    said = compaction_line(StoredCompaction(AT, facts))
    assert said.startswith("2026-11-24 14:02 · ")
    assert said.removeprefix("2026-11-24 14:02 · ") == line


def test_only_the_newest_are_shown() -> None:
    facts = CompactionFacts(CompactionCause.ASKED, CompactionKind.SUMMARY, 40, messages=1)
    assert len(compaction_lines([StoredCompaction(AT, facts)] * 9)) == SHOWN
