"""A message that cannot be drawn is its text in its place, is not tried again, and the others stay as they are."""

from __future__ import annotations

from typing import Any

import pytest

from engine.machine.messages import ToolStatus, ToolUseBlock
from engine.updates import MessageSaved, TextArrived
from phoenix_tui.markdown.stream import MarkdownStream
from phoenix_tui.widgets.blocks.speech import UNDRAWABLE
from phoenix_tui.widgets.transcript import drawing
from phoenix_tui.widgets.transcript.painter import Painter
from tests.support.screens import TranscriptApp, answered, call_record, said, snapshot
from tests.support.waiting import poll

NOTE = f"  · {UNDRAWABLE}"


class FaultyTranscript(TranscriptApp):
    """A transcript whose faults are contained, and counted."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Exception] = []

    def goes_on_after(self, error: Exception, *, is_left_out: bool = False) -> bool:
        self.faults.append(error)
        return is_left_out


def fail_for(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, word: str) -> None:
    real = getattr(owner, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        if word in repr(arguments):
            raise RuntimeError("planted")
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, failing)


def rows(app: TranscriptApp) -> list[str]:
    return [row for row in app.shown() if row]


async def test_an_answer_that_cannot_be_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for(monkeypatch, MarkdownStream, "begin", "cursed")
    app = FaultyTranscript()
    async with app.run_test(size=(60, 22)) as pilot:
        app.view.show(
            snapshot([said(1, "why?"), answered(2, "A **cursed** word."), said(3, "and?"), answered(4, "**So**.")])
        )
        wanted = ["┃ why?", NOTE, "answer:", "  A **cursed** word.", "┃ and?", "  So."]
        assert await poll(lambda: rows(app) == wanted), rows(app)
        for width in (50, 40, 60):
            await pilot.resize_terminal(width, 22)
        app.view.action_view("details")
        await pilot.pause()
        assert rows(app) == wanted
        assert len(app.faults) == 1


async def test_an_answer_under_way_that_cannot_be_laid_out_and_the_next_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail_for(monkeypatch, MarkdownStream, "add", "cursed")
    fail_for(monkeypatch, MarkdownStream, "begin", "cursed")
    app = FaultyTranscript()
    async with app.run_test(size=(60, 22)):
        app.view.show(snapshot([said(1, "why?")]))
        for piece in ("A **cursed** ", "word."):
            app.view.apply(TextArrived(piece))
        wanted = ["┃ why?", NOTE, "answer:", "  A **cursed** word."]
        assert await poll(lambda: rows(app) == wanted), rows(app)
        app.view.apply(MessageSaved(answered(2, "A **cursed** word.")))
        app.view.apply(MessageSaved(said(3, "and?")))
        app.view.apply(TextArrived("**So**."))
        assert await poll(lambda: rows(app) == [*wanted, "┃ and?", "  So."]), rows(app)
        assert len(app.faults) == 1


async def test_a_call_that_cannot_be_drawn_has_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for(monkeypatch, drawing, "tool_block", "cursed")
    app = FaultyTranscript()
    call = ToolUseBlock("t1", "bash", '{"command":"echo cursed"}')
    async with app.run_test(size=(60, 22)):
        app.view.show(snapshot([answered(1, call)], [call_record("t1", "bash", call.input_json, ToolStatus.SUCCESS)]))
        wanted = [NOTE, "answer:", '  bash {"command":"echo cursed"}']
        assert await poll(lambda: rows(app)[:3] == wanted), rows(app)
        assert len(app.faults) == 1


async def test_a_row_that_cannot_be_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for(monkeypatch, Painter, "strip", "'smudged")
    app = FaultyTranscript()
    async with app.run_test(size=(60, 22)):
        app.view.show(snapshot([said(1, "why?"), answered(2, "A **smudged** word.")]))
        wanted = ["┃ why?", NOTE, "answer:", "  A **smudged** word."]
        assert await poll(lambda: rows(app) == wanted), rows(app)
        assert len(app.faults) == 1
