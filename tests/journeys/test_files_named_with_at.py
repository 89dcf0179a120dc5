"""A file named with `@` goes with the message on the screen, in lines and with `phoenix -p`: chips, never its text."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.loopback_anthropic import TINY_PNG
from tests.support.program import program

ROWS = 200


def folder(path: Path) -> None:
    work = path / "work"
    work.mkdir(exist_ok=True)
    (work / "notes.md").write_text("quetzalcoatl\nsecond\n")
    (work / "pic one.png").write_bytes(TINY_PNG)
    (work / "picker.py").write_text("pass\n")
    (work / "blob").write_bytes(b"\0\1" * 50)


async def test_on_the_screen_it_is_a_chip_that_opens(tmp_path: Path) -> None:
    folder(tmp_path)
    async with (
        serve(says("Read.")) as server,
        program(with_claude(tmp_path, server.url), columns=100, rows=40) as running,
    ):
        await running.ready()
        running.type('see @notes.md and @"pic')
        await running.shows('@"pic one.png"')
        running.type("\t")
        await running.shows('see @notes.md and @"pic one.png"')
        running.type("and @blob\r")
        await running.shows("[image 1: 1×1] [notes.md: 2 lines] [pic one.png] [not attached:", "blob is a binary")
        await running.shows("Read.")
        assert "quetzalcoatl" not in running.text
        running.type("\x0f")
        await running.shows("quetzalcoatl")
    body = server.requests[0].body
    assert body.count(b'"type":"image"') == 1
    assert body.count(b"quetzalcoatl") == 1


async def test_in_lines_it_is_said(tmp_path: Path) -> None:
    folder(tmp_path)
    async with (
        serve(says("Read.")) as server,
        program(with_claude(tmp_path, server.url), "--screen-reader", rows=ROWS) as running,
    ):
        await running.shows("You:")
        running.type("read @notes.md and @blob\r")
        await running.shows("Attached: notes.md: 2 lines.", "Not attached: blob is a binary file", "Assistant: Read.")
        running.type("/read\r")
        await running.shows("You: read @notes.md and @blob")
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
