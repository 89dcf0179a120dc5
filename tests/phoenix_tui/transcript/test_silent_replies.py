"""A silent reply: nothing of it is shown, copied or read aloud, but that it was there with a detailed log."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from engine.machine.messages import TextBlock
from engine.updates import MessageSaved, TextArrived
from phoenix_tui.commands.messages import answer
from phoenix_tui.linear.transcript import LinearTranscript, message_text
from tests.support.screens import TranscriptApp, answered, said, snapshot
from tests.support.waiting import poll

SILENT = replace(answered(2, TextBlock("NO_REPLY")), silent=True)


@pytest.mark.parametrize(("level", "shown"), [(logging.DEBUG, True), (logging.WARNING, False)])
async def test_the_screen_shows_it_with_a_detailed_log_alone(level: int, shown: bool) -> None:
    root = logging.getLogger()
    before = root.level
    root.setLevel(level)
    try:
        app = TranscriptApp()
        async with app.run_test(size=(90, 20)):
            app.view.show(snapshot([said(1, "ping"), SILENT, said(3, "and on")]))
            assert await poll(lambda: "and on" in "\n".join(app.shown()))
            text = "\n".join(app.shown())
            assert ("(silent)" in text) is shown
            assert "NO_REPLY" not in text
            assert app.view.canvas.model.last_answer() == ""
    finally:
        root.setLevel(before)


def test_lines_read_none_of_it_aloud() -> None:
    lines = LinearTranscript()
    assert lines.follow(TextArrived("NO_REPLY")) == []
    assert lines.follow(MessageSaved(SILENT)) == []
    assert lines.follow(TextArrived("Hello\n")) == ["Assistant: Hello"]
    assert message_text(SILENT) == ""


def test_it_is_no_answer_to_copy() -> None:
    assert answer(SILENT) == ""
