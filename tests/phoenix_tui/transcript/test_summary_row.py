"""The row of a compaction: folded, opened with the details, and never mistaken for a prompt with the same beginning."""

from __future__ import annotations

from engine.machine import texts
from engine.machine.messages import Origin, Role, TextBlock
from phoenix_tui.widgets.blocks.speech import is_summary_notice
from tests.support.screens import TranscriptApp, message, said, snapshot
from tests.support.waiting import poll

SUMMARY = "## Under way\nthe queue of each peer \x1b[31m[/red]\n\nThe user's own words, newest first:\n- one queue"
ROW = texts.summarized(62, 26, "150k → ~40k tokens", SUMMARY)


async def test_a_summary_is_folded_under_its_row_and_opens() -> None:
    notice = message(2, Role.SYSTEM, Origin.NOTICE, TextBlock(ROW))
    app = TranscriptApp()
    async with app.run_test(size=(90, 20)) as pilot:
        app.view.show(snapshot([said(1, "go on"), notice]))
        assert await poll(lambda: "Summarized" in "\n".join(app.shown()))
        [row] = [line for line in app.shown() if "Summarized" in line]
        assert " ".join(row.split()) == "· Summarized 62 messages, kept 26 · 150k → ~40k tokens +5 lines"
        assert not any("the queue" in line for line in app.shown())
        app.view.action_view("details")
        await pilot.pause()
        assert await poll(lambda: "the queue of each peer" in "\n".join(app.shown()))
        shown = "\n".join(app.shown())
        assert "- one queue" in shown
        assert "\x1b" not in shown
        assert "+5 lines" not in shown


def test_only_the_row_of_a_compaction_is_one() -> None:
    assert is_summary_notice(ROW)
    assert not is_summary_notice("Shortened 3 old tool results for the model · 150k → ~40k tokens")
    assert not is_summary_notice("Summarized nothing")
