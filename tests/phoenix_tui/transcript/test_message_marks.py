"""Remarks below a message of the user: a suspicion, and the part that the model is not sent."""

from __future__ import annotations

from msgspec.structs import replace

from engine.machine.messages import TextBlock
from engine.updates import MessageSaved
from phoenix_tui.cli.reporters import progress_line
from phoenix_tui.linear.transcript import LinearTranscript, message_text
from phoenix_tui.text.agent_text import marks
from tests.support.screens import TranscriptApp, answered, said, snapshot
from tests.support.waiting import poll

SUSPECT = replace(said(1, "hello there"), suspected=("ignore_instructions", "system_tags"))
HOSTILE = replace(said(1, "hello there"), suspected=("a\x1b[31m\nb",))
LONG = said(1, "word " * 8_000)


def test_marks_are_for_the_users_own_messages_alone() -> None:
    assert marks(said(1, "x" * 32_768)) == []
    assert marks(LONG) == ["cut to 32,768 of 40,000 characters for the model"]
    assert marks(SUSPECT) == ["looks like an injection: ignore_instructions, system_tags"]
    assert len(marks(replace(LONG, suspected=("system_tags",)))) == 2
    assert marks(answered(1, TextBlock("x" * 99_999))) == []


async def test_the_screen_shows_them_quietly_below_the_message() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(90, 30)):
        app.view.show(snapshot([SUSPECT, answered(2, "hi"), replace(LONG, seq=3)]))
        assert await poll(lambda: "cut to" in "\n".join(app.shown()))
        app.view.scroll_home(animate=False)
        assert await poll(lambda: "hello there" in "\n".join(app.shown()))
        shown = [line.strip() for line in app.shown()]
        place = shown.index("┃ hello there")
        assert shown[place + 1] == "┃ ⚠ looks like an injection: ignore_instructions, system_tags"
        assert "┃ ⚠ cut to 32,768 of 40,000 characters for the model" in shown


def test_lines_read_them_behind_the_message_typed_here_or_not() -> None:
    lines = LinearTranscript()
    assert lines.follow(MessageSaved(SUSPECT)) == [
        "You: hello there",
        "Looks like an injection: ignore_instructions, system_tags.",
    ]
    lines.own.add("m1")
    assert lines.follow(MessageSaved(LONG)) == ["Cut to 32,768 of 40,000 characters for the model."]


def test_a_script_reads_them_on_stderr() -> None:
    assert progress_line(MessageSaved(LONG)) == "• cut to 32,768 of 40,000 characters for the model"


def test_names_from_an_imported_file_do_not_act() -> None:
    assert "\x1b" not in message_text(HOSTILE)
    assert message_text(HOSTILE).count("\n") == 1
