"""Commands with tabs in lines: a number or a name leads to each, and each says something."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.tabs import tabs_of
from tests.support.journeys import Claude, says
from tests.support.program import Program, in_lines

SAYS: Final = {
    "plan": "in plan mode the agent only reads",
    "todo": "Steps of the work at hand",
    "tasks": "There are no tasks yet",
    "permissions": "What runs without asking:",
    "sandbox": "Sandbox of this conversation:",
    "network": "Hosts that sandboxed commands may reach without a question",
    "rules": "There are no rules yet",
    "skills": "Skills are instructions",
    "commands": "Command files are prompts",
    "hooks": "Hooks are programs",
    "mcp": "No MCP servers here",
    "lsp": "Language servers",
    "trust": "Nothing extends Phoenix in this folder",
    "cost": "Nothing was sent yet",
    "stats": "No model was called in this time",
    "trace": "There are no runs to trace yet",
}
"""Words of each tab where there is nothing yet."""


async def shows_once_more(running: Program, line: str, words: str) -> None:
    """Type a line; what it shows is there again, behind what was there before."""
    before = running.words.count(words)
    running.type(f"{line}\r")
    await running.until(lambda: running.words.count(words) > before)
    running.type("\r")


async def test_each_tab_is_reached_by_its_number_and_by_its_name(claude: Claude) -> None:
    phoenix, _ = await claude(says("Seen."))
    async with in_lines(phoenix, columns=200) as running:
        for group in ("cost", "plan", "permissions", "extensions"):
            tabs = tabs_of(group)
            for number, tab in enumerate(tabs, 1):
                await running.press(f"/{group}\r", *(f"{at}. {one.tab}" for at, one in enumerate(tabs, 1)))
                await shows_once_more(running, f"{number}", SAYS[tab.name])
                await shows_once_more(running, f"/{group} {tab.name}", SAYS[tab.name])
        await running.press("/extensions nothing\r", "There is no /extensions nothing")
        await running.press("on\r", "Assistant: Seen.")
