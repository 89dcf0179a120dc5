"""Esc Esc: the agent writes two files, a command changes a third; all go back, and all come again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.journeys import calls, calls_all, rows, says
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC, program

pytestmark = pytest.mark.pty
DOWN = b"\x1b[B"


async def test_files_and_conversation_go_back_and_come_again(tmp_path: Path) -> None:
    writes = calls_all(
        ("write_file", "toolu_1", {"path": "one.txt", "content": "first\n"}),
        ("write_file", "toolu_2", {"path": "two.txt", "content": "second\n"}),
    )
    shell = calls("bash", "toolu_3", command="echo changed > kept.txt")
    async with serve(writes, shell, says("All three are written.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        work = phoenix.cwd
        work.mkdir(parents=True, exist_ok=True)
        (work / "kept.txt").write_text("as it was\n")
        async with program(phoenix, "--permission-mode", "auto") as running:
            await running.ready()
            await running.send("Write them")
            await running.shows("All three are written.", "ready")
            assert (work / "kept.txt").read_text() == "changed\n"

            running.type(ESC + ESC)
            await running.shows("Rewind", "cancel", "Write them", "3 files")
            running.type(DOWN)
            await running.shows("kept.txt", "one.txt", "two.txt")
            running.type(ENTER)
            await running.shows("Rewind to before", "restores 3 files", "restore kept.txt", "delete one.txt")
            running.type(ENTER)
            await running.shows("3 files restored.", "Write them")
            assert {path.name: path.read_text() for path in work.iterdir()} == {"kept.txt": "as it was\n"}
            await running.lacks("All three are written.")

            running.type(b"\x15")  # the prompt stands in the box: clear it
            await running.shows("Type to start")
            running.type(ESC + ESC)
            await running.shows("u undo")
            running.type("u")
            await running.shows("All three are written.")
            await running.until(lambda: (work / "kept.txt").read_text() == "changed\n", "the files again")
            assert (work / "one.txt").read_text() == "first\n"
            assert (work / "two.txt").read_text() == "second\n"
    assert rows(phoenix, "SELECT COUNT(*) FROM conversations WHERE branch_of IS NOT NULL") == [(1,)]


async def test_what_a_script_did_can_be_taken_back_in_the_screen(tmp_path: Path) -> None:
    async with serve(calls("bash", command="echo changed > kept.txt"), says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.cwd / "kept.txt").write_text("as it was\n")
        ran = await phoenix.run("-p", "--permission-mode", "auto", "Change it")
        assert (ran.code, (phoenix.cwd / "kept.txt").read_text()) == (0, "changed\n")
        async with program(phoenix, "-c", columns=80, rows=24) as running:
            await running.shows("Done.", "ready")
            running.type(ESC + ESC)
            await running.shows("Change it", "1 file")
            running.type(DOWN + ENTER)
            await running.shows("restores 1 file")
            running.type(DOWN + DOWN + ENTER)
            await running.shows("1 file restored.", "Done.")
            assert (phoenix.cwd / "kept.txt").read_text() == "as it was\n"
