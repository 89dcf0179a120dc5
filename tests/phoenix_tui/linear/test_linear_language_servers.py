"""/lsp in lines: servers listed, the yes for a folder given and taken back, a server read and ended."""

from __future__ import annotations

import json
from pathlib import Path

from phoenix_tui.wiring.edit_services import FILE
from tests.support.cli import phoenix_in, with_claude
from tests.support.journeys import calls, says
from tests.support.language_servers import PYTHON, SCRIPT
from tests.support.loopback import serve
from tests.support.program import program

SERVER = f'[lsp.scripted]\ncommand = ["{PYTHON}", "-S", "{SCRIPT}", "pull"]\nfiles = ["*.py"]\n'
ALLOW = "Let servers run what this folder contains"
FORBID = "No longer let servers run what this folder contains"


async def test_the_yes_is_asked_for_kept_and_taken_back(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.home / "config.toml").write_text(f"{SERVER}[lsp.bad]\nfiles = 3\n")
    async with program(phoenix, "--screen-reader", rows=200, columns=160) as running:
        await running.shows("You:")
        running.type("/lsp\r")
        await running.shows("Language servers, which check edited files", ALLOW, "[lsp.bad] is left out")
        number = next(line for line in running.text.splitlines() if ALLOW in line).partition(".")[0].strip()
        running.type(f"{number}\r")
        await running.shows("Some language servers run what a project contains")
        running.type("2\r")
        await running.shows("Language servers may run what")
        assert list(json.loads((phoenix.home / FILE).read_text())["folders"]) == [str(phoenix.cwd)]
        running.type("/lsp\r")
        await running.shows(FORBID)
        number = next(line for line in running.text.splitlines() if FORBID in line).partition(".")[0].strip()
        running.type(f"{number}\r")
        await running.shows("Language servers run nothing of")
        assert json.loads((phoenix.home / FILE).read_text())["folders"] == {}
        running.type("/lsp none-such\r")
        await running.shows("There is no language server none-such; /lsp lists all.")


async def test_a_running_server_is_read_and_ended(tmp_path: Path) -> None:
    writes = calls("write_file", path="a.py", content="this is wrong\n")
    async with serve(writes, says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.home / "config.toml").write_text(SERVER)
        (phoenix.home / FILE).write_text(json.dumps({"folders": {str(phoenix.cwd): identity(phoenix.cwd)}}))
        async with program(phoenix, "--screen-reader", "--permission-mode", "auto", rows=200, columns=160) as running:
            await running.shows("You:")
            running.type("write it\r")
            await running.shows("Assistant: Done.", "  scripted: ")
            running.type("/lsp scripted\r")
            await running.shows("1. Show it", "2. End it; the next edit starts it again")
            running.type("2\r")
            await running.shows("scripted has ended; the next edit starts it again.")
            running.type("/lsp scripted\r")
            await running.shows("not started", "files      *.py")


def identity(folder: Path) -> list[int]:
    status = folder.stat()
    return [status.st_dev, status.st_ino]


async def test_a_rewind_restores_the_text_before_an_edit_and_its_formatter(tmp_path: Path) -> None:
    edits = [{"op": "append", "new": "more\n"}]
    answers = (calls("read_file", path="a.py"), calls("patch", path="a.py", edits=edits), says("Done."))
    async with serve(*answers) as server:
        phoenix = with_claude(tmp_path, server.url)
        upper = "import sys; sys.stdout.write(sys.stdin.read().upper())"
        (phoenix.home / "config.toml").write_text(f'[format]\n"*.py" = ["{PYTHON}", "-S", "-c", "{upper}"]\n')
        (phoenix.home / FILE).write_text(json.dumps({"folders": {str(phoenix.cwd): identity(phoenix.cwd)}}))
        (phoenix.cwd / "a.py").write_text("old\n")
        async with program(phoenix, "--screen-reader", "--permission-mode", "auto", rows=200, columns=160) as running:
            await running.shows("You:")
            running.type("go\r")
            await running.shows("Assistant: Done.", "a.py, 2 lines added, 1 removed")
            assert (phoenix.cwd / "a.py").read_text() == "OLD\nMORE\n"
            running.type("/rewind\r")
            await running.shows("1. go, ")
            running.type("1\r")
            await running.shows("1. Conversation and files")
            running.type("1\r")
            await running.shows("1 file restored.")
            assert (phoenix.cwd / "a.py").read_text() == "old\n"
