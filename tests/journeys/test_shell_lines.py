"""Lines after `!` run in a terminal: with colours, in their own folder, and gone with a key."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.journeys import rows
from tests.support.program import CTRL_C, CTRL_Q, ENTER, ESC, Program, alive, mark, program

PANE = 78
"""Columns of a line in a pane of a screen of 200 columns."""
pytestmark = pytest.mark.pty
TYPES = "\x1d"
NOBODY = "http://127.0.0.1:9"


def with_script(folder: Path, name: str, text: str) -> Phoenix:
    """A folder with a script: the lines of a test fit into the composer."""
    phoenix = with_claude(folder, NOBODY)
    (phoenix.cwd / name).write_text(text)
    return phoenix


def with_tree(folder: Path, marked: str) -> Phoenix:
    """A line of `. ./tree` leaves three sleeping processes, two of which do not end with their session."""
    tree = f"echo begun; setsid sleep {marked} & (trap '' HUP TERM; sleep {marked}; :) & sleep {marked}"
    return with_script(folder, "tree", tree)


async def started(running: Program, marked: str) -> None:
    """Run `. ./tree`."""
    await running.ready()
    await running.send("!. ./tree")
    await running.until(lambda: len(alive(f"sleep\0{marked}")) == 3, "three sleeping processes")
    await running.shows("begun")


async def test_a_line_has_the_size_of_its_place_and_each_begins_where_the_last_one_ended(tmp_path: Path) -> None:
    script = "mkdir sub; cd sub; stty size; printf '1%%\\r2%%\\n\\033[31mred\\033[m\\n'"
    async with program(with_script(tmp_path, "go", script), columns=100, rows=30) as running:
        await running.ready()
        await running.send("!. ./go")
        await running.shows("26 65", "2%", "red", "ready")
        await running.send("!basename $PWD; false")
        await running.shows("work/sub · exit 1", "│ sub", "ready")


def widths(running: Program) -> tuple[int, int]:
    """Columns that the line read last, and those of its newest row of `=`, the sign of a cut included."""
    told, drawn = re.findall(r"columns (\d+)", running.text), re.findall(r"==+…?", running.text)
    return (int(told[-1]), len(drawn[-1])) if told else (0, -1)


async def test_a_running_line_is_as_wide_as_its_rows_at_any_width_beside_the_list_and_in_a_pane(tmp_path: Path) -> None:
    draws = "w=$(stty size | cut -d' ' -f2); printf '%*s' $w | tr ' ' =; printf '\ncolumns %s \n' $w"
    script = f"draw() {{ {draws}; }}; trap draw WINCH; draw; while :; do sleep 0.05; done"
    async with program(with_script(tmp_path, "go", script), columns=80, rows=24) as running:
        await running.ready()
        await running.send("!bash ./go")
        await running.until(lambda: widths(running) == (74, 74), "the width of a line at 80 columns")
        running.resize(60, 24)
        await running.until(lambda: widths(running) == (54, 54), "the width at 60 columns")
        running.resize(120, 40)
        await running.until(lambda: widths(running) == (85, 85), "the width beside the list")
        running.resize(200, 40)
        await running.until(lambda: widths(running) == (98, 98), "the width of a column of text")
        running.type("/split\r")
        await running.shows("A new conversation")
        running.type("\r")
        await running.until(lambda: widths(running) == (PANE, PANE), "the width of a pane without the keys")


async def test_esc_kills_the_whole_tree_and_the_output_stays(tmp_path: Path) -> None:
    marked = mark()
    phoenix = with_tree(tmp_path, marked)
    async with program(phoenix) as running:
        await started(running, marked)
        running.type(ESC)
        await running.shows("│ begun", "│ [stopped by the user after ", "ready")
        assert alive(marked) == []
        assert "stopped by you" not in running.text, "said once"
    [(conversation,)] = rows(phoenix, "SELECT id FROM conversations")
    async with program(phoenix, "--resume", conversation) as running:
        await running.shows("│ begun", "│ [stopped by the user after ", "ready")


async def test_quitting_kills_the_whole_tree(tmp_path: Path) -> None:
    marked = mark()
    async with program(with_tree(tmp_path, marked)) as running:
        await started(running, marked)
        running.type(CTRL_Q)
        await running.shows("Quit")
        running.type("y")
        assert await running.exit_code() == 0
        assert alive(marked) == []


async def test_kill_9_takes_it_along(tmp_path: Path) -> None:
    marked = mark()
    phoenix = with_tree(tmp_path, marked)
    async with program(phoenix) as running:
        await started(running, marked)
        running.signal(signal.SIGKILL)
        await running.until(lambda: alive(marked) == [], "an empty tree")
    assert rows(phoenix, "SELECT count(*) FROM tool_calls") == [(1,)]


async def test_a_password_is_typed_without_an_echo_and_without_a_record(tmp_path: Path) -> None:
    phoenix = with_script(tmp_path, "ask", "read -rsp 'password? ' word; echo; echo \"${#word} letters\"")
    async with program(phoenix) as running:
        await running.ready()
        await running.send("!!. ./ask")
        await running.shows("password?", "Ctrl+] types into it")
        running.type(TYPES)
        await running.shows("your keys go to the program", "Esc Esc returns")
        running.type(b"sesame" + ENTER)
        await running.shows("6 letters", "ready")
        await running.lacks("your keys go to the program")
        assert "sesame" not in running.text
    stored = rows(phoenix, "SELECT input_json || output_text || display_json FROM tool_calls")
    assert "sesame" not in stored[0][0]
    assert "6 letters" in stored[0][0]


@asynccontextmanager
async def asking_tree(folder: Path) -> AsyncGenerator[tuple[Program, str]]:
    """A line that ignores signals, has started a marked process, and waits for what is typed into it."""
    marked = mark()
    phoenix = with_script(folder, "tree", f"trap '' INT HUP TERM; setsid sleep {marked} & read -rp 'go on? '")
    async with program(phoenix) as running:
        await running.ready()
        await running.send("!. ./tree")
        await running.shows("go on?")
        running.type(TYPES)
        await running.shows("your keys go to the program")
        yield running, marked


async def test_esc_esc_gives_the_keys_back_and_one_more_kills_what_asks(tmp_path: Path) -> None:
    async with asking_tree(tmp_path) as (running, marked):
        running.type("\x03")
        running.type(ESC)
        running.type(ESC)
        await running.lacks("your keys go to the program")
        assert len(alive(f"sleep\0{marked}")) == 1
        running.type(ESC)
        await running.shows("stopped", "ready")
        assert alive(marked) == []


async def test_kill_9_while_a_program_asks_leaves_nothing(tmp_path: Path) -> None:
    async with asking_tree(tmp_path) as (running, marked):
        running.signal(signal.SIGKILL)
        await running.until(lambda: alive(marked) == [], "an empty tree")


async def test_a_line_goes_to_the_background_and_another_size_reaches_it_before(tmp_path: Path) -> None:
    marked = mark()
    phoenix = with_script(
        tmp_path, "size", f"trap 'stty size' WINCH; echo begun; while :; do sleep 0.1; done; : {marked}"
    )
    async with program(phoenix, columns=100, rows=30) as running:
        await running.ready()
        await running.send("!. ./size")
        await running.shows("begun")
        running.resize(120, 40)
        await running.shows("36 85")
        running.type(b"\x02")
        await running.shows("in background (job-1)", "ready")


async def test_ctrl_c_in_lines_stops_a_line_and_prints_its_output(tmp_path: Path) -> None:
    marked = mark()
    phoenix = with_script(tmp_path, "go", f"seq 30; echo last; setsid sleep {marked} & wait")
    async with program(phoenix, "--screen-reader") as running:
        await running.shows("You:")
        running.type("!. ./go\r")
        await running.until(lambda: alive(f"sleep\0{marked}") != [], "the command runs")
        running.type(CTRL_C)
        await running.shows("Tool bash, stopped", "  20\n", "[stopped by the user after ")
        assert alive(marked) == []
    [(text,)] = rows(phoenix, "SELECT output_text FROM tool_calls")
    assert text.startswith("1\n2\n")
    assert "\n30\nlast\n[stopped by the user after " in text
