"""Blocks, images and files of a conversation, and the way back to an earlier prompt."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.cli import with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import Claude, calls, calls_all, everything_stored, rows, says
from tests.support.loopback import Loopback, serve
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.program import DOWN, ENTER, ESC, in_lines, on_screen, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
RED = b"48;2;255;0;0m"
"""A cell of the image as half blocks."""
QUESTION = b"\x1b[>0q\x1b[c"
SIXEL = b"\x1bP0;1;0q"
ALT_UP = b"\x1b[1;3A"


def said(message: Any) -> list[str]:
    return [block["text"] for block in without_note(message["content"]) if block["type"] == "text"]


async def test_a_prompt_with_its_image_is_edited_and_sent_again_from_where_it_stood(
    claude: Claude, tmp_path: Path
) -> None:
    path = tmp_path / "red.png"
    Image.new("RGB", (320, 160), "#ff0000").save(path)
    phoenix, server = await claude(says("First answer."), says("It is red."), says("It is very red."), says("On."))
    async with on_screen(phoenix) as running:
        await running.send("hello", "First answer.", "ready")
        running.paste(str(path))
        await running.shows("[image 1: 320×160]")
        await running.send("what is it?", "It is red.")
        await running.until(lambda: RED in running.raw, "the image itself")
        await running.press(ALT_UP, "▌answer")
        await running.press(b"[", "▌prompt")
        await typing_guard()
        await running.press(b"e", "The original conversation is kept")
        await running.shows("[image 1: 320×160]")
        await running.send(" exactly", "It is very red.")
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
    async with serve(says("It is red.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        running.paste(str(path))
        await running.shows("[image 1: 320×160]")
        assert QUESTION not in running.raw, "nobody is asked before an image is shown"
        await running.send("what is it?")
        await running.until(lambda: QUESTION in running.raw, "the question to the terminal")
        running.type(b"\x1bP>|foot(1.19.0)\x1b\\\x1b[?62;4;22c")
        await running.until(lambda: running.raw.count(SIXEL) >= 12, "a sixel for each row")
        await running.shows("It is red.")
        assert "foot" not in running.row("Reply"), "an answer of the terminal is never typed"


async def test_a_fork_at_an_answer_goes_on_from_there(claude: Claude) -> None:
    phoenix, server = await claude(says("First answer."), says("Second answer."), says("Third answer."))
    async with on_screen(phoenix) as running:
        await running.send("one", "First answer.", "○ ready")
        await running.send("two", "Second answer.")
        await running.press(ALT_UP + b"gj", "▌answer")
        await typing_guard()
        running.type(b"f")
        await running.lacks("Second answer.")
        await running.send("another two", "Third answer.")
    messages: Any = server.requests[-1].json["messages"]
    assert [words for message in messages for words in said(message)] == ["one", "First answer.", "another two"]


MOST_PIXELS = 1568


def picture(path: Path, width: int, height: int) -> Path:
    Image.effect_noise((width, height), 40).convert("RGB").save(path)
    return path


def sent_images(server: Loopback) -> list[Image.Image]:
    messages: Any = server.requests[-1].json["messages"]
    blocks = [block for message in messages for block in message["content"] if block["type"] == "image"]
    return [Image.open(io.BytesIO(base64.b64decode(block["source"]["data"]))) for block in blocks]


async def test_a_pasted_path_becomes_a_chip_and_goes_to_the_server_small_enough(claude: Claude, tmp_path: Path) -> None:
    path = picture(tmp_path / "a shot.png", 2400, 1200)
    phoenix, server = await claude(says("A fine picture."))
    async with on_screen(phoenix) as running:
        running.paste(str(path).replace(" ", "\\ "))
        await running.shows("[image 1: 1568×784]")
        assert "a shot" not in running.text
        await running.send("What is it?", "A fine picture.")
        await running.lacks("Backspace removes the last")
    (image,) = sent_images(server)
    assert max(image.size) == MOST_PIXELS
    assert base64.b64encode(path.read_bytes()[:600]).decode() not in everything_stored(phoenix)


async def test_a_broken_image_is_one_sentence_and_backspace_on_an_empty_line_drops_a_good_one(tmp_path: Path) -> None:
    path, whole = tmp_path / "broken.png", picture(tmp_path / "whole.png", 300, 300)
    path.write_bytes(whole.read_bytes()[:2000])
    async with serve(says("Fine.")) as server, on_screen(with_claude(tmp_path, server.url)) as running:
        running.paste(str(path))
        await running.until(lambda: "image" in running.words.lower() and "." in running.words, "a sentence")
        assert "Traceback" not in running.text
        assert "[image 1" not in running.text
        assert server.requests == []
        running.paste(f"'{whole}'")
        await running.shows("[image 1: 300×300]")
        running.type(b"\x7f")
        await running.lacks("[image 1: 300×300]")
        await running.send("No picture", "Fine.")
        assert sent_images(server) == []


async def test_an_image_alone_can_be_sent(tmp_path: Path) -> None:
    path = picture(tmp_path / "shot.png", 40, 30)
    async with serve(says("Fine.")) as server, program(with_claude(tmp_path, server.url), "-i", str(path)) as running:
        await running.shows("[image 1: 40×30]")
        await running.press(ENTER, "Fine.")
        assert [image.size for image in sent_images(server)] == [(40, 30)]


def folder(path: Path) -> None:
    work = path / "work"
    work.mkdir(exist_ok=True)
    (work / "notes.md").write_text("quetzalcoatl\nsecond\n")
    (work / "pic one.png").write_bytes(TINY_PNG)
    (work / "picker.py").write_text("pass\n")
    (work / "blob").write_bytes(b"\0\1" * 50)


async def test_on_the_screen_it_is_a_chip_that_opens(claude: Claude, tmp_path: Path) -> None:
    folder(tmp_path)
    phoenix, server = await claude(says("Read."))
    async with on_screen(phoenix, columns=100, rows=40) as running:
        await running.press('see @notes.md and @"pic', '@"pic one.png"')
        await running.press("\t", 'see @notes.md and @"pic one.png"')
        running.type("and @blob\r")
        await running.shows("[image 1: 1×1] [notes.md: 2 lines] [pic one.png] [not attached:", "blob is a binary")
        await running.shows("Read.")
        assert "quetzalcoatl" not in running.text
        await running.press("\x0f", "quetzalcoatl")
    body = server.requests[0].body
    assert body.count(b'"type":"image"') == 1
    assert body.count(b"quetzalcoatl") == 1


async def test_in_lines_it_is_said(claude: Claude, tmp_path: Path) -> None:
    folder(tmp_path)
    phoenix, server = await claude(says("Read."))
    async with in_lines(phoenix) as running:
        running.type("read @notes.md and @blob\r")
        await running.shows("Attached: notes.md: 2 lines.", "Not attached: blob is a binary file", "Assistant: Read.")
        await running.press("/read\r", "You: read @notes.md and @blob")
        assert "quetzalcoatl" not in running.text
    assert b"quetzalcoatl" in server.requests[0].body


async def test_in_a_script_it_is_progress(tmp_path: Path) -> None:
    folder(tmp_path)
    async with serve(says("Read.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "read @notes.md and @/etc/hostname")
    assert (ran.code, ran.out) == (0, "Read.\n")
    assert ran.err.splitlines() == [
        "• attached notes.md: 2 lines",
        "• not attached: /etc/hostname is outside the working directory",
    ]
    assert b"quetzalcoatl" in server.requests[0].body


async def test_files_and_conversation_go_back_and_come_again(claude: Claude) -> None:
    writes = calls_all(
        ("write_file", "toolu_1", {"path": "one.txt", "content": "first\n"}),
        ("write_file", "toolu_2", {"path": "two.txt", "content": "second\n"}),
    )
    shell = calls("bash", "toolu_3", command="echo changed > kept.txt")
    phoenix, _ = await claude(writes, shell, says("All three are written."))
    work = phoenix.cwd
    work.mkdir(parents=True, exist_ok=True)
    (work / "kept.txt").write_text("as it was\n")
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
        await running.send("Write them", "All three are written.", "ready")
        assert (work / "kept.txt").read_text() == "changed\n"

        await running.press(ESC + ESC, "Rewind", "cancel", "Write them", "3 files")
        await running.press(DOWN, "kept.txt", "one.txt", "two.txt")
        await running.press(ENTER, "Rewind to before", "restores 3 files", "restore kept.txt", "delete one.txt")
        await running.press(ENTER, "3 files restored.", "Write them")
        assert {path.name: path.read_text() for path in work.iterdir()} == {"kept.txt": "as it was\n"}
        await running.lacks("All three are written.")

        running.type(b"\x15")  # the prompt stands in the box: clear it
        await running.shows("Type to start")
        running.type(ESC)  # the notice
        await running.lacks("3 files restored.")
        await running.press(ESC + ESC, "u undo")
        await running.press("u", "All three are written.")
        await running.until(lambda: (work / "kept.txt").read_text() == "changed\n", "the files again")
        assert (work / "one.txt").read_text() == "first\n"
        assert (work / "two.txt").read_text() == "second\n"
    assert rows(phoenix, "SELECT COUNT(*) FROM conversations WHERE branch_of IS NOT NULL") == [(1,)]


async def test_what_a_script_did_can_be_taken_back_in_the_screen(claude: Claude) -> None:
    phoenix, _ = await claude(calls("bash", command="echo changed > kept.txt"), says("Done."))
    (phoenix.cwd / "kept.txt").write_text("as it was\n")
    ran = await phoenix.run("-p", "--permission-mode", "auto", "Change it")
    assert (ran.code, (phoenix.cwd / "kept.txt").read_text()) == (0, "changed\n")
    async with program(phoenix, "-c", columns=80, rows=24) as running:
        await running.shows("Done.", "ready")
        await running.press(ESC + ESC, "Change it", "1 file")
        await running.press(DOWN + ENTER, "restores 1 file")
        await running.press(DOWN + DOWN + ENTER, "1 file restored.", "Done.")
        assert (phoenix.cwd / "kept.txt").read_text() == "as it was\n"
