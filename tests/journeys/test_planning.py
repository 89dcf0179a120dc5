"""Plan mode in a real terminal: Shift+Tab, the rendered plan, a change in $EDITOR, the approval."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, calls_all, result_text, rows, says
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
PLAN = "# Bound the delay\n\nRead **retry.py**, then:\n\n- change `delay`"
CTRL_G, CTRL_S, CTRL_T, SHIFT_TAB = b"\x07", b"\x13", b"\x14", b"\x1b[Z"


async def test_a_plan_is_made_changed_in_the_editor_and_carried_out(tmp_path: Path) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text("import sys; p = sys.argv[1]; open(p, 'a').write('\\n- run the tests')")
    todos = [{"content": "Change delay", "status": "in_progress"}, {"content": "Run the tests", "status": "pending"}]
    edit = {"path": "a.txt", "content": "bounded\n"}
    answers = (
        calls("exit_plan", plan=PLAN),
        calls_all(("todo_write", "toolu_2", {"todos": todos}), ("write_file", "toolu_3", edit)),
        says("On it."),
    )
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url, EDITOR=f"{sys.executable} {editor}")
        async with program(phoenix, rows=40, columns=120) as running:
            await running.ready()
            for mode in (" edits ·", " auto ·", " plan ·"):
                running.type(SHIFT_TAB)
                await running.shows(mode)
            await running.send("Bound it")
            await running.shows("proposes a plan", "• change delay", "approve, accept edits")
            await typing_guard()
            running.type("e")
            await running.shows("Plan", "# Bound the delay")
            running.type(CTRL_G)
            await running.shows("• run the tests")
            await typing_guard()
            running.type("1")
            await running.shows("On it.", "todo 0/2 Change delay")
            running.type(CTRL_T)
            # The hint comes with the focus: without it Esc and the "/" behind it would be one write, which is Alt+/.
            await running.shows("1 [>] Change delay", "2 [ ] Run the tests", "Space done")
            running.type(ESC)
            await running.lacks("Space done")
            await running.send("/plan")
            await running.shows("Approved plan")
        assert (tmp_path / "work" / "a.txt").read_text() == "bounded\n"
        assert "this is what holds" in result_text(server.requests[1])
        stored = f"{PLAN}\n- run the tests"
        assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [(stored, "accept-edits")]


async def test_a_plan_that_waits_survives_a_kill_as_an_unanswered_call(tmp_path: Path) -> None:
    async with serve(calls("exit_plan", plan=PLAN), says("Fine.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--permission-mode", "plan", rows=40, columns=120) as running:
            await running.ready()
            await running.send("Bound it")
            await running.shows("proposes a plan")
            running.signal(signal.SIGKILL)
        assert rows(phoenix, "SELECT plan_text, permission_mode FROM conversations") == [("", "plan")]
        async with program(phoenix, "-c", rows=40, columns=120) as running:
            await running.ready()
            await running.shows("Enter resumes")
            running.type(ENTER)
            await running.shows("Fine.")
        assert "[Tool execution interrupted by restart]" in server.requests[1].body.decode()
