"""Completions while a shell line is written: Tab takes one, Enter runs what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("tab_waits")


async def test_tab_completes_from_the_folder_of_the_line_and_enter_runs_what_is_written(
    open_shell: Any, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "inner file.txt").touch()
    async with open_shell() as shell:
        conversation = await shell.say("go")
        conversation.terminal.folder = str(tmp_path / "deep")
        await shell.type("!cat inn")
        await shell.shows("Enter runs the line as it is written")
        await shell.shows("inner\\ file.txt")
        await shell.lacks("Tab for you only")
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == "!cat inner\\ file.txt ")
        await shell.type("inn")
        await shell.shows("Enter runs the line as it is written")
        await shell.pilot.press("enter")
        await shell.until(lambda: conversation.queue.waiting)
        assert conversation.queue.waiting[0].text == "!cat inner\\ file.txt inn"


async def test_tab_on_the_mark_alone_still_says_who_reads_the_output(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.say("go")
        await shell.type("!")
        await shell.shows("Tab for you only")
        await shell.pilot.press("tab")
        await shell.until(lambda: shell.composer.text == "!!")
