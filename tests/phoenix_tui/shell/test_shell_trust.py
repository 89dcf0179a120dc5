"""/trust on the screen: files by power, the answer, the difference, the notices."""

from __future__ import annotations

import json
from pathlib import Path

from engine.machine.states import Idle
from phoenix_tui.modals.text_sheet import TextSheet
from tests.phoenix_tui.shell.conftest import OpenShell
from tests.support.extended_folder import KEY, LINT, board, extended, write
from tests.support.fake_engine import FakeEngine
from tests.support.shell import Shell

WIDE = (100, 40)
NOTICE = "This folder brings 2 hooks, 1 server, 1 skill and 1 command that are not used yet; /trust shows them."


async def listed(shell: Shell) -> None:
    await shell.type("/trust")
    await shell.pilot.press("escape", "enter")
    await shell.until(lambda: shell.is_page("Extensions of this folder"))


async def test_files_stand_by_power_with_their_commands_and_without_keys(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=board(tmp_path)) as shell:
        await listed(shell)
        order = ("Runs programs", "settings.json", ".mcp.json", "scripts/lint.py", "Instructs the model", "SKILL.md")
        places = [shell.text.index(words) for words in (*order, "Adds commands", "commit.md")]
        assert places == sorted(places)
        assert f"PreToolUse Bash: {LINT}" in shell.text
        assert "Stop: echo done" in shell.text
        await shell.pilot.press("down")
        await shell.shows("files: KEY=[redacted] npx -y 'files server'")
        assert KEY not in shell.text


async def test_y_uses_all_and_n_none(open_shell: OpenShell, tmp_path: Path, engine: FakeEngine) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await listed(shell)
        await shell.pilot.press("y")
        await shell.shows("Used from now on: 2 hooks, 1 server, 1 skill and 1 command.")
        assert len(trust.sources.current(engine.cwd).files) == 5
        await shell.pilot.press("n")
        await shell.shows("None of these files is used.")
        assert trust.sources.current(engine.cwd).files == ()
        assert trust.sources.current(engine.cwd).refused


async def test_what_changed_under_the_open_sheet_is_not_accepted_with_it(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await listed(shell)
        write(engine.cwd / "scripts/lint.py", "import evil\n")
        await shell.pilot.press("y")
        await shell.shows("Accepted as shown; 3 files changed meanwhile and not used.")
        assert {file.path.name for file in trust.sources.current(engine.cwd).files} == {"SKILL.md", "commit.md"}


async def test_a_changed_script_is_chosen_and_shown_as_its_difference(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    trust.sources.answer(engine.cwd, trusted=True)
    write(engine.cwd / "scripts/lint.py", "import \x1b[2J evil\n")
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await listed(shell)
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        await shell.shows("-print('fine')")
        assert "+import ␛[2J evil" in shell.text


async def test_the_notice_comes_once_and_again_for_a_change_when_the_terminal_gets_the_focus(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.open(shell.engine.seed("first", messages=2))
        await shell.until(lambda: shell.toasts == [NOTICE])
        trust.sources.answer(engine.cwd, trusted=True)
        write(engine.cwd / "scripts/lint.py", "import evil\n")
        shell.app.app_focus = False
        shell.app.app_focus = True
        changed = "Since you trusted this folder scripts/lint.py changed, so what runs programs is off; "
        await shell.until(lambda: shell.toasts == [NOTICE, f"{changed}/trust shows the difference."])


async def test_an_empty_conversation_shows_the_notice_in_its_panel_until_the_answer(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.shows("This folder brings 2 hooks, 1 server")
        await listed(shell)
        await shell.pilot.press("y")
        await shell.shows("Used from now on: ")
        await shell.pilot.press("escape")
        await shell.lacks("This folder brings")
        await shell.shows("Three things to try")
        assert shell.toasts == []


async def test_a_run_that_begins_looks_again(open_shell: OpenShell, tmp_path: Path, engine: FakeEngine) -> None:
    trust = board(tmp_path)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.until(lambda: trust._kept)
        extended(engine.cwd)
        await shell.type("hello")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.toasts == [NOTICE])
        assert isinstance(shell.conversation.state, Idle) is False


async def test_a_folder_with_nothing_and_a_refused_one_say_nothing(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    extended(engine.cwd)
    trust = board(tmp_path)
    trust.sources.answer(engine.cwd, trusted=False)
    async with open_shell(size=WIDE, cwd=engine.cwd, trust=trust) as shell:
        await shell.until(lambda: trust._kept)
        await listed(shell)
        await shell.shows("Not used, by your answer.")
        assert shell.toasts == []


async def test_500_files_scroll_to_the_last_and_a_hostile_name_is_one_harmless_row(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    for number in range(500):
        write(engine.cwd / f".claude/commands/{number:03}.md", "x")
    write(engine.cwd / ".claude/commands/999\n\x1b[2J\u202ename.md", "x")
    async with open_shell(size=(80, 24), cwd=engine.cwd, trust=board(tmp_path)) as shell:
        await listed(shell)
        await shell.pilot.press(*["pagedown"] * 60)
        await shell.shows("501 / 501")
        assert "999␊" in shell.text
        assert "\u202e" not in shell.text
        assert "y uses all" in shell.text


async def test_commands_without_end_leave_room_for_the_rows(
    open_shell: OpenShell, tmp_path: Path, engine: FakeEngine
) -> None:
    hooks = [{"type": "command", "command": f"echo {'x' * 300} {number}"} for number in range(400)]
    write(engine.cwd / ".claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}}))
    async with open_shell(size=(80, 24), cwd=engine.cwd, trust=board(tmp_path)) as shell:
        await listed(shell)
        assert "lines more; Enter shows the file" in shell.text
        assert "› .claude/settings.json" in shell.text
        assert "Not used yet." in shell.text
