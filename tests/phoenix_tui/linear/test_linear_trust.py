"""Extensions of a folder in lines: trust, language servers, MCP servers, `/init` and notes."""

from __future__ import annotations

import json
from pathlib import Path

from phoenix_tui.wiring.edit_services import FILE
from tests.support.cli import phoenix_in
from tests.support.extended_folder import KEY, LINT, extended, write
from tests.support.journeys import Claude, calls, says
from tests.support.language_servers import PYTHON, SCRIPT
from tests.support.mcp_phoenix import SERVER, servers_json
from tests.support.program import in_lines, program


async def test_files_are_listed_read_and_used_by_numbers(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    async with program(phoenix, "--screen-reader", rows=200, columns=400) as running:
        await running.shows("that are not used yet; /trust shows them.")
        running.type("/mcp\r")
        await running.shows("Not used before your yes: 1 server of this folder; see /trust.", "No MCP servers here.")
        running.type("/trust\r")
        await running.shows(f"Runs programs: .claude/settings.json, new: PreToolUse Bash: {LINT} · Stop: echo done")
        await running.shows("1. use all of them", "2. use none of them", "3. show one", "Number, or Enter for none:")
        assert KEY not in running.text
        await running.press("3\r", "3. scripts/lint.py, new: program")
        await running.press("3\r", "scripts/lint.py: print('fine')")
        await running.press("1\r", "Used from now on: 2 hooks, 1 server, 1 skill and 1 command.")
        write(phoenix.cwd / "scripts/lint.py", "import evil\n")
        await running.press("/trust\r", "scripts/lint.py, changed: program")
        running.type("\r")
    kept = json.loads((phoenix.home / "trust.json").read_text())["folders"][str(phoenix.cwd)]["sources"]
    assert kept["trusted"] is True
    assert len(kept["files"]) == 5


async def test_no_answer_keeps_nothing_and_a_folder_without_such_files_says_so(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with in_lines(phoenix, columns=400) as running:
        await running.press("/trust\r", "Nothing extends Phoenix in this folder")
        await running.shows("start in a folder of their own")
        running.type("\r")
        extended(phoenix.cwd)
        await running.press("/trust\r", "1. use all of them")
        running.type("\r")
        await running.until(lambda: running.text.rstrip().endswith("You:"))
    assert not (phoenix.home / "trust.json").exists()


async def test_a_folder_without_such_files_is_trusted_for_what_the_user_defined(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with in_lines(phoenix, columns=400) as running:
        await running.press("/trust\r", "1. start them here", "2. start them in a folder of their own")
        await running.press("1\r", "Hooks and servers that you defined yourself start in this folder.")
    kept = json.loads((phoenix.home / "trust.json").read_text())["folders"][str(phoenix.cwd)]["sources"]
    assert (kept["trusted"], kept["files"]) == (True, {})


SCRIPTED = f'[lsp.scripted]\ncommand = ["{PYTHON}", "-S", "{SCRIPT}", "pull"]\nfiles = ["*.py"]\n'
ALLOW = "Let servers run what this folder contains"
FORBID = "No longer let servers run what this folder contains"


async def test_the_yes_is_asked_for_kept_and_taken_back(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.home / "config.toml").write_text(f"{SCRIPTED}[lsp.bad]\nfiles = 3\n")
    async with in_lines(phoenix, columns=160) as running:
        await running.press("/lsp\r", "Language servers, which check edited files", ALLOW, "[lsp.bad] is left out")
        number = next(line for line in running.text.splitlines() if ALLOW in line).partition(".")[0].strip()
        await running.press(f"{number}\r", "Some language servers run what a project contains")
        await running.press("2\r", "Language servers may run what")
        assert list(json.loads((phoenix.home / FILE).read_text())["folders"]) == [str(phoenix.cwd)]
        await running.press("/lsp\r", FORBID)
        number = next(line for line in running.text.splitlines() if FORBID in line).partition(".")[0].strip()
        await running.press(f"{number}\r", "Language servers run nothing of")
        assert json.loads((phoenix.home / FILE).read_text())["folders"] == {}
        await running.press("/lsp none-such\r", "There is no language server none-such; /lsp lists all.")


async def test_a_running_server_is_read_and_ended(claude: Claude) -> None:
    writes = calls("write_file", path="a.py", content="this is wrong\n")
    phoenix, _ = await claude(writes, says("Done."))
    (phoenix.home / "config.toml").write_text(SCRIPTED)
    (phoenix.home / FILE).write_text(json.dumps({"folders": {str(phoenix.cwd): identity(phoenix.cwd)}}))
    async with in_lines(phoenix, "--permission-mode", "auto", columns=160) as running:
        await running.press("write it\r", "Assistant: Done.", "  scripted: ")
        await running.press("/lsp scripted\r", "1. Show it", "2. End it; the next edit starts it again")
        await running.press("2\r", "scripted has ended; the next edit starts it again.")
        await running.press("/lsp scripted\r", "not started", "files      *.py")


def identity(folder: Path) -> list[int]:
    status = folder.stat()
    return [status.st_dev, status.st_ino]


async def test_a_rewind_restores_the_text_before_an_edit_and_its_formatter(claude: Claude) -> None:
    edits = [{"op": "append", "new": "more\n"}]
    answers = (calls("read_file", path="a.py"), calls("patch", path="a.py", edits=edits), says("Done."))
    phoenix, _ = await claude(*answers)
    upper = "import sys; sys.stdout.write(sys.stdin.read().upper())"
    (phoenix.home / "config.toml").write_text(f'[format]\n"*.py" = ["{PYTHON}", "-S", "-c", "{upper}"]\n')
    (phoenix.home / FILE).write_text(json.dumps({"folders": {str(phoenix.cwd): identity(phoenix.cwd)}}))
    (phoenix.cwd / "a.py").write_text("old\n")
    async with in_lines(phoenix, "--permission-mode", "auto", columns=160) as running:
        await running.press("go\r", "Assistant: Done.", "a.py, 2 lines added, 1 removed")
        assert (phoenix.cwd / "a.py").read_text() == "OLD\nMORE\n"
        await running.press("/rewind\r", "1. go, ")
        await running.press("1\r", "1. Conversation and files")
        await running.press("1\r", "1 file restored.")
        assert (phoenix.cwd / "a.py").read_text() == "old\n"


async def test_servers_are_listed_read_and_connected_again_by_numbers(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    given = servers_json(kinds=SERVER, gone={"command": "/no/such"})
    async with in_lines(phoenix, "--mcp-config", given, columns=400) as running:
        await running.press("/mcp\r", "1. gone, ", "2. kinds, ")
        await running.press("1\r", "1. Show details", "4. End it")
        running.type("2\r")  # the list waits for a start for half a second, to connect again for its outcome
        await running.shows("gone: failed: it cannot be started")
        await running.press("/mcp\r2\r2\r", "kinds: connected.")
        running.type("/mcp\r")
        await running.shows("1. gone, failed, stdio: it cannot be started", "2. kinds, connected, stdio: 25 tools")
        await running.press("2\r1\r", "mcp__kinds__echo", "Use with care.")
        await running.press("/mcp\r2\r3\r", "kinds is off in this conversation")
        await running.press("/mcp\r", "2. kinds, off, stdio: switched off in this conversation")


async def test_the_guide_shows_the_facts_and_writes_them_after_a_yes(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (phoenix.cwd / "Makefile").write_text("test:\n\ttrue\n")
    path = phoenix.cwd / "AGENTS.md"
    async with in_lines(phoenix) as running:
        await running.press("/init\r", "- `make test`", "Write AGENTS.md?", "1. leave it", "2. write it")
        running.type("1\r")
        await running.until(lambda: running.words.endswith("You:"), "it is left")
        assert not path.exists()
        await running.press("/init\r2\r", "AGENTS.md is written.")
        assert path.read_text() == "# work\n\n## Commands\n\n- `make test`\n"
        await running.press("/init\r", "AGENTS.md contains these facts already.")
        path.write_text("Mine.\n")
        await running.press("/init\r", "-Mine.", "+# work", "Replace the existing AGENTS.md?")
        running.type("\r")
        await running.until(lambda: running.words.endswith("You:"), "it is left")
    assert path.read_text() == "Mine.\n"


async def test_a_file_that_leads_elsewhere_is_not_replaced(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    (tmp_path / "outside").write_text("Mine.\n")
    (phoenix.cwd / "AGENTS.md").symlink_to(tmp_path / "outside")
    async with in_lines(phoenix) as running:
        await running.press("/init\r", "Refused: AGENTS.md")
    assert (tmp_path / "outside").read_text() == "Mine.\n"


async def test_a_model_is_asked_for_the_file_in_one_visible_message(claude: Claude) -> None:
    phoenix, server = await claude(says("I look first."))
    (phoenix.cwd / "go.mod").write_text("module x\n")
    async with in_lines(phoenix) as running:
        running.type("/init\r")
        await running.shows("Write AGENTS.md in the working directory", "- `go test ./...`", "I look first.")
    said = json.dumps(server.requests[0].json["messages"])
    assert said.count("Write AGENTS.md in the working directory") == 1
    assert not (phoenix.cwd / "AGENTS.md").exists()


async def test_a_file_that_a_rule_denies_to_read_gives_no_fact_and_is_not_replaced(
    claude: Claude, tmp_path: Path
) -> None:
    phoenix, server = await claude(says("I look first."))
    (phoenix.cwd / "README.md").write_text("A secret plan.\n")
    (phoenix.cwd / "go.mod").write_text("module x\n")
    denied = ("--disallowed-tools", "read_file(README.md),read_file(AGENTS.md)")
    async with in_lines(phoenix, *denied) as running:
        (phoenix.cwd / "AGENTS.md").write_text("Mine.\n")
        await running.press("/init\r", "I look first.")
    said = json.dumps(server.requests[0].json["messages"])
    assert "secret plan" not in said
    assert "`go test ./...`" in said
    (tmp_path / "guide").mkdir()
    guide = phoenix_in(tmp_path / "guide")
    async with in_lines(guide, "--disallowed-tools", "read_file(AGENTS.md)") as running:
        (guide.cwd / "AGENTS.md").write_text("Mine.\n")
        await running.press("/init\r", "A rule denies to read AGENTS.md")
    assert (guide.cwd / "AGENTS.md").read_text() == "Mine.\n"


async def test_a_note_is_read_deleted_and_restored_by_numbers(claude: Claude) -> None:
    phoenix, _ = await claude()
    note = phoenix.home / "memory" / "user" / "2026-11-20.md"
    note.parent.mkdir(parents=True)
    note.write_text("short answers\x1b[2J\nand tabs\n")
    async with in_lines(phoenix, columns=400) as running:
        running.type("/memory\r")
        await running.shows("Notes:", "1. 2026-11-20, Yours, in every project, ~6 tokens: short answers")
        await running.press("1\r", "1. read it", "2. show its path, to edit it", "3. delete it")
        await running.press("1\r", "and tabs")
        await running.press("/memory\r", "Notes:")
        await running.press("1\r", "3. delete it")
        await running.press("3\r", "2026-11-20 deleted; /memory undo restores it.")
        assert not note.exists()
        await running.press("/memory\r", "There are no notes yet.")
        await running.press("/memory undo\r", "2026-11-20 restored.")
    assert note.read_text() == "short answers\x1b[2J\nand tabs\n"
