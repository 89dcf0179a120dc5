"""Messages of megabytes: a slice at a time, nothing lost, and never a step that holds the keys."""

from __future__ import annotations

import pytest

from phoenix_tui.markdown.stream import LONGEST, SLICE, MarkdownStream
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.view import has_more
from tests.support.screens import TranscriptApp, answered, said, snapshot
from tests.support.waiting import poll

PARAGRAPHS = "".join(f"Paragraph {number} of *many*.\n\n" for number in range(3_000))


class Fed:
    """Lengths of the pieces that streams had to lay out in one step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.longest = 0
        feed = MarkdownStream.feed

        def noted(stream: MarkdownStream, text: str) -> int:
            self.longest = max(self.longest, len(text))
            return feed(stream, text)

        monkeypatch.setattr(MarkdownStream, "feed", noted)


async def test_a_stored_message_is_laid_out_slice_by_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    fed, app = Fed(monkeypatch), TranscriptApp()
    async with app.run_test(size=(60, 12)):
        app.view.show(snapshot([said(1, "tell me all"), answered(2, PARAGRAPHS + "LASTWORD")]))
        drawn = app.view.canvas.stack.draw(1)
        assert drawn is not None
        assert drawn.height < 6_000
        assert await poll(lambda: not has_more(app.view.canvas), 60.0)
        assert drawn.height == 6_002
        assert await poll(lambda: any("LASTWORD" in row for row in app.shown()))
        assert fed.longest <= SLICE


async def test_the_row_at_the_top_stays_while_more_is_laid_out_below() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.view.show(snapshot([said(1, "tell me all"), answered(2, PARAGRAPHS)]))
        await pilot.press("home")
        assert await poll(lambda: any("Paragraph 0 of many" in row for row in app.shown()))
        before = app.shown()
        assert await poll(lambda: not has_more(app.view.canvas), 60.0)
        assert app.shown() == before


async def test_what_is_looked_for_is_found_in_what_was_not_laid_out_yet() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)):
        app.view.show(snapshot([said(1, "tell me all"), answered(2, PARAGRAPHS + "NEEDLE here")]))
        app.view.canvas.marks.look_for(("needle",))
        app.view.canvas.marks.go(Goal(2))
        app.view.scroller.place_again()
        assert await poll(lambda: any("NEEDLE" in row for row in app.shown()))


@pytest.mark.parametrize(
    "text",
    ["word " * 12_000, "x" * 60_000, "漢字" * 20_000, "- one\n" + "  more words\n" * 4_000],
    ids=["words", "letters", "wide", "item"],
)
def test_an_open_block_without_end_is_cut_and_nothing_of_it_is_lost(text: str) -> None:
    stream = MarkdownStream(60)
    for start in range(0, len(text), 2_000):
        stream.feed(text[start : start + 2_000])
        assert len(stream._tail) <= LONGEST + 2_000
    stream.finish()
    shown = "".join("".join(line.text for line in stream.lines).split())
    assert shown.lstrip("•") == "".join(text.split()).lstrip("-")
