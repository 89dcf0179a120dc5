"""Going back in a conversation: an image drawn in it, its prompt edited and sent again, a fork at an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.cli import with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
RED = b"48;2;255;0;0m"
"""A cell of the image as half blocks."""
QUESTION = b"\x1b[>0q\x1b[c"
SIXEL = b"\x1bP0;1;0q"
ALT_UP = b"\x1b[1;3A"


def said(message: Any) -> list[str]:
    return [block["text"] for block in without_note(message["content"]) if block["type"] == "text"]


async def test_a_prompt_with_its_image_is_edited_and_sent_again_from_where_it_stood(tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    Image.new("RGB", (320, 160), "#ff0000").save(path)
    async with serve(says("First answer."), says("It is red."), says("It is very red."), says("On.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("hello")
            await running.shows("First answer.", "ready")
            running.paste(str(path))
            await running.shows("[image 1: 320×160]")
            await running.send("what is it?")
            await running.shows("It is red.")
            await running.until(lambda: RED in running.raw, "the image itself")
            running.type(ALT_UP)
            await running.shows("▌answer")
            running.type(b"[")
            await running.shows("▌prompt")
            await typing_guard()
            running.type(b"e")
            await running.shows("The original conversation is kept")
            await running.shows("[image 1: 320×160]")
            await running.send(" exactly")
            await running.shows("It is very red.")
            assert "It is red." not in running.text
        messages: Any = server.requests[-1].json["messages"]
        assert [words for message in messages for words in said(message)] == [
            "hello",
            "First answer.",
            "what is it? exactly",
        ]
        assert [block["type"] for block in messages[-1]["content"]].count("image") == 1


async def test_a_terminal_is_asked_for_its_graphics_with_the_first_image_and_gets_sixels_where_it_has_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "red.png"
    Image.new("RGB", (320, 160), "#ff0000").save(path)
    async with serve(says("It is red.")) as server, program(with_claude(tmp_path, server.url)) as running:
        await running.ready()
        running.paste(str(path))
        await running.shows("[image 1: 320×160]")
        assert QUESTION not in running.raw, "nobody is asked before an image is shown"
        await running.send("what is it?")
        await running.until(lambda: QUESTION in running.raw, "the question to the terminal")
        running.type(b"\x1bP>|foot(1.19.0)\x1b\\\x1b[?62;4;22c")
        await running.until(lambda: running.raw.count(SIXEL) >= 12, "a sixel for each row")
        await running.shows("It is red.")
        assert "foot" not in running.row("Reply"), "an answer of the terminal is never typed"


async def test_a_fork_at_an_answer_goes_on_from_there(tmp_path: Path) -> None:
    async with serve(says("First answer."), says("Second answer."), says("Third answer.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix) as running:
            await running.ready()
            await running.send("one")
            await running.shows("First answer.", "○ ready")
            await running.send("two")
            await running.shows("Second answer.")
            running.type(ALT_UP + b"gj")
            await running.shows("▌answer")
            await typing_guard()
            running.type(b"f")
            await running.lacks("Second answer.")
            await running.send("another two")
            await running.shows("Third answer.")
        messages: Any = server.requests[-1].json["messages"]
        assert [words for message in messages for words in said(message)] == ["one", "First answer.", "another two"]
