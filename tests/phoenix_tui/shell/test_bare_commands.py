"""Slash commands without an argument: the sheet of each, in an empty conversation and in a used one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from engine.machine.states import Idle
from phoenix_tui.commands.bare import ACTING
from phoenix_tui.features.catalogue import BY_NAME, LISTED
from tests.support.shell import Shell

SHEETS: Final = {
    "resume": ("TextSheet|PickerSheet", "PickerSheet"),
    "rename": ("TextSheet|LineSheet", "LineSheet"),
    "fork": ("", ""),
    "diff": ("ChangesSheet", "ChangesSheet"),
    "rewind": ("TextSheet", "TextSheet"),
    "branches": ("TextSheet", "TextSheet"),
    "context": ("TextSheet", "ContextSheet"),
    "memory": ("TextSheet", "TextSheet"),
    "model": ("ModelSheet", "ModelSheet"),
    "effort": ("TextSheet", "TextSheet"),
    "agents": ("TextSheet", "TextSheet"),
    "profile": ("PageSheet", "PageSheet"),
    "plan": ("PageSheet", "PageSheet"),
    "permissions": ("PickerSheet", "PickerSheet"),
    "extensions": ("TextSheet", "TextSheet"),
    "cost": ("TextSheet", "TextSheet"),
    "jobs": ("TextSheet", "TextSheet"),
    "search": ("SearchSheet", "SearchSheet"),
    "export": ("", ""),
    "split": ("PickerSheet", "PickerSheet"),
    "worktree": ("TextSheet", "TextSheet"),
    "config": ("SettingsSheet", "SettingsSheet"),
    "theme": ("ThemeSheet", "ThemeSheet"),
    "help": ("HelpSheet", "HelpSheet"),
    "doctor": ("TextSheet", "TextSheet"),
}
"""Sheet of each command in an empty conversation and in a used one; empty where it can act, and says so."""
ELSEWHERE: Final = {"compact", "init", "review"}
"""Commands that need a real engine."""


def test_the_table_has_every_listed_command_that_opens_something() -> None:
    required = {one.name for one in LISTED if one.required}
    assert SHEETS.keys() == {one.name for one in LISTED} - ACTING - ELSEWHERE - required


@pytest.mark.parametrize("used", [False, True], ids=["empty", "used"])
@pytest.mark.parametrize("name", SHEETS)
async def test_a_bare_command_opens_its_sheet_and_answers_with_no_notice(shell: Shell, name: str, used: bool) -> None:
    if used:
        (await shell.say("go")).become(Idle(4))
    sheet = SHEETS[name][used]
    await shell.enter(f"/{name}", until=lambda: shell.top is not shell.screen or shell.toasts)
    assert not (sheet and shell.toasts)
    assert not sheet or type(shell.top).__name__ in sheet.split("|")
    if sheet:
        await shell.press("escape", until=lambda: shell.top is shell.screen)


async def test_a_sheet_without_content_says_what_the_command_is_for_and_how_to_begin(shell: Shell) -> None:
    await shell.enter("/jobs", shows="/background sends the running")
    assert BY_NAME["jobs"].meaning[1:] in shell.text
    await shell.press("escape", until=lambda: shell.top is shell.screen)


def make_repository(folder: Path) -> None:
    for arguments in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@f", *arguments], cwd=folder, check=True)


async def test_a_worktree_without_a_name_is_asked_for_and_none_is_made(open_shell: Any, tmp_path: Path) -> None:
    make_repository(tmp_path)
    async with open_shell() as shell:
        before = sorted(tmp_path.parent.iterdir())
        await shell.enter("/worktree", shows="Name of the new worktree")
        await shell.press("escape", until=lambda: shell.top is shell.screen)
        assert sorted(tmp_path.parent.iterdir()) == before
