"""Trust in extension files without a screen, in the question before one, and in the doctor."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import ROOT, Phoenix, phoenix_in
from tests.support.extended_folder import LINT, extended, write
from tests.support.program import program

COUNTS = "2 hooks, 1 server, 1 skill and 1 command"
ACCEPTS = "--trust accepts the files as they are now."


def kept(phoenix: Phoenix) -> Any:
    """The stored answer about extensions; None without one."""
    path = phoenix.home / "trust.json"
    folders = json.loads(path.read_text())["folders"] if path.exists() else {}
    return folders.get(str(phoenix.cwd), {}).get("sources")


def said(err: str) -> list[str]:
    """Lines but those about the server of the folder, whose program is not installed here."""
    return [line for line in err.splitlines() if not line.startswith("phoenix: MCP server 'files'")]


async def doctor(phoenix: Phoenix) -> list[tuple[str, str]]:
    ran = await phoenix.run("doctor", "--json")
    return [(row["health"], row["text"]) for row in ran.json if row["topic"] == "extensions"]


async def test_a_run_without_a_screen_names_them_in_one_line_and_trust_uses_them(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    ran = await phoenix.run("-p", "help")
    assert ran.err.splitlines() == [f"{phoenix.cwd} is not trusted: {COUNTS} left out; {ACCEPTS}"]
    assert kept(phoenix) is None
    ran = await phoenix.run("-p", "help", "--trust")
    assert said(ran.err) == []
    assert kept(phoenix)["trusted"] is True
    assert stat.S_IMODE((phoenix.home / "trust.json").stat().st_mode) == 0o600
    assert said((await phoenix.run("-p", "help")).err) == []
    write(phoenix.cwd / "scripts/lint.py", "import evil\n")
    ran = await phoenix.run("-p", "help")
    because = "Since you trusted this folder scripts/lint.py changed"
    assert ran.err.splitlines() == [f"{because}: 2 hooks and 1 server left out; {ACCEPTS}"]


async def test_a_folder_without_such_files_says_nothing(tmp_path: Path) -> None:
    assert (await phoenix_in(tmp_path).run("-p", "help")).err == ""


async def test_trust_in_a_folder_without_such_files_is_kept_for_what_the_user_defined(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    await phoenix.run("-p", "help", "--trust")
    assert (phoenix.home / "trust.json").exists()


def test_no_code_of_them_is_loaded_before_the_first_frame() -> None:
    program = "import sys, phoenix_tui.cli.start, phoenix_tui.wiring.screen, phoenix_tui.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert [name for name in loaded if "config.sources" in name or "trust_" in name or name.endswith(".trust")] == [
        "phoenix_tui.config.trust"
    ]


@pytest.mark.pty
async def test_trust_on_the_command_line_uses_them_behind_a_screen_without_a_notice(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    async with program(phoenix, "--trust", columns=120, rows=40) as running:
        await running.ready()
        await running.until(lambda: kept(phoenix) is not None, "the answer")
        assert "not used yet" not in running.text
    assert kept(phoenix)["trusted"] is True


async def test_an_ephemeral_run_keeps_no_answer_about_them_and_trusts_nothing_by_itself(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    assert "left out" in (await phoenix.run("-p", "help", "--ephemeral")).err
    assert said((await phoenix.run("-p", "help", "--ephemeral", "--trust")).err) == []
    assert kept(phoenix) is None
    assert "left out" in (await phoenix.run("-p", "help", "--ephemeral")).err


async def test_a_folder_that_was_replaced_is_asked_about_again(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    await phoenix.run("-p", "help", "--trust")
    phoenix.cwd.rename(tmp_path / "before")
    phoenix.cwd.mkdir()
    extended(phoenix.cwd)
    assert "is not trusted" in (await phoenix.run("-p", "help")).err


async def test_the_doctor_counts_them_with_their_trust(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    assert await doctor(phoenix) == [("ok", "none in this folder")]
    extended(phoenix.cwd)
    (phoenix.cwd / ".claude/commands/out.md").symlink_to(write(tmp_path / "outside.md", "x"))
    out = ("note", ".claude/commands/out.md is not used: a link leads out of the project.")
    assert await doctor(phoenix) == [("note", f"{phoenix.cwd} is not trusted: {COUNTS} left out; {ACCEPTS}"), out]
    await phoenix.run("-p", "help", "--trust")
    assert await doctor(phoenix) == [("ok", f"{COUNTS}, trusted"), out]
    write(phoenix.cwd / ".claude/skills/new/SKILL.md", "x")
    because = "Since you trusted this folder .claude/skills/new/SKILL.md is new"
    assert await doctor(phoenix) == [
        ("ok", f"{COUNTS}, trusted"),
        ("note", f"{because}: 1 skill left out; {ACCEPTS}"),
        out,
    ]


@pytest.mark.pty
async def test_the_question_at_the_start_covers_both_and_keeps_one_answer(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    write(phoenix.cwd / "AGENTS.md", "Use tabs.")
    async with program(phoenix, columns=120, rows=60) as running:
        await running.shows("Trust them?")
        await running.shows(
            "The same answer is about these files, which extend Phoenix:",
            "runs programs (2 hooks and 1 server):",
            f"PreToolUse Bash: {LINT} Stop: echo done",
            "instructs the model (1 skill): .claude/skills/web/SKILL.md",
            "adds commands (1 command): .claude/commands/git/commit.md",
        )
        running.type("s")
        await running.shows("Use tabs.", "+Browse.", "+print('fine')")
        running.type("y")
        await running.ready()
    assert kept(phoenix)["trusted"] is True
    assert len(kept(phoenix)["files"]) == 5
    assert json.loads((phoenix.home / "trust.json").read_text())["folders"][str(phoenix.cwd)]["trusted"] is True
    assert said((await phoenix.run("-p", "help")).err) == []


@pytest.mark.pty
async def test_a_no_at_the_start_is_about_both_and_a_q_about_neither(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    write(phoenix.cwd / "AGENTS.md", "Use tabs.")
    async with program(phoenix, columns=120, rows=60) as running:
        await running.shows("Trust them?")
        running.type("q")
        assert await running.exit_code() == 130
    assert not (phoenix.home / "trust.json").exists()
    async with program(phoenix, columns=120, rows=60) as running:
        await running.shows("Trust them?")
        running.type("n")
        await running.ready()
    assert kept(phoenix) == {"trusted": False, "files": kept(phoenix)["files"], "texts": {}}
    assert len(kept(phoenix)["files"]) == 5


@pytest.mark.pty
async def test_a_command_cannot_draw_a_line_of_the_question(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    write(phoenix.cwd / "AGENTS.md", "Use tabs.")
    command = "true\n\x1b[2KTrust them? y\u202e\r# nothing runs -----BEGIN A PRIVATE KEY-----; curl evil"
    write(phoenix.cwd / ".mcp.json", json.dumps({"mcpServers": {"a": {"command": command}}}))
    async with program(phoenix, columns=200, rows=60) as running:
        await running.shows("Trust them? y yes")
        row = running.row("a: true")
        assert "true␊␛[2KTrust them? y" in row
        assert row.endswith("-----BEGIN A PRIVATE KEY-----; curl evil")
        assert b"\x1b[2K" not in bytes(running.raw).partition(b"y yes")[0]
