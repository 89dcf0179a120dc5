"""Shell lines, the sandbox that is the default, and worktrees."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.records import PermissionMode
from tests.support.cli import Phoenix, with_claude
from tests.support.git_repositories import commit, git, repository
from tests.support.journeys import Claude, calls, result_text, rows, says
from tests.support.loopback import serve
from tests.support.program import CTRL_C, CTRL_Q, ENTER, ESC, Program, alive, mark, on_screen, program
from tests.support.sandboxes import needs_full_enforcement
from tests.support.waiting import typing_guard
from tools.git.repository import FOLDER

pytestmark = pytest.mark.pty

PANE = 78
"""Columns of a line in a pane of a screen of 200 columns."""
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
    async with on_screen(with_script(tmp_path, "go", script), columns=100, rows=30) as running:
        await running.send("!true", "recent", "ready")  # the list takes its column with the first conversation
        await running.send("!. ./go", "26 65", "2%", "red", "ready")
        await running.send("!basename $PWD; false", "work/sub · exit 1", "│ sub", "ready")


def widths(running: Program) -> tuple[int, int]:
    """Columns that the line read last, and those of its newest row of `=`, the sign of a cut included."""
    told, drawn = re.findall(r"columns (\d+)", running.text), re.findall(r"==+…?", running.text)
    return (int(told[-1]), len(drawn[-1])) if told else (0, -1)


async def test_a_running_line_is_as_wide_as_its_rows_at_any_width_beside_the_list_and_in_a_pane(tmp_path: Path) -> None:
    draws = "w=$(stty size | cut -d' ' -f2); printf '%*s' $w | tr ' ' =; printf '\ncolumns %s \n' $w"
    script = f"draw() {{ {draws}; }}; trap draw WINCH; draw; while :; do sleep 0.05; done"
    async with on_screen(with_script(tmp_path, "go", script), columns=80, rows=24) as running:
        await running.send("!bash ./go")
        await running.until(lambda: widths(running) == (74, 74), "the width of a line at 80 columns")
        running.resize(60, 24)
        await running.until(lambda: widths(running) == (54, 54), "the width at 60 columns")
        running.resize(120, 40)
        await running.until(lambda: widths(running) == (85, 85), "the width beside the list")
        running.resize(200, 40)
        await running.until(lambda: widths(running) == (98, 98), "the width of a column of text")
        await running.press("/split\r", "A new conversation")
        running.type("\r")
        await running.until(lambda: widths(running) == (PANE, PANE), "the width of a pane without the keys")


async def test_esc_kills_the_whole_tree_and_the_output_stays(tmp_path: Path) -> None:
    marked = mark()
    phoenix = with_tree(tmp_path, marked)
    async with program(phoenix) as running:
        await started(running, marked)
        await running.press(ESC, "│ begun", "│ [stopped by the user after ", "ready")
        assert alive(marked) == []
        assert "stopped by you" not in running.text, "said once"
    [(conversation,)] = rows(phoenix, "SELECT id FROM conversations")
    async with program(phoenix, "--resume", conversation) as running:
        await running.shows("│ begun", "│ [stopped by the user after ", "ready")


async def test_quitting_kills_the_whole_tree(tmp_path: Path) -> None:
    marked = mark()
    async with program(with_tree(tmp_path, marked)) as running:
        await started(running, marked)
        await running.press(CTRL_Q, "Quit")
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
    async with on_screen(phoenix) as running:
        await running.send("!!. ./ask", "password?", "Ctrl+] types into it")
        await running.press(TYPES, "your keys go to the program", "Esc Esc returns")
        await running.press(b"sesame" + ENTER, "6 letters", "ready")
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
    async with on_screen(phoenix) as running:
        await running.send("!. ./tree", "go on?")
        await running.press(TYPES, "your keys go to the program")
        yield running, marked


async def test_esc_esc_gives_the_keys_back_and_one_more_kills_what_asks(tmp_path: Path) -> None:
    async with asking_tree(tmp_path) as (running, marked):
        running.type("\x03")
        running.type(ESC)
        running.type(ESC)
        await running.lacks("your keys go to the program")
        assert len(alive(f"sleep\0{marked}")) == 1
        await running.press(ESC, "stopped", "ready")
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
    async with on_screen(phoenix, columns=100, rows=30) as running:
        await running.send("!. ./size", "begun")
        running.resize(120, 40)
        await running.shows("36 85")
        await running.press(b"\x02", "in background (job-1)", "ready")


async def test_ctrl_c_in_lines_stops_a_line_and_prints_its_output(tmp_path: Path) -> None:
    marked = mark()
    phoenix = with_script(tmp_path, "go", f"seq 30; echo last; setsid sleep {marked} & wait")
    async with program(phoenix, "--screen-reader") as running:
        await running.shows("You:")
        running.type("!. ./go\r")
        await running.until(lambda: alive(f"sleep\0{marked}") != [], "the command runs")
        await running.press(CTRL_C, "Tool bash, stopped", "  20\n", "[stopped by the user after ")
        assert alive(marked) == []
    [(text,)] = rows(phoenix, "SELECT output_text FROM tool_calls")
    assert text.startswith("1\n2\n")
    assert "\n30\nlast\n[stopped by the user after " in text


def by_default(folder: Path, url: str) -> Phoenix:
    """An installation that sets no sandbox."""
    return with_claude(folder, url, PHOENIX_SANDBOX="")


async def asked(running: Program) -> None:
    await running.shows("y Yes, once", "asks")
    await typing_guard()


async def test_a_confined_command_runs_and_what_needs_more_asks_with_its_reason(tmp_path: Path) -> None:
    await needs_full_enforcement()
    outside = tmp_path / "outside.txt"
    answers = (
        calls("bash", command=f"echo made $((40 + 2)) > a.txt; cat a.txt; echo no > {outside}"),
        calls("bash", "toolu_2", command="pip download x"),
        calls("bash", "toolu_3", command=f"echo yes > {outside}", access="outside", why="the “file” lies there"),
        says("All done."),
    )
    async with serve(*answers) as server, on_screen(by_default(tmp_path, server.url)) as running:
        await running.shows("ask · sandbox")
        await running.send("Do it")
        await asked(running)
        assert "made 42" in result_text(server.requests[1])
        assert not outside.exists()
        await running.shows("pip download x", "pypi.org")
        await running.press("n", "“the 'file'")
        await typing_guard()
        await running.press("y", "All done.")
        assert outside.read_text() == "yes\n"


async def test_sandbox_off_asks_as_before_and_the_wider_sandbox_is_confirmed(tmp_path: Path) -> None:
    await needs_full_enforcement()
    answers = (calls("bash", command="echo here"), says("First."), calls("bash", command="echo there"), says("Second."))
    async with serve(*answers) as server:
        phoenix = by_default(tmp_path, server.url)
        async with on_screen(phoenix, "--sandbox", "off") as running:
            await running.shows("no sandbox")
            await running.send("Do it")
            await asked(running)
            await running.shows("commands ask in this mode")
            await running.press("y", "First.", "○ ready")
            await running.send("/sandbox read-only", "Sandbox read-only:")
            await running.send("/sandbox off", "Change the sandbox from read-only to off?")
            running.type(ESC)
            await running.lacks("Change the sandbox from")
            await running.shows("sandbox read-only")
            await running.send("Again", "Second.", "○ ready")
        async with on_screen(phoenix, "-c", "--sandbox", "workspace") as running:
            await running.shows("--sandbox workspace allows more")
        async with on_screen(phoenix, "-c") as running:
            await running.shows("Second.", "ask · sandbox")


async def test_a_run_that_nobody_watches_names_the_way_out(tmp_path: Path) -> None:
    await needs_full_enforcement()
    answers = (calls("bash", command="pip download x"), says("Refused."))
    async with serve(*answers) as server:
        ran = await by_default(tmp_path, server.url).run("-p", "--permission-mode", PermissionMode.ASK.value, "Do it")
        assert ran.code == 0
        assert "--sandbox off" in result_text(server.requests[1])


@pytest.mark.pty
async def test_a_worktree_beside_the_repository(claude: Claude) -> None:
    phoenix, _ = await claude(says("Here."), says("There."))
    repository(phoenix.cwd)
    tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix"
    async with on_screen(phoenix, columns=80, rows=24) as running:
        await running.send("hello here", "Here.", "○ ready")
        await running.send("/worktree fix")
        await running.lacks("Here.")
        await running.until(lambda: (tree / "README").exists(), "the worktree")
        await running.send("hello there", "There.", "phoenix/fix")
        commit(tree, "new", "1\n")
        await running.send("/worktree merge", "Merge 1 commit of phoenix/fix into main?")
        await typing_guard()
        running.type("y")
        await running.until(lambda: (phoenix.cwd / "new").exists(), "the merged file")
        await running.shows("was fast-forwarded to")
        await running.send("/worktree remove", "Remove the worktree fix?")
        await typing_guard()
        running.type("y")
        await running.until(lambda: not tree.exists(), "the removal")
        await running.send("/worktree fix")
        await running.until(lambda: (tree / "new").exists(), "the worktree again")
    assert git(tree, "log", "-1", "--format=%s %D") == "change new HEAD -> phoenix/fix, main"


def folders(phoenix: Phoenix) -> set[str]:
    return {str(row[0]) for row in rows(phoenix, "SELECT cwd FROM conversations")}


@pytest.mark.pty
async def test_a_copy_of_a_conversation_works_in_a_worktree(claude: Claude) -> None:
    phoenix, server = await claude(says("Here."), says("There."))
    repository(phoenix.cwd)
    (phoenix.cwd / "README").write_text("changed\n", "ascii")
    home = phoenix.cwd.parent / FOLDER / phoenix.cwd.name
    async with on_screen(phoenix) as running:
        await running.send("/fork --worktree none", "nothing to fork")
        await running.send("hello here", "Here.", "○ ready")
        await running.send("/fork --worktree fix")
        await running.until(lambda: (home / "fix" / "README").exists(), "the worktree")
        await running.shows("phoenix/fix", "1 file in", "not committed")
        await running.shows("(2) hello here")  # what is typed before stays in the first one
        await running.send("go on", "There.")
        assert (home / "fix" / "README").read_text("ascii") == "one\n"
        asked = json.dumps(server.requests[-1].json)
        assert "hello here" in asked
        assert f"Working directory: {home / 'fix'}" in asked
        assert f"The messages before it are about {phoenix.cwd}" in asked
        await running.press("\x0c", "? keys")
        await typing_guard()
        running.type("F")
        await running.until(lambda: (home / "work-1" / "README").exists(), "the second worktree")
        await running.shows("phoenix/work-1")
        await running.shows("Forked. You are in the copy.")
        await typing_guard()
        running.type("N")
        await running.until(lambda: (home / "work-2" / "README").exists(), "the worktree of a new conversation")
        await running.shows("phoenix/work-2")
        wanted = {str(phoenix.cwd), *(str(home / name) for name in ("fix", "work-1", "work-2"))}
        await running.until(lambda: folders(phoenix) == wanted, "the conversations")
