"""Alt+Q puts the draft aside and brings it back; /stash lists the drafts."""

from __future__ import annotations

from typing import Any

from phoenix_tui.features.composing import DraftStash
from phoenix_tui.modals.rows_sheet import PickerSheet
from tests.phoenix_tui.shell.conftest import OpenLive


def kept(shell: Any) -> list[str]:
    launch = shell.ctx.active.launch
    return [one.text for one in DraftStash(launch.state_folder, launch.cwd).all()]


async def test_alt_q_puts_the_draft_aside_and_brings_the_newest_back(open_live: OpenLive) -> None:
    async with open_live((120, 40)) as shell:
        for text in ("first thought", "second thought"):
            await shell.type(text)
            await shell.pilot.press("alt+q")
            await shell.until(lambda: shell.composer.text == "")
        assert kept(shell) == ["second thought", "first thought"]
        assert shell.toasts[-1].startswith("Put aside (2 drafts). Alt+Q on an empty line brings it back")
        await shell.pilot.press("alt+q")
        await shell.until(lambda: shell.composer.text == "second thought")
        assert kept(shell) == ["first thought"]


async def test_without_a_draft_it_says_so(open_live: OpenLive) -> None:
    async with open_live((120, 40)) as shell:
        await shell.pilot.press("alt+q")
        await shell.until(lambda: shell.toasts)
        assert shell.toasts == ["No draft is put aside."]


async def test_a_draft_chosen_in_the_list_changes_places_with_the_one_being_written(open_live: OpenLive) -> None:
    async with open_live((120, 40)) as shell:
        await shell.type("/stash an old idea")
        await shell.pilot.press("enter")
        await shell.until(lambda: kept(shell) == ["an old idea"])
        await shell.type("half a sentence")
        shell.screen.action_command("stash")
        await shell.until(lambda: isinstance(shell.top, PickerSheet) and "an old idea" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.composer.text == "an old idea")
        assert kept(shell) == ["half a sentence"]
