"""Agent profiles: built in, the user's, the project's, and files with a mistake."""

from __future__ import annotations

from typing import Final

from phoenix_tui.config.trust import find_project
from screenshots.scenes_profiles import MINE, PROJECTS, written
from tests.snapshots.booth import SMALL, Booth
from tests.support.fake_profiles import FakeProfiles


async def profiles(place: Booth) -> None:
    """The list, one of the user's, what is wrong with a file, a new one."""
    written(place.cwd / "profiles", MINE)
    written(place.cwd / ".phoenix" / "profiles", {"release": PROJECTS, "review": PROJECTS})
    known = FakeProfiles(place.cwd)
    known.real.trust.answer(find_project(place.cwd), trusted=True)
    async with place.opened(services={"profiles": known}) as shell:
        await shell.type("/profile")
        await shell.pilot.press("escape", "enter")
        await shell.until(lambda: shell.is_page("Profiles"))
        await place.take(shell, "list")
        await shell.pilot.press(*["down"] * 5)
        await shell.until(lambda: "› migrations" in shell.text)
        await place.take(shell, "own")
        await shell.pilot.press("space")
        await shell.until(lambda: "max_turns: 12" in shell.text)
        await place.take(shell, "read", (SMALL,))
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.is_page("Profiles"))
        await shell.pilot.press("pageup")
        await shell.until(lambda: "triage.md, line 3" in shell.text)
        await place.take(shell, "trouble")
        await shell.pilot.press("n")
        await shell.until(lambda: "Name of the new profile" in shell.text)
        await shell.type("mine")
        await shell.pilot.press("enter")
        await shell.until(lambda: "a template with explanations" in shell.text)
        await place.take(shell, "new", (SMALL,))


SCENES: Final = {"profiles": profiles}
