"""Tabs of the sheets that belong to one command (docs/decisions/surface.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.executor.requests import EngineError
from phoenix_tui.features.catalogue import ALIASES, REGISTRY, SlashCommand
from tools.clean import clean_line

if TYPE_CHECKING:
    from phoenix_tui.features.front_end import FrontEnd


def tabs_of(group: str) -> Sequence[SlashCommand]:
    """Commands whose sheets are the tabs of this command's sheet, in their order; empty where it has no tabs."""
    titles = dict.fromkeys(one.tab for one in REGISTRY if one.tab and group == (one.shown_in or one.name))
    return [next(one for one in REGISTRY if one.tab == title) for title in titles]


def find_tab(name: str, argument: str) -> tuple[str, str] | None:
    """The sheet with tabs and the tab that a typed command opens, by the names of their commands; None for a command
    that does something else. The tab is empty for the first one, which a listed command opens without an argument.
    """
    command = next((one for one in REGISTRY if one.name == name), None)
    tabs = tabs_of(command.shown_in or name) if command is not None else ()
    if command is None or not tabs:
        return None
    if command.shown_in:
        same = [one.name for one in tabs if one.tab == command.tab]
        return (command.shown_in, same[0]) if same and not argument else None
    wanted = ALIASES.get(argument.lower(), argument.lower())
    return (name, wanted) if wanted in {"", *(one.name for one in tabs)} else None


async def refuse(_: FrontEnd, argument: str) -> None:
    """`/extensions` with a word that is no tab. Raises EngineError."""
    names = ", ".join(one.name for one in tabs_of("extensions"))
    raise EngineError(f"There is no /extensions {clean_line(argument)}; there are {names}.")


def title_of(tab: SlashCommand, front: FrontEnd) -> str:
    """Title of the tab of a command, with a figure where it means something."""
    count = ""
    if tab.name == "todo" and front.conversation is not None:
        count = front.conversation.todos.now.progress
    elif tab.name == "rules":
        folder = front.conversation.record.cwd if front.conversation is not None else front.launch.cwd
        count = str(len(front.services.engine.rules.all(folder)) or "")
    return f"{tab.tab} {count}".rstrip()
