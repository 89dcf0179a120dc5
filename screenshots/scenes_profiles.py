"""Scenes of agent profiles: the list with a broken file, one to read, beginning a new one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from screenshots.studio import Studio, screen
from tests.support.program import ESC

Scene: TypeAlias = Callable[[Studio], Awaitable[None]]
WHOLE: Final = "120x40"
"""The size at which everything is taken."""
DOWN: Final = b"\x1b[B"
MINE: Final = {
    "migrations": """---
description: Looks over database migrations for locks, lost data and steps that cannot be undone.
model: anthropic/claude-haiku-5-5
tools: [read_file, search, bash]
permission_mode: plan
max_turns: 12
timeout: 180
---
Look for locks on big tables first.
""",
    "two words": "Its name cannot be typed.",
    "translate": "---\ndescription: Keeps German and English texts alike.\nmodel: openai/gpt-5\n---\nTranslate.\n",
    "triage": "---\ndescription: Sorts new issues.\ntools: read_file, Browse\n---\nSort.\n",
}
PROJECTS: Final = "---\ndescription: Knows how relay is released.\npermission_mode: ask\n---\nRelease.\n"


async def profiles(place: Studio, name: str, columns: int, rows: int) -> None:
    """The list, one that is read, a mistake, a new one."""
    phoenix = place.phoenix()
    written(phoenix.home / "profiles", MINE)
    written(phoenix.cwd / ".phoenix" / "profiles", {"release": PROJECTS, "review": PROJECTS})
    async with screen(phoenix, "--trust", "-m", "demo/guide", columns=columns, rows=rows) as running:
        running.type("/profile\r")
        await running.shows("Profiles", "e edits")
        await place.take(f"profiles-{name}", running)
        running.type(DOWN * 5)
        await running.shows("claude-haiku-5-5")
        await place.take(f"profiles-{name}-own", running)
        if name == WHOLE:
            running.type(" ")
            await running.shows("max_turns: 12")
            await place.take(f"profiles-{name}-read", running)
            running.type(ESC)
            await running.lacks("max_turns: 12")
        running.type("\x1b[5~")
        await running.shows("triage.md, line 3")
        await place.take(f"profiles-{name}-trouble", running)
        if name != WHOLE:
            return
        running.type("n")
        await running.shows("Name of the new profile")
        running.type("release-notes\r")
        await running.shows("a template with explanations")
        await place.take(f"profiles-{name}-new", running)


def written(folder: Path, files: dict[str, str]) -> None:
    """Profiles as files."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, "utf-8")


SCENES: Final[dict[str, Scene]] = {
    f"profiles-{columns}x{rows}": partial(profiles, name=f"{columns}x{rows}", columns=columns, rows=rows)
    for columns, rows in ((60, 20), (80, 24), (120, 40), (200, 60))
}
