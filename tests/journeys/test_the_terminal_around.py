"""Output to the terminal itself: title, notifications without focus, colours by its background, NO_COLOR."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tests.support.program import CTRL_Q, program

pytestmark = pytest.mark.pty
FOCUS_LOST, FOCUS_GAINED = b"\x1b[O", b"\x1b[I"
LIGHT = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
COLOURED = re.compile(rb"\x1b\[(?:[0-9;]*;)?[34]8;2;(\d+);(\d+);(\d+)(?=[;m])")
"""A true colour, whole: what was read so far may end within a number."""


async def test_a_run_that_ends_is_told_to_a_terminal_without_focus_and_the_title_comes_and_goes(
    tmp_path: Path,
) -> None:
    async with serve(says("One."), calls("bash", command="sleep 1"), says("Two.")) as server:
        phoenix = with_claude(tmp_path, server.url, TERM_PROGRAM="iTerm.app")
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("first")
            await running.shows("One.", "ready")
            assert b"\x1b]9;Phoenix" not in running.raw, "someone watches"
            running.type("second\r")
            await running.shows("sleep 1")
            running.type(FOCUS_LOST)
            await running.until(lambda: b"\x1b]9;Phoenix: first: ready\x07" in running.raw, "the notification")
            await running.until(lambda: "\x1b]2;○ first · Phoenix".encode() in running.raw, "the title")
            await running.until(lambda: b"\x1b]9;4;0;0\x07" in running.raw, "progress ends")
            running.type(FOCUS_GAINED)
            running.type(CTRL_Q)
            assert await running.exit_code() == 0
            raw = bytes(running.raw)
            assert raw.index(b"\x1b[22;0t") < raw.rindex(b"\x1b[23;0t")
            assert raw.count(b"\x1b[22;0t") == raw.count(b"\x1b[23;0t")


async def test_colours_follow_the_terminal_and_the_next_start_begins_with_them(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9")
    async with program(phoenix) as running:
        await running.ready()
        await running.until(lambda: b"\x1b]11;?\x1b\\" in running.raw, "the question for the background")
        running.type(LIGHT)
        await running.until(lambda: b"48;2;251;251;249" in running.raw, "light colours")
        running.type(CTRL_Q)
        await running.exit_code()
    async with program(phoenix) as running:
        await running.until(lambda: b"48;2;" in running.raw, "a first frame")
        assert b"48;2;16;19;23" not in running.raw


async def test_the_mouse_can_be_left_to_the_terminal_and_taken_again(tmp_path: Path) -> None:
    async with program(with_claude(tmp_path, "http://127.0.0.1:9")) as running:
        await running.ready()
        running.type("/mouse off\r")
        await running.shows("The terminal uses the mouse")
        await running.until(lambda: running.raw.rfind(b"\x1b[?1000l") > running.raw.rfind(b"\x1b[?1000h"))
        running.type("/mouse\r")
        await running.shows("Phoenix uses the mouse")
        await running.until(lambda: running.raw.rfind(b"\x1b[?1000l") < running.raw.rfind(b"\x1b[?1000h"))


async def test_no_color_is_honoured(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9", NO_COLOR="1")
    async with program(phoenix) as running:
        await running.ready()
        found = {tuple(map(int, colour.groups())) for colour in COLOURED.finditer(bytes(running.raw))}
        assert all(red == green == blue for red, green, blue in found)


async def test_the_first_frame_on_256_colours_has_surfaces_apart(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9", COLORTERM="", TERM="xterm-256color")
    async with program(phoenix) as running:
        await running.ready()
        grounds = {int(found) for found in re.findall(rb"48;5;(\d+)", bytes(running.raw))}
        assert 233 in grounds
        assert 16 not in grounds, "pure black, which every dark surface would be"


async def test_a_terminal_without_titles_is_sent_none(tmp_path: Path) -> None:
    async with serve(says("One.")) as server, program(with_claude(tmp_path, server.url, TERM="linux")) as running:
        await running.ready()
        await running.send("first")
        await running.shows("One.")
        asked = set(re.findall(rb"\x1b\](\d+)", bytes(running.raw)))
        assert asked <= {b"22"}, "Textual's own pointer shape alone"


async def test_errors_sent_to_a_file_leave_the_screen_on_the_terminal(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    async with serve(says("One.")) as server, program(with_claude(tmp_path, server.url), errors=errors) as running:
        await running.ready()
        await running.send("first")
        await running.shows("One.")
        await running.shows("○ ready")  # while a run is under way, quitting asks
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
    assert errors.read_bytes() == b""
